"""Files that commands write: checked before any work; passages that were left out, and facts that disagree."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import check_suffix, counted
from ..errors import HopfuseError, InputError
from ..extract import Memory
from ..index import LeftOutRow
from ..io.files import create_exclusively, sync_directory, sync_file, write_whole
from ..io.readers import REASON
from ..io.skips import SKIP_FAILED, Skips, check_share
from ..report.text import shorten
from ..stores.failures import FACTS as FACTS
from ..stores.failures import ROW, Failure
from ..stores.failures import VECTOR as VECTOR
from .console import note


def check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None], *, overwrite: bool) -> None:
    """Refuse an output that cannot be written, is also an input, or exists without ``overwrite``.

    Both mappings are from option to file, None if the option is not given.
    """
    used = {path.resolve(): option for option, path in inputs.items() if path is not None}
    for option, out in outputs.items():
        if out is None:
            continue
        if not out.parent.is_dir():
            raise InputError(
                "missing",
                option,
                "{field}: {folder} is not a folder, so {file} cannot be written; create it first",
                folder=out.parent,
                file=out,
            )
        other = used.setdefault(out.resolve(), option)
        if other != option:
            raise InputError(
                "conflict",
                option,
                "{field}: {file} is also the file of {other:@}; choose another name",
                file=out,
                other=other,
            )
        if out.exists() and not overwrite:
            raise InputError(
                "exists",
                option,
                "{field}: {file} exists; choose another name, or replace it with {@overwrite}",
                file=out,
            )


def strict_json(record: Mapping[str, Any]) -> str:
    """Return a record as strict JSON."""
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


# ---- What was kept and dropped where passages disagree: build --conflicts --------------------------------------------


def check_conflicts(path: Path | None, inputs: Mapping[str, Path | None], out: Path, *, overwrite: bool) -> None:
    """Refuse a file that cannot be written; ``inputs`` are the files read, by option, and ``out`` is the index."""
    if path is None:
        return
    check_suffix(path, "conflicts", ".jsonl")
    place, index = path.resolve(), out.resolve()
    if place == index or index in place.parents or place in index.parents:
        raise InputError(
            "conflict",
            "conflicts",
            "{field} is {given!r}, and {@out} {out!r} is the directory of the index; name a file outside it",
            given=str(path),
            out=str(out),
        )
    check_outputs({"conflicts": path}, inputs, overwrite=overwrite)


def save_with_conflicts(path: Path, memory: Memory, save: Callable[[], int]) -> int:
    """Write the conflicts to a draft, save the index, then rename the draft; return the generation.

    An index is saved only if its conflicts are on disk. If ``save`` fails, the draft is deleted and an existing file is
    kept. If the draft cannot be written, InputError is raised and nothing is saved; if it cannot be renamed, the
    InputError names the draft.
    """
    draft = path.with_name(f"{path.name}.unfinished")
    try:
        _write(draft, _conflict_lines(memory).encode())
        generation = save()
    except BaseException:
        with suppress(OSError):  # the first error is the one to report
            draft.unlink()
        raise
    try:
        os.replace(draft, path)
    except OSError as error:
        raise _unwritten(path, error, f"the index is saved, its conflicts are in {draft}") from None
    sync_directory(path.parent)
    return generation


def _write(path: Path, content: bytes) -> None:
    """Write a draft and flush it to disk."""
    try:
        path.unlink(missing_ok=True)  # left by a run that was killed
        with create_exclusively(path) as file:
            file.write(content)
            sync_file(file)
    except OSError as error:
        raise _unwritten(path, error, "nothing is saved") from None


def _unwritten(path: Path, error: OSError, result: str) -> InputError:
    return InputError(
        "failed",
        "conflicts",
        "{field}: {path} cannot be written: {reason}; {result}",
        path=path,
        reason=error.strerror,
        result=result,
    )


def _conflict_lines(memory: Memory) -> str:
    """Return a JSON line for each head and relation that passages disagree about, in order of first occurrence.

    Examples
    --------
    >>> from hopfuse.extract import Extraction, build_memory
    >>> facts = [("a", "London"), ("b", "Paris"), ("c", "Paris")]
    >>> read = [Extraction(id, "", "", (), (("Ada", "birthplace", tail),)) for id, tail in facts]
    >>> print(_conflict_lines(build_memory(read)), end="")  # doctest: +NORMALIZE_WHITESPACE
    {"head": "Ada", "relation": "birthplace", "kept": {"tail": "Paris", "count": 2, "passages": ["b", "c"]},
     "dropped": [{"tail": "London", "count": 1, "passages": ["a"]}]}
    """
    rows = (
        {
            "head": memory.entities[one.head],
            "relation": one.relation,
            "kept": _statement(memory, one.kept, one.passages),
            "dropped": [_statement(memory, tail, passages) for tail, passages in one.dropped.items()],
        }
        for one in memory.conflicts
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _statement(memory: Memory, tail: int, passages: Sequence[int]) -> dict[str, Any]:
    ids = [memory.ids[passage] for passage in passages]
    return {"tail": memory.entities[tail], "count": len(ids), "passages": ids}


# ---- Passages that a reader or an encoder left out: --failed ---------------------------------------------------------

#: The most passages, and characters of a reason, that are printed.
_PRINTED, _SHOWN = 10, 200


#: How to read passages again that an encoder refused.
RETRY = "hopfuse add with that file and --replace reads them again"
#: How to read rows of a store again, and of one that `hopfuse follow` follows.
MENDED = "Correct them in the store, and build again"
MENDED_OR_FOLLOWED = f"{MENDED}; hopfuse follow reads a row again when it changes"
#: What a passage lacks that failed.
PLACE = "place in the index"


class RefusedPassages:
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
        None prints only the passages.
    inputs : mapping of str to Path or None
        The files that are read, by option.

    Raises
    ------
    InputError
        The file cannot be written, is an input, or exists and holds something else.
    """

    def __init__(self, path: Path | None, inputs: Mapping[str, Path | None]) -> None:
        self.path, self._rows, self._read, self._lack = path, list[dict[str, Any]](), 0, dict[str, None]()
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
        self._write()

    def _write(self) -> None:
        if self.path is not None:
            _write_lines(self.path, self._rows)

    def leave_out(self, rows: Sequence[LeftOutRow], what: str) -> None:
        """Add the rows of a store that an index cannot hold; :meth:`report` says that they lack ``what``."""
        for row in rows:
            given = {} if row.table == "passages" else {"table": row.table}
            given |= {name: value for name, value in row.row.items() if value is not None}
            self._rows.append({**given, "id": row.key, REASON: row.reason})
            self._lack[what] = None
        self._read += len(rows)
        self._write()

    def report(self, retry: str) -> None:
        """Print what was left out, and how to read it again."""
        if not self._rows:
            return
        lines = [f"{counted(self._read, 'passage')} read, without {len(self._rows):,} that failed:"]
        lines += [f"  {row['id']!r}: {shorten(row[REASON], _SHOWN)}" for row in self._rows[:_PRINTED]]
        more = len(self._rows) - _PRINTED
        if more > 0:
            lines.append(f"  and {more:,} more")
        listed = "--failed FILE lists them" if self.path is None else f"They are in {self.path}"
        note("\n".join([*lines, f"They have no {' or no '.join(self._lack)}. {listed}. {retry}"]))


class FailureList:
    """Report the rows of a store that its index lacks: new entries are printed, and all are in a file.

    Parameters
    ----------
    path : Path or None
        None prints only them.

    Raises
    ------
    InputError
        The file cannot be written, or exists and holds something else.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._known = FailedFile(path, {}).path, set[Failure]()

    def begin(self, failures: Sequence[Failure]) -> None:
        """Take what was lacking before, which is not printed again."""
        self._known = set(failures)
        self.update(failures)

    def update(self, failures: Sequence[Failure]) -> None:
        """Print the failures that are new, and write the file."""
        fresh = [one for one in failures if one not in self._known]
        self._known = set(failures)
        lines = [f"{one.table} {_shown(one.key)} {_LACKS[one.lacks]}: {shorten(one.reason, _SHOWN)}" for one in fresh]
        more = len(lines) - _PRINTED
        if lines:
            note("\n".join([*lines[:_PRINTED], *([f"and {more:,} more"] if more > 0 else [])]))
        if self._path is not None:
            rows = ({"table": one.table, "key": one.key, "lacks": one.lacks, REASON: one.reason} for one in failures)
            _write_lines(self._path, rows)


#: What is said of a row that lacks something.
_LACKS = {ROW: "is left out", FACTS: "has no facts", VECTOR: "has no vector"}


def _shown(key: Any) -> str:
    """Return the key of a row: of an edge or a fact, the values that say which it is."""
    return " ".join(str(value) for _, value in key) if isinstance(key, tuple) else repr(key)


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    lines = "".join(f"{json.dumps(row, ensure_ascii=False, default=_plain)}\n" for row in rows)
    write_whole(path, lambda file: file.write(lines.encode()))


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
