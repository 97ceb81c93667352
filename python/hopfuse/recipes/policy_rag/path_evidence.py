"""Evidence for the steps of a path: facts and the passages that state them, shared names, mentions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import entries_of
from ...index import Index
from ...types import Graph
from .._parts.facts import facts_between, named_fact, named_node, named_passage, split_rows
from .._parts.paths import Step
from .._parts.seeding import fold
from .graph import TYPES, PolicyGraph

Pair = tuple[int, int]
"""Two nodes in the order of the walk, or two entities."""


class PathEvidence:
    """Describe the steps of paths. Each pair of nodes in a batch is looked up once.

    ``families`` has the weights of the policy.
    """

    def __init__(
        self, index: Index, graph: PolicyGraph, families: Mapping[str, float], paths: Iterable[Sequence[Step]]
    ) -> None:
        self._index, self._first = index, index.num_passages
        walked = {
            (before.node, after.node)
            for path in paths
            for before, after in pairwise(path)
            if after.edge is not None and TYPES[after.edge] == "relation"
        }
        pairs, edges = sorted(walked), index.graph
        assert edges is not None
        between = np.array(pairs, np.int64).reshape(-1, 2)
        some, every = (families_between(edges, between, _factors(edges, given)) for given in (families, {}))
        self._directed = edges.directed
        self._families = dict(zip(pairs, some, strict=True))
        self._whole = {pair for pair, a, b in zip(pairs, some, every, strict=True) if len(a) == len(b)}
        facts, ends = index.facts, between - self._first
        found = [[] for _ in pairs] if facts is None else facts_between(facts, ends, graph.statements)
        self._facts = dict(zip(pairs, found, strict=True))

    def steps(self, path: Sequence[Step]) -> list[dict[str, Any]]:
        """Return a path as plain data: nodes, the type of the edge to each, and the evidence for it."""
        before = [None, *(one.node for one in path[:-1])]
        return [self._step(at, one) for at, one in zip(before, path, strict=True)]

    def _step(self, before: int | None, one: Step) -> dict[str, Any]:
        edge = None if one.edge is None else TYPES[one.edge]
        plain = {**named_node(self._index, one.node), "edge": edge, "strength": one.strength}
        if before is None or edge is None:
            return plain
        if edge == "context":
            return {**plain, "passage": named_passage(self._index, min(before, one.node))}
        if edge == "synonym":
            return {**plain, "alias": self._alias(before - self._first, one.node - self._first)}
        return {**plain, **self._relation((before, one.node))}

    def _relation(self, pair: Pair) -> dict[str, Any]:
        """Return families and facts, and whether the walk used the edges of all facts between two entities.

        In a directed graph, an edge may not stand for a fact in the other direction.
        """
        facts = [named_fact(self._index, at, pair[0] - self._first) for at in self._facts[pair]]
        walked = pair in self._whole and (not self._directed or all(fact["forward"] for fact in facts))
        return {"families": self._families[pair], "walked": walked, "facts": facts}

    def _alias(self, entity: int, other: int) -> str:
        """Return the name or alias that both entities have, as the second writes it, else the second's name."""
        known, aliases = self._index.entity_names, self._index.entity_aliases
        mine = {fold(name) for name in (known[entity], *aliases[entity])}
        return next((name for name in (known[other], *aliases[other]) if fold(name) in mine), known[other])


def families_between(graph: Graph, pairs: NDArray[np.int64], factors: NDArray[np.float32]) -> list[list[str]]:
    """Return the types of the edges from the first to the second node of each pair, by descending weight times factor.

    Ties go to the type with the lower number; types with factor 0 are left out.
    """
    source, row = graph.internal_of[pairs].T.astype(np.int64)
    if not graph.directed:  # edges are stored in both rows; read the shorter one
        held = np.diff(graph.indptr)
        swap = held[source] < held[row]
        source, row = np.where(swap, row, source), np.where(swap, source, row)
    sources, count = entries_of(graph.indptr, graph.indices, row)
    at = np.repeat(np.arange(len(pairs)), count)
    kept = sources == source[at]
    at, kind, weight = at[kept], np.zeros(kept.sum(), np.int64), np.ones(kept.sum(), np.float32)
    if graph.edge_type is not None:
        kind = entries_of(graph.indptr, graph.edge_type, row)[0][kept].astype(np.int64)
    if graph.weight is not None:
        weight = entries_of(graph.indptr, graph.weight, row)[0][kept]
    worth = weight * factors[kind]
    order = np.lexsort((kind, -worth, at))
    order = order[worth[order] > 0]
    return [[graph.edge_type_names[k] for k in found] for found in split_rows(at[order], kind[order], len(pairs))]


def _factors(graph: Graph, given: Mapping[str, float]) -> NDArray[np.float32]:
    """Return the weight of each edge type of the index as a relation: by default 1, for synonyms 0."""
    return np.array([0.0 if name == "synonym" else given.get(name, 1.0) for name in graph.edge_type_names], np.float32)
