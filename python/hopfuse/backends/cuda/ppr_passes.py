"""The walk of a block: its passes, whose arguments are packed once, and the end of its lanes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .arguments import (
    DECISION,
    EARLY_PASS,
    EARLY_SEGMENTS,
    NONZERO_ROWS,
    PASS,
    REST_OF_WALK,
    ROWS,
    SEGMENTS,
    STEP,
    Arguments,
)
from .ppr_block import JOIN_SHARED, THREADS, PprBlock
from .runtime import DeviceArray

LOOK = 4  # passes between checks of whether any lane is still walking
MOST_EARLY = 4  # the most passes that are run as if most of the state were 0
SPARSE = 4  # which is so if it has this many times as many rows as may be nonzero
KINDS = ("plain", "weighted", "untyped", "typed", "per_type")  # in the order of EdgeKind
#: Kinds of edges that the kernel for many passes takes.
UNTYPED = ("plain", "weighted")


class Proof(Protocol):
    """A test that may end a lane's walk before tol is met; implemented in :mod:`.ppr_topk`."""

    def attempts(self, block: PprBlock, measured: DeviceArray) -> Attempts:
        """Return the attempts at a proof by the passes of a block, which measure into ``measured``."""
        ...


class Attempts(Protocol):
    def make(self, number: int) -> None:
        """End lanes whose hits seem proven by the iterate that pass ``number`` read."""
        ...


class Passes:
    """The passes of a block between its two buffers.

    Parameters
    ----------
    damping32 : (L,) float32
    omega : (passes, L) float32 or None
        The coefficients of the Chebyshev recurrence; None for plain power steps.
    partial : (segments, L) float32
        Room for the sums of segments.
    """

    def __init__(
        self, block: PprBlock, damping32: DeviceArray, omega: DeviceArray | None, partial: DeviceArray
    ) -> None:
        graph = block.graph
        self._block, self._omega, self._kind = block, omega, block.edge_kind()
        segments = graph.segments(block.allowed, block.before)
        rows = ROWS(
            indptr=graph.indptr, indices=graph.indices, weight=graph.weight, edge_type=graph.edge_type,
            eta=block.eta32, scale=block.scale32, num_types=graph.num_types, per_lane=block.per_lane,
        )  # fmt: skip
        factor = block.scale32
        if block.queries.per_type:
            factor = block.unscale32 if block.attraction is None else block.attraction
        self._decision = DECISION(
            measured_from=block.measured_from, limit=block.limit, theta=block.theta, shrink=block.shrink,
            walking=block.walking, passes=block.passes, left=block.left, last_pass=block.last_pass,
        )  # fmt: skip
        step = STEP(number=1, current=block.even, next=block.odd, omega=omega, measured=None, ends=False)
        self._passes = PASS(
            rows=rows, num_nodes=graph.num_nodes, partial=partial, long_rows=graph.long_rows.arguments,
            segments=segments, restart_rows=block.restart_set(), restart=block.restart32, factor=factor,
            attraction=block.attraction, scale64=block.scale64 if block.per_lane and block.symmetric else None,
            damping=damping32, accelerates=block.accelerates, degree=block.unscale32, anchor=block.anchor,
            join=block.join.arguments, decision=self._decision, step=step,
        )  # fmt: skip
        odd_segments = SEGMENTS(
            rows=rows, segments=segments, state=block.even, num_segments=graph.num_segments, left=block.left,
            partial=partial,
        )  # fmt: skip
        #: By the parity of a pass: odd ones read the first buffer.
        self._steps = step.replace(current=block.odd, next=block.even), step
        self._segments = odd_segments.replace(state=block.odd), odd_segments

    def run(
        self,
        number: int,
        measured: DeviceArray | None = None,
        *,
        ends: bool = False,
        walking: DeviceArray | None = None,
    ) -> None:
        """Run a pass; measure its residual if ``measured`` is given, and with ``ends`` end converged lanes.

        ``walking`` marks the lanes to walk in place of those of the block.
        """
        block = self._block
        if block.graph.num_segments:
            long_rows: list[Any] = [self._segments[number % 2]]
            block.launch(f"ppr_segments_{self._kind}", block.graph.num_segments * block.lanes, long_rows)
        omega = None if self._omega is None else self._omega[number - 1]
        own: Arguments = self._passes.replace(
            step=self._steps[number % 2].replace(number=number, omega=omega, measured=measured, ends=ends)
        )
        if walking is not None:
            own = own.replace(decision=self._decision.replace(walking=walking))
        block.launch_tiles(f"ppr_pass_{self._kind}", [own], shared=0 if measured is None else JOIN_SHARED)

    def run_early(self, number: int, before: DeviceArray | None, nonzero: DeviceArray, reached: DeviceArray) -> None:
        """Run one of the first passes of a walk without measuring it.

        ``nonzero`` has a bit for each row of the state that may not be 0, ``before`` for those of the state before it
        (None: there are none); ``reached`` receives those of the next state.
        """
        block, rows = self._block, NONZERO_ROWS(words=nonzero, kind=KINDS.index(self._kind))
        if block.graph.num_segments:
            long_rows = EARLY_SEGMENTS(walk=self._segments[number % 2], nonzero=rows)
            block.launch("ppr_early_segments", block.graph.num_segments * block.lanes, [long_rows])
        omega = None if self._omega is None else self._omega[number - 1]
        own = self._passes.replace(step=self._steps[number % 2].replace(number=number, omega=omega))
        block.launch_tiles("ppr_early", [EARLY_PASS(walk=own, nonzero=rows, before=before, reached=reached)])

    def run_rest(self, number: int, first_measured: int, last: int, measured: DeviceArray) -> bool:
        """Run the passes from ``number`` on in one launch; return False if that is not possible or worthwhile.

        They are measured from ``first_measured`` on, and may then end lanes.
        """
        block, kernel = self._block, f"ppr_walk_l{self._block.lanes}"
        blocks = self._blocks_at_once(kernel)
        if blocks:
            omega = None if self._omega is None else self._omega[number - 1 :]
            step = self._steps[number % 2].replace(number=number, omega=omega, measured=measured, ends=True)
            arguments = REST_OF_WALK(
                passes=self._passes.replace(step=step), num_segments=block.graph.num_segments,
                first_measured=first_measured, last=last, state=block.even if number % 2 else block.odd,
                barrier=block.join.barrier,
            )  # fmt: skip
            block.runtime.launch(kernel, blocks, THREADS, [arguments], JOIN_SHARED, cooperative=True)
        return blocks > 0

    def _blocks_at_once(self, kernel: str) -> int:
        """Return the blocks for the rest of a walk, which wait for each other after each pass; 0: not in one launch.

        If the states do not fit in L2, a pass takes much longer than a launch, and blocks that begin as others end
        share its work better.
        """
        block, runtime = self._block, self._block.runtime
        if self._kind not in UNTYPED or not runtime.cooperative:
            return 0
        if block.even.nbytes + block.odd.nbytes > runtime.l2_bytes:
            return 0
        return min(runtime.resident_blocks(kernel, THREADS, JOIN_SHARED), max(1, block.graph.num_tiles))


def walk(block: PprBlock, proof: Proof | None = None) -> None:
    """Run passes until all lanes have ended; :attr:`.PprBlock.iterate` is the last iterate.

    With ``proof`` a lane also ends when its hits seem proven. If the number of passes is fixed, those after the end of
    the last lane do nothing.
    """
    runtime = block.runtime
    most, first_measured = _span(block, proof)
    omega = runtime.upload(block.omega(most)) if block.symmetric else None
    passes, measured = Passes(block, block.damping32, omega, block.segment_sums()), block.measured_of_lanes()
    block.launch_states("ppr_start", [block.nodes, block.restart_set(), block.restart32, block.even, block.odd])
    attempts = None if proof is None else proof.attempts(block, measured)
    early = min(first_measured - 1, most, _early_passes(block))
    reached = runtime.empty((MOST_EARLY, max(1, block.graph.num_tiles)), np.uint64)
    before, nonzero = None, block.restart_rows[0]
    for number in range(1, early + 1):
        passes.run_early(number, before, nonzero, reached[number - 1])
        before, nonzero = nonzero, reached[number - 1]
    if proof is None and passes.run_rest(early + 1, first_measured, most, measured):
        return
    for number in range(early + 1, most + 1):
        if number < first_measured:
            passes.run(number)
            continue
        passes.run(number, measured, ends=True)
        if attempts is not None:
            attempts.make(number)
        if not runtime.fixed and number % LOOK == 0 and runtime.download(block.left)[0] == 0:
            break


def _early_passes(block: PprBlock) -> int:
    """Return how many of the first passes read few rows of the state; each multiplies them by the entries of a row."""
    rows, nodes = float(block.restarting), block.graph.num_nodes
    if 2 * rows > nodes:
        return 0
    passes, rows = 2, rows * block.graph.spread**2
    while passes < MOST_EARLY and SPARSE * rows <= nodes:
        passes, rows = passes + 1, rows * block.graph.spread
    return passes


def _span(block: PprBlock, proof: Proof | None) -> tuple[int, int]:
    """Return the last pass, and the first one whose residual is needed."""
    if block.runtime.fixed:
        return block.most_passes, block.first_measured
    limit, measured_from, next_try = block.runtime.download_all([block.limit, block.measured_from, block.next_try])
    first_measured = measured_from.min() if proof is None else min(measured_from.min(), next_try.min())
    return int(limit.max()), int(first_measured)
