"""The formulas of the bench are those of the backends, which it cannot import."""

from __future__ import annotations

import pytest
from hopfuse import _native

from bench import roofline, traffic


@pytest.mark.parametrize("batch", [1, 2, 4, 5, 8, 9, 16, 17, 20, 24, 25, 31, 32, 33, 64, 81])
def test_blocks_are_those_of_the_cpu(batch: int) -> None:
    assert traffic.lane_blocks(batch) == _native.ppr_lanes(1, 0, batch, 1)


@pytest.mark.parametrize(("batch", "lanes"), [(1, [4]), (5, [8]), (32, [32]), (33, [32, 4]), (256, [32] * 8)])
def test_lanes_are_those_of_the_orchestration(batch: int, lanes: list[int]) -> None:
    assert roofline.lane_blocks(batch) == lanes == [width for _, _, width in _native.device_lane_blocks(batch)]


def test_widths_are_those_of_the_orchestration() -> None:
    for size in roofline.PART_SIZES:
        for card in roofline.CARDS:
            speedup = roofline.l2_speedup(card)
            expected = _native.device_most_lanes(size.nodes, size.stored, int(card.l2 * 2**20), speedup)
            assert roofline.most_lanes(size, card) == expected
