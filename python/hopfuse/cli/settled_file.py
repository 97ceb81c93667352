"""``--settled``: where passages disagree, what was kept and what was dropped, a line for each disagreement."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..extract import Memory
from .files import sync_directory
from .outputs import check_outputs


def check_settled(settled: Path | None, inputs: Mapping[str, Path | None], out: Path, *, overwrite: bool) -> None:
    """Refuse a file that cannot be written, or has nothing to record.

    Parameters
    ----------
    settled : Path, optional
    inputs : mapping of str to Path or None
        What is read, by the option that names it, ``--from`` among them.
    out : Path
        The directory of the index.
    overwrite : bool
        A file that exists is replaced.
    """
    if settled is None:
        if overwrite:
            raise InputError("--overwrite is given without --settled; there is no file to replace")
        return
    if inputs["--from"] is None:
        raise InputError("--settled is given without --from; facts of --facts are taken as they are")
    if settled.suffix != ".jsonl":
        raise InputError(f"--settled is {settled.name!r}; its suffix must be .jsonl")
    place, index = settled.resolve(), out.resolve()
    if place == index or index in place.parents or place in index.parents:
        raise InputError(
            f"--settled is {str(settled)!r}, and --out {str(out)!r} is the directory of the index; name a file outside "
            "it"
        )
    check_outputs({"--settled": settled}, inputs, overwrite=overwrite)


def save_recorded(settled: Path, memory: Memory, save: Callable[[], int]) -> int:
    """Save the index between the writing of its record and the giving of the record's name.

    So an index is saved only where its record is on the disk; where ``save`` fails, no record is left, and what was
    there before stays.

    Parameters
    ----------
    settled : Path
        The record's name.
    memory : Memory
        What the index is made of.
    save : callable
        Saves it, and gives its generation.

    Returns
    -------
    int
        What ``save`` gives.

    Raises
    ------
    InputError
        The record cannot be written, and nothing is saved; or it cannot be given its name: the error says where it is.
    """
    waiting = settled.with_name(f"{settled.name}.unfinished")
    try:
        _write(waiting, settled_lines(memory).encode())
        generation = save()
    except BaseException:
        with suppress(OSError):  # what is told is why it failed, not that there is a rest of it
            waiting.unlink()
        raise
    try:
        os.replace(waiting, settled)
    except OSError as error:
        raise InputError(
            f"--settled: {settled} cannot be written: {error.strerror}; the index is saved, and its record is {waiting}"
        ) from None
    sync_directory(settled.parent)
    return generation


def _write(path: Path, content: bytes) -> None:
    """On the disk, not only on its way there."""
    try:
        with open(path, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"--settled: {path} cannot be written: {error.strerror}; nothing is saved") from None


def settled_lines(memory: Memory) -> str:
    """JSON, a line for each head and relation that passages disagree about, in the order of their first statement.

    Examples
    --------
    >>> from hopfuse.extract import Extraction, build_memory
    >>> facts = [("a", "London"), ("b", "Paris"), ("c", "Paris")]
    >>> read = [Extraction(id, "", "", (), (("Ada", "birthplace", tail),)) for id, tail in facts]
    >>> print(settled_lines(build_memory(read)), end="")  # doctest: +NORMALIZE_WHITESPACE
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
        for one in memory.settled
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _stated(memory: Memory, tail: int, passages: Sequence[int]) -> dict[str, Any]:
    ids = [memory.ids[passage] for passage in passages]
    return {"tail": memory.entities[tail], "count": len(ids), "passages": ids}
