"""What decides whether a graph helps: the graph, its names, the questions' seeds, the walks, and the two legs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import Hits, Index, ppr
from ..evaluate import (
    Qrels,
    compare,
    connected_components,
    error_correlation,
    full_support,
    hub_nodes,
    mass_spread,
    overlap,
    pool_loss,
    shared_names,
)

HUBS = 0.01
REACH = 0.9
SIZES = (5, 10, 20, 50, 100, 200, 500, 1000)
WALKS_AT_ONCE = 64
EXAMPLES = 5
Section = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Searched:
    """Both legs' lists for all questions, and each question's seeds by node."""

    dense: Hits
    graph: Hits
    seeds: Sequence[Mapping[int, float]]


def graph_section(index: Index, component: NDArray[np.int64]) -> Section:
    """Components, and passages that no walk reaches."""
    assert index.graph is not None
    sizes = np.bincount(component)
    largest = component == sizes.argmax()
    stored = np.diff(index.graph.indptr)[index.graph.internal_of]
    return {
        "passages": index.num_passages,
        "entities": index.num_entities,
        "components": int(np.count_nonzero(sizes)),
        "nodes in the largest": float(largest.mean()),
        "passages without an edge": int((stored[: index.num_passages] == 0).sum()),
        "entities without an edge": int((stored[index.num_passages :] == 0).sum()),
    }


def names_section(index: Index) -> Section:
    """Entities that share a name or alias with another: one thing, perhaps, under several nodes."""
    shared = shared_names(index.entity_names, index.entity_aliases)
    entities = {entity for found in shared.values() for entity in found}
    most = sorted(shared, key=lambda name: (-len(shared[name]), name))[:EXAMPLES]
    return {
        "names of several entities": len(shared),
        "entities that share a name": len(entities),
        "share of the entities": len(entities) / max(index.num_entities, 1),
        "most shared": {name: len(shared[name]) for name in most},
    }


def seeds_section(index: Index, searched: Searched, qrels: Qrels | None, component: NDArray[np.int64]) -> Section:
    """Questions that a walk starts for, and whether it can get to their gold passages."""
    counts = np.array([len(row) for row in searched.seeds])
    section: Section = {
        "questions": counts.size,
        "with seeds": float((counts > 0).mean()),
        "seeds of a question, median": float(np.median(counts)),
    }
    if qrels is not None:
        reached = [
            bool({component[node] for node in seeds} >= {component[passage] for passage in gold})
            for seeds, gold in zip(searched.seeds, qrels.gold, strict=True)
            if gold
        ]
        section["all gold passages connected to a seed"] = float(np.mean(reached))
    return section


def mass_section(index: Index, searched: Searched, damping: float, threads: int | None) -> Section:
    """How far the walks spread, and what hubs take."""
    assert index.graph is not None
    seeded = [dict(row) for row in searched.seeds if row]
    hubs = hub_nodes(index.graph, share=HUBS)
    degree = index.graph.degree.sum(axis=1)[index.graph.internal_of]
    section: Section = {"walks": len(seeded), "hubs": hubs.size, "hubs' share of the edges": _share(degree, hubs)}
    parts: list[tuple[NDArray[Any], ...]] = []
    for start in range(0, len(seeded), WALKS_AT_ONCE):
        walked = ppr(index.graph, seeded[start : start + WALKS_AT_ONCE], damping=damping, threads=threads)
        scores = np.asarray(walked.scores, np.float64)
        spread = mass_spread(scores, share=REACH)
        parts.append((spread.entropy, spread.effective_nodes, spread.reach, scores[:, hubs].sum(1) / scores.sum(1)))
    if parts:
        entropy, effective, reach, on_hubs = (np.concatenate(column) for column in zip(*parts, strict=True))
        section |= {
            "hubs' share of the mass, mean": float(on_hubs.mean()),
            "entropy in bits, median": float(np.median(entropy)),
            "effective nodes, median": float(np.median(effective)),
            f"nodes with {REACH:.0%} of the mass, median": float(np.median(reach)),
        }
    return section


def legs_section(searched: Searched, qrels: Qrels | None, k: int) -> Section:
    """Whether the legs find the same, and fail together."""
    shared = overlap(searched.dense, searched.graph, k)
    section: Section = {f"overlap@{k}, mean": float(np.nanmean(shared))}
    if qrels is not None:
        dense, graph = (full_support(hits, qrels, k) for hits in (searched.dense, searched.graph))
        c = compare(graph, dense, binary=True)
        correlation = error_correlation(dense, graph)
        section |= {
            f"full_support@{k} judged": c.n,
            "both": c.both,
            "dense alone": c.losses,
            "graph alone": c.wins,
            "neither": c.neither,
            "correlation of errors": None if np.isnan(correlation) else correlation,
        }
    return section


def pools_section(searched: Searched, qrels: Qrels) -> list[Section]:
    """For each size, the mean share of gold passages that a pool, or both together, lose."""
    width = min(searched.dense.shape[1], searched.graph.shape[1])
    dense, graph = searched.dense, searched.graph
    return [
        {
            "size": size,
            **{
                name: float(np.nanmean(pool_loss(pools, qrels, size)))
                for name, pools in {"dense": [dense], "graph": [graph], "either": [dense, graph]}.items()
            },
        }
        for size in sorted({*(size for size in SIZES if size < width), width})
    ]


def diagnose_legs(
    index: Index, searched: Searched, qrels: Qrels | None, *, k: int, damping: float, threads: int | None
) -> Section:
    """All sections, by name; without judgements those that need them are left out."""
    assert index.graph is not None
    component = connected_components(index.graph)
    sections: Section = {
        "graph": graph_section(index, component),
        "names": names_section(index),
        "seeds": seeds_section(index, searched, qrels, component),
        "mass": mass_section(index, searched, damping, threads),
        "legs": legs_section(searched, qrels, k),
    }
    return sections if qrels is None else {**sections, "pools": pools_section(searched, qrels)}


def _share(values: NDArray[np.float64], rows: NDArray[np.int64]) -> float:
    return float(values[rows].sum() / max(float(values.sum()), 1e-300))
