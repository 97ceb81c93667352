"""The standard family and PhaseGraph's comparison set against sums by hand; priors and pools."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.fusion.mixtures import distribution, q_distribution
from hopfuse.fusion.ranks import strengths
from hopfuse.fusion.scores import kendall
from hopfuse.reference import fuse
from scipy import stats

A = hf.Hits.from_lists([[(1, 1.0), (2, 0.75), (3, 0.5)]])
B = hf.Hits.from_lists([[(3, 1.0), (2, 0.25)]])
C = hf.Hits.from_lists([[(2, 0.5), (9, 0.25)]])
EMPTY = hf.Hits.from_lists([[]])


def scores(*lists: hf.Hits, **options: Any) -> dict[int, float]:
    return dict(fuse(lists, **options).row(0))


@pytest.mark.parametrize(
    ("method", "want"),
    [
        ("comb_sum", {1: 1.0, 2: 1.5, 3: 1.5, 9: 0.25}),
        ("comb_mnz", {1: 1.0, 2: 4.5, 3: 3.0, 9: 0.25}),
        ("wmnz", {1: 1.0, 2: 4.5, 3: 3.0, 9: 0.25}),
        ("comb_anz", {1: 1.0, 2: 0.5, 3: 0.75, 9: 0.25}),
        ("comb_min", {1: 1.0, 2: 0.25, 3: 0.5, 9: 0.25}),
        ("comb_max", {1: 1.0, 2: 0.75, 3: 1.0, 9: 0.25}),
        ("comb_med", {1: 1.0, 2: 0.5, 3: 0.75, 9: 0.25}),
    ],
)
def test_the_comb_family(method: str, want: dict[int, float]) -> None:
    assert scores(A, B, C, method=method, calibration="none") == want
    assert scores(A, EMPTY, B, C, method=method, calibration="none") == want  # an empty list has no say


def test_comb_weights_and_gamma() -> None:
    got = scores(A, B, method="comb_mnz", calibration="none", weights=[2.0, 1.0], gamma=2.0)
    assert got == {1: 2.0, 2: 4 * 1.75, 3: 4 * 2.0}
    assert scores(A, B, method="wmnz", calibration="none", weights=[2.0, 0.5]) == {1: 2.0, 2: 2.5, 3: 3.75}
    assert scores(A, B, method="comb_sum") == {1: 1.0, 2: 0.5, 3: 1.0}  # min_max by default
    halves = scores(A, B, method="comb_anz", calibration="none", weights=[2.0, 1.0])
    assert halves == {1: 2.0, 2: 0.875, 3: 1.0}


def test_inverse_square_ranks() -> None:
    assert scores(A, B, method="isr") == {1: 1.0, 2: 2 * (1 / 4 + 1 / 4), 3: pytest.approx(2 * (1 / 9 + 1))}
    got = scores(A, B, method="log_isr")
    assert got == {1: 0.0, 2: math.log(2) / 2, 3: pytest.approx(math.log(2) * (1 / 9 + 1))}
    assert scores(A, B, method="log_isr", sigma=0.5)[1] == math.log(1.5)


def test_borda_counts() -> None:
    """Four documents: A gives 4, 3, 2 and 1 to what it lacks; B gives 4, 3 and (4 - 2 + 1)/2 to the two others."""
    got = scores(A, B, hf.Hits.from_lists([[(9, 1.0)]]), method="borda")
    assert got == {1: 4 + 1.5 + 2, 2: 3 + 3 + 2, 3: 2 + 4 + 2, 9: 1 + 1.5 + 4}
    zero = scores(A, B, hf.Hits.from_lists([[(9, 1.0)]]), method="borda", missing="zero")
    assert zero == {1: 4, 2: 6, 3: 6, 9: 4}
    with_empty, without = scores(A, B, EMPTY, method="borda"), scores(A, B, method="borda")
    assert with_empty == {document: score + 2.0 for document, score in without.items()}


def test_borda_points_of_a_list_sum_to_the_same_whatever_it_holds() -> None:
    for one in (A, B, C, EMPTY):
        n = len(scores(A, B, C, one, method="borda"))
        alone = scores(A, B, C, one, method="borda", weights=[0.0, 0.0, 0.0, 1.0])
        assert sum(alone.values()) == n * (n + 1) / 2


def test_rank_biased_centroids() -> None:
    assert scores(A, B, method="rbc", phi=0.5) == {1: 0.5, 2: 0.5, 3: 0.125 + 0.5}
    assert scores(A, B, method="rbc", phi=0.5, weights=[0.0, 2.0]) == {1: 0.0, 2: 0.5, 3: 1.0}


def test_log_linear_pooling() -> None:
    p, q = distribution(np.array([1.0, 0.5]), "auto"), distribution(np.array([0.5, 1.0]), "auto")
    one, two = hf.Hits([[1, 2]], [[1.0, 0.5]]), hf.Hits([[2, 1]], [[1.0, 0.5]])
    got = scores(one, two, method="log_linear", calibration="none", weights=[0.7, 0.3], epsilon=1e-12)
    assert got == pytest.approx({1: p[0] ** 0.7 * q[0] ** 0.3, 2: p[1] ** 0.7 * q[1] ** 0.3}, rel=1e-9)
    alone = scores(one, EMPTY, method="log_linear", calibration="none", weights=[1.0, 0.5], epsilon=1e-4)
    assert alone == pytest.approx({1: (p[0] + 1e-4) * 1e-2, 2: (p[1] + 1e-4) * 1e-2}, rel=1e-12)


@pytest.mark.parametrize("p", [-2.0, -1.0, 0.5, 1.0, 3.0])
def test_power_means(p: float) -> None:
    one, two = hf.Hits([[1, 2]], [[0.75, 0.5]]), hf.Hits([[1, 2]], [[0.25, 0.125]])
    got = scores(one, two, method="power_mean", p=p, calibration="none", weights=[0.75, 0.25], epsilon=1e-15)
    want = {
        1: (0.75 * 0.75**p + 0.25 * 0.25**p) ** (1 / p),
        2: (0.75 * 0.5**p + 0.25 * 0.125**p) ** (1 / p),
    }
    assert got == pytest.approx(want, rel=1e-12)
    doubled = scores(one, two, method="power_mean", p=p, calibration="none", weights=[1.5, 0.5], epsilon=1e-15)
    assert doubled == pytest.approx(want, rel=1e-12)


def test_the_power_mean_at_0_is_the_limit_and_the_geometric_mean() -> None:
    one, two = hf.Hits([[1]], [[0.75]]), hf.Hits([[1]], [[0.25]])
    options: dict[str, Any] = {"method": "power_mean", "calibration": "none", "weights": [3.0, 1.0], "epsilon": 1e-15}
    exact = scores(one, two, p=0.0, **options)[1]
    assert exact == pytest.approx(0.75**0.75 * 0.25**0.25, rel=1e-12)
    near = [scores(one, two, p=p, **options)[1] for p in (-0.05, 0.05)]
    assert near[0] < exact < near[1]
    assert scores(one, two, p=0.0, **options | {"weights": [0.0, 0.0]}) == {1: 0.0}


def test_tsallis_is_a_q_exponential() -> None:
    p = np.array([1.0, 0.5, 0.125])
    energy = -np.log(p + 1e-9)
    for q in (0.0, 0.5, 1.5, 2.0, 3.0):
        weight = np.maximum(1 + (1 - q) * (-energy / 0.8), 0) ** (1 / (1 - q))
        np.testing.assert_allclose(q_distribution(p, q, 0.8), weight / weight.sum(), rtol=1e-12)
    np.testing.assert_allclose(q_distribution(p, 1.0, 0.8), distribution(p, 0.8), rtol=1e-14)
    np.testing.assert_allclose(q_distribution(p, 1 + 1e-9, 0.8), distribution(p, 0.8), rtol=1e-7)
    assert q_distribution(np.array([1.0, 0.0]), 0.0, 1.0).tolist() == [1.0, 0.0]  # cut off
    assert q_distribution(np.array([0.0]), 0.0, "auto").tolist() == [1.0]  # all cut off: uniform
    lists = [hf.Hits([[1, 2]], [[2.0, 1.0]]), hf.Hits([[2, 1]], [[2.0, 1.0]])]
    mixed = scores(*lists, method="tsallis", calibration="rank", q=(1.0, 2.0), temperature=1.0)
    first, second = (q_distribution(np.array([1.0, 0.5]), q, 1.0) for q in (1.0, 2.0))
    assert mixed == pytest.approx({1: 0.7 * first[0] + 0.3 * second[1], 2: 0.7 * first[1] + 0.3 * second[0]})


def test_quantum_interference() -> None:
    a, b, c = (distribution(np.array(p), 1.0)[0] for p in ([0.875, 0.125], [0.75, 0.25], [0.625, 0.375]))
    lists = [hf.Hits([[1, 2]], [p]) for p in ([0.875, 0.125], [0.75, 0.25], [0.625, 0.375])]
    options: dict[str, Any] = {"method": "quantum", "calibration": "none", "temperature": 1.0}
    got = scores(*lists, **options, theta=1.0)[1]
    assert got == pytest.approx(a + b + c + math.cos(1.0) * (a * b + a * c + b * c), rel=1e-13)
    root = scores(*lists[:2], **options, theta=1.0, form="sqrt")[1]
    assert root == pytest.approx(a + b + 2 * math.sqrt(a * b) * math.cos(1.0), rel=1e-13)
    opposed = scores(*lists[:2], **options, theta=math.pi, form="sqrt")[1]
    assert opposed == pytest.approx((math.sqrt(a) - math.sqrt(b)) ** 2, abs=1e-13)
    assert scores(*lists[:1], **options) == {1: pytest.approx(a), 2: pytest.approx(1 - a)}
    weighted = scores(*lists[:2], **options, weights=[0.5, 2.0])[1]
    assert weighted == pytest.approx(0.5 * a + 2 * b + 0.5 * a * 2 * b, rel=1e-13)


def log_likelihood(s: Any) -> float:
    """Of the order 0, 1, 2, ... under strengths s."""
    return float(sum(math.log(s[r]) - math.log(sum(s[r:])) for r in range(len(s) - 1)))


@pytest.mark.parametrize("n", [2, 3, 10])
def test_each_step_makes_the_ranking_likelier(n: int) -> None:
    """Which is what an MM algorithm promises."""
    steps = [log_likelihood(strengths(n, step)) for step in range(8)]
    assert steps[0] == pytest.approx(-math.lgamma(n + 1))
    assert all(later > earlier or later == 0.0 for earlier, later in pairwise(steps))
    for step in range(8):
        assert strengths(n, step).sum() == pytest.approx(1.0, abs=1e-15)
        assert (np.diff(strengths(n, step)) <= 0).all()


def test_plackett_luce_strengths() -> None:
    assert strengths(1, 5).tolist() == [1.0]
    assert strengths(2, 1).tolist() == [1.0, 0.0]
    s = strengths(3, 1)  # 1/S: 1, 1 + 3/2 -> 1, 2/5
    assert s.tolist() == pytest.approx([5 / 7, 2 / 7, 0.0])
    got = scores(A, B, method="plackett_luce", steps=1, weights=[0.5, 0.5], epsilon=0.01)
    want = {1: math.sqrt((5 / 7 + 0.01) * 0.01), 2: math.sqrt((2 / 7 + 0.01) * 0.01), 3: math.sqrt(0.01 * 1.01)}
    assert got == pytest.approx(want, rel=1e-12)


def test_the_gaussian_calibration_is_transport_to_a_normal() -> None:
    got = scores(A, B, method="linear", calibration="gaussian", weights=[1.0, 1.0])
    outer = 0.967421566101701  # the normal quantile of 5/6
    inner = 0.674489750196082  # and of 3/4
    assert got == pytest.approx({1: outer, 2: -inner, 3: inner - outer}, abs=1e-12)


def test_the_gumbel_copula() -> None:
    one, two = hf.Hits([[1, 2]], [[1.0, 0.5]]), hf.Hits([[1, 2]], [[0.5, 1.0]])
    options: dict[str, Any] = {"method": "gumbel", "calibration": "max", "epsilon": 1e-15}
    assert scores(one, two, theta=1.0, **options) == pytest.approx({1: 0.5, 2: 0.5}, rel=1e-12)
    three = [hf.Hits([[1, 2]], [[1.0, c]]) for c in (0.5, 0.25, 0.125)]
    x = [math.log(2), math.log(4), math.log(8)]
    got = scores(*three, theta=2.0, **options)
    assert got[2] == pytest.approx(math.exp(-math.sqrt(sum(v * v for v in x))), rel=1e-12)
    assert got[1] == pytest.approx(1.0, abs=1e-12)
    assert scores(*three, theta=100.0, **options)[2] == pytest.approx(0.125, rel=1e-6)  # theta large: the least
    assert scores(one, EMPTY, theta=1.0, **options)[1] == pytest.approx(1e-15, rel=1e-9)


def test_theta_of_the_gumbel_copula_is_from_kendalls_tau() -> None:
    rng = np.random.default_rng(3)
    first, second = (hf.Hits(rng.permutation(30)[:20], -np.sort(-rng.random(20))) for _ in range(2))
    a, b = dict(first.row(0)), dict(second.row(0))
    both = sorted(a.keys() & b.keys())
    want = stats.kendalltau([a[v] for v in both], [b[v] for v in both]).statistic
    found = {v: {n: one[v] for n, one in enumerate((a, b)) if v in one} for v in a | b}
    assert kendall(found) == pytest.approx(want, abs=1e-12)
    same = scores(first, first, method="gumbel", calibration="rank")  # tau = 1, cut to 0.95: theta = 20
    assert same == pytest.approx(scores(first, first, method="gumbel", calibration="rank", theta=20.0))
    opposed = hf.Hits(first.ids[0, ::-1], first.scores[0])  # tau = -1: theta = 1
    assert scores(first, opposed, method="gumbel") == scores(first, opposed, method="gumbel", theta=1.0)


# ---- Priors and pools -----------------------------------------------------------------------------------------------


def test_a_prior_multiplies_at_the_end() -> None:
    prior = [0.0, 0.5, 1.0, np.nan]  # document 9 has none
    got = scores(A, B, C, method="comb_sum", calibration="none", prior=prior, consensus=0.5)
    assert got == pytest.approx({1: 0.85, 2: 2.0, 3: 2.0, 9: 0.25})
    whole = scores(A, B, C, method="comb_sum", calibration="none", prior=prior, prior_weight=1.0)
    assert whole == pytest.approx({1: 0.5, 2: 1.5, 3: 1.5, 9: 0.25})
    assert fuse([A], method="rrf", prior=[0.0, 0.0, 1.0], k=3).ids.tolist() == [[2, 3, 1]]


def test_a_pool_takes_the_first_of_a_list_before_calibration() -> None:
    assert scores(A, B, method="comb_sum", pool=2) == {1: 1.0, 2: 0.0, 3: 1.0}
    assert scores(A, B, method="comb_sum", pool=[None, 1]) == {1: 1.0, 2: 0.5, 3: 1.0}
    assert scores(A, B, method="comb_sum", pool=0) == {}


def test_empty_legs_leave_the_lexical_order() -> None:
    got = fuse([A, EMPTY, EMPTY], method="rrf", weights=[1.0, 1.0, 0.35], prior=[np.nan] * 10)
    assert got.ids[0, :3].tolist() == A.ids[0].tolist()
    assert got.scores[0, :3].tolist() == [1 / 61, 1 / 62, 1 / 63]
