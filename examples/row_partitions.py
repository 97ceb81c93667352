"""Walk on a graph whose rows are spread over several machines: docs/scale.md on a small graph, over Ray.

Each actor holds a block of the matrix's rows. In a pass it receives the state of all nodes and returns that of its own.
The sum of a row is computed in its block, in a fixed order (``hopfuse.project``), so the scores do not depend on the
number of blocks in any bit: those of ``--blocks 3`` equal those of one process.

    pip install ".[ray]"
    python examples/row_partitions.py --blocks 3
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
#: Takes the scaled states of all nodes (B, N), and returns the sums of all rows.
Pass = Callable[[Array], Array]


class Block:
    """A block of rows of the matrix: the entries of these nodes' neighbours."""

    def __init__(self, rows: hf.Incidence, damping: float) -> None:
        self._rows, self._scale = rows, np.full(rows.num_rows, damping, np.float32)

    def sums(self, states: Array) -> Array:
        """Return damping · Σ_u w_uv y_u for each row (B, rows), from the states y of all nodes (B, N)."""
        return np.asarray(hf.project(states, self._rows, scale=self._scale, threads=1))


def entries(graph: hf.Graph) -> tuple[Array, Array, Array]:
    """Return row, column and weight of every entry of an undirected graph's matrix."""
    a, b, weight, _ = graph.edges()
    other = a != b  # a loop is one entry
    return np.concatenate([b, a[other]]), np.concatenate([a, b[other]]), np.concatenate([weight, weight[other]])


def cut(rows: Array, num_nodes: int, blocks: int) -> list[int]:
    """Return the first row of each block, and N, such that blocks have about equal numbers of entries."""
    below = np.cumsum(np.bincount(rows, minlength=num_nodes))
    return [0, *np.searchsorted(below, [below[-1] * at // blocks for at in range(1, blocks)]).tolist(), num_nodes]


def block_rows(graph: hf.Graph, blocks: int) -> list[hf.Incidence]:
    """Cut a graph's matrix into blocks of rows."""
    rows, columns, weights = entries(graph)
    ends = cut(rows, graph.num_nodes, blocks)
    found = []
    for first, end in pairwise(ends):
        own = (rows >= first) & (rows < end)
        given = (rows[own] - first, columns[own], weights[own])
        found.append(hf.Incidence.from_pairs(*given, num_rows=end - first, num_columns=graph.num_nodes))
    return found


def walk(graph: hf.Graph, restart: Array, damping: float, tol: float, one_pass: Pass) -> Array:
    """Return Personalized PageRank (B, N) by power iteration, to an L1 error of at most about ``tol``."""
    rows, _, weights = entries(graph)
    degree = np.bincount(rows, weights=weights, minlength=graph.num_nodes)
    inverse = np.divide(1, degree, out=np.zeros_like(degree), where=degree > 0).astype(np.float32)
    start = np.float32(1 - damping) * restart.astype(np.float32)
    states = restart.astype(np.float32)
    for _ in range(math.ceil(math.log(tol) / math.log(damping))):
        states = one_pass(states * inverse) + start
    return np.asarray(states / states.sum(axis=1, dtype=np.float64, keepdims=True), np.float32)


def local_pass(blocks: Sequence[hf.Incidence], damping: float) -> Pass:
    """Return a pass over blocks in this process."""
    held = [Block(rows, damping) for rows in blocks]
    return lambda states: np.concatenate([block.sums(states) for block in held], axis=1)


def ray_pass(ray: Any, blocks: Sequence[hf.Incidence], damping: float) -> Pass:
    """Return a pass over blocks that actors of Ray hold."""
    actor = ray.remote(num_cpus=0.1)(Block)
    held = [actor.remote(rows, damping) for rows in blocks]

    def one_pass(states: Array) -> Array:
        sent = ray.put(states)  # sent once to each machine, however many blocks it has
        return np.concatenate(ray.get([block.sums.remote(sent) for block in held]), axis=1)

    return one_pass


def small_graph(nodes: int = 2000, seed: int = 0) -> hf.Graph:
    """Return a graph with hubs, loops, parallel edges and nodes without an edge."""
    draw = np.random.default_rng(seed)
    hubs = (nodes * draw.random(6 * nodes) ** 3).astype(np.int64)
    return hf.Graph.from_edges(draw.integers(0, nodes, 6 * nodes), hubs, draw.random(6 * nodes), num_nodes=nodes + 3)


def main() -> None:
    """Compare the scores of blocks on Ray with those of one process, bit for bit, and with ``hopfuse.ppr``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=3)
    blocks = parser.parse_args().blocks
    graph, damping, tol = small_graph(), 0.5, 1e-6
    restart = np.zeros((4, graph.num_nodes))
    restart[np.arange(4), [0, 7, 500, 1999]] = 1
    whole = walk(graph, restart, damping, tol, local_pass(block_rows(graph, 1), damping))

    from hopfuse.offline.ray import connected

    with connected(None) as ray:
        parts = walk(graph, restart, damping, tol, ray_pass(ray, block_rows(graph, blocks), damping))
    error = float(np.abs(whole - hf.ppr(graph, restart, damping=damping, tol=tol).scores).sum(axis=1).max())
    print(f"{blocks} blocks on Ray, one process: {'equal bits' if np.array_equal(whole, parts) else 'OTHER BITS'}")
    print(f"against hopfuse.ppr: L1 error {error:.1e}")
    if not np.array_equal(whole, parts) or error > 3 * tol:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
