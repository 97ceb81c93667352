import json

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import Qrels, Run, score_distribution, score_distributions
from refusals import refused

RNG = np.random.default_rng(3)
QRELS = Qrels([f"q{b}" for b in range(20)], [[b, b + 1] for b in range(20)])
#: Scores in steps of 1/8, so that ties are many; the last rows are short.
HITS = hf.Hits(
    np.array([RNG.permutation(24)[:12] for _ in range(20)]),
    RNG.integers(-8, 9, (20, 12)) / 8,
    [12] * 15 + [5, 4, 1, 0, 0],
)


def by_hand(hits):
    kinds = {True: [], False: []}
    for b in range(20):
        for passage, score in hits.row(b):
            kinds[passage in QRELS.gold[b]].append(score)
    return kinds[True], kinds[False]


def test_counts_medians_and_auc_are_those_of_the_pairs():
    right, wrong = by_hand(HITS)
    found = score_distribution(HITS, QRELS, bins=7)
    assert found.edges[0] == min(right + wrong)
    assert found.edges[-1] == max(right + wrong)
    np.testing.assert_array_equal(found.relevant, np.histogram(right, found.edges)[0])
    np.testing.assert_array_equal(found.other, np.histogram(wrong, found.edges)[0])
    assert (found.relevant.sum(), found.other.sum()) == (len(right), len(wrong))
    assert (found.relevant_median, found.other_median) == (np.median(right), np.median(wrong))
    pairs = [1.0 if r > w else 0.5 if r == w else 0.0 for r in right for w in wrong]
    assert 0.5 in pairs
    assert found.auc == pytest.approx(np.mean(pairs))


def test_an_absent_value_is_none():
    nothing = score_distribution(hf.Hits(np.full((20, 3), -1), np.zeros((20, 3))), QRELS)
    assert (nothing.relevant_median, nothing.other_median, nothing.auc) == (None, None, None)
    assert nothing.relevant.sum() == nothing.other.sum() == 0
    one = score_distribution(hf.Hits([[0]], [[0.25]]), Qrels(["q"], [[0]]), bins=3)
    assert (one.relevant.sum(), one.other.sum(), one.relevant_median, one.auc) == (1, 0, 0.25, None)
    assert json.loads(json.dumps(one.to_dict(), allow_nan=False))["other_median"] is None


def test_raw_and_calibrated_by_run():
    found = score_distributions(QRELS, {"a": Run(HITS), "b": Run(HITS.head(3))}, "min_max")
    assert list(found) == ["a", "b"]
    assert list(found["a"]) == ["raw", "min_max"]
    after = score_distribution(hf.calibrate(HITS, "min_max"), QRELS)
    assert found["a"]["min_max"].to_dict() == after.to_dict()
    assert found["a"]["raw"].to_dict() == score_distribution(HITS, QRELS).to_dict()
    assert (after.edges[0], after.edges[-1]) == (0.0, 1.0)


def test_bad_calls_are_refused():
    with refused(InputError, "range", "bins"):
        score_distribution(HITS, QRELS, bins=0)
    with refused(InputError, "length", "hits"):
        score_distributions(QRELS, {"b": Run(hf.Hits([[1]], [[1.0]]))})
    with refused(InputError, "choice", "calibration"):
        score_distributions(QRELS, {"b": Run(HITS)}, "platt")
