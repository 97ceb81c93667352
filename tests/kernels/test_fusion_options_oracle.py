"""The options of the fusion methods, priors and pools on every kernel variant, against the float64 oracle."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_lists
from compare import assert_hits_equal, assert_rows_equal
from hopfuse import reference
from hopfuse.fusion import METHODS
from hypothesis import given
from hypothesis import strategies as st
from kernels.test_fuse_oracle import check

OPTIONS: list[dict[str, Any]] = [
    {"method": "comb_mnz", "gamma": 0.0},
    {"method": "comb_mnz", "gamma": 2.0},
    {"method": "comb_mnz", "gamma": -1.5},
    {"method": "log_isr", "sigma": 0.01},
    {"method": "log_isr", "sigma": 1.0},
    {"method": "borda", "missing": "zero"},
    {"method": "borda", "missing": "mean"},
    {"method": "rbc", "phi": 0.5},
    {"method": "rbc", "phi": 0.999},
    {"method": "rbc", "phi": 1e-3},
    {"method": "log_linear", "epsilon": 1e-3},
    {"method": "log_linear", "temperature": 0.3, "epsilon": 1e-6},
    {"method": "power_mean", "p": 1.0},
    {"method": "power_mean", "p": 0.0},
    {"method": "power_mean", "p": -1.0, "epsilon": 0.01},
    {"method": "power_mean", "p": 0.05},
    {"method": "power_mean", "p": -100.0},
    {"method": "power_mean", "p": 100.0},
    {"method": "tsallis", "q": 1.0},
    {"method": "tsallis", "q": 0.0},
    {"method": "tsallis", "q": 0.5, "temperature": 0.5},
    {"method": "tsallis", "q": 1.0001},
    {"method": "tsallis", "q": 0.9999},
    {"method": "tsallis", "q": 3.0, "temperature": 0.01},
    {"method": "tsallis", "q": 10.0},
    {"method": "quantum", "theta": 1.0},
    {"method": "quantum", "theta": np.pi},
    {"method": "quantum", "form": "sqrt"},
    {"method": "quantum", "form": "sqrt", "theta": 2.5, "temperature": 0.6},
    {"method": "boltzmann", "wasserstein": 2.0, "calibration": "min_max"},
    {"method": "boltzmann", "wasserstein": 0.5, "calibration": "sum", "temperature": 0.3},
    {"method": "boltzmann", "wasserstein": 100.0},
    {"method": "gumbel", "theta": 1.0},
    {"method": "gumbel", "theta": 2.5, "epsilon": 1e-3},
    {"method": "gumbel", "theta": 100.0},
    {"method": "gumbel", "calibration": "rank"},
    {"method": "plackett_luce", "steps": 1},
    {"method": "plackett_luce", "steps": 10, "epsilon": 1e-4},
    {"method": "plackett_luce", "steps": 100},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
def test_every_option(variant: str, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(11)
    rtol = 1e-4 if options["method"] == "plackett_luce" else 2e-5
    for count in (1, 2, 3):
        lists = random_lists(rng, 36, count, width=15, ids=25, grid=(None, 1, 3))
        check(lists, 30, rtol=rtol, atol=5e-6, **options)


def test_q_is_each_lists_own(variant: str) -> None:
    lists = random_lists(np.random.default_rng(12), 12, 2)
    check(lists, 30, method="tsallis", q=(1.0, 2.0))
    alone = hf.fuse([lists[1]], method="tsallis", q=2.0, weights=[1.0], k=30)
    second = hf.fuse(lists, method="tsallis", q=(0.5, 2.0), weights=[0.0, 1.0], k=30)
    for b in range(12):
        assert second.row(b)[: alone.counts[b]] == alone.row(b)


def test_q_of_1_is_boltzmann(variant: str) -> None:
    lists = random_lists(np.random.default_rng(13), 12, 3)
    one, other = hf.fuse(lists, method="tsallis", q=1.0, k=40), hf.fuse(lists, method="boltzmann", k=40)
    for b in range(12):
        values = dict(other.row(b))
        for document, score in one.row(b):
            assert score == pytest.approx(values[document], rel=3e-6, abs=1e-9)


def test_power_means_of_one_list_are_its_values(variant: str) -> None:
    hits = hf.Hits([[3, 1, 2]], [[0.75, 0.5, 0.25]])
    for p in (-2.0, 0.0, 0.5, 1.0, 2.0):
        found = hf.fuse([hits], method="power_mean", p=p, calibration="none", weights=[3.0], k=3)
        np.testing.assert_allclose(found.scores, [[0.75, 0.5, 0.25]], rtol=2e-6)


def test_methods_that_are_special_cases_have_the_bits_of_the_general_one(variant: str) -> None:
    lists = random_lists(np.random.default_rng(14), 20, 3, grid=6)
    linear = hf.fuse(lists, method="linear", calibration="min_max", weights=[1.0] * 3, k=40)
    assert_hits_equal(hf.fuse(lists, method="comb_sum", k=40), linear)
    assert_hits_equal(hf.fuse(lists, method="comb_mnz", gamma=0.0, k=40), linear)
    most = hf.fuse(lists, method="max", calibration="min_max", k=40)
    assert_hits_equal(hf.fuse(lists, method="comb_max", k=40), most)
    two = [lists[0], lists[0]]
    assert_rows_equal(hf.fuse(two, method="comb_med", k=40), hf.fuse([lists[0]], method="comb_min", k=40))


@pytest.mark.parametrize("count", [1, 2, 5, 8, 10])
def test_medians_of_many_lists(variant: str, count: int) -> None:
    rng = np.random.default_rng(count)
    for grid in (None, 2):
        check(random_lists(rng, 12, count, width=12, ids=15, grid=grid), 30, method="comb_med")


def test_wasserstein_of_0_and_of_a_single_list_is_plain_boltzmann(variant: str) -> None:
    lists = random_lists(np.random.default_rng(19), 20, 3)
    assert_hits_equal(hf.fuse(lists, wasserstein=0.0, k=40), hf.fuse(lists, k=40))
    assert_hits_equal(hf.fuse(lists[:1], wasserstein=5.0, k=40), hf.fuse(lists[:1], k=40))


@pytest.mark.parametrize("sizes", [(1, 700), (700, 1), (64, 64), (1025, 300, 40)])
def test_wasserstein_of_long_lists(variant: str, sizes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(20)
    lists = [
        hf.Hits(rng.permutation(2000)[:n], -np.sort(-(rng.random(n) ** power))) for power, n in enumerate(sizes, 1)
    ]
    check(lists, 100, calibration="max", wasserstein=4.0)


def test_weights_that_are_not_whole_vote_as_exactly(variant: str) -> None:
    lists = random_lists(np.random.default_rng(21), 20, 6)
    one = hf.fuse(lists, method="condorcet", k=40)
    for weight in (0.3, 1e-6, 2.0**24):
        assert_hits_equal(hf.fuse(lists, method="condorcet", weights=[weight] * 6, k=40), one)
    check(lists, 40, method="condorcet", weights=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], atol=0.0, rtol=0.0)


@pytest.mark.parametrize("size", [63, 64, 65, 300])
def test_condorcet_counts_are_the_oracles(variant: str, size: int) -> None:
    rng = np.random.default_rng(size)
    lists = [hf.Hits(rng.permutation(size)[: size - at], -np.arange(size - at)) for at in range(3)]
    for weights in (None, [1.0, 2.0, 0.0], [0.5, 0.3, 0.25]):
        check(lists, size, method="condorcet", weights=weights, atol=0.0, rtol=0.0)


@pytest.mark.parametrize("grid", [None, 1, 2, 20])
@pytest.mark.parametrize("calibration", ["pit", "min_max", "rank"])
def test_the_concordance_of_long_lists(variant: str, grid: int | None, calibration: str) -> None:
    """A merge sort's counts, ties and all, where the oracle compares every two documents."""
    rng = np.random.default_rng(22)
    lists = []
    for size in (150, 90, 128):
        scores = rng.random((2, size)) if grid is None else rng.integers(0, grid, (2, size)).astype(np.float64)
        ids = np.stack([rng.permutation(200)[:size] for _ in range(2)])
        lists.append(hf.Hits(ids, scores + (ids < 60)))  # with some agreement
    check(lists, 200, method="gumbel", calibration=calibration, rtol=2e-5, atol=5e-6)


@pytest.mark.parametrize("count", [4, 5, 6, 10])
def test_gumbel_ranks_documents_that_all_lists_but_one_lack(variant: str, count: int) -> None:
    """Far below 1, and still normal numbers of float32."""
    rng = np.random.default_rng(23)
    scores = -np.sort(-rng.random(30))
    lists = [hf.Hits(ids, scores) for ids in rng.permutation(30 * count).reshape(count, 30)]
    assert (hf.fuse(lists, method="gumbel", k=30 * count).scores > np.finfo(np.float32).tiny).all()
    check(lists, 30 * count, method="gumbel", rtol=5e-5, atol=0.0)


# ---- Prior ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_prior_multiplies_every_score(variant: str, method: str) -> None:
    rng = np.random.default_rng(15)
    lists = random_lists(rng, 12, 3)
    importance = rng.random(14)  # documents are 0 .. 19: some have none
    importance[[2, 5]] = np.nan
    importance[[0, 1]] = 0.0, 1.0
    check(lists, 30, method=method, prior=importance, consensus=0.25, atol=1e-5)
    found = hf.fuse(lists, method=method, prior=hf.fusion.Prior(importance, weight=0.9), k=30)
    exact = reference.fuse(lists, method=method, prior=importance, prior_weight=0.9, k=30)
    for b in range(12):
        assert dict(found.row(b)) == pytest.approx(dict(exact.row(b)), rel=1e-5, abs=1e-5)


def test_a_prior_that_knows_nothing_changes_nothing(variant: str) -> None:
    lists = random_lists(np.random.default_rng(16), 12, 3)
    plain = hf.fuse(lists, method="rrf", k=30)
    for prior in ([], [np.nan] * 20, np.ones(20)):
        assert_hits_equal(hf.fuse(lists, method="rrf", prior=prior, k=30), plain)


@pytest.mark.parametrize("grid", [None, 3])
def test_with_empty_dense_and_graph_legs_the_fused_order_is_the_lexical_one(variant: str, grid: int | None) -> None:
    """RRF of three legs at 1, 1 and 0.35: an empty leg adds exactly 0, and 1/(60 + r) falls in float32 with every r."""
    (lexical,) = random_lists(np.random.default_rng(17), 9, 1, width=2000, ids=4000, grid=grid)
    empty = hf.Hits(np.full((9, 10), -1), np.zeros((9, 10)))
    for legs in ([lexical, empty, empty], [empty, empty, lexical]):
        fused = hf.fuse(legs, method="rrf", weights=(1.0, 1.0, 0.35), prior=[np.nan] * 4000, k=2000)
        assert fused.counts.tolist() == lexical.counts.tolist()
        for b, n in enumerate(lexical.counts):
            assert fused.ids[b, :n].tolist() == lexical.ids[b, :n].tolist()
            assert (np.diff(fused.scores[b, :n]) < 0).all()


def test_exact_matches_are_one_more_list(variant: str) -> None:
    lexical, dense = hf.Hits([[1, 2, 3]], [[3.0, 2.0, 1.0]]), hf.Hits([[2, 3, 1]], [[3.0, 2.0, 1.0]])
    exact = hf.Hits([[3]], [[1.0]])
    assert hf.fuse([lexical, dense], method="rrf", k=1).ids[0, 0] == 2
    fused = hf.fuse([lexical, dense, exact], method="rrf", weights=(1.0, 1.0, 2.0), k=1)
    assert fused.row(0) == [(3, pytest.approx(1 / 63 + 1 / 62 + 2 / 61, rel=1e-6))]


# ---- Pools ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_takes_the_first_of_a_list_before_it_is_calibrated(variant: str, method: str) -> None:
    lists = random_lists(np.random.default_rng(18), 12, 3)
    for pool in (0, 1, 5, 100, (3, None, 0), [12, 2, 7]):
        found = check(lists, 30, method=method, pool=pool)
        pools = pool if isinstance(pool, tuple | list) else [pool] * 3
        heads = [one if p is None else one.head(p) for one, p in zip(lists, pools, strict=True)]
        assert_hits_equal(found, hf.fuse(heads, method=method, k=30))


@given(
    seed=st.integers(0, 2**32 - 1),
    options=st.sampled_from([*OPTIONS, {"method": "boltzmann"}, {"method": "comb_anz"}, {"method": "isr"}]),
    count=st.integers(1, 5),
    pool=st.sampled_from([None, 0, 1, 4]),
    weight=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_drawn_calls(
    variant: str, seed: int, options: dict[str, Any], count: int, pool: int | None, weight: float
) -> None:
    rng = np.random.default_rng(seed)
    lists = random_lists(rng, 4, count, grid=rng.choice(np.array([None, 1, 4])))
    importance = np.where(rng.random(25) < 0.3, np.nan, rng.random(25))
    found = hf.fuse(lists, pool=pool, prior=hf.fusion.Prior(importance, weight=weight), k=40, **options)
    exact = reference.fuse(lists, pool=pool, prior=importance, prior_weight=weight, k=40, **options)
    rtol = 1e-4 if options["method"] == "plackett_luce" else 2e-5
    for b in range(4):
        assert dict(found.row(b)) == pytest.approx(dict(exact.row(b)), rel=rtol, abs=1e-5)
