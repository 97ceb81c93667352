"""The notes of a part, written to disk at once, so that those of a process that hangs or dies are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .report import write_json


class FailedError(Exception):
    """The part ran, and its result is wrong."""


class Journal:
    """A part's notes by name, and how it ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.details: dict[str, Any] = {}
        self._write("running", "")

    def note(self, **details: Any) -> None:
        """Add details, or replace those of the same name."""
        self.details |= details
        self._write("running", "")

    def end(self, status: str, about: str) -> None:
        """Write the outcome, "passed", "failed" or "skipped", with a sentence about it."""
        self._write(status, about)

    def _write(self, status: str, about: str) -> None:
        write_json(self._path, {"status": status, "about": about, "details": self.details})
