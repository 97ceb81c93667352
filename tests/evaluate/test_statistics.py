"""Statistics against SciPy, statsmodels and enumeration by hand."""

from fractions import Fraction
from itertools import product
from math import comb, inf, isnan

import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import (
    bootstrap_interval,
    detectable_difference,
    detectable_mean_difference,
    discordant_odds_ratio,
    holm,
    mcnemar_exact,
    mcnemar_power,
    randomisation_test,
)
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

# ---- Bootstrap ------------------------------------------------------------------------------------------------------


def all_means(values):
    """Return the means of all resamples with replacement."""
    return [sum(drawn) / len(values) for drawn in product(values, repeat=len(values))]


@pytest.mark.parametrize("values", [[0.0, 1.0, 1.0], [0.5, -0.5, 0.25, 0.0, 0.5], [1.0, 0.0, 0.0, 0.0, -1.0, 0.3]])
def test_bootstrap_against_all_resamples(values):
    means = np.array(all_means(values))
    low, high = bootstrap_interval(values, confidence=0.8, resamples=40_000)
    # The share of all resamples below each end is what the interval says, within the error of 40,000 draws.
    assert (means < low - 1e-9).mean() <= 0.1 + 0.01
    assert (means <= low + 1e-9).mean() >= 0.1 - 0.01
    assert (means < high - 1e-9).mean() <= 0.9 + 0.01
    assert (means <= high + 1e-9).mean() >= 0.9 - 0.01


def test_bootstrap_against_scipy():
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(3).choice([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0], 200)
    made = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(4))
    expected = made.confidence_interval
    assert bootstrap_interval(values, resamples=20_000) == pytest.approx((expected.low, expected.high), abs=0.01)


def test_bootstrap_is_the_same_each_time_and_in_any_order():
    values = np.random.default_rng(0).random(50)
    assert bootstrap_interval(values) == bootstrap_interval(values[::-1])
    assert bootstrap_interval(values, seed=1) != bootstrap_interval(values, seed=2)


def test_bootstrap_of_equal_values_is_that_value():
    assert bootstrap_interval([0.3] * 7) == (0.3, 0.3)


def test_bootstrap_of_many_distinct_values_is_drawn_in_parts():
    values = np.random.default_rng(0).random(5000)
    low, high = bootstrap_interval(values, resamples=1000)
    normal = 1.96 * values.std() / 5000**0.5
    assert (values.mean() - low, high - values.mean()) == pytest.approx((normal, normal), rel=0.1)


# ---- Randomisation --------------------------------------------------------------------------------------------------


def by_enumeration(differences):
    """Return the share of all sign assignments with a sum at least as far from 0."""
    exact = [Fraction(d) for d in differences]
    sums = [abs(sum(s * d for s, d in zip(signs, exact, strict=True))) for signs in product((-1, 1), repeat=len(exact))]
    return sum(s >= abs(sum(exact)) for s in sums) / len(sums)


@given(st.lists(st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0]), min_size=1, max_size=9))
def test_randomisation_is_the_enumeration(differences):
    assert randomisation_test(differences) == pytest.approx(by_enumeration(differences), rel=1e-12)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 5))
def test_randomisation_of_wins_and_losses_is_mcnemar(wins, losses, ties):
    differences = [1.0] * wins + [-1.0] * losses + [0.0] * ties
    assert randomisation_test(differences) == pytest.approx(mcnemar_exact(wins, losses), rel=1e-9)


def test_randomisation_against_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    ours, theirs = rng.random(12), rng.random(12) - 0.15
    made = stats.permutation_test(
        (ours, theirs), lambda a, b: np.mean(a - b), permutation_type="samples", n_resamples=np.inf
    )
    assert randomisation_test(ours - theirs) == pytest.approx(made.pvalue, rel=1e-12)


def test_randomisation_by_draws_is_near_what_all_signs_give():
    differences = np.random.default_rng(5).normal(0.2, 1, 40)
    normal = differences.sum() / (differences**2).sum() ** 0.5
    stats = pytest.importorskip("scipy.stats")
    p = randomisation_test(differences)
    assert p == pytest.approx(2 * stats.norm.sf(abs(normal)), abs=0.02)
    assert p == randomisation_test(differences)
    assert randomisation_test(differences + 100) == 1 / 10_001


def test_randomisation_of_rounded_values_keeps_its_ties():
    # 0.1 + 0.2 and 0.3 differ in their last bit: they are one distance from 0.
    assert randomisation_test([0.1 + 0.2, -0.3, 0.3]) == pytest.approx(1, rel=1e-12)


def test_nothing_to_tell_apart():
    assert randomisation_test([0.0, 0.0]) == 1.0


# ---- Holm -----------------------------------------------------------------------------------------------------------


@pytest.mark.full
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_against_statsmodels(p_values):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    np.testing.assert_allclose(holm(p_values), multitest.multipletests(p_values, method="holm")[1], rtol=1e-12)


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.04, 0.01, 0.03, 0.5]), [0.09, 0.04, 0.09, 0.5])
    assert holm([]).shape == (0,)


# ---- Odds ratio -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from([0.8, 0.95, 0.99]))
def test_odds_ratio_against_scipy(wins, losses, confidence):
    stats = pytest.importorskip("scipy.stats")
    ratio, low, high = discordant_odds_ratio(wins, losses, confidence=confidence)
    if wins + losses == 0:
        assert isnan(ratio)
        assert (low, high) == (0.0, inf)
        return
    assert ratio == (wins / losses if losses else inf)
    interval = stats.binomtest(wins, wins + losses).proportion_ci(confidence, method="exact")
    assert low == pytest.approx(interval.low / (1 - interval.low), rel=1e-8)
    assert high == (inf if losses == 0 else pytest.approx(interval.high / (1 - interval.high), rel=1e-8))


def test_odds_ratio_turns_over_with_the_runs():
    ratio, low, high = discordant_odds_ratio(20, 8)
    assert discordant_odds_ratio(8, 20) == pytest.approx((1 / ratio, 1 / high, 1 / low), rel=1e-9)


# ---- Power ----------------------------------------------------------------------------------------------------------


def power_by_enumeration(n, won, lost, significance):
    """Sum over all numbers of wins and losses of n queries."""
    total = 0.0
    for wins in range(n + 1):
        for losses in range(n + 1 - wins):
            if mcnemar_exact(wins, losses) <= significance:
                ways = comb(n, wins) * comb(n - wins, losses)
                total += ways * won**wins * lost**losses * (1 - won - lost) ** (n - wins - losses)
    return total


@pytest.mark.parametrize(
    ("n", "won", "lost", "significance"),
    [
        (1, 0.5, 0.1, 0.05),
        (12, 0.6, 0.1, 0.05),
        (25, 0.5, 0.5, 0.05),
        (30, 0.2, 0.0, 0.01),
        pytest.param(40, 0.3, 0.1, 0.05, marks=pytest.mark.full),
        pytest.param(60, 0.2, 0.0, 0.01, marks=pytest.mark.full),
    ],
)
def test_power_against_enumeration(n, won, lost, significance):
    expected = power_by_enumeration(n, won, lost, significance)
    assert mcnemar_power(n, won, lost, significance=significance) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_power_without_a_difference_is_below_the_significance():
    assert 0 < mcnemar_power(500, 0.1, 0.1) <= 0.05
    assert mcnemar_power(500, 0.0, 0.0) == 0.0
    assert mcnemar_power(500, 0.1, 0.02) == pytest.approx(mcnemar_power(500, 0.02, 0.1), rel=1e-12)


@pytest.mark.parametrize(
    ("n", "discordant", "power"), [(60, 0.5, 0.8), (197, 0.25, 0.8), (334, 0.2, 0.9), (6000, 0.1, 0.8)]
)
def test_the_detectable_difference_is_where_the_power_is_reached(n, discordant, power):
    found = detectable_difference(n, discordant, power=power)
    for difference, reached in ((found, True), (found - 1e-4, False)):
        won, lost = (discordant + difference) / 2, (discordant - difference) / 2
        assert (mcnemar_power(n, won, lost) >= power) is reached


def test_too_few_discordant_queries_show_nothing():
    assert detectable_difference(5, 1.0) is None
    assert detectable_difference(6, 1.0) is not None
    assert detectable_difference(300, 0.0) is None


@pytest.mark.full
def test_detectable_mean_difference_against_statsmodels():
    power = pytest.importorskip("statsmodels.stats.power")
    effect = power.NormalIndPower(ddof=0).solve_power(nobs1=500, alpha=0.025, power=0.8, ratio=0, alternative="larger")
    assert detectable_mean_difference(500, 0.4) == pytest.approx(0.4 * effect, rel=1e-5)


# ---- What cannot be computed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: bootstrap_interval([]), ("shape", "values")),
        (lambda: bootstrap_interval([np.nan, 1.0]), ("finite", "values")),
        (lambda: bootstrap_interval([[1.0]]), ("shape", "values")),
        (lambda: bootstrap_interval([1.0], confidence=95), ("range", "confidence", {"given": 95})),
        (lambda: bootstrap_interval([1.0], resamples=0), ("range", "resamples", {"given": 0})),
        (lambda: randomisation_test([np.inf]), ("finite", "differences")),
        (lambda: randomisation_test([1.0], resamples=0), ("range", "resamples", {"given": 0})),
        (lambda: holm([0.1, np.nan]), ("range", "p_values")),
        (lambda: holm([1.5]), ("range", "p_values")),
        (lambda: holm(0.1), ("range", "p_values")),
        (lambda: discordant_odds_ratio(-1, 2), ("range", "wins", {"given": -1})),
        (lambda: discordant_odds_ratio(1, 2, confidence=1), ("range", "confidence", {"given": 1})),
        (lambda: mcnemar_power(0, 0.1, 0.1), ("range", "n", {"given": 0})),
        (lambda: mcnemar_power(9, 0.7, 0.4), ("range", "lost", {"given": 0.4})),
        (lambda: mcnemar_power(9, 0.1, 0.1, significance=0), ("range", "significance", {"given": 0})),
        (lambda: detectable_difference(9, 1.5), ("range", "discordant", {"given": 1.5})),
        (lambda: detectable_difference(9, 0.5, power=1), ("range", "power", {"given": 1})),
        (lambda: detectable_mean_difference(9, -1), ("range", "deviation", {"given": -1})),
    ],
)
def test_arguments_outside_their_range_are_refused(call, error):
    with refused(InputError, *error):
        call()
