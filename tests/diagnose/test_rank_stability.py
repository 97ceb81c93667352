"""Rank-biased overlap, and changes of rankings if questions are reworded."""

import math

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.diagnose import RankStability, Rewriting, rank_biased_overlap, rank_stability
from hopfuse.errors import InputError
from hopfuse.evaluate import Qrels
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

NAN = math.nan


def ranked(*rows):
    """Return hits with the ids in the given order."""
    return hf.Hits.from_lists([[(i, 1 - at / 100) for at, i in enumerate(row)] for row in rows])


# ---- Rank-biased overlap --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 2, 3], [1, 2, 3], 1.0),
        ([1, 2, 3], [4, 5, 6], 0.0),
        # Agreement 0, 1, 1, then 1 for ever: all but the first depth's weight of 1/2.
        ([1, 2, 3], [2, 1, 3], 0.5),
        # 1, 1/2, 2/3, then 2/3: 1/2 + 1/8 + 2/3 * (1/8 + 1/8).
        ([1, 2, 3], [1, 4, 2], 1 / 2 + 1 / 8 + 2 / 3 * 1 / 4),
        # The shorter one's agreement goes on: 1 everywhere.
        ([1], [1, 2], 1.0),
        # 0, 1/2, then 1/2.
        ([1], [2, 1], 0.25),
        # At depth 1: 0; at 2, its end, 1/2; at 3 the one shared and 1/2 more of the third: 1.5/3; and so on.
        ([1, 2], [2, 3, 4], 1 / 4),
        ([], [1], 0.0),
        ([], [], NAN),
    ],
)
def test_overlap_by_hand(a, b, expected):
    for first, second in ((a, b), (b, a)):
        found = rank_biased_overlap(ranked(first), ranked(second), p=0.5)
        np.testing.assert_allclose(found, [expected], rtol=1e-14, equal_nan=True)


def by_definition(a, b, p):
    """Return the infinite sum of agreements, extrapolated below the ends by equation 32 of the source."""
    short, long = sorted((a, b), key=len)
    s, length, total, agreement = len(short), len(long), 0.0, 0.0
    at_end = len(set(short) & set(long[:s])) / s
    for d in range(1, 800):
        if d <= length:
            shared = len(set(short[:d]) & set(long[:d]))
            agreement = (shared + at_end * max(d - s, 0)) / d
        total += (1 - p) * p ** (d - 1) * agreement
    return total


rankings = st.lists(st.integers(0, 12), unique=True, min_size=1, max_size=10)


@given(rankings, rankings, st.sampled_from([0.1, 0.5, 0.9, 0.95]))
def test_overlap_is_the_definition_symmetric_and_bounded(a, b, p):
    found = rank_biased_overlap(ranked(a), ranked(b), p=p)[0]
    assert found == pytest.approx(by_definition(a, b, p), abs=1e-12)
    assert found == rank_biased_overlap(ranked(b), ranked(a), p=p)[0]
    assert 0 <= found <= 1
    assert rank_biased_overlap(ranked(a), ranked(a), p=p)[0] == pytest.approx(1, abs=1e-15)


@given(st.permutations(range(6)), st.integers(0, 4))
def test_an_exchange_costs_less_further_down(order, at):
    def exchanged(at):
        row = list(order)
        row[at], row[at + 1] = row[at + 1], row[at]
        return row

    near, far = rank_biased_overlap(ranked(order, order), ranked(exchanged(0), exchanged(at)))
    assert near <= far < 1


@pytest.mark.parametrize("p", [0, 1, -0.1, NAN])
def test_p_outside_its_range_is_refused(p):
    with refused(InputError, "range", "p"):
        rank_biased_overlap(ranked([1]), ranked([1]), p=p)


def test_other_numbers_of_rows_are_refused():
    with refused(InputError, "length", "b"):
        rank_biased_overlap(ranked([1]), ranked([1], [2]))


# ---- Stability ------------------------------------------------------------------------------------------------------

LISTS = {
    "same": [1, 2, 3, 4],
    "down one": [2, 1, 3, 4],
    "down two": [3, 2, 1, 4],
    "lost": [5, 6, 7, 8],
    "nothing": [],
}
REWRITING = Rewriting(["same"] * 5, ["same", "down one", "down two", "lost", "nothing"])


def sought(questions, entities):
    """Return lists of width 4 for any questions."""
    width = [[(9 + at, -float(at)) for at in range(4)]]
    rows = [[(p, -float(at)) for at, p in enumerate(LISTS[q])] for q in questions]
    found = hf.Hits.from_lists([*rows, *width])
    return hf.Hits(found.ids[:-1], found.scores[:-1])


def test_stability_by_hand():
    qrels = Qrels([str(b) for b in range(5)], [[1], [1, 4], [1], [1], [99]])
    found = rank_stability(sought, REWRITING, k=2, p=0.5, qrels=qrels)
    assert found.num_changed == 4
    # The first was not rewritten. Agreements: 0, 1, ...; 0, 1/2, 1, 1; none; an empty list.
    np.testing.assert_allclose(found.rbo, [NAN, 0.5, 1 / 8 + 1 / 4, 0, 0])
    np.testing.assert_allclose(found.jaccard, [NAN, 1, 1 / 3, 0, 0])
    # Rank 1 to 2; to 3; lost; and 99 is in neither list.
    np.testing.assert_array_equal(found.first_gold_kept, [NAN, 1, 0, 0, NAN])
    summary = found.summary()
    assert (summary["jaccard"].mean, summary["jaccard"].n) == (pytest.approx(1 / 3), 4)
    assert (summary["first_gold_kept"].mean, summary["first_gold_kept"].n) == (pytest.approx(1 / 3), 3)
    assert found.summary([1])["rbo"].mean == 0.5
    assert found.summary(np.arange(5) == 0)["rbo"].n == 0


def test_a_gold_passage_that_is_new_is_a_change_and_the_best_ranked_counts():
    rewriting = Rewriting(["lost", "same"], ["same", "down two"])
    found = rank_stability(sought, rewriting, k=1, qrels=Qrels(["a", "b"], [[2], [1, 2, 3]]))
    np.testing.assert_array_equal(found.first_gold_kept, [0, 1])


def test_without_judgements_gold_is_absent():
    assert np.isnan(rank_stability(sought, REWRITING, k=1).first_gold_kept).all()


def test_only_rewritten_questions_are_searched_with_their_mentions():
    asked = []

    def recording(questions, entities):
        asked.append((questions, entities))
        return ranked(*[[1]] * len(questions))

    rewriting = Rewriting(["a", "b", "c"], ["a", "B", "c"], None, [["x"], ["y"], ["z"]], [["x"], ["y"], ["w"]])
    assert rewriting.changed.tolist() == [False, True, True]
    found = rank_stability(recording, rewriting, k=1)
    assert asked == [(["b", "c"], [["y"], ["z"]]), (["B", "c"], [["y"], ["w"]])]
    np.testing.assert_allclose(found.rbo, [NAN, 1, 1])
    rank_stability(recording, Rewriting(["a"], ["b"]), k=1)
    assert asked[-1] == (["b"], None)


def test_values_are_read_only():
    found = rank_stability(sought, REWRITING, k=1)
    assert isinstance(found, RankStability)
    with pytest.raises(ValueError, match="read-only"):
        found.rbo[0] = 1


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"rewriting": Rewriting(["a"], ["a"])}, "empty", "rewriting"),
        ({"qrels": Qrels(["a"], [[1]])}, "length", "qrels"),
        ({"search": lambda questions, _: ranked([1])}, "length", "search"),
        ({"p": 1.0}, "range", "p"),
        ({"k": 5}, "range", "k"),
    ],
)
def test_an_invalid_comparison_is_refused(change, code, field):
    options = {"search": sought, "rewriting": REWRITING, "k": 1, **change}
    with refused(InputError, code, field):
        rank_stability(options.pop("search"), options.pop("rewriting"), **options)
