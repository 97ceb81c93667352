"""What a part says, on disk from the moment that it says it: a process that hangs or dies has said that much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .report import write_json


class FailedError(Exception):
    """The part ran, and what it found is wrong."""


class Journal:
    """A part's notes by name, and how it ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.details: dict[str, Any] = {}
        self._write("running", "")

    def note(self, **details: Any) -> None:
        """Keep these; a name that was noted before has its new value."""
        self.details |= details
        self._write("running", "")

    def end(self, status: str, about: str) -> None:
        """Say how it ended: "passed", "failed" or "skipped", with a sentence."""
        self._write(status, about)

    def _write(self, status: str, about: str) -> None:
        write_json(self._path, {"status": status, "about": about, "details": self.details})
