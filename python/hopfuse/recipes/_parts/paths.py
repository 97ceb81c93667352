"""Paths of a walk as plain data, with the facts between neighbouring entities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...index import Index
from ...types import Hits, Seeds
from .facts import facts_between, named_fact
from .names import named_node
from .strong_paths import Step, Transitions

#: The type that this package's builders give to edges between similar names.
SYNONYM = "synonym"
Paths = Mapping[int, Sequence[Sequence[Step]]]
"""Paths by the passage at their end."""


def path_records(
    index: Index, paths: Paths, weights: NDArray[np.float64] | None = None
) -> dict[int, list[list[dict[str, Any]]]]:
    """Return paths as plain data: nodes, the type of the edge to each, its strength, and facts.

    Parameters
    ----------
    index : Index
    paths : mapping of int to paths
    weights : ndarray of float64, shape (N,), optional
        Added to the passages on the paths.
    """
    facts = _facts_on(index, paths)
    return {passage: [_record(index, path, facts, weights) for path in some] for passage, some in paths.items()}


def walk_path_records(
    index: Index, starts: Seeds, hits: Hits, walked: Hits, *, damping: float, edge_weights: Mapping[str, float] | None
) -> list[dict[int, list[list[dict[str, Any]]]]]:
    """Return, for each question, the strongest paths of its walk to each hit that is in the walk's list.

    Parameters
    ----------
    index : Index
    starts : Seeds (B, S)
        The restart; weights need no normalisation.
    hits, walked : Hits
        The ranking, and the walk's own list.
    damping, edge_weights
        Options of the walk, whose ``edge_type_norm`` is "joint".
    """
    graph, given = index.graph, edge_weights or {}
    assert graph is not None
    eta = [given.get(name, 1.0) for name in graph.edge_type_names]
    transitions = Transitions(graph, eta, "joint", damping)
    found = []
    for b in range(len(hits)):
        listed = {passage for passage, _ in walked.row(b)}
        ends = {passage: np.array([passage], np.int64) for passage, _ in hits.row(b) if passage in listed}
        held = (starts.nodes[b] >= 0) & (starts.weights[b] > 0)
        mass = starts.weights[b][held] / starts.weights[b][held].sum()
        restart = dict(zip(starts.nodes[b][held].tolist(), mass.tolist(), strict=True))
        found.append(path_records(index, transitions.paths(restart, ends)))
    return found


def _facts_on(index: Index, paths: Paths) -> dict[tuple[int, int], list[int]]:
    """Return the facts between neighbouring entities on paths, by their nodes; edges between synonyms have none."""
    first, facts, graph = index.num_passages, index.facts, index.graph
    assert graph is not None
    steps = {(a, b) for some in paths.values() for path in some for a, b in pairwise(path)}
    stating = {(a.node, b.node) for a, b in steps if b.edge is not None and graph.edge_type_names[b.edge] != SYNONYM}
    pairs = sorted(pair for pair in stating if min(pair) >= first)
    if facts is None or not pairs:
        return {}
    found = facts_between(facts, np.array(pairs, np.int64) - first, np.diff(facts.indptr))
    return {pair: some for pair, some in zip(pairs, found, strict=True) if some}


def _record(
    index: Index,
    path: Sequence[Step],
    facts: Mapping[tuple[int, int], Sequence[int]],
    weights: NDArray[np.float64] | None,
) -> list[dict[str, Any]]:
    assert index.graph is not None
    names, first, told = index.graph.edge_type_names, index.num_passages, []
    for before, one in zip([None, *path[:-1]], path, strict=True):
        step = {**named_node(index, one.node), "edge": None if one.edge is None else names[one.edge]}
        step["strength"] = one.strength
        if weights is not None and one.node < first:
            step["weight"] = float(weights[one.node])
        if before is not None and (before.node, one.node) in facts:
            between = facts[before.node, one.node]
            step["facts"] = [named_fact(index, fact, before.node - first) for fact in between]
        told.append(step)
    return told
