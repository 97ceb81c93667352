"""A block of L queries on the device: tables, walk and certificate. Contract: kernels/include/hopfuse/ppr.h."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arguments import PprQueries
from .ppr_graph import TILE, DeviceGraph, RowSet
from .runtime import DeviceArray, Runtime, blocks

THREADS = 256
LOOK = 4  # passes between looks at whether any lane still walks
UNIT = 2.0**-53  # float64's unit roundoff
MOST_STEPS = 32  # of polish
GAIN = 0.98  # a step of polish that gains less is the last


@dataclass
class Certificate:
    """Each (L,): hopfuse/ppr.h, STOP."""

    residual: NDArray[np.float64]
    bound: NDArray[np.float64]
    per_degree: NDArray[np.float64]  # infinity where the bound per node does not hold


class Proof(Protocol):
    """What may end a lane's walk before tol is met: :mod:`.ppr_proof`."""

    def attempt(self, block: PprBlock, number: int, tiles: DeviceArray) -> None: ...


class PprBlock:
    """Queries ``first .. first + count - 1`` of a batch, in ``lanes`` >= count lanes."""

    def __init__(self, runtime: Runtime, graph: DeviceGraph, queries: PprQueries, first: int, count: int, lanes: int):
        self.runtime, self.graph, self.queries = runtime, graph, queries
        self.first, self.count, self.lanes = first, count, lanes
        self.symmetric = not queries.per_type and not graph.directed
        self.damping = np.zeros(lanes)
        self.damping[:count] = queries.damping[first : first + count]
        self.d_damping = runtime.upload(self.damping)
        self.per_lane = queries.allowed is not None or (queries.edge_type_weights is not None and not queries.per_type)
        self._read_types()
        self._read_degrees()
        self._read_restart()
        state = (graph.num_nodes, lanes)
        self.even, self.odd = runtime.empty(state, np.float32), runtime.empty(state, np.float32)
        self.tiles64 = runtime.empty((graph.num_tiles, 2, lanes), np.float64)
        self.sums, self.largest = runtime.empty(lanes, np.float64), runtime.empty(lanes, np.float64)
        self.lost = runtime.empty(lanes, np.float64)

    # ---- Launches ------------------------------------------------------------------------------------------------

    def launch(self, kernel: str, items: int, arguments: list[Any], *, block: int = THREADS, shared: int = 0) -> None:
        """``items`` threads of the kernel for this block's number of lanes."""
        self.runtime.launch(f"{kernel}_l{self.lanes}", blocks(items, block), block, arguments, shared)

    def launch_states(self, kernel: str, arguments: list[Any]) -> None:
        """A thread for each entry of the state."""
        self.launch(kernel, self.graph.num_nodes * self.lanes, arguments)

    def launch_tiles(self, kernel: str, arguments: list[Any], shared: int) -> None:
        """A block of threads for each tile."""
        self.launch(kernel, self.graph.num_tiles * THREADS, arguments, shared=shared)

    def launch_tile_lanes(self, kernel: str, arguments: list[Any]) -> None:
        """A thread for each tile and lane."""
        self.launch(kernel, self.graph.num_tiles * self.lanes, arguments)

    def launch_warps(self, kernel: str, arguments: list[Any]) -> None:
        """A warp for each lane, in one block."""
        self.launch(kernel, 32 * self.lanes, arguments, block=32 * self.lanes)

    @property
    def scales(self) -> list[Any]:
        """The kernels' HOPFUSE_SCALES."""
        return [
            self.scale64,
            self.unscale64,
            np.int32(self.per_lane),
            np.int32(self.queries.per_type),
            np.int32(self.graph.num_types),
        ]

    @property
    def nodes(self) -> np.int64:
        return np.int64(self.graph.num_nodes)

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

    def _read_degrees(self) -> None:
        graph, runtime, q = self.graph, self.runtime, self.queries
        self.mask: DeviceArray | None = None
        self.scale32, self.unscale32 = graph.scale32, graph.unscale32
        self.scale64, self.unscale64 = graph.scale64, graph.unscale64
        self.volume = graph.volume
        if not self.per_lane:
            return
        state = (graph.num_nodes, self.lanes)
        if q.allowed is not None:
            self.mask = runtime.empty(state, np.float32)
            shared = q.allowed.shape[0] == 1
            rows = q.allowed if shared else q.allowed[self.first : self.first + self.count]
            arguments = [runtime.upload(rows), np.int32(shared), np.int32(self.count), self.nodes, self.mask]
            self.launch_states("ppr_mask", arguments)
        scales = (graph.num_nodes, graph.num_types if q.per_type else 1, self.lanes)
        self.scale32, self.unscale32 = runtime.empty(scales, np.float32), runtime.empty(state, np.float32)
        self.scale64, self.unscale64 = runtime.empty(scales, np.float64), runtime.empty(state, np.float64)
        walk = {"indptr": graph.indptr, "indices": graph.indices, "weight": graph.weight, "edge_type": graph.edge_type}
        rows_out = {name: graph.out[f"out_{name}"] for name in walk} if graph.out else walk
        self.launch_states(
            "ppr_degrees",
            [
                *rows_out.values(),
                *(graph.degree, self.eta64, self.mask, np.int32(graph.num_types), np.int32(q.per_type), self.nodes),
                *(self.scale32, self.unscale32, self.scale64, self.unscale64),
            ],
        )
        if q.per_type:  # no pass limit reads it
            self.volume = runtime.upload(np.zeros(self.lanes))
            return
        self.volume = runtime.empty(self.lanes, np.float64)
        self.launch("ppr_volume", self.lanes, [self.scale64, self.unscale64, self.nodes, self.volume])

    def _read_restart(self) -> None:
        q, runtime, graph = self.queries, self.runtime, self.graph
        indptr = q.indptr[self.first : self.first + self.count + 1]
        node, value = q.node[indptr[0] : indptr[-1]], q.value[indptr[0] : indptr[-1]]
        self.restart_rows = RowSet.upload(runtime, np.unique(node), graph.num_nodes)
        table = (self.restart_rows.size, self.lanes)
        self.restart64, self.restart32 = runtime.empty(table, np.float64), runtime.empty(table, np.float32)
        self.launch(
            "ppr_clear", table[0] * self.lanes, [np.int64(self.restart_rows.size), self.restart64, self.restart32]
        )
        begin, end = np.zeros((2, self.lanes), np.int64)  # an unused lane has no restart
        begin[: self.count], end[: self.count] = indptr[:-1] - indptr[0], indptr[1:] - indptr[0]
        self.limit, self.measured_from = runtime.empty(self.lanes, np.int64), runtime.empty(self.lanes, np.int64)
        self.next_try = runtime.empty(self.lanes, np.int64)
        self.theta, self.shrink = runtime.empty(self.lanes, np.float32), runtime.empty(self.lanes, np.float32)
        self.launch_warps(
            "ppr_restart",
            [
                *self.scales,
                *(runtime.upload(begin), runtime.upload(end), runtime.upload(node), runtime.upload(value)),
                *(self.restart_rows.words, self.restart_rows.rank, self.d_damping, self.volume),
                *(np.int32(self.symmetric), np.float64(q.tol), np.int64(q.max_iter)),
                *(self.restart64, self.restart32, self.limit, self.measured_from, self.next_try),
                *(self.theta, self.shrink),
            ],
        )

    # ---- The walk ------------------------------------------------------------------------------------------------

    def walk(self, proof: Proof | None = None) -> NDArray[np.int64]:
        """Passes of each lane until all have ended; the iterate is where :attr:`states` says.

        With ``proof`` a lane also ends where its hits look proven.
        """
        runtime = self.runtime
        used = np.arange(self.lanes) < self.count
        limit, measured_from = runtime.download(self.limit)[used], runtime.download(self.measured_from)[used]
        first_measured = int(measured_from.min())
        if proof is not None:
            first_measured = min(first_measured, int(runtime.download(self.next_try)[used].min()))
        self.passes = runtime.upload(np.zeros(self.lanes, np.int64))
        self.walking = runtime.upload(used.astype(np.int32))
        self.unproven = runtime.upload(np.ones(self.lanes, np.int32))
        self.left = runtime.upload(np.array([self.count], np.int32))
        self.last_pass = runtime.upload(np.zeros(1, np.int64))
        self.damping32 = runtime.upload(self.damping.astype(np.float32))
        omega = runtime.upload(self._omega(int(limit.max())))
        restart = [self.restart_rows.words, self.restart_rows.rank, self.restart32]
        self.launch_states("ppr_start", [self.nodes, *restart, self.even, self.odd])
        self.partial = runtime.empty((max(1, self.graph.num_segments), self.lanes), np.float32)
        tiles = runtime.empty((self.graph.num_tiles, 2, self.lanes), np.float32)
        for number in range(1, int(limit.max()) + 1):
            measured = tiles if number >= first_measured else None
            self._pass(number, omega[number - 1] if self.symmetric else None, measured)
            if proof is not None and measured is not None:
                proof.attempt(self, number, tiles)
            if measured is not None and number % LOOK == 0 and runtime.download(self.left)[0] == 0:
                break
        return runtime.download(self.passes)

    def buffers(self, number: int) -> tuple[DeviceArray, DeviceArray]:
        """What pass ``number`` reads and what it writes."""
        return (self.even, self.odd) if number % 2 else (self.odd, self.even)

    def _pass(self, number: int, omega: DeviceArray | None, tiles: DeviceArray | None) -> None:
        current, following = self.buffers(number)
        graph = self.graph
        rows = [
            *(graph.indptr, graph.indices, graph.weight, graph.edge_type, self.eta32, self.scale32),
            *(np.int32(graph.num_types), np.int32(self.per_lane)),
        ]
        kind = self._edge_kind()
        if graph.num_segments and self.mask is None:
            segments = [graph.segment_begin, graph.segment_end, np.int64(graph.num_segments)]
            arguments = [*rows, current, *segments, self.left, self.partial]
            self.launch(f"ppr_segments_{kind}", graph.num_segments * self.lanes, arguments)
        factor = self.unscale32 if self.queries.per_type else self.scale32
        self.launch_tiles(
            f"ppr_pass_{kind}",
            [
                *(*rows, self.nodes, current, following, self.mask, self.partial),
                *(graph.long_rows.words, graph.long_rows.rank, graph.first_of),
                *(self.restart_rows.words, self.restart_rows.rank, self.restart32),
                *(factor, self.damping32, omega, self.walking, self.left, self.unscale32, tiles),
            ],
            shared=4 * TILE * self.lanes,
        )
        if tiles is not None:
            decide = [self.measured_from, self.limit, self.theta, self.shrink]
            state = [self.walking, self.passes, self.left, self.last_pass]
            self.launch_warps("ppr_control", [tiles, np.int64(graph.num_tiles), np.int64(number), *decide, *state])

    def _edge_kind(self) -> str:
        if self.queries.per_type:
            return "per_type"
        if self.eta32 is not None:
            return "typed"
        return "weighted" if self.graph.weighted else "plain"

    def _omega(self, passes: int) -> NDArray[np.float32]:
        """(passes, L) of the Chebyshev recurrence (Golub & Varga 1961)."""
        table, d = np.empty((passes, self.lanes), np.float32), self.damping
        omega = 1.0 / (1.0 - 0.5 * d * d)
        for row in table:
            row[:] = omega
            omega = 1.0 / (1.0 - 0.25 * d * d * omega)
        return table

    # ---- The certificate -----------------------------------------------------------------------------------------

    @property
    def states(self) -> list[Any]:
        """Both buffers, and which pass wrote the last: even passes write the first buffer."""
        return [self.even, self.odd, self.last_pass]

    def normalise(self) -> None:
        """x^ from the last iterate, and the mass that it loses."""
        self.launch_tile_lanes("ppr_mass", [*self.scales, self.nodes, *self.states, self.tiles64])
        self._totals(self.sums, None)
        self._lose(self.sums)

    def _lose(self, total: DeviceArray | None) -> None:
        self.launch_tile_lanes(
            "ppr_scale", [*self.scales, self.eta64, total, self.unproven, self.nodes, *self.states, self.tiles64]
        )
        self._totals(self.lost, None)

    def _totals(self, sums: DeviceArray, largest: DeviceArray | None) -> None:
        self.launch_warps("ppr_totals", [self.tiles64, np.int64(self.graph.num_tiles), sums, largest])

    def certify(self, improved: DeviceArray | None = None) -> Certificate:
        """The residual of x^ and its bound; ``improved`` receives a power step of float64."""
        graph = self.graph
        slack = 2.0 * UNIT * float(graph.longest_row + 2 * TILE)
        self.launch_tiles(
            "ppr_residual",
            [
                *(*self.scales, graph.indptr, graph.indices, graph.weight, graph.edge_type, self.eta64, self.nodes),
                *(*self.states, self.restart_rows.words, self.restart_rows.rank, self.restart64),
                *(self.d_damping, self.lost, np.float64(slack), np.int32(self.symmetric), improved, self.tiles64),
            ],
            shared=8 * TILE * self.lanes,
        )
        self._totals(self.sums, self.largest)
        residual = self.runtime.download(self.sums)
        gap = 1.0 - self.damping
        bound = (residual + 3.0 * slack) / gap * (1.0 + 4.0 * UNIT)
        holds = self.symmetric & (self.runtime.download(self.lost) == 0.0)
        largest = self.runtime.download(self.largest) * (1.0 + 2.0 * slack) / gap * (1.0 + 4.0 * UNIT)
        return Certificate(residual, bound, np.where(holds, largest, np.inf))

    def polish(self, certificate: Certificate, lanes_open: NDArray[np.bool_], passes: NDArray[np.int64]) -> None:
        """Power steps in float64 for open lanes until tol is met or float32 holds no better answer."""
        if not lanes_open.any():
            return
        result = self.result()
        other = self.even if result is self.odd else self.odd
        self._place(result, other)
        self.certify(other)
        for _ in range(MOST_STEPS):
            if not lanes_open.any():
                return
            still_open = self.runtime.upload(lanes_open.astype(np.int32))
            self.launch_states("ppr_keep", [result, other, still_open, self.nodes])
            result, other = other, result
            self._place(result, other)
            self._lose(None)
            step = self.certify(other)
            gained = step.bound < GAIN * certificate.bound
            certificate.residual[lanes_open] = step.residual[lanes_open]
            certificate.bound[lanes_open] = step.bound[lanes_open]
            certificate.per_degree[lanes_open] = step.per_degree[lanes_open]
            passes[lanes_open] += 1
            lanes_open &= gained & (step.bound > self.queries.tol)

    def result(self) -> DeviceArray:
        """The buffer that holds x^."""
        return self.odd if self.runtime.download(self.last_pass)[0] % 2 else self.even

    def _place(self, result: DeviceArray, other: DeviceArray) -> None:
        """From here on the scores are in ``result``: as if an even pass had written it."""
        self.even, self.odd = result, other
        self.last_pass = self.runtime.upload(np.zeros(1, np.int64))

    def scores(self) -> NDArray[np.float32]:
        """(count, N) in the caller's node order."""
        out = self.runtime.empty((self.count, self.graph.num_nodes), np.float32)
        arguments = [*self.states, self.graph.internal_of, self.nodes, np.int32(self.count), out]
        self.launch("ppr_scores", self.count * self.graph.num_nodes, arguments)
        return self.runtime.download(out)
