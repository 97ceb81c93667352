"""Rows by case and batch: the fastest other library beside hopfuse, and hopfuse beside itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .peers import PEERS
from .peers.base import ALL, CHOSEN, MIXED, ONE

Row = dict[str, Any]

#: Cases of the page by section, and what each is. Rows of other cases are in the files alone.
SECTIONS: dict[str, dict[str, str]] = {
    "Personalized PageRank": {
        "ppr-hotpotqa": "all scores, hotpotqa graph",
        "ppr-hotpotqa-085": "the same, damping 0.85",
        "ppr-dense-restarts": "the same, restarts at all passages",
        "ppr-topk-hotpotqa": "best 100 passages with a proof of their order",
        "ppr-musique": "all scores, musique graph",
        "ppr-atlas": "all scores, atlas graph",
        "ppr-200": "all scores, 200 nodes",
        "ppr-1e4": "generated graph, 10⁴ entries",
        "ppr-1e5": "generated graph, 10⁵ entries",
        "ppr-1e6": "generated graph, 10⁶ entries",
        "ppr-1e7": "generated graph, 10⁷ entries",
    },
    "Dense search": {
        "dense-200k": "200,000 × 384",
        "dense-11k-4096": "11,656 × 4,096",
        "dense-1m": "1,000,000 × 384",
        "dense-raw-200k": "200,000 × 384, raw array",
        "dense-raw-11k-4096": "11,656 × 4,096, raw array",
        "dense-first-200k": "200,000 × 384, first search",
    },
    "Fusion and the rest": {
        "fusion": "Boltzmann fusion of 2 lists of 1,000",
        "fusion-rrf": "reciprocal ranks, 2 lists of 1,000",
        "fusion-min-max": "min-max sum, 2 lists of 1,000",
        "project": "`project`, 10,000 passages",
        "similarity": "`similarity_weights`, 10,000 × 384",
        "dice": "Sørensen-Dice, 100 candidates",
        "hipporag-hotpotqa": "HippoRAG 2's retrieval after its language model",
    },
}
#: Cases of hopfuse beside itself, and what they show.
ITSELF = {
    "ppr-topk-10": "best 10 with a proof of their order, beside all scores without proof of an order",
    "ppr-topk-100-set": "best 100 with a proof of the set, likewise",
    "ppr-topk-100": "best 100 with a proof of their order, likewise",
    "ppr-weighted-hotpotqa": "a walk with node weights, beside one without",
    "guided-walk": "GuidedWalk, beside PhaseGraph",
    "guided-walk-dense": "GuidedWalk with `first=\"dense\"`, beside PhaseGraph",
    "python-threads": "eight Python threads that share two, beside one",
    "busy-ppr": "two threads beside one, while eight processes keep the cores busy: `ppr`",
    "busy-dense": "likewise, `dense_topk`",
    "busy-fusion": "likewise, `fuse`",
    "busy-phasegraph": "likewise, PhaseGraph",
}  # fmt: skip
#: Cases whose own times are of interest: whole searches, and calls that are all overhead.
WHOLE = {
    "phasegraph-hotpotqa": "PhaseGraph",
    "guided-walk": "GuidedWalk",
    "guided-walk-dense": "GuidedWalk with `first=\"dense\"`",
    "phasegraph-200": "PhaseGraph, 200 nodes, one thread",
    "tiny-ppr": "`ppr`, 12 nodes, one thread",
    "tiny-dense": "`dense_topk`, 4 rows, one thread",
    "tiny-fusion": "`fuse`, 3 documents, one thread",
    "ppr-1e8": "`ppr`, 10⁸ stored entries",
}  # fmt: skip

#: Names of libraries in tables, where they differ from those of ``PEERS``.
LABELS = {
    "scipy": "SciPy",
    "torch-sparse": "PyTorch, sparse",
    "networkx": "NetworkX",
    "graphblas": "GraphBLAS",
    "numpy-matmul": "NumPy",
    "torch-matmul": "PyTorch",
    "usearch": "USearch",
    "numpy-fusion": "NumPy",
    "scipy-product": "SciPy",
    "numpy-weights": "NumPy",
    "numpy-dice": "NumPy",
    "python-dice": "Python's sets",
    "hipporag-igraph": "NumPy and igraph",
}


class Found(NamedTuple):
    """The row of the fastest other library in a case with a batch, and the other libraries of that case."""

    what: str
    row: Row
    others: tuple[str, ...]


def strongest(rows: Sequence[Row], section: str) -> Iterator[Found]:
    """Yield the strongest library of each case of a section, by batch."""
    for case, what in SECTIONS[section].items():
        for _, of in by_batch(rows, case):
            best = fastest(of)
            if best is not None:
                others = tuple(label(row["peer"]) for row in libraries(of) if row is not best)
                yield Found(what, best, others)


def libraries(rows: Sequence[Row]) -> list[Row]:
    """Return the rows beside other libraries."""
    return [row for row in rows if row["peer"] and not PEERS[row["peer"]].own]


def fastest(rows: Sequence[Row]) -> Row | None:
    """Return the row beside the fastest other library, if there is one."""
    return min(libraries(rows), key=lambda row: float(row["ratio"]["of_medians"]), default=None)


def itself(rows: Sequence[Row]) -> Iterator[Found]:
    """Yield the rows in which hopfuse is compared with itself, but not with an earlier commit."""
    for case, what in ITSELF.items():
        for _, of in by_batch(rows, case):
            yield from (Found(what, row, ()) for row in of if row["peer"] not in (None, "earlier-commit"))


def by_batch(rows: Sequence[Row], case: str) -> list[tuple[int, list[Row]]]:
    """Return the rows of a case by batch; of two rows of one peer, the later."""
    found: dict[int, dict[str | None, Row]] = {}
    for row in rows:
        if row["case"] == case:
            found.setdefault(row["sizes"]["batch"], {})[row["peer"]] = row
    return [(batch, list(of.values())) for batch, of in sorted(found.items())]


def name(case: str) -> str:
    """Return what a case is called in tables."""
    of_sections = {case: what for section in SECTIONS.values() for case, what in section.items()}
    return {**of_sections, **WHOLE}[case]


def label(peer: str) -> str:
    """Return the name of a library in tables."""
    return LABELS.get(peer, peer)


def threads(row: Row) -> str:
    """Return the threads of the row's peer, in words."""
    every = str(row["threads"])
    return {ALL: every, ONE: "1", MIXED: f"{every} and 1", CHOSEN: "its choice"}[PEERS[row["peer"]].runs_on]
