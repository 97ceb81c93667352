"""One step of iterative refinement on a device: kernels/include/hopfuse/ppr.h, REFINEMENT."""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from ... import _native
from .ppr_block import PprBlock
from .ppr_certificate import Certificate, Certifier
from .runtime import DeviceArray


def refining_passes(block: PprBlock) -> NDArray[np.int64]:
    """(L,)"""
    return np.array([_native.ppr_refining_passes(d) for d in block.damping.tolist()], np.int64)


def room(block: PprBlock) -> tuple[DeviceArray, DeviceArray]:
    """What a refinement takes beside the block's own arrays and the correction: a state, and sums of segments."""
    return block.runtime.empty((block.graph.num_nodes, block.lanes), np.float32), block.segment_sums()


def refine(certifier: Certifier, lanes_open: NDArray[np.bool_]) -> Certificate:
    """Open lanes of x^ become fl(x^ + e), e the correction that their residual asks for; the certificate of that."""
    block, runtime = certifier.block, certifier.block.runtime
    is_open = runtime.upload(lanes_open.astype(np.int32))
    solved = _solve(block, certifier.correction, lanes_open, is_open)
    arguments = [*block.scales, is_open, block.nodes, *block.states, solved, certifier.tiles]
    block.launch_tile_lanes("ppr_refine_end", arguments)
    lacking = certifier.totals()
    certifier.correction, certifier.remainder = None, solved
    certificate = certifier.certificate()
    certifier.remainder = None
    rounding = np.array([_native.ppr_rounding(sum_) for sum_ in lacking.tolist()])
    certificate.residual = certificate.residual + (1.0 + block.damping) * rounding
    certificate.bound = certificate.bound + rounding
    return certificate


def _solve(block: PprBlock, start: DeviceArray, lanes_open: NDArray[np.bool_], is_open: DeviceArray) -> DeviceArray:
    """The walk that ``start`` restarts in every row; the block's buffer without x^ is used up."""
    runtime, walk = block.runtime, copy.copy(block)
    holds_odd = runtime.download(block.last_pass)[0] % 2
    walk.even, partial = room(block)
    walk.odd = block.even if holds_odd else block.odd
    block.launch_states("ppr_refine_start", [is_open, block.nodes, start, walk.even, walk.odd])
    words = max(1, -(-block.graph.num_nodes // 64))
    every_row = np.full(words, 2**64 - 1, np.uint64)
    walk.restart_rows = [runtime.upload(every_row), runtime.upload(64 * np.arange(words, dtype=np.int32))]
    walk.restart32, walk.left = start, runtime.upload(np.ones(1, np.int32))
    passes = np.where(lanes_open, refining_passes(block), 0)
    damping32, omega = runtime.upload(block.damping.astype(np.float32)), runtime.upload(block.omega(int(passes.max())))
    for number in range(1, int(passes.max()) + 1):
        walk.walking = runtime.upload((passes >= number).astype(np.int32))
        walk.run_pass(number, damping32, omega[number - 1], partial, None)
    return walk.buffers(int(passes.max()))[1]
