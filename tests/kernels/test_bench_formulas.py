"""The formulas of the bench are those of the backends, which it cannot import."""

from __future__ import annotations

import pytest
from hopfuse import _native

from bench import gpu_cards, gpu_kernels, traffic


@pytest.mark.parametrize("batch", [1, 2, 4, 5, 8, 9, 16, 17, 20, 24, 25, 31, 32, 33, 64, 81])
def test_blocks_are_those_of_the_cpu(batch: int) -> None:
    assert traffic.lane_blocks(batch) == _native.ppr_lanes(1, 0, batch, 1)


SIZES = (gpu_kernels.SMALL, gpu_kernels.MUSIQUE, gpu_kernels.MILLION, gpu_kernels.TEN_MILLION)


@pytest.mark.parametrize("batch", [1, 5, 32])
def test_blocks_are_those_of_the_orchestration(batch: int) -> None:
    """Of a size whose states fit in L2, which has the most lanes of a block."""
    search = gpu_kernels.Search(gpu_kernels.SMALL, batch, gpu_cards.CARDS[-1])
    assert [search.lanes] * search.lane_blocks == [width for _, _, width in _native.device_lane_blocks(batch)]


@pytest.mark.parametrize("nodes", [1, 2, 3, 4096, 1 << 20, (1 << 20) + 1, 1 << 24, (1 << 24) + 1, (1 << 31) - 1])
def test_codes_are_those_of_the_orchestration(nodes: int) -> None:
    assert gpu_kernels.code_count(nodes) == _native.device_code_count(nodes)


def test_widths_are_those_of_the_orchestration() -> None:
    for size in SIZES:
        for card in gpu_cards.CARDS:
            speedup = gpu_kernels.l2_speedup(card)
            expected = _native.device_most_lanes(size.nodes, size.stored, int(card.l2 * 2**20), speedup)
            assert gpu_kernels.most_lanes(size, card) == expected
