import sys
from fractions import Fraction
from math import comb

import pytest
from hopfuse.errors import InputError, MissingExtraError
from hopfuse.evaluate import discordant_odds_ratio, mcnemar_exact, wilson_interval
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

#: Relative error of SciPy's binomial distribution, which the test is computed by.
SCIPY = 1e-12


def by_definition(wins, losses):
    n, m = wins + losses, min(wins, losses)
    return min(Fraction(1), 2 * Fraction(sum(comb(n, i) for i in range(m + 1)), 2**n))


def test_mcnemar_by_hand():
    assert mcnemar_exact(0, 0) == 1.0
    assert mcnemar_exact(1, 0) == 1.0
    assert mcnemar_exact(2, 0) == 0.5
    assert mcnemar_exact(5, 5) == 1.0
    assert mcnemar_exact(6, 5) == 1.0
    assert mcnemar_exact(7, 5) == pytest.approx(2 * (1 + 12 + 66 + 220 + 495 + 792) / 4096, rel=SCIPY)
    assert mcnemar_exact(5, 7) == mcnemar_exact(7, 5)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_the_definition(wins, losses):
    assert mcnemar_exact(wins, losses) == pytest.approx(float(by_definition(wins, losses)), rel=SCIPY, abs=0)


@pytest.mark.full
@pytest.mark.parametrize(("wins", "losses"), [(10, 3), (60, 41), (5100, 4900), (52_000, 51_000), (1000, 1), (700, 300)])
def test_mcnemar_against_scipy_and_statsmodels(wins, losses):
    stats = pytest.importorskip("scipy.stats")
    contingency = pytest.importorskip("statsmodels.stats.contingency_tables")
    ours = mcnemar_exact(wins, losses)
    assert ours == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, rel=1e-9)
    table = [[3, wins], [losses, 4]]
    assert ours == pytest.approx(contingency.mcnemar(table, exact=True).pvalue, rel=1e-9)


@pytest.mark.parametrize(
    ("wins", "losses"),
    [
        (260, 240),
        (4000, 1000),
        pytest.param(2600, 2400, marks=pytest.mark.full),
        pytest.param(3000, 2999, marks=pytest.mark.full),
    ],
)
def test_mcnemar_keeps_its_precision_at_large_counts(wins, losses):
    assert mcnemar_exact(wins, losses) == pytest.approx(float(by_definition(wins, losses)), rel=SCIPY, abs=0)


def test_mcnemar_goes_to_zero_quietly():
    assert mcnemar_exact(1000, 0) == 2.0**-999
    assert mcnemar_exact(5000, 0) == 0.0


@pytest.mark.parametrize(("counts", "field"), [((-1, 3), "wins"), ((3, -1), "losses")])
def test_mcnemar_refuses_negative_counts(counts, field):
    with refused(InputError, "range", field, given=-1):
        mcnemar_exact(*counts)


@pytest.mark.full
@given(st.integers(1, 10_000), st.floats(0, 1), st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_wilson_against_statsmodels(n, share, confidence):
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    successes = round(share * n)
    low, high = wilson_interval(successes, n, confidence=confidence)
    expected = proportion.proportion_confint(successes, n, alpha=1 - confidence, method="wilson")
    assert (low, high) == pytest.approx(expected, abs=1e-12)
    assert 0 <= low <= successes / n <= high <= 1


def test_wilson_solves_its_equation():
    # |p - theta| = z * sqrt(theta * (1 - theta) / n) at both ends, z of 95 % from a table
    for end in wilson_interval(37, 120):
        assert abs(37 / 120 - end) == pytest.approx(1.959963984540054 * (end * (1 - end) / 120) ** 0.5, rel=1e-12)


def test_wilson_at_the_ends_is_exact():
    assert wilson_interval(0, 7)[0] == 0.0
    assert wilson_interval(7, 7)[1] == 1.0


@pytest.mark.parametrize(("successes", "n", "field"), [(0, 0, "n"), (-1, 5, "successes"), (6, 5, "successes")])
def test_wilson_refuses_impossible_counts(successes, n, field):
    with refused(InputError, "range", field):
        wilson_interval(successes, n)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, float("nan")])
def test_wilson_refuses_a_confidence_outside_its_range(confidence):
    with refused(InputError, "range", "confidence"):
        wilson_interval(1, 2, confidence=confidence)


def test_without_scipy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    for call in (lambda: mcnemar_exact(3, 1), lambda: wilson_interval(1, 2), lambda: discordant_odds_ratio(3, 1)):
        with refused(MissingExtraError, "missing_extra", extra="eval"):
            call()
