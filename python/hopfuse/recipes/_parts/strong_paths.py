"""The strongest paths from a walk's seeds to each of some passages."""

from __future__ import annotations

import copy
import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...types import Graph

MAX_PATHS = 3  # for each passage
#: Paths weaker than this share of a passage's strongest path are left out.
MIN_SHARE = 1e-4
MAX_NODES = 100_000  # that the search reaches
#: The smallest number of visits that look for paths of other seeds, once each passage has a path.
MIN_EXTRA_VISITS = 1_000
NO_PATH = -float("inf")

Visit = tuple[int, int, float]
"""A seed at a node: the node before, the type of the edge from there, and -log of the path's strength."""


class Step(NamedTuple):
    """A node of a path, the type of the edge to it, and the strength of the path up to it.

    If edges of several types lead to the node, the type is the one with the largest share; at the seed it is None.
    """

    node: int
    edge: int | None
    strength: float


class Transitions:
    """d * P of a typed graph, by source node; edges of several types between two nodes are summed."""

    def __init__(self, graph: Graph, weights: Sequence[float], norm: str, damping: float) -> None:
        src, dst, weight, kind = graph.edges()
        if not graph.directed:
            back = src != dst
            src, dst = np.concatenate([src, dst[back]]), np.concatenate([dst, src[back]])
            weight, kind = np.concatenate([weight, weight[back]]), np.concatenate([kind, kind[back]])
        eta = np.asarray(weights, np.float64)
        degree = graph.degree[graph.internal_of]
        if norm == "joint":
            share = eta[kind] * weight / np.maximum((degree @ eta)[src], np.finfo(float).tiny)
        else:
            share = eta[kind] * weight / degree[src, kind]
        order = np.lexsort((-share, dst, src))  # edges of several types between two nodes: the strongest first
        order = order[damping * share[order] > 0]
        pair = src[order] * graph.num_nodes + dst[order]
        first = np.flatnonzero(np.concatenate([[True], pair[1:] != pair[:-1]])[: pair.size])
        self._bounds = np.searchsorted(src[order][first], np.arange(graph.num_nodes + 1))
        self._to, self._kind = dst[order][first], kind[order][first]
        self._share, self._damping = np.add.reduceat(share[order], first) if first.size else np.zeros(0), damping
        self._cost = -np.log(damping * self._share)
        self.kept = (degree > 0) @ eta if norm == "per_type" else ((degree @ eta) > 0).astype(np.float64)

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
        other._cost = -np.log(self._damping * other._share)
        other.kept = (total > 0).astype(np.float64)
        return other

    def paths(
        self,
        starts: Mapping[int, float],
        rows: Mapping[int, NDArray[np.int64]],
        max_paths: int = MAX_PATHS,
        min_share: float = MIN_SHARE,
        max_nodes: int = MAX_NODES,
        min_extra_visits: int = MIN_EXTRA_VISITS,
    ) -> dict[int, list[list[Step]]]:
        """Return, for each passage, the strongest path from each of its best ``max_paths`` seeds, best first.

        The strength of a path is the restart mass of its seed times the product of d * P along it. The search is
        Dijkstra's algorithm over -log(strength). Each node is visited by at most ``max_paths`` seeds: if a seed is
        among the best of a passage, it is among the best of every node on its path. Ties go to the lower node, then to
        the lower seed. Paths weaker than ``min_share`` of the passage's strongest path and paths to nodes beyond the
        first ``max_nodes`` are left out.

        If a passage is hardly reachable, a search down to ``min_share`` of its path may visit the whole graph. So once
        each passage has a path, the search makes at most as many visits again, and at least ``min_extra_visits``. The
        paths it returns are the first ones that the unbounded search would find.
        """
        heap = [(-float(np.log(mass)), node, node, -1, -1) for node, mass in starts.items() if mass > 0]
        ends = _Ends(rows, min(max_paths, len(heap)), -float(np.log(min_share)), min_extra_visits)
        heapq.heapify(heap)
        visits: dict[int, dict[int, Visit]] = {}
        while True:
            while heap and _known(visits, heap[0][1], heap[0][2], ends.max_paths):
                heapq.heappop(heap)
            if not heap or heap[0][0] > ends.horizon or (len(visits) >= max_nodes and heap[0][1] not in visits):
                break
            cost, node, seed, before, kind = heapq.heappop(heap)
            visits.setdefault(node, {})[seed] = (before, kind, cost)
            ends.reach(node, seed, cost)
            out = slice(self._bounds[node], self._bounds[node + 1])
            columns = (self._to[out].tolist(), self._kind[out].tolist(), self._cost[out].tolist())
            for to, edge, price in zip(*columns, strict=True):
                if cost + price <= ends.horizon and not _known(visits, to, seed, ends.max_paths):
                    heapq.heappush(heap, (cost + price, to, seed, node, edge))
        return {
            p: [_back(visits, node, seed) for seed, node in found.items()] for p, found in ends.found.items() if found
        }


class _Ends:
    """The seeds that reached each passage, best first, and the largest cost at which a path still counts."""

    def __init__(
        self, rows: Mapping[int, NDArray[np.int64]], max_paths: int, decay: float, min_extra_visits: int
    ) -> None:
        self.found: dict[int, dict[int, int]] = {passage: {} for passage in rows}
        self.max_paths, self._decay, self._min_extra_visits = max_paths, decay, min_extra_visits
        self._limit = {
            passage: float("inf") for passage, nodes in rows.items() if nodes.size
        }  # passages that can take more paths
        self._without, self._visits, self._last = len(self._limit), 0, float("inf")
        self._holders: dict[int, list[int]] = {}
        for passage, nodes in rows.items():
            for node in nodes.tolist():
                self._holders.setdefault(node, []).append(passage)
        self.horizon = max(self._limit.values(), default=NO_PATH) if max_paths else NO_PATH

    def reach(self, node: int, seed: int, cost: float) -> None:
        """Record that a seed visits a node."""
        self._visits += 1
        for passage in self._holders.get(node, ()):
            found = self.found[passage]
            if seed in found or cost > self._limit.get(passage, NO_PATH):
                continue
            found[seed] = node
            if len(found) == 1:
                self._limit[passage] = cost + self._decay
                self._without -= 1
            if len(found) == self.max_paths:
                del self._limit[passage]
            self.horizon = max(self._limit.values(), default=NO_PATH)
            if self._without == 0 and self._last == float("inf"):
                self._last = self._visits + max(self._min_extra_visits, self._visits)
        if self._visits >= self._last:
            self.horizon = NO_PATH


def _known(visits: Mapping[int, Mapping[int, Visit]], node: int, seed: int, max_paths: int) -> bool:
    """Return whether a node needs no visit by the seed: it had one, or enough seeds have reached it."""
    seen = visits.get(node)
    return seen is not None and (seed in seen or len(seen) == max_paths)


def _back(visits: Mapping[int, Mapping[int, Visit]], node: int, seed: int) -> list[Step]:
    steps = []
    while node >= 0:
        before, kind, cost = visits[node][seed]
        steps.append(Step(node, None if kind < 0 else kind, float(np.exp(-cost))))
        node = before
    return steps[::-1]
