"""The walk of examples/row_partitions.py without its actors; tests/offline/test_ray.py has it with them."""

from __future__ import annotations

import hopfuse as hf
import numpy as np

from examples import row_partitions


def test_rows_in_blocks_have_the_bits_of_one_process() -> None:
    graph, damping, tol = row_partitions.small_graph(400), 0.5, 1e-6
    restart = np.zeros((3, graph.num_nodes))
    restart[[0, 1, 1, 2], [5, 0, 399, 402]] = [1, 0.25, 0.75, 1]  # 402 has no edge

    def scores(blocks: int) -> np.ndarray:
        cut = row_partitions.block_rows(graph, blocks)
        assert len(cut) == blocks
        one_pass = row_partitions.local_pass(cut, damping)
        return row_partitions.walk(graph, restart, damping, tol, one_pass)

    whole = scores(1)
    for blocks in (2, 3, 7):
        assert (scores(blocks) == whole).all()
    assert np.abs(whole - hf.ppr(graph, restart, damping=damping, tol=tol).scores).sum(axis=1).max() < 3 * tol
