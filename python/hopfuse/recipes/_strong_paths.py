"""The strongest paths from a walk's seeds to each of some passages."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..types import Graph

FEW = 3
#: Of a passage's strongest path: what is weaker is no evidence. As many decades as a drawing shows.
FAINTEST = 1e-4
MOST_REACHED = 100_000
#: Visits for paths of further seeds once each passage has one, where it took fewer until then.
FURTHER = 1_000
NONE = -float("inf")

Visit = tuple[int, int, float]
"""Of a seed at a node: the node before, the type of the edge from there, and -log of the path's strength."""


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
        self,
        starts: Mapping[int, float],
        rows: Mapping[int, NDArray[np.int64]],
        few: int = FEW,
        faintest: float = FAINTEST,
        most: int = MOST_REACHED,
        further: int = FURTHER,
    ) -> dict[int, list[list[Step]]]:
        """For each passage the strongest path of each seed to one of its nodes: of the ``few`` best seeds, best first.

        A path's strength is its product of restart mass and d * P. Dijkstra's algorithm over -log: nodes are reached
        from the strongest on, each by at most ``few`` seeds. A seed that is among a passage's best is among the best of
        every node on its way there, since those before it there would be before it at the passage. Of equal ones the
        node with the lower number, then the seed. Left out are paths weaker than ``faintest`` of the passage's
        strongest, and those to nodes beyond the first ``most``.

        A passage that is hardly reached would have the search go on to ``faintest`` of its path, which may be the whole
        graph: once each passage has a path, those of further seeds are looked for in as many visits as were made until
        then, or in ``further`` where these are fewer. What is found is what comes first without that bound.
        """
        heap = [(-float(np.log(mass)), node, node, -1, -1) for node, mass in starts.items() if mass > 0]
        ends = _Ends(rows, min(few, len(heap)), -float(np.log(faintest)), further)
        heapq.heapify(heap)
        came: dict[int, dict[int, Visit]] = {}
        while True:
            while heap and _known(came, heap[0][1], heap[0][2], ends.few):
                heapq.heappop(heap)
            if not heap or heap[0][0] > ends.horizon or (len(came) >= most and heap[0][1] not in came):
                break
            cost, node, seed, before, kind = heapq.heappop(heap)
            came.setdefault(node, {})[seed] = (before, kind, cost)
            ends.reach(node, seed, cost)
            out = slice(self._bounds[node], self._bounds[node + 1])
            columns = (self._to[out].tolist(), self._kind[out].tolist(), self._cost[out].tolist())
            for to, edge, price in zip(*columns, strict=True):
                if cost + price <= ends.horizon and not _known(came, to, seed, ends.few):
                    heapq.heappush(heap, (cost + price, to, seed, node, edge))
        return {
            p: [_back(came, node, seed) for seed, node in found.items()] for p, found in ends.found.items() if found
        }


class _Ends:
    """Where seeds have reached each passage, best first, and how far it is still worth to look."""

    def __init__(self, rows: Mapping[int, NDArray[np.int64]], few: int, decay: float, further: int) -> None:
        self.found: dict[int, dict[int, int]] = {passage: {} for passage in rows}
        self.few, self._decay, self._further = few, decay, further
        self._limit = {passage: float("inf") for passage, nodes in rows.items() if nodes.size}  # that may have more
        self._without, self._visits, self._last = len(self._limit), 0, float("inf")
        self._holders: dict[int, list[int]] = {}
        for passage, nodes in rows.items():
            for node in nodes.tolist():
                self._holders.setdefault(node, []).append(passage)
        self.horizon = max(self._limit.values(), default=NONE) if few else NONE

    def reach(self, node: int, seed: int, cost: float) -> None:
        """A seed is at a node: one visit."""
        self._visits += 1
        for passage in self._holders.get(node, ()):
            found = self.found[passage]
            if seed in found or cost > self._limit.get(passage, NONE):
                continue
            found[seed] = node
            if len(found) == 1:
                self._limit[passage] = cost + self._decay
                self._without -= 1
            if len(found) == self.few:
                del self._limit[passage]
            self.horizon = max(self._limit.values(), default=NONE)
            if self._without == 0 and self._last == float("inf"):
                self._last = self._visits + max(self._further, self._visits)
        if self._visits >= self._last:
            self.horizon = NONE


def _known(came: Mapping[int, Mapping[int, Visit]], node: int, seed: int, few: int) -> bool:
    """Whether a node needs no visit of the seed: it had one, or was reached by enough seeds."""
    seen = came.get(node)
    return seen is not None and (seed in seen or len(seen) == few)


def _back(came: Mapping[int, Mapping[int, Visit]], node: int, seed: int) -> list[Step]:
    steps = []
    while node >= 0:
        before, kind, cost = came[node][seed]
        steps.append(Step(node, None if kind < 0 else kind, float(np.exp(-cost))))
        node = before
    return steps[::-1]
