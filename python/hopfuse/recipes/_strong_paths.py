"""The strongest path from a walk's seeds to each of some passages."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..types import Graph

MOST_VISITED = 100_000


class Step(NamedTuple):
    """A node of a path, how strong the path is there, and the type of the edge that leads to it.

    Of edges of several types the one that is taken most; None at the seed.
    """

    node: int
    edge: int | None
    strength: float


class Transitions:
    """d * P of a typed graph, by the node that is left: what a walk takes to each neighbour, along all edges to it."""

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
        self._cost = -np.log(damping * np.add.reduceat(share[order], first)) if first.size else np.zeros(0)
        self.kept = (degree > 0) @ eta if norm == "per_type" else ((degree @ eta) > 0).astype(np.float64)

    def paths(
        self, starts: Mapping[int, float], rows: Mapping[int, NDArray[np.int64]], most: int = MOST_VISITED
    ) -> dict[int, list[Step]]:
        """For each passage the path whose product of restart mass and d * P is largest, to one of its nodes.

        Dijkstra's algorithm over -log: nodes are reached from the strongest on, so the first of a passage's is its
        best. Of equal ones the node with the lower number. A passage that ``most`` nodes do not reach has no path.
        """
        wanted: dict[int, list[int]] = {}
        for passage, nodes in rows.items():
            for node in nodes.tolist():
                wanted.setdefault(node, []).append(passage)
        heap = [(-float(np.log(mass)), node, -1, -1) for node, mass in starts.items() if mass > 0]
        heapq.heapify(heap)
        came: dict[int, tuple[int, int, float]] = {}
        ends: dict[int, int] = {}
        while heap and len(ends) < len(rows) and len(came) < most:
            cost, node, before, kind = heapq.heappop(heap)
            if node in came:
                continue
            came[node] = (before, kind, cost)
            for passage in wanted.get(node, ()):
                ends.setdefault(passage, node)
            out = slice(self._bounds[node], self._bounds[node + 1])
            columns = (self._to[out].tolist(), self._kind[out].tolist(), self._cost[out].tolist())
            for to, edge, price in zip(*columns, strict=True):
                if to not in came:
                    heapq.heappush(heap, (cost + price, to, node, edge))
        return {passage: _back(came, node) for passage, node in ends.items()}


def _back(came: Mapping[int, tuple[int, int, float]], node: int) -> list[Step]:
    steps = []
    while node >= 0:
        before, kind, cost = came[node]
        steps.append(Step(node, None if kind < 0 else kind, float(np.exp(-cost))))
        node = before
    return steps[::-1]
