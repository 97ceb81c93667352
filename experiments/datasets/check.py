"""Compare a folder with what is recorded about it: checksums of files, and whether their numbers fit together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..folders import read_lines, read_tsv

RECORDS = Path(__file__).parent / "records.json"
Found = Literal["same", "other order", "other vectors", "differs", "missing"]
#: A file that --vectors makes has the recorded values on each machine, but not their last bits.
VECTORS = ".npy"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a file's check."""

    file: str
    found: Found
    why: str = ""

    @property
    def good(self) -> bool:
        """Return whether the file has the recorded content, possibly in another order or with other roundings."""
        return self.found in ("same", "other order", "other vectors")


def record(folder: Path) -> dict[str, dict[str, Any]]:
    """Return size and checksums of a folder's files; of lines of text also regardless of their order."""
    return {path.relative_to(folder).as_posix(): _sums(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def recorded(records: Path = RECORDS) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what is recorded of each set."""
    known: dict[str, dict[str, dict[str, Any]]] = json.loads(records.read_text(encoding="utf-8"))
    return known


def check(folder: Path, known: dict[str, dict[str, Any]]) -> list[Verdict]:
    """Return a verdict on each recorded file of a folder."""
    return [_verdict(folder / name, name, sums) for name, sums in known.items()]


def misfits(folder: Path) -> list[str]:
    """Return where the files of a question folder contradict each other; nothing for a folder without passages."""
    return list(_misfits(folder)) if (folder / "passages.jsonl").is_file() else []


def _sums(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    sums: dict[str, Any] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    if path.suffix in (".tsv", ".txt"):
        sums["sha256 of the sorted lines"] = hashlib.sha256(b"\n".join(sorted(content.splitlines()))).hexdigest()
    if path.suffix == VECTORS:
        array = np.load(path)
        sums |= {"shape": list(array.shape), "dtype": str(array.dtype)}
    return sums


def _verdict(path: Path, name: str, sums: dict[str, Any]) -> Verdict:
    if not path.is_file():
        return Verdict(name, "missing")
    found = _sums(path)
    if found["sha256"] == sums["sha256"]:
        return Verdict(name, "same")
    if "shape" in sums:
        alike = [found[key] == sums[key] for key in ("shape", "dtype")]
        return Verdict(name, "other vectors" if all(alike) else "differs", f"{found['dtype']} {found['shape']}")
    order = "sha256 of the sorted lines"
    if order in sums and found[order] == sums[order]:
        return Verdict(name, "other order")
    return Verdict(name, "differs", f"{found['bytes']} bytes, recorded are {sums['bytes']}")


def _misfits(folder: Path) -> Iterator[str]:
    passages = [row["id"] for row in read_lines(folder / "passages.jsonl")]
    asked = list(read_lines(folder / "queries.jsonl"))
    if passages != list(range(len(passages))):
        yield "passages.jsonl: an id is not the number of its line"
    for row in asked:
        if not all(0 <= at < len(passages) for at in (*row["gold"], *row.get("last_hop", ()))):
            yield f"queries.jsonl: {row['id']} has a passage that there is not"
    for name, rows in (("passage_emb.f16.npy", len(passages)), ("query_emb.f16.npy", len(asked))):
        if (folder / name).is_file() and len(vectors := np.load(folder / name)) != rows:
            yield f"{name}: {len(vectors)} rows for {rows} texts"
    if (folder / "query_entities.jsonl").is_file():
        named = [row["id"] for row in read_lines(folder / "query_entities.jsonl")]
        if named != [row["id"] for row in asked]:
            yield "query_entities.jsonl: the ids are not those of queries.jsonl, in order"
    if (folder / "graph" / "nodes.tsv").is_file():
        yield from _graph_misfits(folder / "graph", len(passages))


def _graph_misfits(graph: Path, passages: int) -> Iterator[str]:
    kinds = [kind for _, kind, _ in read_tsv(graph / "nodes.tsv")]
    if kinds != ["passage"] * passages + ["entity"] * (len(kinds) - passages):
        yield "graph/nodes.tsv: the passages are not first"
    ends = np.array([[int(a), int(b)] for a, b, *_ in read_tsv(graph / "edges.tsv")]).reshape(-1, 2)
    if ends.size and not 0 <= ends.min() <= ends.max() < len(kinds):
        yield "graph/edges.tsv: an end is not a node"
    for head, _, tail, passage in read_tsv(graph / "facts.tsv"):
        if not (passages <= int(head) < len(kinds) and passages <= int(tail) < len(kinds) and int(passage) < passages):
            yield f"graph/facts.tsv: {head}, {tail}, {passage} are not two entities and a passage"
            break
