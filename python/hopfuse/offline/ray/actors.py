"""What runs in Ray's processes: the actor that makes parts, with its copy of the index, and the reader of parts."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import HopfuseError, error_of
from ..folder import Folder
from ..parts import Row
from ..plan import Plan, open_index
from ..scoring import OpenScorer, PartMaker
from ..workers import portable


class PartActor:
    """Makes parts, and opens the scorer at the first. Errors are returned as rows, since Ray would retry exceptions."""

    def __init__(self, folder: Path, open_scorer: OpenScorer, chunk: int, copies: Path | None) -> None:
        self._folder, self._open, self._chunk, self._copies = Folder(folder), open_scorer, chunk, copies
        self._maker: PartMaker | None = None

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        try:
            if self._maker is None:
                self._maker = self._opened()
            self._maker.make(int(batch["part"][0]))
        except Exception as error:
            return {"part": batch["part"], "error": [row_of_error(error)]}
        return {"part": batch["part"], "error": [""]}

    def _opened(self) -> PartMaker:
        self._folder.check()  # hopfuse and the files on this node must be the plan's
        plan = self._folder.plan
        return PartMaker(
            self._folder, self._open(plan if self._copies is None else copied(plan, self._copies), 1), self._chunk
        )


class PartReader:
    """Reads the rows of a part."""

    def __init__(self, folder: Path) -> None:
        self._folder = Folder(folder)

    def __call__(self, row: Mapping[str, Any]) -> list[Row]:
        return list(self._folder.rows_of(int(row["part"])))


def copied(plan: Plan, copies: Path) -> Plan:
    """Return the plan with a copy of its index in a folder; the first actor on a machine makes the copy.

    Parameters
    ----------
    plan : Plan
    copies : Path
        A folder on this machine's own disk, which is made if it does not exist.

    Raises
    ------
    InputError
        The index is not the plan's.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import hopfuse as hf
    >>> from hopfuse.offline import make_plan
    >>> from hopfuse.offline.ray import copied
    >>> with tempfile.TemporaryDirectory() as name:
    ...     place = pathlib.Path(name)
    ...     generation = hf.Index.build(passages=[{"text": "A river."}]).save(place / "index")
    ...     size = (place / "queries.jsonl").write_text('{"id": "q"}')
    ...     plan = copied(make_plan(place / "queries.jsonl", place / "index", scoring={}), place / "copies")
    ...     pathlib.Path(plan.index["directory"]).parent.name
    'copies'
    """
    target = copies / str(plan.index["checksum"])[:32]
    copies.mkdir(parents=True, exist_ok=True)
    with open(copies / "lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            draft = copies / f".{secrets.token_hex(8)}.unfinished"
            try:
                shutil.copytree(plan.index["directory"], draft)
                open_index(_at(plan, draft))
                os.replace(draft, target)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
    return _at(plan, target)


def _at(plan: Plan, directory: Path) -> Plan:
    return replace(plan, index={**plan.index, "directory": str(directory.resolve())})


# ---- Errors as rows of a dataset, since Ray would retry what raises an exception -------------------------------------


def row_of_error(error: Exception) -> str:
    """Return an error as JSON, for a row of a dataset; :func:`error_of_row` makes it again.

    Parameters
    ----------
    error : Exception
        An error of hopfuse or of the file system; any other becomes a RuntimeError with its traceback.

    Examples
    --------
    >>> from hopfuse.offline.ray import row_of_error
    >>> row_of_error(OSError("the disk is full"))
    '{"class": "OSError", "message": "the disk is full"}'
    """
    sent = portable(error)
    if isinstance(sent, HopfuseError):
        return json.dumps(sent.data())
    return json.dumps({"class": "OSError" if isinstance(sent, OSError) else "RuntimeError", "message": f"{sent}"})


def error_of_row(row: str) -> Exception:
    """Return the error of a row.

    Parameters
    ----------
    row : str
        From :func:`row_of_error`.

    Examples
    --------
    >>> from hopfuse.errors import InputError
    >>> from hopfuse.offline.ray import error_of_row, row_of_error
    >>> error = error_of_row(row_of_error(InputError("range", "k", "{field} is {given}", given=-1)))
    >>> type(error).__name__, error.code, error.values["given"]
    ('InputError', 'range', -1)
    """
    data = json.loads(row)
    if "code" in data:
        return error_of(data)
    return OSError(data["message"]) if data["class"] == "OSError" else RuntimeError(data["message"])
