"""Rows that are joined in memory that grows, against a plain concatenation."""

from __future__ import annotations

import numpy as np
import pytest
from hopfuse.index.rows import GrownRows


@pytest.mark.parametrize("seed", range(8))
def test_every_call_returns_what_is_joined_and_leaves_what_was_returned(seed: int) -> None:
    rng, grown = np.random.default_rng(seed), GrownRows()
    base = rng.integers(0, 99, (int(rng.integers(0, 40)), 2))
    added, returned = [], []
    for _ in range(30):
        added.append(rng.integers(0, 99, (int(rng.integers(0, 9)), 2)))
        some = added[: int(rng.integers(0, len(added) + 1))] if rng.random() < 0.3 else list(added)
        joined = np.concatenate([base, *some])
        order = np.flatnonzero(rng.random(len(joined)) < rng.choice([0.9, 1.1]))
        returned.append((grown.take(base, some, order), joined[order]))
    assert all(np.array_equal(ours, theirs) for ours, theirs in returned)


def test_nothing_is_copied_twice_and_nothing_can_be_written() -> None:
    grown, base = GrownRows(), np.zeros((80, 3))
    first = grown.joined(base, [np.ones((1, 3))])
    second = grown.joined(base, [np.ones((1, 3)), np.full((2, 3), 2.0)])
    assert np.shares_memory(first, second)
    assert grown.joined(base, []) is base
    with pytest.raises(ValueError, match="read-only"):
        second[0] = 1
