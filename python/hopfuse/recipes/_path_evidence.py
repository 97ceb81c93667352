"""What stands behind each step of a path: facts with the passages that state them, a shared name, a mention."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..types import Facts, Graph
from ._facts import step
from ._policy_graph import TYPES
from ._ragged import entries_of
from ._seeding import fold
from ._strong_paths import Step

if TYPE_CHECKING:
    from .policy_rag import PolicyRAG

MOST_FACTS = 3
#: As many of a fact's passages are listed.
MOST_PASSAGES = 5

Pair = tuple[int, int]
"""Nodes in the order of the walk, or two entities."""


class PathEvidence:
    """Says what the steps of paths rest on; all steps of a batch are looked up together, each pair of nodes once."""

    def __init__(self, recipe: PolicyRAG, paths: Iterable[Sequence[Step]]) -> None:
        self._recipe, self._first = recipe, recipe.index.num_passages
        walked = {
            (before.node, after.node)
            for path in paths
            for before, after in pairwise(path)
            if after.edge is not None and TYPES[after.edge] == "relation"
        }
        pairs, graph = sorted(walked), recipe.index.graph
        assert graph is not None
        between = np.array(pairs, np.int64).reshape(-1, 2)
        some, every = (families(graph, between, _factors(graph, given)) for given in (recipe.policy.families, {}))
        self._families = dict(zip(pairs, some, strict=True))
        self._whole = {pair for pair, a, b in zip(pairs, some, every, strict=True) if len(a) == len(b)}
        facts = recipe.index.facts
        found = [[] for _ in pairs] if facts is None else facts_between(facts, between - self._first)
        self._facts = dict(zip(pairs, found, strict=True))

    def steps(self, path: Sequence[Step]) -> list[dict[str, Any]]:
        """A path as plain data: nodes, the type of the edge to each, and what it rests on."""
        before = [None, *(one.node for one in path[:-1])]
        return [self._step(at, one) for at, one in zip(before, path, strict=True)]

    def _step(self, before: int | None, one: Step) -> dict[str, Any]:
        edge = None if one.edge is None else TYPES[one.edge]
        plain = {**named_node(self._recipe, one.node), "edge": edge, "strength": one.strength}
        if before is None or edge is None:
            return plain
        if edge == "context":
            return {**plain, "passage": named_passage(self._recipe, min(before, one.node))}
        if edge == "synonym":
            return {**plain, "alias": self._alias(before - self._first, one.node - self._first)}
        return {**plain, **self._relation((before, one.node))}

    def _relation(self, pair: Pair) -> dict[str, Any]:
        """Its families and facts, and whether the walk took the edges of all facts between the two.

        The edge of a directed graph is one way: a fact the other way round may not be what it stands for.
        """
        graph, facts = self._recipe.index.graph, [self._fact(at, pair) for at in self._facts[pair]]
        assert graph is not None
        walked = pair in self._whole and (not graph.directed or all(fact["forward"] for fact in facts))
        return {"families": self._families[pair], "walked": walked, "facts": facts}

    def _alias(self, entity: int, other: int) -> str:
        """The name that both have, as the other writes it; else the other's own."""
        known, aliases = self._recipe.names, self._recipe.index.entity_aliases
        mine = {fold(name) for name in (known[entity], *aliases[entity])}
        return next((name for name in (known[other], *aliases[other]) if fold(name) in mine), known[other])

    def _fact(self, fact: int, pair: Pair) -> dict[str, Any]:
        facts, names = self._recipe.index.facts, self._recipe.names
        assert facts is not None
        head, relation, tail = facts.rows[fact].tolist()
        stated = facts.passages[facts.indptr[fact] : facts.indptr[fact + 1]]
        return {
            "fact": fact,
            "head": names[head],
            "relation": facts.relations[relation],
            "tail": names[tail],
            "forward": head == pair[0] - self._first,
            "passages": [named_passage(self._recipe, passage) for passage in stated[:MOST_PASSAGES].tolist()],
            "num_passages": stated.size,
        }


def facts_between(facts: Facts, pairs: NDArray[np.int64], most: int = MOST_FACTS) -> list[list[int]]:
    """For each pair of entities the facts with these ends, either way round: those that most passages state first.

    Of equally many the one with the lower number; at most ``most``.
    """
    held = np.diff(facts.incident_indptr)[pairs]
    fewer, other = np.where((held[:, 0] <= held[:, 1])[:, None], pairs, pairs[:, ::-1]).T
    found = step(facts.rows, facts.incident_indptr, facts.incident, np.arange(len(pairs)), fewer)
    at, fact = (part[found.entity == other[found.query]] for part in (found.query, found.fact))
    order = np.lexsort((fact, -np.diff(facts.indptr)[fact], at))
    return [row[:most].tolist() for row in _split(at[order], fact[order], len(pairs))]


def families(graph: Graph, pairs: NDArray[np.int64], factors: NDArray[np.float32]) -> list[list[str]]:
    """For each pair of nodes the types of the edges from the first to the second, by weight times the type's factor.

    Of equal ones the type with the lower number; those of factor 0 are left out.
    """
    source, row = graph.internal_of[pairs].T.astype(np.int64)
    if not graph.directed:  # stored in both rows: the shorter one is read
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
    return [[graph.edge_type_names[k] for k in found] for found in _split(at[order], kind[order], len(pairs))]


def named_node(recipe: PolicyRAG, node: int) -> dict[str, Any]:
    """A node as plain data: its kind, its number among those of its kind, its name."""
    first = recipe.index.num_passages
    if node < first:
        return {"kind": "passage", "number": node, "name": recipe.index.titles[node] or recipe.index.passage_ids[node]}
    return {"kind": "entity", "number": node - first, "name": recipe.names[node - first]}


def named_passage(recipe: PolicyRAG, passage: int) -> dict[str, Any]:
    """A passage as plain data."""
    return {"passage": passage, "id": recipe.index.passage_ids[passage], "title": recipe.index.titles[passage]}


def _factors(graph: Graph, given: Mapping[str, float]) -> NDArray[np.float32]:
    """What each of the index's edge types counts as a relation: 1 where none is given, synonyms nothing."""
    return np.array([0.0 if name == "synonym" else given.get(name, 1.0) for name in graph.edge_type_names], np.float32)


def _split(at: NDArray[np.int64], values: NDArray[Any], rows: int) -> list[NDArray[Any]]:
    """The values of each row; ``at`` ascends."""
    return np.split(values, np.searchsorted(at, np.arange(1, rows))) if rows else []
