"""A block of L queries on the device: its tables and its walk. The contract is kernels/include/hopfuse/ppr.h."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ..calls import PprQueries
from ..node_weights import columns_of
from .arguments import (
    ALLOWED,
    BEFORE,
    DEGREES,
    ITERATE,
    JOIN_ROOM,
    MASK,
    RESTART,
    RESTARTS,
    ROW_SET,
    SCALES,
    SEEDS,
    WALK,
    Arguments,
)
from .ppr_graph import DeviceGraph
from .runtime import DeviceArray, Runtime, blocks

THREADS = 256
MEASURED_COLUMNS = 2  # values measured per lane: Measured of grid_join.h
JOIN_GROUP = 64  # blocks joined by one block, as in grid_join.h
JOIN_SHARED = 8 * THREADS + 8  # bytes of JoinShared in grid_join.h
USUAL_NODE_WEIGHT = 1.0 / 1024


class JoinRoom:
    """The arrays through which blocks of a launch join their measurements: JoinRoom in the kernels.

    ``arrived`` is 0 before and after a launch. There are further counters: ``arrived_of_lane``, one per lane, and
    ``barrier`` of the walk's grid barriers.
    """

    def __init__(self, runtime: Runtime, most_blocks: int, lanes: int, *, cleared: bool) -> None:
        groups = blocks(most_blocks, JOIN_GROUP)
        self._own = groups + 1
        self.counters = self._own + lanes + 1
        columns = (max(1, most_blocks) + groups, MEASURED_COLUMNS, lanes)
        if cleared:
            self.columns, self.arrived = runtime.empty(columns, np.float64), runtime.zeros(self.counters, np.uint32)
        else:
            self.columns, self.arrived = runtime.empty_all([(columns, np.float64), ((self.counters,), np.uint32)])
        self.arguments = JOIN_ROOM(columns=self.columns, arrived=self.arrived)

    @property
    def arrived_of_lane(self) -> DeviceArray:
        return self.arrived[self._own : self.counters - 1]

    @property
    def barrier(self) -> DeviceArray:
        return self.arrived[self.counters - 1 :]


def fixed_passes(block: PprBlock) -> tuple[int, int]:
    """Return the first pass to measure and the last pass, sufficient for all but unusual restarts, which are detected.

    ||s||_{D^-1} is smallest for the stationary restart, 1 / sqrt(vol), and largest for a seed of the smallest degree.
    If lanes have their own degrees, the smallest value is unknown. Node weights usually shrink degrees, relative to the
    volume, by at most USUAL_NODE_WEIGHT.
    """
    q, graph = block.queries, block.graph
    volume, smallest = max(graph.total_degree, graph.least_degree), graph.least_degree
    if q.node_weights is not None:
        smallest *= USUAL_NODE_WEIGHT
    limits = [
        _native.ppr_pass_limit(block.symmetric, q.damping[0], q.tol, volume, 1.0 / math.sqrt(degree))
        for degree in (volume, smallest)
    ]
    least, most = (min(limit, q.max_iter or limit) for limit in limits)
    return 1 if block.per_lane else _native.ppr_measured_from(least), most


class PprBlock:
    """Queries ``first .. first + count - 1`` of a batch, in ``lanes`` >= count lanes."""

    def __init__(self, runtime: Runtime, graph: DeviceGraph, queries: PprQueries, first: int, count: int, lanes: int):
        self.runtime, self.graph, self.queries = runtime, graph, queries
        self.first, self.count, self.lanes = first, count, lanes
        self.symmetric = not queries.per_type and not graph.directed
        self.damping = np.zeros(lanes)
        self.damping[:count] = queries.damping[first : first + count]
        has_types = queries.edge_type_weights is not None and not queries.per_type
        self.per_lane = queries.allow is not None or queries.node_weights is not None or has_types
        self.first_measured, self.most_passes = fixed_passes(self) if runtime.fixed else (1, 0)
        self._read_types()
        self._read_nodes()
        self._read_degrees()
        self.scales = SCALES(
            scale=self.scale64, unscale=self.unscale64, attraction=self.attraction, per_lane=self.per_lane,
            per_type=queries.per_type, num_types=graph.num_types,
        )  # fmt: skip
        self.volume = self._measure_volume() if self.per_lane else graph.volume
        self._read_restart()

    # ---- Launches ------------------------------------------------------------------------------------------------

    def launch(self, kernel: str, items: int, arguments: list[Any], *, block: int = THREADS, shared: int = 0) -> None:
        """Launch ``items`` threads of the kernel for this block's number of lanes."""
        self.runtime.launch(f"{kernel}_l{self.lanes}", blocks(items, block), block, arguments, shared)

    def launch_states(self, kernel: str, arguments: list[Any]) -> None:
        """Launch one thread per entry of the state."""
        self.launch(kernel, self.graph.num_nodes * self.lanes, arguments)

    def launch_tiles(self, kernel: str, arguments: list[Any], *, shared: int = 0) -> None:
        """Launch one thread block per tile."""
        self.launch(kernel, self.graph.num_tiles * THREADS, arguments, shared=shared)

    def launch_tile_lanes(self, kernel: str, arguments: list[Any]) -> None:
        """Launch one thread per tile and lane."""
        self.launch(kernel, self.graph.num_tiles * self.lanes, arguments)

    def launch_warps(self, kernel: str, arguments: list[Any]) -> None:
        """Launch one warp per lane, in one block."""
        self.launch(kernel, 32 * self.lanes, arguments, block=32 * self.lanes)

    def lanes_of(self, dtype: Any) -> DeviceArray:
        """Allocate one value per lane, (L,)."""
        return self.runtime.empty(self.lanes, dtype)

    @property
    def nodes(self) -> np.int64:
        return np.int64(self.graph.num_nodes)

    @property
    def iterate(self) -> Arguments:
        """Both buffers and the number of the last pass; even passes write the first buffer."""
        return ITERATE(even=self.even, odd=self.odd, last_pass=self.last_pass)

    def restart_set(self) -> Arguments:
        """Return the rows that restart."""
        words, rank = self.restart_rows
        return ROW_SET(words=words, rank=rank)

    # ---- Set-up --------------------------------------------------------------------------------------------------

    def _read_types(self) -> None:
        weights = self.queries.edge_type_weights
        self.eta64 = self.eta32 = None
        if weights is None:
            return
        eta = np.ones((self.graph.num_types, self.lanes))
        eta[:, : self.count] = weights[self.first : self.first + self.count].T
        self.eta64 = self.runtime.upload(eta)
        self.eta32 = self.runtime.upload(eta.astype(np.float32))

    def _read_nodes(self) -> None:
        """Make the mask or node weights of each lane, if any."""
        graph, runtime, q = self.graph, self.runtime, self.queries
        self.mask: DeviceArray | None = None  # 0 for nodes that are excluded
        self.attraction: DeviceArray | None = None  # node weights
        self.least: DeviceArray | None = None  # the smallest node weight, and the smallest factor of a row
        self.allowed = self.before = None  # masks and counts of the entries of long rows
        weights = q.node_weights
        if q.allow is None and weights is None:
            return
        shares = runtime.empty((graph.num_nodes, self.lanes), np.float32)
        rows, columns = slice(self.first, self.first + self.count), 0
        allowed = own = column = other = None
        is_shared = q.allow is not None and q.allow.shape[0] == 1
        if q.allow is not None:
            allowed = runtime.upload(q.allow if is_shared else q.allow[rows])
        if weights is not None:
            own, other = weights.weight[rows], weights.other[rows]
            if not weights.on_device:
                own, other = runtime.upload(own), runtime.upload(other)
            column, columns = runtime.upload(columns_of(weights.node, graph.num_nodes)), weights.node.size
            self.attraction, self.least = shares, runtime.empty((2, self.lanes), np.float32)
        if q.allow is not None or (weights is not None and weights.exclude(rows)):
            self.mask = shares
        arguments = MASK(
            allowed=allowed, shared=is_shared, own=own, column=column, columns=columns, other=other,
            queries=self.count, num_nodes=graph.num_nodes, least=self.least, mask=shares,
        )  # fmt: skip
        self.launch_states("ppr_mask", [arguments])
        if self.mask is not None and graph.num_segments:
            self._read_allowed()

    def _read_allowed(self) -> None:
        """Find which entries of long rows count in each lane; segments are formed of these entries only."""
        graph, runtime = self.graph, self.runtime
        shape, rows = (graph.num_segments, self.lanes), graph.long_rows.size
        self.allowed, self.before = runtime.empty(shape, np.uint64), runtime.empty(shape, np.int32)
        entries = ALLOWED(
            indices=graph.indices, segment_begin=graph.segment_begin, segment_end=graph.segment_end,
            num_segments=graph.num_segments, mask=self.mask, allowed=self.allowed,
        )  # fmt: skip
        self.launch("ppr_allowed", graph.num_segments * self.lanes, [entries])
        counts = BEFORE(first_of=graph.first_of, num_rows=rows, allowed=self.allowed, before=self.before)
        self.launch("ppr_before", rows * self.lanes, [counts])

    def _read_degrees(self) -> None:
        graph, runtime, q = self.graph, self.runtime, self.queries
        self.scale32, self.unscale32 = graph.scale32, graph.unscale32
        self.scale64, self.unscale64 = graph.scale64, graph.unscale64
        self.longest_row, self.joined_nodes = graph.longest_row, graph.joined_nodes
        if not self.per_lane:
            return
        state = (graph.num_nodes, self.lanes)
        shares = self.mask if self.attraction is None else self.attraction
        if self.mask is not None:
            self.longest_row, self.joined_nodes = (runtime.zeros(self.lanes, np.uint64) for _ in range(2))
        scales = (graph.num_nodes, graph.num_types if q.per_type else 1, self.lanes)
        self.scale32, self.unscale32 = runtime.empty(scales, np.float32), runtime.empty(state, np.float32)
        self.scale64, self.unscale64 = runtime.empty(scales, np.float64), runtime.empty(state, np.float64)
        walk = {"indptr": graph.indptr, "indices": graph.indices, "weight": graph.weight, "edge_type": graph.edge_type}
        rows_out = {name: graph.out[f"out_{name}"] for name in walk} if graph.out else walk
        is_masked = self.mask is not None
        arguments = DEGREES(
            **rows_out, degree=graph.degree, eta=self.eta64, shares=shares, num_types=graph.num_types,
            per_type=q.per_type, in_indptr=graph.indptr if graph.out else None,
            in_indices=graph.indices if graph.out else None, num_nodes=graph.num_nodes,
            scale32=self.scale32, unscale32=self.unscale32, scale64=self.scale64, unscale64=self.unscale64,
            longest=self.longest_row if is_masked else None, joined=self.joined_nodes if is_masked else None,
            least=self.least,
        )  # fmt: skip
        self.launch_states("ppr_degrees", [arguments])

    def _measure_volume(self) -> DeviceArray:
        """Return each lane's volume; the first launch finds the grain of the sum, the second sums."""
        if self.queries.per_type:  # the volume is not needed
            return self.runtime.upload(np.zeros(self.lanes))
        room = JoinRoom(self.runtime, self.graph.num_tiles, self.lanes, cleared=True)
        grain: DeviceArray | None = None
        for _ in ("anchor", "volume"):
            out = self.lanes_of(np.float64)
            self.launch_tile_lanes("ppr_volume", [self.scales, grain, self.nodes, room.arguments, out])
            grain = out
        return grain

    def _read_restart(self) -> None:
        q, runtime, graph = self.queries, self.runtime, self.graph
        given, rows, most_rows = self._seeds() if q.seeds is not None else self._restarts()
        self.restarting = most_rows  # the most rows that restart
        self._allocate(max(1, most_rows))
        self.join = JoinRoom(runtime, graph.num_tiles, self.lanes, cleared=False)
        names = ("limit", "measured_from", "next_try", "theta", "shrink", "anchor", "walking", "unproven", "passes")
        walk = {name: getattr(self, name) for name in (*names, "left", "last_pass")}
        words, rank = self.restart_rows
        seeds = SEEDS(
            **given, queries=self.count, internal_of=graph.internal_of, num_nodes=graph.num_nodes, mask=self.mask
        )
        arguments = RESTART(
            scales=self.scales, seeds=seeds, restarts=RESTARTS(**rows, words=words, rank=rank), damping=self.d_damping,
            volume=self.volume, symmetric=self.symmetric, tol=q.tol, max_iter=q.max_iter, first=self.first_measured,
            last=self.most_passes, table_rows=max(1, most_rows), restart64=self.restart64, restart32=self.restart32,
            walk=WALK(**walk), longest=self.longest_row, joined=self.joined_nodes, slack=self.slack,
            missed=self.missed, keeps=self.keeps, least=self.least, accelerates=self.accelerates, status=self.status,
            arrived=self.join.arrived, counters=self.join.counters,
        )  # fmt: skip
        self.launch_warps("ppr_restart", [arguments])

    def _allocate(self, table_rows: int) -> None:
        """Allocate the state, the restarts and the values per lane; those that are downloaded together come first."""
        words = max(1, -(-self.graph.num_nodes // 64))
        lane, state, table = (self.lanes,), (self.graph.num_nodes, self.lanes), (table_rows, self.lanes)
        (
            self.limit, self.measured_from, self.next_try, self.passes, self.unproven, self.last_pass,
            self.residual, self.bound, self.per_degree,
            self.theta, self.shrink, self.anchor, self.slack, self.missed, self.keeps, self.accelerates,
            self.walking, self.status, self.left, word, rank, self.restart64, self.restart32, self.even, self.odd,
        ) = self.runtime.empty_all([
            (lane, np.int64), (lane, np.int64), (lane, np.int64), (lane, np.int64), (lane, np.int32), ((1,), np.int64),
            (lane, np.float64), (lane, np.float64), (lane, np.float64),
            (lane, np.float32), (lane, np.float32), (lane, np.float64), (lane, np.float64), (lane, np.float64),
            (lane, np.int32), (lane, np.int32), (lane, np.int32), (lane, np.int32), ((1,), np.int32),
            ((words,), np.uint64), ((words,), np.int32), (table, np.float64), (table, np.float32),
            (state, np.float32), (state, np.float32),
        ])  # fmt: skip
        self.restart_rows = [word, rank]

    def _restarts(self) -> tuple[dict[str, Any], dict[str, DeviceArray], int]:
        """Return fields of SEEDS, those of RESTARTS as sorted by the host, and the number of distinct rows."""
        q = self.queries
        indptr = q.indptr[self.first : self.first + self.count + 1]
        node, value = q.node[indptr[0] : indptr[-1]], q.value[indptr[0] : indptr[-1]]
        begin, end = np.zeros((2, self.lanes), np.int64)  # an unused lane has no restart
        begin[: self.count], end[: self.count] = indptr[:-1] - indptr[0], indptr[1:] - indptr[0]
        seeds: dict[str, Any] = {"node": None, "weight": None, "width": -1, "may_be_empty": False}
        there = self._upload_with_damping(begin, end, node, value)
        return seeds, dict(zip(("begin", "end", "node", "value"), there, strict=True)), np.unique(node).size

    def _seeds(self) -> tuple[dict[str, Any], dict[str, DeviceArray], int]:
        """Return fields of SEEDS, those of RESTARTS, uninitialised, and the largest number of rows."""
        seeds = self.queries.seeds
        assert seeds is not None
        width = int(seeds.node.shape[1])
        rows = slice(self.first, self.first + self.count)
        room = max(1, self.count * width)
        given = {"node": seeds.node[rows], "weight": seeds.weight[rows], "width": width}
        (begin,) = self._upload_with_damping(np.minimum(np.arange(self.lanes), self.count) * width)
        end, node, value = self.runtime.empty_all(
            [((self.lanes,), np.int64), ((room,), np.int32), ((room,), np.float64)]
        )
        restarts = {"begin": begin, "end": end, "node": node, "value": value}
        return {**given, "may_be_empty": seeds.may_be_empty}, restarts, min(room, self.graph.num_nodes)

    def _upload_with_damping(self, *arrays: NDArray[Any]) -> list[DeviceArray]:
        self.d_damping, self.damping32, *there = self.runtime.upload_all(
            [self.damping, self.damping.astype(np.float32), *arrays]
        )
        return there

    # ---- Passes ------------------------------------------------------------------------------------------------------

    def segment_sums(self) -> DeviceArray:
        return self.runtime.empty((max(1, self.graph.num_segments), self.lanes), np.float32)

    def measured_of_lanes(self) -> DeviceArray:
        """Allocate what kernels measure per lane: a sum and a maximum, (2, L)."""
        return self.runtime.empty((MEASURED_COLUMNS, self.lanes), np.float64)

    def buffers(self, number: int) -> tuple[DeviceArray, DeviceArray]:
        """Return the buffers that pass ``number`` reads and writes."""
        return (self.even, self.odd) if number % 2 else (self.odd, self.even)

    def edge_kind(self) -> str:
        """Return the part of the names of kernels that says how an entry adds to a row's sum."""
        if self.queries.per_type:
            return "per_type"
        if self.eta32 is not None:
            return "typed"
        return "weighted" if self.graph.weighted else "plain"

    def omega(self, passes: int) -> NDArray[np.float32]:
        """Return the coefficients of the Chebyshev recurrence, (passes, L) (Golub & Varga 1961)."""
        table = np.empty((passes, self.lanes), np.float32)
        for d in set(self.damping.tolist()):
            table[:, self.damping == d] = np.array(_omega(d, passes))[:, None]
        return table


@lru_cache(maxsize=64)
def _omega(d: float, passes: int) -> list[float]:
    values = [1.0 / (1.0 - 0.5 * d * d)]
    while len(values) < passes:
        values.append(1.0 / (1.0 - 0.25 * d * d * values[-1]))
    return values[:passes]
