"""Compute the returned scores and their certificate from a block's last iterate; see hopfuse/ppr.h."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import _native
from .arguments import CERTIFIED, RESIDUAL
from .ppr_block import PprBlock
from .runtime import DeviceArray


@dataclass
class Certificate:
    """Error bounds of each lane, (L,), on the host."""

    FIELDS: ClassVar = ("residual", "bound", "per_degree")

    residual: NDArray[np.float64]
    bound: NDArray[np.float64]
    per_degree: NDArray[np.float64]  # infinity if the bound per node does not hold


class Certifier:
    """The float64 passes over the final iterate of a block."""

    def __init__(self, block: PprBlock) -> None:
        self.block = block
        lane, segments = (block.lanes,), max(1, block.graph.num_segments)
        self.mass, self.lost, self.partial = block.runtime.empty_all(
            [(lane, np.float64), (lane, np.float64), ((segments, block.lanes), np.float64)]
        )
        #: Receives fl(r / deg) whenever r is measured, if a refinement may follow.
        self.correction: DeviceArray | None = None

    def normalise(self) -> None:
        """Normalise the last iterate to x^, and compute the mass that it loses."""
        block = self.block
        given = [block.scales, block.nodes, block.iterate, block.join.arguments, self.mass]
        block.launch_tile_lanes("ppr_mass", given)
        self._lose(self.mass)

    def measure(self, improved: DeviceArray | None = None) -> None:
        """Measure the residual of x^ and its bounds; ``improved`` receives a float64 power step."""
        block, graph = self.block, self.block.graph
        known = CERTIFIED(damping=block.d_damping, slack=block.slack, missed=block.missed, keeps=block.keeps)
        arguments = RESIDUAL(
            scales=block.scales, num_nodes=graph.num_nodes, indptr=graph.indptr, indices=graph.indices,
            weight=graph.weight, edge_type=graph.edge_type, eta=block.eta64, iterate=block.iterate,
            long_rows=graph.long_rows.arguments, segments=graph.segments(block.allowed, block.before),
            num_segments=graph.num_segments, partial=self.partial, restart_rows=block.restart_set(),
            restart=block.restart64, lost=self.lost, certified=known,
            symmetric=block.symmetric, improved=improved, correction=self.correction, join=block.join.arguments,
            residual=block.residual, bound=block.bound, per_degree=block.per_degree,
        )  # fmt: skip
        if graph.num_segments:
            block.launch("ppr_residual_segments", graph.num_segments * block.lanes, [arguments])
        block.launch_tiles("ppr_residual", [arguments])

    def certificate(self, improved: DeviceArray | None = None) -> Certificate:
        """Measure, and download the certificate."""
        self.measure(improved)
        block = self.block
        return Certificate(*block.runtime.download_all([block.residual, block.bound, block.per_degree]))

    def polish(self, certificate: Certificate, lanes_open: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Take float64 power steps for open lanes until tol is met or float32 limits progress; return their numbers."""
        block, steps = self.block, np.zeros(self.block.lanes, np.int64)
        if not lanes_open.any():
            return steps
        is_odd = block.runtime.download(block.last_pass)[0] % 2
        result, other = (block.odd, block.even) if is_odd else (block.even, block.odd)
        self._place(result, other)
        self.measure(other)
        for _ in range(_native.PPR_POLISH_STEPS):
            if not lanes_open.any():
                break
            still_open = block.runtime.upload(lanes_open.astype(np.int32))
            block.launch_states("ppr_keep", [result, other, still_open, block.nodes])
            result, other = other, result
            self._place(result, other)
            self._lose(None)
            step = self.certificate(other)
            gained = step.bound < _native.PPR_POLISH_GAIN * certificate.bound
            certificate.residual[lanes_open] = step.residual[lanes_open]
            certificate.bound[lanes_open] = step.bound[lanes_open]
            certificate.per_degree[lanes_open] = step.per_degree[lanes_open]
            steps[lanes_open] += 1
            lanes_open &= gained & (step.bound > block.queries.tol)
        return steps

    def scores(self, out: DeviceArray) -> None:
        """Write scores, (count, N), in the caller's node order."""
        block = self.block
        arguments = [block.iterate, block.graph.internal_of, block.nodes, np.int32(block.count), out]
        block.launch("ppr_scores", block.count * block.graph.num_nodes, arguments)

    def _lose(self, total: DeviceArray | None) -> None:
        block = self.block
        arguments = [block.scales, block.eta64, total, block.unproven, block.keeps, block.nodes, block.iterate]
        block.launch_tile_lanes("ppr_scale", [*arguments, block.join.arguments, self.lost])

    def _place(self, result: DeviceArray, other: DeviceArray) -> None:
        """Make ``result`` the iterate, as if an even pass had written it."""
        block = self.block
        block.even, block.odd = result, other
        block.last_pass = block.runtime.upload(np.zeros(1, np.int64))
