"""The contents of the first passages: hops, answers, and the baseline's distractors."""

import math

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.evaluate import (
    FusedLegs,
    PassageNames,
    Qrels,
    Run,
    answer_supported,
    distractor_suppression,
    evaluate,
    findable_answers,
    full_support,
    hops_recovered,
    parse_metric,
    read_texts,
    recall,
)
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

NAN = math.nan


def ranked(*rows):
    """Return hits with the ids in the given order."""
    return hf.Hits.from_lists([[(i, 1 - at / 100) for at, i in enumerate(row)] for row in rows])


# ---- Hops -----------------------------------------------------------------------------------------------------------

HOPS = Qrels(
    ["three", "one", "unknown", "empty hop"],
    gold=[[1, 2, 3, 4], [5, 6], [7], [8]],
    hops=[[[1, 2], [2, 3], [4]], [[5, 6]], [], [[], [8]]],
)


def test_hops_by_hand():
    hits = ranked([9, 2, 1, 4], [6, 9, 8, 7], [7, 1, 2, 3], [8, 1, 2, 3])
    np.testing.assert_array_equal(hops_recovered(hits, HOPS, 1), [0, 1, NAN, 1])
    # 2 is a passage of two hops, and 1 adds none; 4 recovers the last.
    np.testing.assert_allclose(hops_recovered(hits, HOPS, 2), [2 / 3, 1, NAN, 1])
    np.testing.assert_allclose(hops_recovered(hits, HOPS, 3), [2 / 3, 1, NAN, 1])
    np.testing.assert_array_equal(hops_recovered(hits, HOPS, 4), [1, 1, NAN, 1])


def test_padding_recovers_no_hop():
    qrels = Qrels(["a"], [[0]], hops=[[[0]]])
    hits = hf.Hits.unchecked(np.array([[3, 0]]), np.zeros((1, 2), np.float32), np.array([1]))
    assert hops_recovered(hits, qrels, 2).tolist() == [0.0]


@given(st.lists(st.lists(st.integers(0, 9), unique=True, max_size=6), min_size=1, max_size=6), st.integers(1, 6))
def test_where_every_hop_has_one_passage_it_is_recall(rows, k):
    gold = [[0, 3, 5]] * len(rows) + [[]]
    qrels = Qrels([str(b) for b in range(len(gold))], gold, hops=[[[p] for p in row] for row in gold])
    hits = ranked(*rows, range(20, 26))
    np.testing.assert_allclose(hops_recovered(hits, qrels, k), recall(hits, qrels, k))
    np.testing.assert_array_equal(hops_recovered(hits, qrels, k) == 1, full_support(hits, qrels, k) == 1)


# ---- Answers --------------------------------------------------------------------------------------------------------

TEXTS = ["A party at the U.S. embassy.", "The art of\n war", "Yes, no.", "Sun Tzu's The Art of War!"]
ANSWERED = Qrels(
    ["phrase", "yes", "none", "either", "nothing", "word"],
    [[]] * 6,
    answers=[["The Art of War"], ["Yes", "no."], [], ["Clausewitz", "US"], ["The"], ["art"]],
)


def test_the_answers_that_can_be_sought():
    assert findable_answers(ANSWERED) == (("art of war",), (), (), ("clausewitz", "us"), (), ("art",))


def test_answers_by_hand():
    hits = ranked(*[[0, 1]] * 6)
    np.testing.assert_array_equal(answer_supported(hits, ANSWERED, 1, TEXTS), [0, NAN, NAN, 1, NAN, 0])
    np.testing.assert_array_equal(answer_supported(hits, ANSWERED, 2, TEXTS), [1, NAN, NAN, 1, NAN, 1])
    by_id = dict(enumerate(TEXTS))
    np.testing.assert_array_equal(answer_supported(ranked(*[[2, 3]] * 6), ANSWERED, 2, by_id), [1, NAN, NAN, 0, NAN, 1])
    np.testing.assert_array_equal(answer_supported(ranked(*[[]] * 5, [0]), ANSWERED, 1, by_id)[[0, 5]], [0, 0])


def test_only_the_first_k_need_a_text():
    hits, qrels = ranked([1, 9]), Qrels(["a"], [[]], answers=[["war"]])
    assert answer_supported(hits, qrels, 1, TEXTS).tolist() == [1.0]
    with refused(InputError, "missing", "texts"):
        answer_supported(ranked([0, 9]), qrels, 2, TEXTS)
    with refused(InputError, "type", "texts[1]"):
        answer_supported(hits, qrels, 1, {1: None})


@given(st.text("ab .", max_size=12), st.text("ab ", min_size=1, max_size=4))
def test_whole_words_alone_count(text, answer):
    sought = [word for word in answer.replace("a", "x").split() if word]
    output = text.replace("a", "x").replace(".", "").split()  # "a" is an article
    found = any(output[at : at + len(sought)] == sought for at in range(len(output) + 1))
    qrels = Qrels(["q"], [[]], answers=[[answer.replace("a", "x")]])
    value = answer_supported(ranked([0]), qrels, 1, [text.replace("a", "x")]).tolist()[0]
    assert math.isnan(value) if not sought else value == found


def test_the_metrics_by_name():
    run = Run(ranked(*[[0, 1]] * 6), texts=TEXTS)
    metric = parse_metric("answer_supported@2")
    assert (metric.name, metric.binary, metric.reads_texts) == ("answer_supported@2", True, True)
    np.testing.assert_array_equal(metric.per_query(run, ANSWERED), answer_supported(run.hits, ANSWERED, 2, TEXTS))
    np.testing.assert_array_equal(metric.per_query(run.take([5, 0]), ANSWERED.take([5, 0])), [1, 1])
    assert not parse_metric("hops_recovered@2").binary
    result = evaluate(ANSWERED, {"r": run}, ["answer_supported@1"])
    assert (result.estimate("r", "answer_supported@1").mean, result.estimate("r", "answer_supported@1").n) == (1 / 3, 3)


def test_hits_that_the_metric_is_not_defined_for():
    metric = parse_metric("answer_supported@1")
    for run in (ranked([1]), Run(ranked([1]))):
        with refused(InputError, "missing", "texts"):
            metric.per_query(run, ANSWERED.take([0]))
    with refused(InputError, "missing", "qrels"):
        metric.per_query(Run(ranked([1]), texts=TEXTS), ANSWERED.take([2]))
    with refused(InputError, "choice", "metric"):
        parse_metric("answer_supported")


def test_fused_legs_keep_the_texts():
    legs = {"a": Run(ranked([0, 1]), texts=TEXTS), "b": Run(ranked([1, 2]), texts=TEXTS)}
    fused = FusedLegs(legs, k=1)
    for options in ({"leg": "b"}, {"method": "rrf"}):
        found = fused(options, np.array([0]))
        assert parse_metric("answer_supported@1").per_query(found, ANSWERED.take([5])).tolist() == [1.0]


def test_texts_of_the_passages_that_have_a_number(tmp_path):
    names = PassageNames()
    names.number("b")
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": "a", "text": "x"}\n{"id": "b", "title": "T", "text": "y"}\n', encoding="utf-8")
    assert read_texts(path, names) == {0: "T\ny"}
    assert len(names) == 1
    for line, error in (
        ('{"id": "b"}', ("missing",)),
        ('{"id": "b", "text": 4}', ("type", "text", {"given": "int"})),
    ):
        path.write_text(line, encoding="utf-8")
        with refused(FormatError, *error):
            read_texts(path, names)


# ---- Distractors ----------------------------------------------------------------------------------------------------


def test_distractors_by_hand():
    qrels = Qrels(["half", "all gold", "unjudged", "moved down", "short"], [[1], [1, 2], [], [9], [1]])
    dense = ranked([1, 5, 6], [1, 2, 3], [4, 5, 6], [5, 6, 9], [5])
    fused = ranked([6, 7, 1], [8, 9, 7], [1, 2, 3], [7, 8, 5], [])
    np.testing.assert_array_equal(distractor_suppression(fused, dense, qrels, 1), [NAN, NAN, NAN, 1, 1])
    np.testing.assert_array_equal(distractor_suppression(fused, dense, qrels, 2), [1, NAN, NAN, 1, 1])
    np.testing.assert_array_equal(distractor_suppression(fused, dense, qrels, 3), [0.5, 1, NAN, 0.5, 1])


lists = st.lists(st.lists(st.integers(0, 8), unique=True, max_size=5), min_size=4, max_size=4)


@given(lists, lists, st.integers(1, 5))
def test_the_baseline_suppresses_nothing_and_others_agree_with_a_loop(ours, theirs, k):
    hits, dense = ranked(*ours, range(5)), ranked(*theirs, range(5))
    qrels = Qrels("abcde", [[0, 1]] * 5)
    assert not np.nan_to_num(distractor_suppression(dense, dense, qrels, k)).any()
    for row, value in enumerate(distractor_suppression(hits, dense, qrels, k)[:4].tolist()):
        wrong = [p for p in theirs[row][:k] if p not in (0, 1)]
        gone = [p for p in wrong if p not in ours[row][:k]]
        assert math.isnan(value) if not wrong else value == len(gone) / len(wrong)


def test_distractors_by_name_are_the_baselines():
    qrels = Qrels(["a", "b"], [[1], [2]])
    dense, fused = ranked([1, 5, 6], [2, 3, 4]), ranked([6, 1, 7], [3, 9, 4])
    metric = parse_metric("distractor_suppression@3")
    assert (metric.binary, metric.reads_baseline, metric.reads_texts) == (False, True, False)
    result = evaluate(qrels, {"dense": dense, "fused": Run(fused)}, ["distractor_suppression@3"], baseline="dense")
    np.testing.assert_array_equal(result.per_query["fused"][metric.name], [0.5, 0])
    np.testing.assert_array_equal(result.per_query["dense"][metric.name], [0, 0])
    with refused(InputError, "choice", "metric"):  # a certain win would say nothing
        result.comparison("fused", metric.name)
    assert dict(result.groups[0].comparisons["fused"]) == {}
    given = Run(fused, baseline=ranked([9, 8, 7], [9, 8, 7]))
    np.testing.assert_array_equal(metric.per_query(given.take([1, 0]), qrels.take([1, 0])), [2 / 3, 2 / 3])
    kept = evaluate(qrels, {"dense": dense, "fused": given}, [metric.name], baseline="dense")
    np.testing.assert_allclose(kept.per_query["fused"][metric.name], [2 / 3, 2 / 3])
    for run in (fused, Run(fused)):
        with refused(InputError, "missing", "baseline"):
            metric.per_query(run, qrels)
    with refused(InputError, "length", "baseline"):
        Run(fused, baseline=ranked([1]))
    with refused(InputError, "type", "baseline"):
        Run(fused, baseline=[1, 2])


def test_fused_legs_keep_the_baseline():
    hits = ranked([1, 2], [3, 4])
    legs = {"a": Run(hits, baseline=hits), "b": Run(ranked([2, 9], [4, 3]), baseline=hits)}
    fused, qrels = FusedLegs(legs, k=1), Qrels(["q", "r"], [[8], [8]])
    for options, value in (({"leg": "b"}, 1.0), ({"leg": "a"}, 0.0)):
        found = fused(options, np.array([1]))
        assert parse_metric("distractor_suppression@1").per_query(found, qrels.take([1])).tolist() == [value]
    assert np.array_equal(fused({"method": "rrf"}, np.array([1])).baseline.ids, [[3, 4]])


# ---- Refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, -1])
@pytest.mark.parametrize(
    "metric",
    [
        hops_recovered,
        lambda hits, qrels, k: answer_supported(hits, qrels, k, TEXTS),
        lambda hits, qrels, k: distractor_suppression(hits, ranked([1, 2, 3]), qrels, k),
        lambda hits, qrels, k: distractor_suppression(ranked([1, 2, 3]), hits, qrels, k),
    ],
)
def test_other_sizes_are_refused(metric, k):
    qrels = Qrels(["a"], [[1]], hops=[[[1]]], answers=[["x"]])
    with refused(InputError, "range", "k"):
        metric(ranked([1, 2]), qrels, k)
    with refused(InputError, "length", "hits"):
        metric(ranked([1], [2]), qrels, 1)
