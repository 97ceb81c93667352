"""``--failed``: a file of the passages that a reader left out, which is read like any file of passages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..._validation import check_suffix, counted
from ...errors import InputError
from ...extract import Memory
from ...io.files import write_whole
from ...report.text import shorten
from ..console import note
from ..files import check_outputs

#: The column of the reason.
REASON = "failure"
#: The most passages, and characters of a reason, that are printed.
PRINTED, SHOWN = 10, 200


class FailedFile:
    """The passages that were left out, written whole each time that there are more.

    Parameters
    ----------
    path : Path or None
        None prints the passages alone.
    inputs : mapping of str to Path or None
        The files that are read, by option.

    Raises
    ------
    InputError
        The file cannot be written, is an input, or exists and holds something else.
    """

    def __init__(self, path: Path | None, inputs: Mapping[str, Path | None]) -> None:
        self._path, self._rows, self._read = path, list[dict[str, Any]](), 0
        if path is None:
            return
        check_suffix(path, "failed", ".jsonl")
        check_outputs({"failed": path}, inputs, overwrite=True)
        if path.exists() and not _is_list_of_failures(path):
            raise InputError(
                "exists",
                "failed",
                "{field}: {file} exists, and does not hold passages that failed; choose another name",
                file=path,
            )

    def add(self, memory: Memory, row: Callable[[int], Mapping[str, Any]]) -> None:
        """Add the failures of passages, and write the file; ``row`` returns a passage as it was given."""
        self._read += len(memory.ids)
        for at, reason in memory.failures.items():
            given = {name: value for name, value in row(at).items() if value is not None}
            self._rows.append({**given, "id": memory.ids[at], REASON: reason})
        if self._path is not None:
            lines = "".join(f"{json.dumps(row, ensure_ascii=False, default=_plain)}\n" for row in self._rows)
            write_whole(self._path, lambda file: file.write(lines.encode()))

    def report(self, retry: str) -> None:
        """Print what was left out, and how to read it again."""
        if not self._rows:
            return
        lines = [f"{counted(self._read, 'passage')} read, without {len(self._rows):,} that failed:"]
        lines += [f"  {row['id']!r}: {shorten(row[REASON], SHOWN)}" for row in self._rows[:PRINTED]]
        more = len(self._rows) - PRINTED
        if more > 0:
            lines.append(f"  and {more:,} more")
        listed = "--failed FILE lists them" if self._path is None else f"They are in {self._path}"
        note("\n".join([*lines, f"They have no facts. {listed}. {retry}"]))


def _is_list_of_failures(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            first = file.readline()
        return not first or REASON in json.loads(first)
    except (OSError, ValueError, TypeError, RecursionError):
        return False


def _plain(value: Any) -> Any:
    """Return NumPy's scalars and arrays as JSON has them, and a time in ISO 8601."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
