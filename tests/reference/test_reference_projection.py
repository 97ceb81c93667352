"""The oracle of projection against scipy's sparse products, and sums by hand."""

from __future__ import annotations

from fractions import Fraction

import hopfuse as hf
import numpy as np
import pytest
from cases import random_incidence
from hopfuse.errors import InputError
from hopfuse.reference import project, project_topk
from refusals import refused


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("batch", [0, 1, 5])
def test_it_is_scipys_sparse_product(weighted: bool, batch: int) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(batch)
    incidence = random_incidence(rng, 60, 80, 300, weighted=weighted)
    data = np.ones(incidence.indices.size) if incidence.weights is None else incidence.weights.astype(np.float64)
    matrix = sparse.csr_array((data, incidence.indices, incidence.indptr), shape=(60, 80))
    scores, scale = rng.standard_normal((batch, 80)), rng.random(60)
    np.testing.assert_allclose(project(scores, incidence), (matrix @ scores.T).T, rtol=1e-13, atol=1e-14)
    scaled = sparse.diags_array(scale) @ matrix @ scores.T
    np.testing.assert_allclose(project(scores, incidence, scale=scale), scaled.T, rtol=1e-13, atol=1e-14)


def test_it_is_the_sum_by_hand() -> None:
    pairs = [(0, 2, 0.5), (0, 0, 0.25), (2, 1, 3.0), (2, 2, 0.0)]
    rows, columns, weights = zip(*pairs, strict=True)
    incidence = hf.Incidence.from_pairs(rows, columns, weights, num_rows=4, num_columns=3)
    scores, scale = [0.1, -0.7, 0.3], [2.0, 1.0, 0.5, 1.0]
    exact = [Fraction(0)] * 4
    for row, column, weight in pairs:
        exact[row] += Fraction(scale[row]) * Fraction(weight) * Fraction(scores[column])
    np.testing.assert_allclose(project(scores, incidence, scale=scale)[0], [float(sum) for sum in exact], rtol=1e-15)


def test_the_best_are_those_above_0_by_score_and_then_by_row() -> None:
    incidence = hf.Incidence.from_pairs([4, 1, 3, 0], [0, 0, 1, 2], num_rows=5, num_columns=3)
    ranking = project_topk([[2.0, 5.0, -1.0], [0.0, 0.0, 0.0]], incidence, 4)
    assert ranking.row(0) == [(3, 5.0), (1, 2.0), (4, 2.0)]
    assert ranking.row(1) == []
    assert ranking.ids.shape == (2, 4)
    assert project_topk([2.0, 5.0, -1.0], incidence, 2).ids.tolist() == [[3, 1]]
    with refused(InputError, "range", "k", given=-1):
        project_topk([2.0, 5.0, -1.0], incidence, -1)
