"""The walk of a block: its passes, whose arguments are packed once, and the end of its lanes."""

from __future__ import annotations

from typing import Any, Protocol

from .arguments import DECISION, PASS, ROWS, SEGMENTS, Arguments
from .ppr_block import JOIN_SHARED, PprBlock
from .runtime import DeviceArray

LOOK = 4  # passes between checks of whether any lane is still walking


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
            number=0, measured_from=block.measured_from, limit=None, theta=block.theta, shrink=block.shrink,
            walking=block.walking, passes=block.passes, left=block.left, last_pass=block.last_pass,
        )  # fmt: skip
        odd = PASS(
            rows=rows, num_nodes=graph.num_nodes, current=block.even, next=block.odd, partial=partial,
            long_rows=graph.long_rows.arguments, segments=segments, restart_rows=block.restart_set(),
            restart=block.restart32, factor=factor, attraction=block.attraction,
            scale64=block.scale64 if block.per_lane and block.symmetric else None, damping=damping32, omega=None,
            accelerates=block.accelerates, degree=block.unscale32, anchor=block.anchor, measured=None,
            join=block.join.arguments, decision=self._decision,
        )  # fmt: skip
        odd_segments = SEGMENTS(
            rows=rows, segments=segments, state=block.even, num_segments=graph.num_segments, left=block.left,
            partial=partial,
        )  # fmt: skip
        #: By the parity of a pass: odd ones read the first buffer.
        self._passes = odd.replace(current=block.odd, next=block.even), odd
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
        block, decision = self._block, self._decision.replace(number=number)
        if block.graph.num_segments:
            long_rows: list[Any] = [self._segments[number % 2]]
            block.launch(f"ppr_segments_{self._kind}", block.graph.num_segments * block.lanes, long_rows)
        if ends:
            decision = decision.replace(limit=block.limit)
        if walking is not None:
            decision = decision.replace(walking=walking)
        omega = None if self._omega is None else self._omega[number - 1]
        own: Arguments = self._passes[number % 2].replace(omega=omega, measured=measured, decision=decision)
        block.launch_tiles(f"ppr_pass_{self._kind}", [own], shared=0 if measured is None else JOIN_SHARED)


def walk(block: PprBlock, proof: Proof | None = None) -> None:
    """Run passes until all lanes have ended; :attr:`.PprBlock.iterate` is the last iterate.

    With ``proof`` a lane also ends when its hits seem proven. If the number of passes is fixed, those after the end of
    the last lane do nothing.
    """
    runtime = block.runtime
    most, first_measured = _span(block, proof)
    omega = runtime.upload(block.omega(most)) if block.symmetric else None
    block.launch_states("ppr_start", [block.nodes, block.restart_set(), block.restart32, block.even, block.odd])
    passes, measured = Passes(block, block.damping32, omega, block.segment_sums()), block.measured_of_lanes()
    attempts = None if proof is None else proof.attempts(block, measured)
    for number in range(1, most + 1):
        if number < first_measured:
            passes.run(number)
            continue
        passes.run(number, measured, ends=True)
        if attempts is not None:
            attempts.make(number)
        if not runtime.fixed and number % LOOK == 0 and runtime.download(block.left)[0] == 0:
            break


def _span(block: PprBlock, proof: Proof | None) -> tuple[int, int]:
    """Return the last pass, and the first one whose residual is needed."""
    if block.runtime.fixed:
        return block.most_passes, block.first_measured
    limit, measured_from, next_try = block.runtime.download_all([block.limit, block.measured_from, block.next_try])
    first_measured = measured_from.min() if proof is None else min(measured_from.min(), next_try.min())
    return int(limit.max()), int(first_measured)
