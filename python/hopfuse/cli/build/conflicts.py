"""``build --conflicts``: where passages disagree, what was kept and what was dropped, a line for each conflict."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...extract import Memory
from ...io.files import create_exclusively, sync_directory, sync_file
from ..files import check_outputs


def check_conflicts(
    path: Path | None, inputs: Mapping[str, Path | None], out: Path, *, extracted: bool, overwrite: bool
) -> None:
    """Refuse a file that cannot be written, or has nothing to record.

    ``inputs`` are what is read, by the option that names it, and ``out`` is the index. Facts are ``extracted`` from
    passages; those of a table are taken as they are.
    """
    if path is None:
        if overwrite:
            raise InputError("--overwrite is given without --conflicts; there is no file to replace")
        return
    if not extracted:
        raise InputError(
            "--conflicts is given without --from or --reader of facts; those of --facts are taken as they are"
        )
    if path.suffix != ".jsonl":
        raise InputError(f"--conflicts is {path.name!r}; its suffix must be .jsonl")
    place, index = path.resolve(), out.resolve()
    if place == index or index in place.parents or place in index.parents:
        raise InputError(
            f"--conflicts is {str(path)!r}, and --out {str(out)!r} is the directory of the index; name a file outside "
            "it"
        )
    check_outputs({"--conflicts": path}, inputs, overwrite=overwrite)


def save_with_conflicts(path: Path, memory: Memory, save: Callable[[], int]) -> int:
    """Write the conflicts to a draft, save the index, and only then give the draft its name; return the generation.

    So an index is saved only if its conflicts are on the disk. If ``save`` fails, no draft is left, and a file that
    was there before stays. A draft that cannot be written is an InputError, and nothing is saved; so is one that cannot
    be given its name, and the error says where it is.
    """
    draft = path.with_name(f"{path.name}.unfinished")
    try:
        _write(draft, conflict_lines(memory).encode())
        generation = save()
    except BaseException:
        with suppress(OSError):  # what is told is why it failed, not that a part of it is left
            draft.unlink()
        raise
    try:
        os.replace(draft, path)
    except OSError as error:
        raise InputError(
            f"--conflicts: {path} cannot be written: {error.strerror}; the index is saved, its conflicts are in {draft}"
        ) from None
    sync_directory(path.parent)
    return generation


def _write(path: Path, content: bytes) -> None:
    """Write a draft to the disk, not only on its way there."""
    try:
        path.unlink(missing_ok=True)  # of a run that was killed
        with create_exclusively(path) as file:
            file.write(content)
            sync_file(file)
    except OSError as error:
        raise InputError(f"--conflicts: {path} cannot be written: {error.strerror}; nothing is saved") from None


def conflict_lines(memory: Memory) -> str:
    """Return JSON, a line for each head and relation that passages disagree about, in the order of first statement.

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
            "kept": _stated(memory, one.kept, one.passages),
            "dropped": [_stated(memory, tail, passages) for tail, passages in one.dropped.items()],
        }
        for one in memory.conflicts
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _stated(memory: Memory, tail: int, passages: Sequence[int]) -> dict[str, Any]:
    ids = [memory.ids[passage] for passage in passages]
    return {"tail": memory.entities[tail], "count": len(ids), "passages": ids}
