"""Incidence.transposed against a dense matrix."""

from __future__ import annotations

import hopfuse as hf
import numpy as np
import pytest


@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (0, 3), (4, 0), (1, 1), (5, 9), (40, 7)])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_transposed_matrix(rows: int, columns: int, weighted: bool) -> None:
    rng = np.random.default_rng(rows * 10 + columns)
    dense = np.where(rng.random((rows, columns)) < 0.4, rng.integers(1, 9, (rows, columns)), 0)
    at = np.nonzero(dense)
    made = hf.Incidence.from_pairs(*at, dense[at] if weighted else None, num_rows=rows, num_columns=columns)
    turned = made.transposed()
    expected = np.nonzero(dense.T)
    assert (turned.num_rows, turned.num_columns) == (columns, rows)
    np.testing.assert_array_equal(np.repeat(np.arange(columns), np.diff(turned.indptr)), expected[0])
    np.testing.assert_array_equal(turned.indices, expected[1])
    assert (turned.weights is not None) == weighted
    if turned.weights is not None:
        np.testing.assert_array_equal(turned.weights, dense.T[expected])
    back = turned.transposed()
    np.testing.assert_array_equal(back.indices, made.indices)
    np.testing.assert_array_equal(back.indptr, made.indptr)
