"""``hopfuse build --conflicts``: a file of what was kept and dropped where passages disagree."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..._validation import check_suffix
from ...errors import InputError
from ...extract import Memory
from ...io.files import create_exclusively, sync_directory, sync_file
from ..files import check_outputs


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
        _write(draft, conflict_lines(memory).encode())
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


def conflict_lines(memory: Memory) -> str:
    """Return a JSON line for each head and relation that passages disagree about, in order of first occurrence.

    Examples
    --------
    >>> from hopfuse.extract import Extraction, build_memory
    >>> facts = [("a", "London"), ("b", "Paris"), ("c", "Paris")]
    >>> read = [Extraction(id, "", "", (), (("Ada", "birthplace", tail),)) for id, tail in facts]
    >>> print(conflict_lines(build_memory(read)), end="")  # doctest: +NORMALIZE_WHITESPACE
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
