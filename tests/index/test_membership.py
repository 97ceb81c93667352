"""A table without collisions finds what ``np.isin`` finds."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.index import membership
from hopfuse.index.membership import deleted_later, is_in
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

KINDS: list[Any] = [
    (np.int64, st.integers(-(2**63), 2**63 - 1)),
    (np.int64, st.integers(-20, 20)),
    (np.float64, st.floats(allow_nan=False)),
    (np.float64, st.sampled_from([0.0, -0.0, 0.5, -0.5, np.inf, -np.inf, 5e-324])),
]


@given(data=st.data())
@pytest.mark.parametrize(("dtype", "values"), KINDS)
def test_it_finds_what_sorting_finds(data: Any, dtype: Any, values: Any) -> None:
    wanted = data.draw(arrays(dtype, st.integers(0, 40), elements=values))
    column = data.draw(
        arrays(dtype, st.integers(0, 40), elements=values | st.sampled_from(wanted.tolist() or [dtype(1)]))
    )
    assert is_in(column, wanted).tolist() == np.isin(column, wanted).tolist()


@pytest.mark.parametrize("count", [1, 100, 500, 5000])
@pytest.mark.parametrize("wide", [True, False])
def test_many_numbers_in_several_blocks(count: int, wide: bool) -> None:
    rng = np.random.default_rng(count)
    column = rng.integers(-(2**62), 2**62, 150_000) if wide else rng.integers(0, 3 * count, 150_000)
    wanted = np.concatenate([rng.choice(column, count - 1), [7]])
    assert np.array_equal(is_in(column, wanted), np.isin(column, wanted))
    assert np.array_equal(
        is_in(column.astype(np.float64), wanted.astype(np.float64)), np.isin(column * 1.0, wanted * 1.0)
    )


def test_numbers_that_no_multiplier_separates_are_found_by_sorting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "TRIES", 0)
    assert is_in(np.arange(9), np.array([3, 5, 5])).nonzero()[0].tolist() == [3, 5]


def test_lists_of_many_values_and_of_none() -> None:
    rows = [{"n": at, "x": at / 2, "t": [f"g{at % 7}"], "b": at % 2 == 0} if at % 3 else {} for at in range(60)]
    index = hf.Index.build(passages=[{"text": "", "metadata": row} for row in rows])
    for column, values in (("n", range(0, 60, 2)), ("x", [0.0, 1, 2.5, 7, 9.5]), ("b", [True] * 30), ("n", [])):
        found = index.mask(hf.where(**{f"{column}__in": values}))
        assert found.tolist() == [column in row and row[column] in list(values) for row in rows]
    for tags in ([f"g{at}" for at in range(9)], ["g1", "none"], ["none"], []):
        found = index.mask(hf.where(t__any=tags))
        assert found.tolist() == ["t" in row and row["t"][0] in tags for row in rows]


@given(seed=st.integers(0, 2**32 - 1))
def test_rows_are_deleted_by_later_batches_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, gone = (rng.integers(0, 4, (int(rng.integers(0, 30)), 3)) for _ in range(2))
    batch, when = rng.integers(-1, 5, len(rows)), rng.integers(0, 5, len(gone))
    expected = [
        any(tuple(row) == tuple(other) and later > of for other, later in zip(gone, when, strict=True))
        for row, of in zip(rows, batch, strict=True)
    ]
    assert deleted_later(rows, batch, gone, when).tolist() == expected
