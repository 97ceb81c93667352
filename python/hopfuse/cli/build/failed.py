"""``--failed``: a file of the passages that a reader or an encoder left out, read like any file of passages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..._validation import check_suffix, counted
from ...errors import HopfuseError, InputError
from ...extract.skips import SKIP_FAILED, Skips, check_share
from ...io.files import write_whole
from ...report.text import shorten
from ..console import note
from ..files import check_outputs

#: The column of the reason.
REASON = "failure"
#: The most passages, and characters of a reason, that are printed.
PRINTED, SHOWN = 10, 200


#: How to read passages again that an encoder refused.
RETRY = "hopfuse add with that file and --replace reads them again"
#: What a passage lacks that failed.
FACTS, VECTOR = "facts", "vector"


class Refused:
    """The passages that an encoder refuses, of which a share may be.

    Parameters
    ----------
    share : float or None
        Per cent; None is the default.
    total : int

    Attributes
    ----------
    reasons : dict of int to str
        By the row of the passage.
    """

    def __init__(self, share: float | None, total: int) -> None:
        self.reasons: dict[int, str] = {}
        self.first = 0  # row of the first passage of a batch
        self._skips = Skips(SKIP_FAILED if share is None else check_share(share), total)

    def __call__(self, at: int, error: HopfuseError) -> None:
        """Count a passage that is refused."""
        self.reasons[self.first + at] = self._skips.add(error)


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
        self._path, self._rows, self._read, self._lack = path, list[dict[str, Any]](), 0, dict[str, None]()
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

    def add(
        self, ids: Sequence[Any], reasons: Mapping[str, Mapping[int, str]], row: Callable[[int], Mapping[str, Any]]
    ) -> None:
        """Add the passages that failed of some, and write the file.

        Parameters
        ----------
        ids : sequence
            Of all passages that were read.
        reasons : mapping of str to mapping of int to str
            For what passages lack, the reason by row.
        row : callable
            Returns a passage as it was given.
        """
        self._read += len(ids)
        why: dict[int, list[str]] = {}
        for what, own in reasons.items():
            for at, reason in own.items():
                why.setdefault(at, []).append(reason)
                self._lack[what] = None
        for at, said in sorted(why.items()):
            given = {name: value for name, value in row(at).items() if value is not None}
            self._rows.append({**given, "id": ids[at], REASON: "; ".join(said)})
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
        note("\n".join([*lines, f"They have no {' or no '.join(self._lack)}. {listed}. {retry}"]))


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
