"""Settle lists that the certificate of x^ leaves unproven, by refinement and local bounds.

See LOCAL BOUNDS and REFINEMENT in kernels/include/hopfuse/ppr.h; kernels/cpu/ppr_settle.h makes the same decisions.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _native
from .ppr_block import PprBlock
from .ppr_certificate import Certificate, Certifier
from .ppr_passes import Passes
from .ppr_topk import Answers, TopkSearch
from .runtime import DeviceArray

Lanes = NDArray[np.bool_]


def room(block: PprBlock) -> tuple[DeviceArray, ...]:
    """Allocate the memory needed beside the block and the correction: two states and the segment sums."""
    state = (block.graph.num_nodes, block.lanes)
    states = (block.runtime.empty(state, np.float32) for _ in range(2))
    return (*states, block.segment_sums())


class Settling:
    """The settling of a block whose lists are written; values per lane, (L,), are on the host."""

    def __init__(
        self,
        search: TopkSearch,
        certifier: Certifier,
        certificate: Certificate,
        rows: NDArray[np.int64],
        answers: Answers,
        passes: NDArray[np.int64],
    ) -> None:
        self.search, self.certifier, self.block = search, certifier, certifier.block
        self.certificate, self.answers = certificate, answers
        self.rows = np.full(self.block.lanes, -1, np.int64)
        self.rows[: rows.size] = rows
        self.passes = passes
        self.look = np.zeros(self.block.lanes, np.int64)
        self._read_shortfall()

    def settle(self) -> None:
        """Prove lists where possible, and write them."""
        lanes_open = (self.rows >= 0) & ~self.proven & (self.certificate.per_degree < _native.PPR_MOST_RHO)
        lanes_open &= ~self._read_weights()
        if not lanes_open.any():
            return
        self.other, self.spare, self.partial = room(self.block)
        self.missed, self.slack, last_pass = self.block.runtime.download_all(
            [self.block.missed, self.block.slack, self.block.last_pass]
        )
        longest = self.block.runtime.download(self.block.longest_row).astype(np.int64)
        self.longest = np.ascontiguousarray(np.broadcast_to(longest, self.block.lanes))
        self.x, self.free = (self.block.odd, self.block.even) if last_pass[0] % 2 else (self.block.even, self.block.odd)
        self._read_rest()
        more = self._plan_looks(lanes_open)
        while lanes_open.any():
            more = self._refine(lanes_open, more)

    def _read_weights(self) -> Lanes:
        """Read the largest 1 / node weight; return lanes in which the factor of a row's sum may underflow."""
        lanes, least = self.block.lanes, self.block.least
        weight, factor = np.ones((2, lanes)) if least is None else self.block.runtime.download(least).astype(np.float64)
        self.inverse = 1.0 / weight
        if least is None:
            return np.zeros(lanes, np.bool_)
        faint = map(_native.ppr_is_faint, factor.tolist(), self.block.damping.tolist())
        return np.fromiter(faint, np.bool_, lanes)

    @property
    def proven(self) -> Lanes:
        return self.shortfall < 1.0

    def _read_shortfall(self) -> None:
        known = self.block.runtime.download(self.answers.shortfall)
        self.shortfall = np.where(self.rows >= 0, known[np.maximum(self.rows, 0)], 0.0)

    def _allows(self, lane: int, more: int) -> bool:
        most = self.block.queries.max_iter
        return most == 0 or int(self.passes[lane]) + more <= most

    def _plan_looks(self, lanes_open: Lanes) -> NDArray[np.int64]:
        """Plan the next look of open lanes; return its passes. Those that no pass helps are no longer open."""
        more = np.zeros(self.block.lanes, np.int64)
        for lane in np.flatnonzero(lanes_open).tolist():
            done, shortfall = int(self.look[lane]), float(self.shortfall[lane])
            damping = float(self.block.damping[lane])
            following = _native.ppr_next_look(damping, done, shortfall, self.search.prove_order)
            may = following > 0 and _native.ppr_may_correct(int(self.longest[lane]))
            lanes_open[lane] = may and self._allows(lane, following - done)
            if lanes_open[lane]:
                more[lane], self.look[lane] = following - done, following
        self.passes += more
        return more

    def _write(
        self, lanes: Lanes, certificate: Certificate, passes: NDArray[np.int64], **how: DeviceArray | None
    ) -> None:
        """Write the lists of some lanes, adding ``passes``, and read how far they are from being proven."""
        rows = np.where(lanes, self.rows, -1)
        self.search.finish(
            self.block, self.certifier, rows, self.answers, certificate, goes_on=True, more_passes=passes - 1, **how
        )
        self._read_shortfall()

    # ---- Local bounds ----------------------------------------------------------------------------------------------

    def _read_rest(self) -> None:
        """Bound by how much |rho| of x^ may exceed the stored correction."""
        block = self.block
        start = [block.nodes, block.restart_set(), block.restart32, self.spare, self.other]
        block.launch_states("ppr_start", start)
        restart = self._largest(self.spare)
        slack = np.broadcast_to(self.slack, block.lanes)
        self.scale = self._largest_scale()
        columns = (restart, self.certificate.per_degree, slack, self.longest, self.scale, self.inverse, block.damping)
        given = zip(*(column.tolist() for column in columns), strict=True)
        self.rest = np.array([_native.ppr_rest_of_rho(*own) for own in given])

    def _look_around(
        self, certificate: Certificate, rest: NDArray[np.float64], gap: DeviceArray, averages: DeviceArray
    ) -> Certificate:
        """Write P ``gap``; return the certificate with the error that other nodes add to a node's own."""
        self._average(gap, averages)
        known = (self._largest(averages), rest, self.longest, self.scale, self.inverse, self.block.damping)
        columns = (column.tolist() for column in known)
        found = [_native.ppr_local_bound(*own) for own in zip(*columns, strict=True)]
        return Certificate(certificate.residual, certificate.bound, np.array(found))

    def _largest(self, state: DeviceArray) -> NDArray[np.float64]:
        """Return the largest value of a state divided by the node weights."""
        largest: NDArray[np.float64] = self._measure(
            "ppr_local_largest", [state, self.block.attraction, self.block.nodes]
        )[1]
        return largest

    def _largest_scale(self) -> NDArray[np.float64]:
        largest: NDArray[np.float64] = self._measure("ppr_local_scale", [self.block.scales, self.block.nodes])[1]
        return largest

    def _measure(self, kernel: str, arguments: list[Any]) -> NDArray[np.float64]:
        """Return sums and maxima over all tiles, (2, L)."""
        block, out = self.block, self.block.measured_of_lanes()
        block.launch_tile_lanes(kernel, [*arguments, block.join.arguments, out])
        return block.runtime.download(out)

    def _average(self, state: DeviceArray, following: DeviceArray) -> None:
        """Write P ``state``, a pass without restarts and damping."""
        runtime, walk = self.block.runtime, self._walk(state, following)
        words = max(1, -(-self.block.graph.num_nodes // 64))
        walk.restart_rows = [runtime.zeros(words, np.uint64), runtime.zeros(words, np.int32)]
        walk.walking = runtime.upload(np.ones(walk.lanes, np.int32))
        Passes(walk, runtime.upload(np.ones(walk.lanes, np.float32)), None, self.partial).run(1)

    def _walk(self, even: DeviceArray, odd: DeviceArray) -> PprBlock:
        """Return a copy of the block with other buffers; the first pass reads ``even``."""
        walk = copy.copy(self.block)
        walk.even, walk.odd = even, odd
        walk.left = walk.runtime.upload(np.ones(1, np.int32))
        return walk

    # ---- Refinement ------------------------------------------------------------------------------------------------

    def _refine(self, lanes_open: Lanes, more: NDArray[np.int64]) -> NDArray[np.int64]:
        """Refine open lanes by ``more`` passes and write their lists, also by local bounds.

        Lanes that may gain from further passes stay open; return the passes of their next look.
        """
        block = self.block
        is_open = block.runtime.upload(lanes_open.astype(np.int32))
        measured, gap = self._solve(lanes_open)
        moved, largest = self._measure("ppr_refine_measure", [block.scales, block.nodes, self.spare])
        lacking = self._measure("ppr_refine_end", [block.scales, is_open, block.nodes, self.x, self.spare])[0]
        volume = np.broadcast_to(block.runtime.download(block.volume), block.lanes)
        refined = Certificate(*(np.array(column) for column in vars(self.certificate).values()))
        rest = np.zeros(block.lanes)
        for lane in np.flatnonzero(lanes_open).tolist():
            d = float(block.damping[lane])
            own = int(self.longest[lane]), float(self.scale[lane]), float(self.inverse[lane])
            slack, missed = float(self.slack[lane]), float(self.missed[lane])
            known = float(self.certificate.residual[lane]), float(moved[lane]) + missed, float(volume[lane])
            residual = _native.ppr_corrected_residual(float(measured[0, lane]), *known, *own)
            start = float(largest[lane]), float(self.certificate.per_degree[lane]), float(self.rest[lane])
            rest[lane] = _native.ppr_corrected_rest(*start, *own)
            rho = float(measured[1, lane]) * _native.PPR_NEAR + float(rest[lane])
            rounding = _native.ppr_rounding(float(lacking[lane]), missed)
            refined.residual[lane] = residual + (1.0 + d) * rounding
            refined.bound[lane] = _native.ppr_bound(residual, slack, missed, d) + rounding
            refined.per_degree[lane] = _native.ppr_node_bound(True, rho, slack, d)
        self._write(lanes_open, refined, more, refined=self.spare)
        lanes_open &= ~self.proven
        allowed = [
            _native.ppr_may_look_around(shortfall) and self._allows(lane, 1)
            for lane, shortfall in enumerate(self.shortfall.tolist())
        ]
        looking = lanes_open & np.array(allowed)
        if looking.any():
            found = self._look_around(refined, rest, gap, self.other)
            self.passes += looking
            self._write(looking, found, np.ones(block.lanes, np.int64), refined=self.spare, local=gap)
            lanes_open &= ~self.proven
        return self._plan_looks(lanes_open)

    def _solve(self, lanes_open: Lanes) -> tuple[NDArray[np.float64], DeviceArray]:
        """Solve for the correction of x^ into the spare state.

        Return what one more pass measures, its residual and largest change, (2, L), and its |z - y|.
        """
        block, runtime, certifier = self.block, self.block.runtime, self.certifier
        walk = self._walk(self.free, self.other)
        walk.anchor = runtime.upload(np.full(block.lanes, _native.PPR_ANCHOR))
        words = max(1, -(-block.graph.num_nodes // 64))
        every_row = np.full(words, 2**64 - 1, np.uint64)
        walk.restart_rows = [runtime.upload(every_row), runtime.upload(64 * np.arange(words, dtype=np.int32))]
        # Lanes that are not open restart too, but their results are not read.
        walk.restart32 = certifier.correction
        start = [walk.nodes, walk.restart_set(), walk.restart32, walk.even, walk.odd]
        walk.launch_states("ppr_start", start)
        look = np.where(lanes_open, self.look, 0)
        last = int(look.max())
        omega = np.concatenate([np.ones((1, block.lanes), np.float32), block.omega(last)])
        passes = Passes(walk, block.damping32, runtime.upload(omega), self.partial)
        for number in range(last):  # passes before the one that is measured
            if number > 0:
                passes.run(number, walking=runtime.upload((look > number).astype(np.int32)))
            if (look == number + 1).any():
                goes_on = runtime.upload((look != number + 1).astype(np.int32))
                block.launch_states("ppr_keep", [walk.buffers(number)[1], self.spare, goes_on, block.nodes])
        walk.walking = runtime.upload(lanes_open.astype(np.int32))
        walk.even, walk.odd = self.spare, self.free
        measured = block.measured_of_lanes()
        Passes(walk, block.damping32, None, self.partial).run(1, measured)
        block.launch_states("ppr_local_start", [block.nodes, self.free, self.spare, self.free])
        return runtime.download(measured), self.free
