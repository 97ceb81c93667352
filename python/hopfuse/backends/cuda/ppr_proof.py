"""Each query's best nodes on a device, and the proof that they are the best: kernels/include/hopfuse/ppr_proof.h."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .ppr_block import THREADS, Certificate, PprBlock
from .ppr_graph import DeviceGraph
from .runtime import DeviceArray, Runtime


class TopkHits(NamedTuple):
    """PprTopk's outputs."""

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]
    counts: NDArray[np.int64]
    score_bounds: NDArray[np.float32]
    proven: NDArray[np.uint8]

    @classmethod
    def empty(cls, batch: int, width: int) -> TopkHits:
        shape = (batch, width)
        return cls(
            np.full(shape, -1, np.int64),
            np.full(shape, -np.inf, np.float32),
            np.zeros(batch, np.int64),
            np.zeros(shape, np.float32),
            np.zeros(batch, np.uint8),
        )

    def put(self, rows: NDArray[np.int64], found: TopkHits, lanes: NDArray[np.int64]) -> None:
        """Rows of the batch from lanes of a block, whose lists may be shorter."""
        width = found.ids.shape[1]
        self.ids[rows, :width] = found.ids[lanes]
        self.scores[rows, :width] = found.scores[lanes]
        self.score_bounds[rows, :width] = found.score_bounds[lanes]
        self.counts[rows] = found.counts[lanes]
        self.proven[rows] = found.proven[lanes]


class TopkSearch:
    """The best ``k`` of all nodes, or of ``among`` (internal nodes); k is at most the number of candidates."""

    def __init__(self, runtime: Runtime, graph: DeviceGraph, k: int, among: NDArray[np.int32] | None) -> None:
        self.runtime, self.graph, self.k = runtime, graph, k
        self.among = None if among is None else runtime.upload(among)
        self.count = np.int64(graph.num_nodes if among is None else among.size)

    def attempt(self, block: PprBlock, number: int, tiles: DeviceArray) -> None:
        """After pass ``number``: end lanes whose hits look proven with the iterate that the pass read."""
        lists = _Lists(self, block)
        lists.launch_warps(
            "ppr_forecast",
            [
                *(tiles, np.int64(self.graph.num_tiles), np.int64(number), block.d_damping, block.walking),
                *(block.next_try, lists.tried, lists.per_degree, lists.flat),
            ],
        )
        current, following = block.buffers(number)
        lists.rank(current, final=False)
        lists.decide(number, [block.walking, block.passes, block.next_try, block.unproven, block.left, block.last_pass])
        block.launch_states("ppr_keep", [current, following, block.unproven, block.nodes])

    def final(self, block: PprBlock, certificate: Certificate) -> TopkHits:
        """The hits of x^ in each lane, and whether they are proven."""
        hits = TopkHits.empty(block.lanes, self.k)
        if self.k == 0:  # an empty list is exact
            hits.proven[:] = 1
            return hits
        lists = _Lists(self, block)
        holds = np.isfinite(certificate.per_degree)
        lists.tried = self.runtime.upload((np.arange(block.lanes) < block.count).astype(np.int32))
        lists.per_degree = self.runtime.upload(np.where(holds, certificate.per_degree, 0.0))
        lists.flat = self.runtime.upload(np.where(holds, 0.0, certificate.bound))
        lists.rank(block.result(), final=True)
        lists.decide(0, [None] * 6)
        bounds = np.broadcast_to(certificate.bound[:, None], hits.ids.shape).copy()
        degrees = lists.degrees()
        for lane in range(block.count):
            held = min(int(lists.host_found[lane]), self.k)
            hits.ids[lane, :held] = lists.host_ids[lane, :held]
            hits.scores[lane, :held] = lists.host_scores[lane, :held]
            hits.counts[lane] = held
            if holds[lane]:
                local = certificate.per_degree[lane] * degrees[lane, :held] * (1.0 + 1e-6) + 0.0
                local = np.zeros(held) if certificate.per_degree[lane] == 0.0 else local
                bounds[lane, :held] = np.minimum(local, bounds[lane, :held])
            rounded = bounds[lane, :held].astype(np.float32)
            hits.score_bounds[lane, :held] = np.nextafter(rounded, np.float32(np.inf))
        hits.proven[:] = lists.host_shortfall < 1.0
        return hits


class _Lists:
    """The lists of a block's lanes on the device, k + 1 hits each: one more, to see a tie."""

    def __init__(self, search: TopkSearch, block: PprBlock) -> None:
        self.search, self.block, runtime = search, block, search.runtime
        lanes, want = block.lanes, search.k + 1
        self.tried: DeviceArray = runtime.empty(lanes, np.int32)
        self.per_degree: DeviceArray = runtime.empty(lanes, np.float64)
        self.flat: DeviceArray = runtime.empty(lanes, np.float64)
        self.scores, self.ids = runtime.empty((lanes, want), np.float32), runtime.empty((lanes, want), np.int64)
        self.found = runtime.upload(np.zeros(lanes, np.int64))
        self.shortfall = runtime.upload(np.full(lanes, np.inf))
        self.open = runtime.upload(np.zeros(lanes, np.int32))
        self.cut, self.outside = runtime.empty(lanes, np.float32), runtime.empty(lanes, np.float32)
        self.reach = [runtime.empty(lanes, np.float32), runtime.empty(lanes, np.float32)]

    def launch_warps(self, kernel: str, arguments: list[Any]) -> None:
        self.block.launch_warps(kernel, arguments)

    def _arguments(self) -> list[Any]:
        """The kernels' HOPFUSE_LISTS."""
        block, search = self.block, self.search
        return [
            *(self.scores, self.ids, self.found, search.graph.internal_of, block.unscale64),
            *(np.int32(block.per_lane), np.int64(search.k), search.count, self.per_degree, self.flat),
        ]

    def rank(self, state: DeviceArray, final: bool) -> None:
        """The lists, and what candidates outside them reach."""
        block, search = self.block, self.search
        candidates = [
            *(state, np.int32(final), block.unscale32, np.int32(block.per_lane)),
            *(search.graph.node_of, search.among, search.count),
        ]
        lists = [self.tried, np.int64(search.k + 1), self.scores, self.ids, self.found]
        block.launch("ppr_select", block.lanes * THREADS, [*candidates, *lists])
        proof = [self.shortfall, self.open, self.cut, *self.reach]
        block.launch("ppr_prove", 32, [*self._arguments(), self.tried, *proof], block=32)
        outside = [self.tried, self.open, self.cut, *self.reach, self.outside]
        block.launch("ppr_outside", block.lanes * THREADS, [*candidates, *outside])

    def decide(self, number: int, walk: list[DeviceArray | None]) -> None:
        """Every list's shortfall; with the walk's state, proven lanes end."""
        block = self.block
        state = [self.tried, self.open, self.outside, self.shortfall, block.d_damping, np.int64(number), *walk]
        block.launch("ppr_decide", 32, [*self._arguments(), *state], block=32)

    def degrees(self) -> NDArray[np.float64]:
        """deg of each hit of each lane; downloads the lists."""
        runtime, block = self.search.runtime, self.block
        self.host_ids, self.host_scores = runtime.download(self.ids), runtime.download(self.scores)
        self.host_found, self.host_shortfall = runtime.download(self.found), runtime.download(self.shortfall)
        degree = runtime.empty(self.host_ids.shape, np.float64)
        if block.unscale64 is None:
            return np.ones(self.host_ids.shape)
        want = np.int64(self.search.k + 1)
        arguments = [self.ids, self.found, want, self.search.graph.internal_of, block.unscale64]
        block.launch("ppr_hit_degrees", degree.size, [*arguments, np.int32(block.per_lane), degree])
        return runtime.download(degree)
