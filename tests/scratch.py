"""Folders for the files of tests that write much."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

MEMORY = Path("/dev/shm")


def memory() -> Path | None:
    """Return a folder in memory, if there is one with enough room."""
    has_room = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 1 << 30
    return MEMORY if has_room else None
