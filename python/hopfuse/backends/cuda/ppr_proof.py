"""Each query's best nodes on a device, and the proof that they are the best: kernels/include/hopfuse/ppr_proof.h."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .ppr_block import Certificate, PprBlock
from .ppr_graph import DeviceGraph
from .runtime import DeviceArray, Runtime

SELECT_THREADS, SELECT_KEPT = 128, 512  # of ppr_select, which finds hits in whole rounds
OUTSIDE_THREADS, EMIT_THREADS = 256, 128


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
        block.launch_warps(
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
        used = slice(block.count)
        hits.ids[used], hits.scores[used], hits.counts[used] = lists.hits()
        bound = np.minimum(lists.errors(), certificate.bound[:, None]).astype(np.float32)
        held = np.arange(self.k) < hits.counts[:, None]
        hits.score_bounds[held] = np.nextafter(bound, np.float32(np.inf))[held]
        hits.proven[:] = self.runtime.download(lists.shortfall) < 1.0
        return hits


class _Lists:
    """The lists of a block's lanes on the device: keys (topk_key.h) of k + 1 hits, one more, to see a tie."""

    def __init__(self, search: TopkSearch, block: PprBlock) -> None:
        self.search, self.block, runtime = search, block, search.runtime
        lanes, self.want = block.lanes, search.k + 1
        self.stride = -(-self.want // SELECT_KEPT) * SELECT_KEPT
        self.tried: DeviceArray = runtime.empty(lanes, np.int32)
        self.per_degree: DeviceArray = runtime.empty(lanes, np.float64)
        self.flat: DeviceArray = runtime.empty(lanes, np.float64)
        self.keys = runtime.empty((lanes, self.stride), np.uint64)
        self.found = runtime.upload(np.zeros(lanes, np.int64))
        self.shortfall = runtime.upload(np.full(lanes, np.inf))
        self.open = runtime.upload(np.zeros(lanes, np.int32))
        self.cut, self.outside = runtime.empty(lanes, np.float32), runtime.empty(lanes, np.float32)
        self.reach = [runtime.empty(lanes, np.float32), runtime.empty(lanes, np.float32)]

    def _arguments(self) -> list[Any]:
        """The kernels' HOPFUSE_LISTS."""
        block, search = self.block, self.search
        return [
            *(self.keys, np.int64(self.stride), self.found, search.graph.internal_of, block.unscale64),
            *(np.int32(block.per_lane), np.int64(search.k), search.count, self.per_degree, self.flat),
        ]

    def rank(self, state: DeviceArray, final: bool) -> None:
        """The lists, and what candidates outside them reach."""
        block, search = self.block, self.search
        candidates = [
            *(state, np.int32(final), block.unscale32, np.int32(block.per_lane)),
            *(search.graph.node_of, search.among, search.count),
        ]
        lists = [self.tried, np.int64(self.want), np.int64(self.stride), self.keys, self.found]
        block.launch("ppr_select", block.lanes * SELECT_THREADS, [*candidates, *lists], block=SELECT_THREADS)
        proof = [self.shortfall, self.open, self.cut, *self.reach]
        block.launch("ppr_prove", 32, [*self._arguments(), self.tried, *proof], block=32)
        outside = [self.tried, self.open, self.cut, *self.reach, self.outside]
        block.launch("ppr_outside", block.lanes * OUTSIDE_THREADS, [*candidates, *outside], block=OUTSIDE_THREADS)

    def decide(self, number: int, walk: list[DeviceArray | None]) -> None:
        """Every list's shortfall; with the walk's state, proven lanes end."""
        block = self.block
        state = [self.tried, self.open, self.outside, self.shortfall, block.d_damping, np.int64(number), *walk]
        block.launch("ppr_decide", 32, [*self._arguments(), *state], block=32)

    def hits(self) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
        """ids, scores and counts of the used lanes' first k."""
        runtime, count, k = self.search.runtime, self.block.count, self.search.k
        ids, scores = runtime.empty((count, k), np.int64), runtime.empty((count, k), np.float32)
        counts = runtime.empty(count, np.int64)
        arguments = [self.keys, np.int64(self.stride), np.int64(k), None, np.int32(0), ids, scores, counts, None, None]
        runtime.launch("topk_emit", count, EMIT_THREADS, arguments)
        return runtime.download(ids), runtime.download(scores), runtime.download(counts)

    def errors(self) -> NDArray[np.float64]:
        """(L, k) error bounds of the hits."""
        error = self.search.runtime.empty((self.block.lanes, self.search.k), np.float64)
        self.block.launch("ppr_hit_errors", error.size, [*self._arguments(), error])
        return self.search.runtime.download(error)
