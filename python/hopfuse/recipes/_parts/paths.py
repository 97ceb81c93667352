"""The strongest paths from a walk's seeds to passages, as plain data with the facts between neighbouring entities."""

from __future__ import annotations

import copy
import heapq
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...index import Index
from ...types import Graph, Hits, Seeds
from .facts import facts_between, named_fact, named_node

MAX_PATHS = 3  # for each passage
#: Paths weaker than this share of a passage's strongest path are left out.
_MIN_SHARE = 1e-4
_MAX_NODES = 100_000  # that the search reaches
#: The smallest number of visits that look for paths of other seeds, once each passage has a path.
MIN_EXTRA_VISITS = 1_000
_NO_PATH = float("inf")

_Visit = tuple[int, int, float]
"""A seed at a node: the node before, the type of the edge from there, and the path's strength."""


class Step(NamedTuple):
    """A node of a path, the type of the edge to it, and the strength of the path up to it.

    If edges of several types lead to the node, the type is the one with the largest share; at the seed it is None.
    """

    node: int
    edge: int | None
    strength: float


class Transitions:
    """d * P of a typed graph, by source node; edges of several types between two nodes are summed.

    Strengths have the same bits on every machine, so they are products and ordered sums: logarithms, exponentials and
    matrix products differ between builds of NumPy.
    """

    def __init__(self, graph: Graph, weights: Sequence[float], norm: str, damping: float) -> None:
        src, dst, weight, kind = graph.edges()
        if not graph.directed:
            back = src != dst
            src, dst = np.concatenate([src, dst[back]]), np.concatenate([dst, src[back]])
            weight, kind = np.concatenate([weight, weight[back]]), np.concatenate([kind, kind[back]])
        eta = np.asarray(weights, np.float64)
        degree = graph.degree[graph.internal_of]
        joint = (degree * eta).sum(axis=1)
        if norm == "joint":
            share = eta[kind] * weight / np.maximum(joint[src], np.finfo(float).tiny)
        else:
            share = eta[kind] * weight / degree[src, kind]
        order = np.lexsort((-share, dst, src))  # edges of several types between two nodes: the strongest first
        order = order[damping * share[order] > 0]
        pair = src[order] * graph.num_nodes + dst[order]
        first = np.flatnonzero(np.concatenate([[True], pair[1:] != pair[:-1]])[: pair.size])
        self._bounds = np.searchsorted(src[order][first], np.arange(graph.num_nodes + 1))
        self._to, self._kind = dst[order][first], kind[order][first]
        self._share, self._damping = np.add.reduceat(share[order], first) if first.size else np.zeros(0), damping
        self._step = damping * self._share
        self.kept = ((degree > 0) * eta).sum(axis=1) if norm == "per_type" else (joint > 0).astype(np.float64)

    def reweighted(self, node_weights: NDArray[np.float64]) -> Transitions:
        """Return d * P' with P'_uv = P_uv z_v / sum_x P_ux z_x, as :func:`hopfuse.ppr` has it for "joint" P.

        Parameters
        ----------
        node_weights : ndarray of float64, shape (N,)
            z; a node of weight 0 is left out.
        """
        other = copy.copy(self)
        source = np.repeat(np.arange(self._bounds.size - 1), np.diff(self._bounds))
        share = self._share * node_weights[self._to]
        total = np.bincount(source, share, self._bounds.size - 1)
        there = np.flatnonzero(share)
        other._bounds = np.searchsorted(source[there], np.arange(self._bounds.size))
        other._to, other._kind = self._to[there], self._kind[there]
        other._share = share[there] / total[source[there]]
        other._step = self._damping * other._share
        other.kept = (total > 0).astype(np.float64)
        return other

    def paths(
        self,
        starts: Mapping[int, float],
        rows: Mapping[int, NDArray[np.int64]],
        max_paths: int = MAX_PATHS,
        min_share: float = _MIN_SHARE,
        max_nodes: int = _MAX_NODES,
        min_extra_visits: int = MIN_EXTRA_VISITS,
    ) -> dict[int, list[list[Step]]]:
        """Return, for each passage, the strongest path from each of its best ``max_paths`` seeds, best first.

        The strength of a path is the restart mass of its seed times the product of d * P along it. The search is
        Dijkstra's algorithm for the largest product, since no factor is above 1. Each node is visited by at most
        ``max_paths`` seeds: if a seed is among the best of a passage, it is among the best of every node on its path.
        Ties go to the lower node, then to the lower seed. Paths weaker than ``min_share`` of the passage's strongest
        path and paths to nodes beyond the first ``max_nodes`` are left out.

        If a passage is hardly reachable, a search down to ``min_share`` of its path may visit the whole graph. So once
        each passage has a path, the search makes at most as many visits again, and at least ``min_extra_visits``. The
        paths it returns are the first ones that the unbounded search would find.
        """
        heap = [(-float(mass), node, node, -1, -1) for node, mass in starts.items() if mass > 0]
        ends = _Ends(rows, min(max_paths, len(heap)), min_share, min_extra_visits)
        heapq.heapify(heap)
        visits: dict[int, dict[int, _Visit]] = {}
        while True:
            while heap and _known(visits, heap[0][1], heap[0][2], ends.max_paths):
                heapq.heappop(heap)
            if not heap or -heap[0][0] < ends.horizon or (len(visits) >= max_nodes and heap[0][1] not in visits):
                break
            negative, node, seed, before, kind = heapq.heappop(heap)
            visits.setdefault(node, {})[seed] = (before, kind, -negative)
            ends.reach(node, seed, -negative)
            out = slice(self._bounds[node], self._bounds[node + 1])
            columns = (self._to[out].tolist(), self._kind[out].tolist(), self._step[out].tolist())
            for to, edge, share in zip(*columns, strict=True):
                strength = -negative * share
                if 0 < strength >= ends.horizon and not _known(visits, to, seed, ends.max_paths):
                    heapq.heappush(heap, (-strength, to, seed, node, edge))
        return {
            p: [_back(visits, node, seed) for seed, node in found.items()] for p, found in ends.found.items() if found
        }


class _Ends:
    """The seeds that reached each passage, best first, and the smallest strength at which a path still counts."""

    def __init__(
        self, rows: Mapping[int, NDArray[np.int64]], max_paths: int, min_share: float, min_extra_visits: int
    ) -> None:
        self.found: dict[int, dict[int, int]] = {passage: {} for passage in rows}
        self.max_paths, self._min_share, self._min_extra_visits = max_paths, min_share, min_extra_visits
        # Of passages that can take more paths.
        self._limit = {passage: 0.0 for passage, nodes in rows.items() if nodes.size}
        self._without, self._visits, self._last = len(self._limit), 0, float("inf")
        self._holders: dict[int, list[int]] = {}
        for passage, nodes in rows.items():
            for node in nodes.tolist():
                self._holders.setdefault(node, []).append(passage)
        self.horizon = min(self._limit.values(), default=_NO_PATH) if max_paths else _NO_PATH

    def reach(self, node: int, seed: int, strength: float) -> None:
        """Record that a seed visits a node."""
        self._visits += 1
        for passage in self._holders.get(node, ()):
            found = self.found[passage]
            if seed in found or strength < self._limit.get(passage, _NO_PATH):
                continue
            found[seed] = node
            if len(found) == 1:
                self._limit[passage] = strength * self._min_share
                self._without -= 1
            if len(found) == self.max_paths:
                del self._limit[passage]
            self.horizon = min(self._limit.values(), default=_NO_PATH)
            if self._without == 0 and self._last == float("inf"):
                self._last = self._visits + max(self._min_extra_visits, self._visits)
        if self._visits >= self._last:
            self.horizon = _NO_PATH


def _known(visits: Mapping[int, Mapping[int, _Visit]], node: int, seed: int, max_paths: int) -> bool:
    """Return whether a node needs no visit by the seed: it had one, or enough seeds have reached it."""
    seen = visits.get(node)
    return seen is not None and (seed in seen or len(seen) == max_paths)


def _back(visits: Mapping[int, Mapping[int, _Visit]], node: int, seed: int) -> list[Step]:
    steps = []
    while node >= 0:
        before, kind, strength = visits[node][seed]
        steps.append(Step(node, None if kind < 0 else kind, strength))
        node = before
    return steps[::-1]


def seed_shares(
    scores: NDArray[np.float32], mass: NDArray[np.float64], kept: NDArray[np.float64], damping: float
) -> NDArray[np.float64]:
    """Return the coefficients (S,) with which the walks from single seeds sum to the walk from all seeds.

    A walk is linear in its restart except for the normalisation. With y = d P'y + (1 - d) s and x = y / sum(y), if P
    loses mass m in x, then sum(y) = (1 - d) / (1 - d + d m).

    Parameters
    ----------
    scores : ndarray of float32, shape (S, N)
        The walk from each seed alone.
    mass : ndarray of float64, shape (S,)
        The restart, which sums to 1.
    kept : ndarray of float64, shape (N,)
        The share of each node's mass that P keeps.
    damping : float
    """
    lost = (scores * (1.0 - kept)).sum(axis=1)
    shares = mass * ((1.0 - damping) / (1.0 - damping + damping * lost))
    return np.asarray(shares / shares.sum(), np.float64)


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
