"""``--settled``: where passages disagree, what was kept and what was dropped, a line for each disagreement."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..extract import Memory
from .outputs import check_outputs


def check_settled(out: Path | None, inputs: Mapping[str, Path | None], *, overwrite: bool) -> None:
    """Refuse a file that cannot be written, or has nothing to record.

    Parameters
    ----------
    out : Path, optional
    inputs : mapping of str to Path or None
        What is read, by the option that names it, ``--from`` among them.
    overwrite : bool
        A file that exists is replaced.
    """
    if out is None:
        if overwrite:
            raise InputError("--overwrite is given without --settled; there is no file to replace")
        return
    if inputs["--from"] is None:
        raise InputError("--settled is given without --from; facts of --facts are taken as they are")
    if out.suffix != ".jsonl":
        raise InputError(f"--settled is {out.name!r}; its suffix must be .jsonl")
    read = {option: path for option, path in inputs.items() if path is not None}
    check_outputs({"--settled": out}, read, overwrite=overwrite)


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
