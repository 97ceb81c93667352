"""The memory traffic of a call on a CPU, by formula."""

from __future__ import annotations

from dataclasses import dataclass

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Traffic:
    """Bytes gathered by row, and bytes read or written in order.

    Rows of at most ``row`` bytes are gathered from an array of ``state`` bytes; ``touched`` is the size of the data
    read in order. ``products`` is the number of 8-bit products.
    """

    gathered: int
    streamed: int
    state: int
    touched: int
    row: int = 0
    products: int = 0


def lane_blocks(batch: int) -> list[int]:
    """Return the lanes of each block of queries, as in kernels/cpu/ppr_f32.cpp."""
    lanes = [32] * (batch // 32)
    left = batch % 32
    if left > 16:
        lanes.append(16)
        left -= 16
    if left:
        lanes.append(next(width for width in (1, 4, 8, 16) if width >= left))
    return lanes


def of_block(graph: hf.Graph, lanes: int) -> Traffic:
    """Return the traffic of a pass of one block: a row of state per stored entry; the graph and two states in order."""
    gathered, state = 4 * graph.num_stored * lanes, 4 * graph.num_nodes * lanes
    streamed = 8 * graph.num_stored + 20 * graph.num_nodes + 2 * state
    return Traffic(gathered, streamed, state, streamed, 4 * lanes)


def of_pass(graph: hf.Graph, batch: int) -> Traffic:
    """Return the traffic of a pass of every block of a batch."""
    blocks = [of_block(graph, lanes) for lanes in lane_blocks(batch)]
    widest = blocks[0]
    gathered, streamed = sum(b.gathered for b in blocks), sum(b.streamed for b in blocks)
    return Traffic(gathered, streamed, widest.state, widest.touched, widest.row)


def of_walk(graph: hf.Graph, iterations: NDArray[np.int64]) -> Traffic:
    """Return the traffic of all passes of all blocks; a block makes as many passes as its longest walk."""
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
    """Return the traffic of reading bytes in order, and of the 8-bit products made of them."""
    return Traffic(0, amount, 0, amount, products=products)
