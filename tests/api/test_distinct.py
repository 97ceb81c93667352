"""``distinct`` gives what ``np.unique`` gives, for integers."""

from __future__ import annotations

import numpy as np
import pytest
from hopfuse._arrays.distinct import distinct
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays


@given(
    st.sampled_from([np.int8, np.int32, np.int64, np.uint64]).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=40))
    )
)
def test_distinct_is_unique(values: np.ndarray) -> None:
    before = values.copy()
    found = distinct(values)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, np.unique(values))
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("size", [0, 1])
def test_few_values(size: int) -> None:
    assert distinct(np.full(size, 7)).tolist() == [7] * size
