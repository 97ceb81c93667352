import json
import math

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import (
    Qrels,
    Run,
    bootstrap_interval,
    compare,
    detectable_mean_difference,
    evaluate,
    mcnemar_exact,
    randomisation_test,
    summarise,
    wilson_interval,
)
from judged_runs import DENSE, METRICS, QRELS, RUNS
from refusals import refused


@pytest.fixture(scope="module")
def result():
    return evaluate(QRELS, RUNS, METRICS, baseline="dense")


def test_overall_numbers_by_hand(result):
    assert result.estimate("dense", "recall@2").mean == pytest.approx((0.5 + 0 + 2 / 3 + 1 + 1 + 0) / 6)
    assert result.estimate("graph", "recall@2").mean == pytest.approx((1 + 0.5 + 2 / 3 + 0 + 1 + 1) / 6)
    recall = result.estimate("graph", "recall@2")
    assert 0 < recall.low < recall.mean < recall.high <= 1
    hit = result.estimate("graph", "hit@1")
    assert (hit.mean, hit.n) == (5 / 6, 6)
    assert (hit.low, hit.high) == wilson_interval(5, 6)


def test_queries_without_a_last_hop_are_left_out_and_counted(result):
    assert result.num_without_last_hop == 2
    estimate = result.estimate("graph", "last_hop@2")
    assert (estimate.mean, estimate.n) == (0.75, 4)
    assert math.isnan(result.per_query["graph"]["last_hop@2"][4])


def test_split_by_hops(result):
    assert [(g.label, g.queries) for g in result.groups] == [
        ("all", 6),
        ("hops unknown", 1),
        ("1 hop", 1),
        ("2 hops", 3),
        ("3 hops", 1),
    ]
    assert result.estimate("dense", "recall@2", group="2 hops").mean == 0.5
    unknown = result.estimate("dense", "last_hop@2", group="hops unknown")
    assert math.isnan(unknown.mean)
    assert (unknown.n, unknown.low, unknown.high) == (0, None, None)


def test_no_split():
    assert [g.label for g in evaluate(QRELS, RUNS, METRICS, by_hops=False).groups] == ["all"]
    unknown = Qrels(QRELS.ids, QRELS.gold)
    assert [g.label for g in evaluate(unknown, RUNS, ["mrr"]).groups] == ["all"]


def test_wins_and_losses_by_hand(result):
    c = result.comparison("graph", "last_hop@2")
    assert (c.n, c.wins, c.losses, c.both, c.neither) == (4, 3, 1, 0, 0)
    assert c.p_value == mcnemar_exact(3, 1)
    c = result.comparison("graph", "hit@1")
    assert (c.n, c.wins, c.losses, c.both, c.neither) == (6, 2, 1, 3, 0)
    assert set(result.group().comparisons) == {"graph"}
    c = result.comparison("graph", "hit@1", group="2 hops")
    assert (c.n, c.wins, c.losses, c.both, c.neither) == (3, 1, 0, 2, 0)


def test_queries_won_and_lost(result):
    assert result.ids == tuple("abcdef")
    assert result.wins("graph", "last_hop@2") == ("a", "b", "c")
    assert result.losses("graph", "last_hop@2") == ("d",)
    assert result.wins("graph", "recall@2") == ("a", "b", "f")
    assert result.wins("dense", "recall@2") == ()
    with refused(InputError, "choice", "metric"):
        result.wins("graph", "hit@9")
    with refused(InputError, "missing", "baseline"):
        evaluate(QRELS, RUNS, METRICS).losses("graph", "hit@1")


def test_answers_are_evaluated_with_the_hits():
    qrels = Qrels(["a", "b"], [[1], [30]], answers=[["Ada Lovelace"], []])
    hits = DENSE.head(2)
    runs = {"reads": Run(hf.Hits(hits.ids[:2], hits.scores[:2]), ["ada", "x"])}
    result = evaluate(qrels, runs, ["answer_f1", "answer_em", "hit@1"])
    assert (result.estimate("reads", "answer_f1").mean, result.estimate("reads", "answer_f1").n) == (2 / 3, 1)
    assert result.estimate("reads", "answer_em").mean == 0
    with refused(InputError, "missing", "answers"):
        evaluate(qrels, {"no": runs["reads"].hits}, ["answer_em"])
    with refused(InputError, "missing", "qrels"):
        evaluate(Qrels(["a", "b"], [[1], [30]]), runs, ["answer_em"])


def test_groups_add_up(result):
    for metric in ("hit@1", "last_hop@2"):
        parts = [g.comparisons["graph"][metric] for g in result.groups[1:]]
        whole = result.comparison("graph", metric)
        assert sum(p.wins for p in parts) == whole.wins
        assert sum(p.n for p in parts) == whole.n


def test_swapped_baseline_swaps_wins_and_losses(result):
    swapped = evaluate(QRELS, RUNS, METRICS, baseline="graph").comparison("dense", "last_hop@2")
    straight = result.comparison("graph", "last_hop@2")
    assert (swapped.wins, swapped.losses, swapped.p_value) == (straight.losses, straight.wins, straight.p_value)


def test_the_result_is_frozen(result):
    with pytest.raises(AttributeError):
        result.runs = ()
    with pytest.raises(TypeError):
        result.per_query["dense"] = {}
    with pytest.raises(ValueError, match="read-only"):
        result.per_query["dense"]["mrr"][0] = 1.0
    with pytest.raises(TypeError):
        result.groups[0].estimates["dense"]["mrr"] = None


def test_to_dict_is_strict_json(result):
    text = json.dumps(result.to_dict(), allow_nan=False)
    back = json.loads(text)
    assert back["runs"] == ["dense", "graph"]
    assert back["metrics"] == list(METRICS)
    assert back["baseline"] == "dense"
    assert back["queries_without_last_hop"] == 2
    whole, unknown = back["groups"][:2]
    assert whole["estimates"]["graph"]["last_hop@2"]["mean"] == 0.75
    assert whole["comparisons"]["graph"]["last_hop@2"]["wins"] == 3
    assert unknown["estimates"]["graph"]["last_hop@2"] == {"mean": None, "n": 0, "low": None, "high": None}


def test_repr_is_short(result):
    assert repr(result).startswith("Evaluation(runs=['dense', 'graph']")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"runs": {}}, ("empty", "runs")),
        ({"metrics": ()}, ("empty", "metrics")),
        ({"metrics": "mrr"}, ("type", "metrics", {"given": "str"})),
        ({"metrics": ("mrr", "mrr")}, ("duplicate", "metrics", {"given": "mrr"})),
        ({"metrics": ("bpref",)}, ("choice", "metric", {"given": "bpref"})),
        ({"baseline": "bm25"}, ("choice", "baseline", {"given": "bm25"})),
        (
            {"runs": {"short": DENSE.head(2), "x": hf.Hits([[1, 2]], [[1, 0]])}},
            ("length", "hits", {"given": 1}),
        ),
    ],
)
def test_bad_calls_are_refused(change, error):
    with refused(InputError, *error):
        evaluate(**{"runs": RUNS, "qrels": QRELS, "metrics": METRICS, **change})


def test_asking_for_what_is_not_there(result):
    with refused(InputError, "choice", "run"):
        result.estimate("bm25", "mrr")
    with refused(InputError, "choice", "metric"):
        result.estimate("dense", "hit@9")
    with refused(InputError, "choice", "group"):
        result.estimate("dense", "mrr", group="9 hops")
    with refused(InputError, "choice", "metric"):
        result.comparison("graph", "map")
    with refused(InputError, "missing", "baseline"):
        evaluate(QRELS, RUNS, METRICS).comparison("graph", "hit@1")


def test_compare_leaves_out_undefined_queries():
    c = compare(np.array([1.0, np.nan, 0.0, 1.0]), np.array([0.0, 1.0, np.nan, 1.0]), binary=True)
    assert (c.n, c.wins, c.losses, c.both, c.neither) == (2, 1, 0, 1, 0)


def test_compare_refuses_other_values():
    with refused(InputError, "range", "values"):
        compare(np.array([0.5]), np.array([1.0]), binary=True)
    with refused(InputError, "shape", "values"):
        compare(np.array([1.0]), np.array([1.0, 0.0]), binary=True)


def test_compare_without_a_query():
    c = compare(np.array([np.nan]), np.array([1.0]), binary=True)
    assert (c.n, c.wins, c.p_value, c.low, c.detectable()) == (0, 0, 1.0, None, None)
    assert c.to_dict()["difference"] is None


def test_values_between_0_and_1_are_compared_by_randomisation(result):
    differences = result.per_query["graph"]["recall@2"] - result.per_query["dense"]["recall@2"]
    c = result.comparison("graph", "recall@2")
    assert (c.wins, c.losses, c.ties, c.both, c.odds_ratio) == (3, 1, 2, None, None)
    assert c.difference == pytest.approx(differences.mean())
    assert c.deviation == pytest.approx(differences.std(ddof=1))
    assert c.p_value == randomisation_test(differences)
    assert (c.low, c.high) == bootstrap_interval(differences)
    assert c.detectable() == detectable_mean_difference(6, c.deviation)


def test_p_values_are_corrected_for_the_number_of_runs():
    rows = np.arange(40)
    never, always = hf.Hits(rows[:, None] + 100, np.ones((40, 1))), hf.Hits(rows[:, None], np.ones((40, 1)))
    part = hf.Hits(np.where(rows < 9, rows, rows + 100)[:, None], np.ones((40, 1)))
    qrels = Qrels([str(row) for row in rows], [[row] for row in rows])
    found = evaluate(qrels, {"never": never, "always": always, "part": part}, ["hit@1"], baseline="never")
    always_c, part_c = (found.comparison(run, "hit@1") for run in ("always", "part"))
    assert always_c.p_holm == 2 * always_c.p_value == 2 * mcnemar_exact(40, 0)
    assert part_c.p_holm == part_c.p_value == mcnemar_exact(9, 0)
    assert always_c.odds_ratio == math.inf
    assert always_c.to_dict()["odds_ratio"] is None


def test_summarise_no_queries():
    assert summarise(np.array([]), binary=True).n == 0


def test_dense_reference_point_of_hotpotqa(data_folder):
    folder = data_folder / "hotpotqa"
    qrels = Qrels.read_jsonl(folder / "queries.jsonl")
    scores = (
        np.load(folder / "query_emb.f16.npy").astype(np.float32)
        @ np.load(folder / "passage_emb.f16.npy").astype(np.float32).T
    )
    top = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    hits = hf.Hits(top, np.take_along_axis(scores, top, axis=1))
    result = evaluate(qrels, {"dense": hits}, ("recall@5", "last_hop@5", "last_hop@10"))
    means = [round(100 * result.estimate("dense", m).mean, 1) for m in result.metrics]
    assert means == [80.5, 58.9, 71.1]
    assert result.estimate("dense", "last_hop@5").n == 197
