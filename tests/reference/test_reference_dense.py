"""Exact dense top-k against correctly rounded sums and np.sort."""

from __future__ import annotations

import math
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.reference import Ranking, dense_scores, dense_topk
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

RNG = np.random.default_rng(0)
Q, X = RNG.normal(size=(4, 24)), RNG.normal(size=(200, 24))
X[17] = X[3] = X[150]


def test_scores_are_correctly_rounded_sums() -> None:
    ip, cosine = dense_scores(Q, X), dense_scores(Q, X, metric="cosine")
    for b in range(4):
        for i in range(200):
            dot = math.fsum(Q[b] * X[i])
            assert ip[b, i] == pytest.approx(dot, abs=1e-13)
            assert cosine[b, i] == pytest.approx(dot / (math.hypot(*Q[b]) * math.hypot(*X[i])), abs=1e-14)


@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("k", [0, 1, 10, 200, 250])
def test_topk_is_the_sorted_scores(metric: str, k: int) -> None:
    scores = dense_scores(Q, X, metric=metric)
    ranking = dense_topk(Q, X, k, metric=metric)
    n = min(k, 200)
    assert ranking.ids.shape == ranking.scores.shape == (4, n)
    assert (ranking.counts == n).all()
    assert (ranking.scores[:, :n] == np.sort(scores, axis=1)[:, ::-1][:, :n]).all()
    assert (np.take_along_axis(scores, ranking.ids[:, :n], axis=1) == ranking.scores[:, :n]).all()
    assert (ranking.ids[:, n:] == -1).all()
    assert np.isneginf(ranking.scores[:, n:]).all()


def test_equal_vectors_stand_by_id() -> None:
    ids = dense_topk(Q, X, 200).ids
    for row in ids.tolist():
        at = row.index(3)
        assert row[at : at + 3] == [3, 17, 150]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(-2, 2), min_size=2, max_size=2), min_size=1, max_size=12), st.integers(1, 14))
def test_total_order(vectors: list[list[int]], k: int) -> None:
    q = [1, -1]
    want = sorted(((-(v[0] - v[1]), i) for i, v in enumerate(vectors)))[:k]
    assert dense_topk(q, vectors, k).row(0) == [(i, float(-s)) for s, i in want]


def test_a_batch_is_its_queries() -> None:
    ranking = dense_topk(Q, X, 9)
    for b in range(4):
        assert dense_topk(Q[b], X, 9).row(0) == ranking.row(b)


def test_corpus_brings_its_metric_and_its_rounding() -> None:
    corpus = hf.Corpus.from_array(X, metric="cosine", storage="float16")
    got = dense_topk(Q, corpus, 5)
    want = dense_topk(Q, X.astype(np.float16), 5, metric="cosine")
    assert (got.ids == want.ids).all()
    assert (got.scores == want.scores).all()
    with refused(InputError, "conflict", "metric"):
        dense_topk(Q, corpus, 5, metric="ip")


@pytest.mark.parametrize(
    "allow",
    [
        [5, 3, 150],
        np.array([3, 5, 150, 5]),
        np.isin(np.arange(200), [3, 5, 150]),
        [[3, 5, 150]] * 4,
        np.array([[3, 5, 150]] * 4),
        np.tile(np.isin(np.arange(200), [3, 5, 150]), (4, 1)),
        (np.array([3, 5, 150]), [150, 5, 3], np.isin(np.arange(200), [3, 5, 150]), (5, 150, 3)),
    ],
)
def test_allow_forms_agree(allow: Any) -> None:
    scores = dense_scores(Q, X)
    ranking = dense_topk(Q, X, 4, allow=allow)
    for b in range(4):
        want = sorted([3, 5, 150], key=lambda i: (-scores[b, i], i))
        assert ranking.row(b) == [(i, scores[b, i]) for i in want]


def test_allow_of_other_lengths_and_nothing() -> None:
    ranking = dense_topk(Q[:2], X, 3, allow=[[], [7, 8]])
    assert ranking.counts.tolist() == [0, 2]
    assert dense_topk(Q, X, 3, allow=[]).counts.tolist() == [0, 0, 0, 0]
    assert dense_topk(np.zeros((0, 24)), X, 3).ids.shape == (0, 3)
    assert dense_topk(Q, np.zeros((0, 24)), 3).counts.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("q", "x", "options", "refusal"),
    [
        (Q, X, {"metric": "l2"}, ("choice", "metric")),
        (Q, X[:, :5], {}, ("shape", "queries")),
        (np.zeros((2, 0)), np.zeros((3, 0)), {}, ("shape", "vectors")),
        (np.full((1, 24), np.nan), X, {}, ("finite", "queries[0]")),
        (Q, np.where(X[4, 4] == X, np.inf, X), {}, ("finite", "vectors[4]")),
        (np.zeros((1, 24)), X, {"metric": "cosine"}, ("zero", "queries[0]")),
        (Q, X * (np.arange(200) != 9)[:, None], {"metric": "cosine"}, ("zero", "vectors[9]")),
        (Q.astype(str), X, {}, ("dtype", "queries")),
        (Q, X, {"allow": [200]}, ("unknown", "allow")),
        (Q, X, {"allow": [[1], [2]]}, ("length", "allow")),
        (Q, X, {"allow": [1.5]}, ("dtype", "allow")),
    ],
)
def test_dense_refuses(q: Any, x: Any, options: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        dense_topk(q, x, 3, **options)


def test_ranking_rows() -> None:
    ranking = Ranking.from_rows([(np.array([4]), np.array([0.5])), (np.array([], int), np.array([]))], 2)
    assert ranking.row(0) == [(4, 0.5)]
    assert ranking.row(1) == []
    assert ranking.ids.tolist() == [[4, -1], [-1, -1]]
    assert len(ranking) == 2
