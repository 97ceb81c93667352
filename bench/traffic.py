"""What a call moves on a CPU, by formula: docs/gpu.md's pass, with the lanes that the kernels make of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from .roofline import Size, pass_bytes


@dataclass(frozen=True)
class Traffic:
    """Bytes that are gathered by row and that are read or written in order, and what they are spread over.

    ``state`` bytes are what rows of ``row`` bytes (the widest there are) are gathered from, ``touched`` what is gone
    through in order. ``products`` are those of 8-bit numbers.
    """

    gathered: int
    streamed: int
    state: int
    touched: int
    row: int = 0
    products: int = 0


def lane_blocks(batch: int) -> list[int]:
    """Lanes of each block of queries, as kernels/cpu/ppr_f32.cpp makes them."""
    lanes = [32] * (batch // 32)
    left = batch % 32
    if left > 16:
        lanes.append(16)
        left -= 16
    if left:
        lanes.append(next(width for width in (1, 4, 8, 16) if width >= left))
    return lanes


def of_block(graph: hf.Graph, lanes: int) -> Traffic:
    """A pass of one block of lanes: a row of the state for each stored entry; the graph and two states in order."""
    size = Size("", graph.num_nodes, graph.num_stored, 0, 0)
    gathered, state = 4 * graph.num_stored * lanes, 4 * graph.num_nodes * lanes
    streamed = int(pass_bytes(size, lanes, gathers_miss=True)) - gathered
    return Traffic(gathered, streamed, state, streamed, 4 * lanes)


def of_pass(graph: hf.Graph, batch: int) -> Traffic:
    """A pass of every block of a batch, one after the other."""
    blocks = [of_block(graph, lanes) for lanes in lane_blocks(batch)]
    widest = blocks[0]
    gathered, streamed = sum(b.gathered for b in blocks), sum(b.streamed for b in blocks)
    return Traffic(gathered, streamed, widest.state, widest.touched, widest.row)


def of_walk(graph: hf.Graph, iterations: NDArray[np.int64]) -> Traffic:
    """All passes of all blocks: a block makes as many as the longest walk in it."""
    first, total = 0, Traffic(0, 0, 0, 0)
    for lanes in lane_blocks(len(iterations)):
        block = of_block(graph, lanes)
        passes = int(iterations[first : first + lanes].max())
        gathered, streamed = total.gathered + passes * block.gathered, total.streamed + passes * block.streamed
        state, touched = max(total.state, block.state), max(total.touched, block.touched)
        total = Traffic(gathered, streamed, state, touched, max(total.row, block.row))
        first += lanes
    return total


def in_order(amount: int, products: int = 0) -> Traffic:
    """Bytes that are only gone through, and products of 8-bit numbers that are made of them."""
    return Traffic(0, amount, 0, amount, products=products)
