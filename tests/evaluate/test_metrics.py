import math

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import (
    PassageNames,
    Qrels,
    Run,
    average_precision,
    evaluate,
    full_support,
    gains,
    hit,
    last_hop,
    last_hop_recall,
    ndcg,
    parse_metric,
    precision,
    qrels_from,
    r_precision,
    recall,
    reciprocal_rank,
    relevance,
    run_from,
)
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused


def ranked(*rows):
    """Return hits with the ids in the given order."""
    return hf.Hits.from_lists([[(i, 1 - at / 100) for at, i in enumerate(row)] for row in rows])


QRELS = Qrels(
    ["two", "one", "none", "many"],
    gold=[[10, 20], [7], [], [1, 2, 3, 4]],
    hops=[[[10], [20]], [[7]], [], []],
    last_hop=[[20], [], [], [3, 4]],
)
EVERY = [recall, precision, hit, full_support, last_hop, last_hop_recall, reciprocal_rank, average_precision, ndcg]
HITS = ranked([5, 10, 6, 20], [1, 2, 3], [9, 8, 7, 6], [4, 9, 1])


def test_by_hand():
    nan = math.nan
    np.testing.assert_array_equal(recall(HITS, QRELS, 2), [0.5, 0, nan, 0.25])
    np.testing.assert_array_equal(recall(HITS, QRELS, 4), [1, 0, nan, 0.5])
    np.testing.assert_array_equal(hit(HITS, QRELS, 1), [0, 0, nan, 1])
    np.testing.assert_array_equal(hit(HITS, QRELS, 2), [1, 0, nan, 1])
    np.testing.assert_array_equal(full_support(HITS, QRELS, 3), [0, 0, nan, 0])
    np.testing.assert_array_equal(full_support(HITS, QRELS, 4), [1, 0, nan, 0])
    np.testing.assert_array_equal(last_hop(HITS, QRELS, 3), [0, nan, nan, 1])
    np.testing.assert_array_equal(last_hop(HITS, QRELS, 4), [1, nan, nan, 1])
    np.testing.assert_array_equal(last_hop_recall(HITS, QRELS, 3), [0, nan, nan, 0.5])
    np.testing.assert_array_equal(last_hop_recall(HITS, QRELS, 4), [1, nan, nan, 0.5])
    np.testing.assert_array_equal(reciprocal_rank(HITS, QRELS), [0.5, 0, nan, 1])
    np.testing.assert_array_equal(reciprocal_rank(HITS, QRELS, 1), [0, 0, nan, 1])


def test_ndcg_by_hand():
    two = (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3))
    many = (1 + 1 / math.log2(4)) / (1 + 1 / math.log2(3) + 1 / math.log2(4) + 1 / math.log2(5))
    np.testing.assert_allclose(ndcg(HITS, QRELS, 4), [two, 0, math.nan, many], rtol=1e-15)


def test_average_precision_by_hand():
    nan = math.nan
    np.testing.assert_array_equal(average_precision(HITS, QRELS), [(1 / 2 + 2 / 4) / 2, 0, nan, (1 + 2 / 3) / 4])
    np.testing.assert_array_equal(average_precision(HITS, QRELS, 2), [(1 / 2) / 2, 0, nan, 1 / 4])


def test_precision_by_hand():
    nan = math.nan
    np.testing.assert_array_equal(precision(HITS, QRELS, 2), [0.5, 0, nan, 0.5])
    np.testing.assert_array_equal(precision(HITS, QRELS, 8), [0.25, 0, nan, 0.25])  # as if the list went on
    np.testing.assert_array_equal(r_precision(HITS, QRELS), [0.5, 0, nan, 0.5])


def test_ndcg_weighs_by_grade():
    qrels = Qrels(["a", "b"], gold=[[1, 2, 3], [4]], grades=[[1, 3, 2], [2]])
    hits = ranked([1, 9, 2], [8, 4, 7])
    assert gains(hits, qrels.gold_pairs).tolist() == [[1, 0, 3], [0, 2, 0]]
    ideal = 3 + 2 / math.log2(3) + 1 / math.log2(4)
    expected = [(1 + 3 / math.log2(4)) / ideal, (2 / math.log2(3)) / 2]
    np.testing.assert_allclose(ndcg(hits, qrels, 3), expected, rtol=1e-15)
    assert recall(hits, qrels, 3).tolist() == [2 / 3, 1.0]


def test_ndcg_of_a_perfect_ranking_is_exactly_one():
    gold = [list(range(size)) for size in (1, 3, 7, 40)]
    hits = ranked(*[range(40)] * 4)
    for k in (1, 5, 10, 40):
        assert ndcg(hits, Qrels("abcd", gold), k).tolist() == [1.0] * 4


def test_more_gold_than_k_is_never_full_support():
    assert full_support(ranked([1, 2, 3]), Qrels(["a"], [[1, 2, 3, 4]]), 3).tolist() == [0.0]


def test_padding_is_never_relevant():
    hits = hf.Hits([[3, -1, -1]], [[0.5, 0, 0]])
    assert relevance(hits, Qrels(["a"], [[0, 3]]).gold_pairs).tolist() == [[True, False, False]]
    entries_after_the_counts = hf.Hits.unchecked(np.array([[3, 0]]), np.zeros((1, 2), np.float32), np.array([1]))
    assert recall(entries_after_the_counts, Qrels(["a"], [[0, 3]]), 2).tolist() == [0.5]


def test_ids_beyond_32_bits():
    big = 2**62
    hits = ranked([big + 1, big], [big, 5])
    assert relevance(hits, Qrels(["a", "b"], [[big], [5, big + 1]]).gold_pairs).tolist() == [
        [False, True],
        [False, True],
    ]


def test_no_queries_and_no_hits():
    empty = hf.Hits(np.zeros((0, 3), int), np.zeros((0, 3)))
    assert recall(empty, Qrels([], []), 2).shape == (0,)
    assert ndcg(empty, Qrels([], []), 2).shape == (0,)
    narrow = hf.Hits.from_lists([[], []])
    assert reciprocal_rank(narrow, Qrels(["a", "b"], [[1], []])).tolist()[0] == 0.0


@pytest.mark.parametrize("metric", EVERY)
@pytest.mark.parametrize("k", [0, -1])
def test_k_below_1_is_refused(metric, k):
    with refused(InputError, "range", "k"):
        metric(HITS, QRELS, k)


def test_a_run_narrower_than_k_is_judged_as_it_is():
    """By hand, as trec_eval: two gold passages of three, of grades 2 and 1, are the whole list."""
    hits, qrels = hf.Hits([[7, 8]], [[2.0, 1.0]]), Qrels(["a"], [[7, 8, 9]], last_hop=[[8]], grades=[[2, 1, 1]])
    assert recall(hits, qrels, 10).tolist() == [2 / 3]
    assert full_support(hits, qrels, 10).tolist() == [0]
    assert last_hop(hits, qrels, 10).tolist() == hit(hits, qrels, 10).tolist() == [1]
    assert reciprocal_rank(hits, qrels, 10).tolist() == [1]
    assert average_precision(hits, qrels, 10) == pytest.approx([2 / 3])
    ideal = 2 + 1 / np.log2(3) + 1 / 2
    assert ndcg(hits, qrels, 10) == pytest.approx([(2 + 1 / np.log2(3)) / ideal])
    nothing = hf.Hits(np.zeros((1, 0), int), np.zeros((1, 0)))
    assert [metric(nothing, qrels, 5).tolist() for metric in (recall, ndcg, reciprocal_rank)] == [[0], [0], [0]]


@pytest.mark.parametrize("k", [1, 3, 10, 1000])
def test_narrow_runs_are_judged_as_pytrec_eval_judges_them(k):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    draw = np.random.default_rng(k)
    lists = [draw.permutation(30)[: draw.integers(0, 5)].tolist() for _ in range(60)]
    gold = [draw.permutation(30)[: draw.integers(1, 6)].tolist() for _ in range(60)]
    grades = [draw.integers(1, 4, len(row)).tolist() for row in gold]
    hits = hf.Hits.from_lists([[(p, 10.0 - at) for at, p in enumerate(row)] for row in lists])
    qrels = Qrels([f"q{b}" for b in range(60)], gold, grades=grades)
    judged = {f"q{b}": {f"d{p}": g for p, g in zip(gold[b], grades[b], strict=True)} for b in range(60)}
    run = {f"q{b}": {f"d{p}": 10.0 - at for at, p in enumerate(row)} for b, row in enumerate(lists) if row}
    measures = {
        f"recall_{k}": recall,
        f"P_{k}": precision,
        f"success_{k}": hit,
        f"map_cut_{k}": average_precision,
        f"ndcg_cut_{k}": ndcg,
    }
    names = {f"{name.rpartition('_')[0]}.{k}" for name in measures}
    found = pytrec_eval.RelevanceEvaluator(judged, names).evaluate(run)
    for name, metric in measures.items():
        expected = [found.get(f"q{b}", {}).get(name, 0.0) for b in range(60)]
        np.testing.assert_allclose(metric(hits, qrels, k), expected, atol=1e-12)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_levels_and_averages_are_trec_evals(level):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    draw = np.random.default_rng(level)
    ids = [f"q{b}" for b in range(80)]
    judged = {
        query: {f"d{p}": int(g) for p, g in enumerate(draw.integers(-1, 4, draw.integers(1, 5)))} for query in ids
    }
    run = {query: {f"d{p}": 9.0 - at for at, p in enumerate(draw.permutation(8)[:6])} for query in ids}
    names = PassageNames()
    qrels = qrels_from(judged, names)
    measures = {
        "P_3": "precision@3",
        "Rprec": "r_precision",
        "ndcg": "ndcg",
        "ndcg_cut_3": "ndcg@3",
        "map": "map",
        "recip_rank": "mrr",
        "recall_3": "recall@3",
        "success_3": "hit@3",
    }
    asked = {"P.3", "Rprec", "ndcg", "ndcg_cut.3", "map", "recip_rank", "recall.3", "success.3"}
    theirs = pytrec_eval.RelevanceEvaluator(judged, asked, relevance_level=level).evaluate(run)
    options = {"relevance_level": level, "without_gold": "zero"}
    ours = evaluate(qrels, {"run": run_from(run, qrels.ids, names)}, list(measures.values()), **options)
    none = sum(all(grade < level for grade in row.values()) for row in judged.values())
    assert none > 0
    assert (ours.num_without_gold, ours.relevance_level, ours.without_gold) == (none, level, "zero")
    for name, metric in measures.items():
        expected = [theirs[query][name] for query in ids]
        np.testing.assert_allclose(ours.per_query["run"][metric], expected, atol=1e-12, err_msg=name)
        assert ours.estimate("run", metric).mean == pytest.approx(np.mean(expected))
        assert ours.estimate("run", metric).n == 80
    left_out = evaluate(qrels, {"run": run_from(run, qrels.ids, names)}, ["map"], relevance_level=level)
    assert left_out.estimate("run", "map").n == 80 - none
    assert left_out.estimate("run", "map").mean == pytest.approx(ours.estimate("run", "map").mean * 80 / (80 - none))


def test_a_level_leaves_lower_grades_out_of_hops_too():
    qrels = Qrels(
        ["a", "b"],
        gold=[[1, 2, 3], [4]],
        hops=[[[1], [2, 3]], [[4]]],
        last_hop=[[2, 3], [4]],
        grades=[[1, 2, 3], [1]],
        types=["x", "y"],
    ).at_level(2)
    assert (qrels.gold, qrels.grades, qrels.last_hop) == (((2, 3), ()), ((2, 3), ()), ((2, 3), ()))
    assert (qrels.hops, qrels.types, qrels.ids) == ((((), (2, 3)), ((),)), ("x", "y"), ("a", "b"))
    with refused(InputError, "range", "grade", given=0):
        qrels.at_level(0)


@pytest.mark.parametrize("metric", EVERY)
def test_a_list_narrower_than_k_is_judged_as_if_padded(metric):
    room = ((0, 0), (0, 5))
    padded = hf.Hits(np.pad(HITS.ids, room, constant_values=-1), np.pad(HITS.scores, room), HITS.counts)
    for k in (5, 9, 10**9):
        np.testing.assert_array_equal(
            metric(HITS, QRELS, k), metric(padded, QRELS, k if metric is precision else min(k, 9))
        )


@pytest.mark.parametrize("metric", EVERY)
def test_another_number_of_queries_is_refused(metric):
    with refused(InputError, "length", "hits"):
        metric(HITS, Qrels(["a"], [[1]]), 2)


class OnAnotherDevice:
    def __dlpack__(self, **_):
        raise BufferError("not on the host")

    def __dlpack_device__(self):
        return (2, 0)


def test_hits_on_a_device_are_refused_with_the_fix():
    hits = hf.Hits.unchecked(np.zeros((1, 2), int), None, OnAnotherDevice())
    with refused(InputError, "unavailable", "hits"):
        recall(hits, Qrels(["a"], [[1]]), 1)


@pytest.mark.parametrize(
    ("name", "binary"),
    [
        ("recall@3", False),
        ("hit@3", True),
        ("full_support@3", True),
        ("last_hop@3", True),
        ("last_hop_recall@3", False),
        ("mrr@3", False),
        ("mrr", False),
        ("map@3", False),
        ("map", False),
        ("ndcg@3", False),
        ("ndcg", False),
        ("precision@3", False),
        ("r_precision", False),
    ],
)
def test_names(name, binary):
    metric = parse_metric(name)
    assert (metric.name, metric.binary) == (name, binary)
    values = metric.per_query(HITS, QRELS)
    assert values.shape == (4,)
    assert not binary or set(values[~np.isnan(values)]) <= {0.0, 1.0}


def test_a_name_carries_its_k():
    np.testing.assert_array_equal(parse_metric("recall@2").per_query(HITS, QRELS), recall(HITS, QRELS, 2))
    np.testing.assert_array_equal(parse_metric("mrr@1").per_query(HITS, QRELS), reciprocal_rank(HITS, QRELS, 1))


@pytest.mark.parametrize(
    "name",
    [
        "recall",
        "recall@0",
        "recall@-1",
        "recall@05",
        "map@0",
        "bpref@5",
        "answer_em@1",
        "r_precision@5",
        "precision",
        "mrr@",
        "recall@5 ",
        "Recall@5",
    ],
)
def test_unknown_names_are_refused(name):
    with refused(InputError, "choice", "metric"):
        parse_metric(name)


def test_a_metric_takes_a_run():
    values = parse_metric("recall@2").per_query(Run(HITS), QRELS)
    np.testing.assert_array_equal(values, recall(HITS, QRELS, 2))


def naive(name, ids, gold, last, k):
    top, right = ids[:k], set(gold)
    if not (last if name.startswith("last_hop") else right):
        return math.nan
    found = [i in right for i in top]
    if name == "recall":
        return sum(found) / len(right)
    if name == "precision":
        return sum(found) / k
    if name == "hit":
        return float(any(found))
    if name == "full_support":
        return float(right <= set(top))
    if name == "last_hop":
        return float(any(i in last for i in top))
    if name == "last_hop_recall":
        return sum(i in last for i in top) / len(last)
    if name == "mrr":
        return next((1 / rank for rank, good in enumerate(found, 1) if good), 0.0)
    if name == "map":
        return sum(sum(found[:rank]) / rank for rank, good in enumerate(found, 1) if good) / len(right)
    ideal = sum(1 / math.log2(1 + rank) for rank in range(1, min(k, len(right)) + 1))
    return sum(good / math.log2(1 + rank) for rank, good in enumerate(found, 1)) / ideal


@st.composite
def cases(draw):
    k = draw(st.integers(1, 8))
    passages = st.lists(st.integers(0, 12), unique=True, max_size=8)
    rows = draw(st.lists(st.tuples(passages, passages), min_size=1, max_size=6))
    last = [gold[: draw(st.integers(0, len(gold)))] for _, gold in rows]
    return k, [ids for ids, _ in rows], [gold for _, gold in rows], last


@given(cases())
def test_against_a_loop(case):
    k, rows, gold, last = case
    hits = ranked(*rows, range(20, 28))  # the last row makes the hits 8 wide
    qrels = Qrels([str(b) for b in range(len(rows) + 1)], [*gold, [99]], last_hop=[*last, []])
    for name in ("recall", "precision", "hit", "full_support", "last_hop", "last_hop_recall", "mrr", "map", "ndcg"):
        ours = parse_metric(f"{name}@{k}").per_query(hits, qrels)[:-1]
        expected = [naive(name, *row, k) for row in zip(rows, gold, last, strict=True)]
        np.testing.assert_allclose(ours, expected, rtol=1e-14, err_msg=name)
