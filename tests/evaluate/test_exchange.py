"""Judgements and runs of other libraries in memory, and back: with stand-ins, and with the libraries themselves."""

from __future__ import annotations

import json
from typing import NamedTuple

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.evaluate import (
    PassageNames,
    evaluate,
    qrels_dict,
    qrels_from,
    read_qrels,
    read_run,
    run_dict,
    run_from,
    write_qrels,
    write_run,
)
from refusals import refused

QRELS = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"d": 1}, "q3": {"a": 0}}
SCORES = {"q1": {"c": 3.0, "a": 2.5, "b": 0.125}, "q2": {"a": 1.0, "b": 0.5, "d": 0.25}}


class TrecQrel(NamedTuple):
    """The same type as in ir_datasets."""

    query_id: str
    doc_id: str
    relevance: int
    iteration: str = "0"


class ScoredDoc(NamedTuple):
    """The same type as in ir_datasets."""

    query_id: str
    doc_id: str
    score: float


class Query(NamedTuple):
    """The same type as in ir_datasets."""

    query_id: str
    text: str


class Dataset:
    """A data set of ir_datasets, by its methods."""

    def qrels_iter(self):
        return (TrecQrel(q, p, grade) for q, row in QRELS.items() for p, grade in row.items())

    def scoreddocs_iter(self):
        return (ScoredDoc(q, p, score) for q, row in SCORES.items() for p, score in row.items())

    def queries_iter(self):
        return (Query(q, f"What is {q}?") for q in QRELS)


class Ranx:
    """An object of ranx, by its method."""

    def __init__(self, rows):
        self.rows = rows

    def to_dict(self):
        return self.rows


def taken(judgements, scores, queries=None):
    names = PassageNames()
    qrels = qrels_from(judgements, names, queries=queries)
    run = run_from(scores, qrels.ids, names)
    return qrels, run, names


def test_every_form_is_the_same_judgements_and_run():
    data = Dataset()
    for judgements, scores in (
        (QRELS, SCORES),
        (data, data),
        (data.qrels_iter(), data.scoreddocs_iter()),
        (Ranx(QRELS), Ranx(SCORES)),
    ):
        qrels, run, names = taken(judgements, scores)
        assert qrels.ids == ("q1", "q2", "q3")
        assert [[names.name(p) for p in row] for row in qrels.gold] == [["a", "b"], ["d"], []]
        assert qrels.grades == ((2, 1), (1,), ())
        assert run.hits.counts.tolist() == [3, 3, 0]
        assert (run.num_missing, run.num_unjudged) == (1, 0)
        assert run_dict(run, qrels.ids, names) == {**SCORES, "q3": {}}
        assert qrels_dict(qrels, names) == {"q1": {"a": 2, "b": 1}, "q2": {"d": 1}, "q3": {}}
        result = evaluate(qrels, {"run": run}, ["recall@1", "mrr"])
        assert result.per_query["run"]["mrr"].tolist()[:2] == [0.5, pytest.approx(1 / 3)]


@pytest.mark.parametrize("queries", [Dataset(), list(Dataset().queries_iter()), {q: f"What is {q}?" for q in QRELS}])
def test_the_texts_of_queries(queries):
    assert taken(QRELS, SCORES, queries)[0].questions == ("What is q1?", "What is q2?", "What is q3?")


def test_queries_without_entries_stay():
    names = PassageNames()
    qrels = qrels_from({"q1": {"a": 1}, "q2": {}, 3: {"b": 0}}, names)
    assert (qrels.ids, qrels.gold) == (("q1", "q2", "3"), ((0,), (), ()))
    run = run_from({"q1": {"a": 1.0}, "q2": {}}, qrels.ids, names)
    assert (run.num_missing, run.num_unjudged, run.hits.counts.tolist()) == (1, 0, [1, 0, 0])
    assert run_from({"q2": {}}, ["q2"], names).num_missing == 0
    with refused(InputError, "duplicate", "query", passage="7"):
        run_from({"q": {"7": 1.0, 7: 2.0}}, ["q"], names)
    with refused(InputError, "duplicate", "query", query="7", passage="a"):
        qrels_from({"7": {"a": 1}, 7: {"a": 2}}, names)
    assert qrels_from({"7": {"a": 1}, 7: {"b": 2}}, names).grades == ((1, 2),)


def test_hits_are_read_by_columns(tmp_path, monkeypatch):
    scores = {f"q{q}": {f"d{d}": 1 / (1 + d) for d in range(50)} for q in range(20)}
    names, asked = PassageNames(), []
    monkeypatch.setattr(PassageNames, "number", lambda self, name: asked.append(name))
    run = run_from(scores, list(scores), names)
    write_run(tmp_path / "run", run, list(scores), names)
    again = read_run(tmp_path / "run", list(scores), names)
    np.testing.assert_array_equal(again.hits.ids, run.hits.ids)
    assert asked == []


def test_equal_scores_stay_as_they_are_given_and_numbers_may_be_numpys():
    names = PassageNames()
    run = run_from({7: {"b": np.float32(1.0), "a": 1, "c": 2}}, ["7"], names)
    assert list(run_dict(run, ["7"], names)["7"]) == ["c", "b", "a"]
    assert qrels_from({"q": {"a": np.int32(3)}}, names).grades == ((3,),)


@pytest.mark.parametrize("suffix", [".json", ".txt"])
def test_files_hold_them_and_are_read_back(tmp_path, suffix):
    qrels, run, names = taken(QRELS, SCORES)
    write_run(tmp_path / f"run{suffix}", run, qrels.ids, names)
    again = read_run(tmp_path / f"run{suffix}", qrels.ids, names)
    np.testing.assert_array_equal(again.hits.ids[:2], run.hits.ids[:2])
    np.testing.assert_array_equal(again.hits.scores[:2], run.hits.scores[:2])
    write_qrels(tmp_path / f"qrels{suffix}", qrels, names)
    if suffix == ".txt":
        assert read_qrels(tmp_path / "qrels.txt", names).gold == qrels.gold[:2]  # no line for a query without gold
    else:
        assert json.loads((tmp_path / "qrels.json").read_text()) == qrels_dict(qrels, names)
    assert {one.name for one in tmp_path.iterdir()} == {f"run{suffix}", f"qrels{suffix}"}


def test_invalid_input_is_refused(tmp_path):
    names = PassageNames()
    twice = [TrecQrel("q", "a", 1), TrecQrel("q", "a", 2)]
    for call, error in (
        (lambda: qrels_from(3, names), ("type", "judgements", {"given": "int"})),
        (lambda: qrels_from({"q": ["a"]}, names), ("type", "judgements['q']", {"given": "list"})),
        (lambda: qrels_from([("q", "a", 1)], names), ("type", "judgements[0]", {"given": "tuple"})),
        (lambda: qrels_from(twice, names), ("duplicate", "query")),
        (
            lambda: qrels_from({"q": {"a": 0.5}}, names),
            ("type", "judgements['q']['a']", {"given": "float"}),
        ),
        (
            lambda: qrels_from({"q": {"a": True}}, names),
            ("type", "judgements['q']['a']", {"given": "bool"}),
        ),
        (
            lambda: qrels_from({"q": {"a": 1}}, names, queries=[3]),
            ("type", "queries", {"given": "list"}),
        ),
        (lambda: run_from({"q": {"a": float("nan")}}, ["q"], names), ("range", "scores['q']['a']")),
        (
            lambda: run_from({"q": {"a": 1e39}}, ["q"], names),
            ("range", "scores['q']['a']", {"given": 1e39}),
        ),
        (lambda: run_from({"q": {"a": 10**400}}, ["q"], names), ("range", "scores['q']['a']")),
        (lambda: run_from({"q": {"a": 1, "b": True}}, ["q"], names), ("range", "scores['q']['b']", {"given": True})),
        (lambda: run_from({"q": {"a": 1, "b": "2"}}, ["q"], names), ("range", "scores['q']['b']", {"given": "2"})),
        (lambda: qrels_from({"q": {"a": 2**63}}, names), ("range", "grades[0]", {"given": 2**63})),
        (lambda: run_from({"x": {"a": 1.0}}, ["q"], names), ("missing",)),
        (
            lambda: run_dict(hf.Hits([[0]], [[1.0]]), ["q", "r"], PassageNames(["a"])),
            ("length", "ids", {"given": 2}),
        ),
        (
            lambda: write_run(tmp_path / "r", hf.Hits([[0]], [[1.0]]), ["q"], PassageNames(["a b"])),
            ("unsupported", None, {"given": "a b"}),
        ),
    ):
        with refused(InputError, *error):
            call()
    assert list(tmp_path.iterdir()) == []


def test_pytrec_eval_reads_them_and_agrees():
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pip install pytrec-eval-terrier")
    qrels, run, names = taken(QRELS, SCORES)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels_dict(qrels, names), {"ndcg_cut_3", "recip_rank"})
    theirs = evaluator.evaluate(run_dict(run, qrels.ids, names))
    ours = evaluate(qrels, {"run": run}, ["ndcg@3", "mrr"])
    for name, own in (("ndcg_cut_3", "ndcg@3"), ("recip_rank", "mrr")):
        np.testing.assert_allclose(ours.per_query["run"][own][:2], [theirs[q][name] for q in ("q1", "q2")], rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*unsafe cast")  # ranx's own, while numba compiles it
def test_ranx_reads_them_and_agrees():
    ranx = pytest.importorskip("ranx", reason="ranx is not installed (group bench)")
    qrels, run, names = taken(ranx.Qrels({q: QRELS[q] for q in ("q1", "q2")}), ranx.Run(SCORES))
    theirs = ranx.evaluate(
        ranx.Qrels(qrels_dict(qrels, names)), ranx.Run(run_dict(run, qrels.ids, names)), ["ndcg@3", "mrr"]
    )
    ours = evaluate(qrels, {"run": run}, ["ndcg@3", "mrr"])
    for name, value in theirs.items():
        assert np.mean(ours.per_query["run"][name]) == pytest.approx(value)


def test_a_data_set_of_ir_datasets_is_taken_as_it_is(tmp_path):
    ir_datasets = pytest.importorskip("ir_datasets", reason="ir_datasets is not installed: pip install ir_datasets")
    files = {
        "docs.tsv": "".join(f"{passage}\tA text.\n" for passage in "abcd"),
        "queries.tsv": "".join(f"{query}\tWhat is {query}?\n" for query in QRELS),
        "qrels": "".join(f"{q} 0 {p} {grade}\n" for q, row in QRELS.items() for p, grade in row.items()),
        "run": "".join(f"{q} Q0 {p} 1 {score} tag\n" for q, row in SCORES.items() for p, score in row.items()),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    data = ir_datasets.create_dataset(
        docs_tsv=str(tmp_path / "docs.tsv"),
        queries_tsv=str(tmp_path / "queries.tsv"),
        qrels_trec=str(tmp_path / "qrels"),
    )
    qrels, _, names = taken(data, SCORES, data)
    assert qrels_dict(qrels, names) == qrels_dict(*taken(QRELS, SCORES)[::2])
    assert qrels.questions == ("What is q1?", "What is q2?", "What is q3?")
    scored = ir_datasets.formats.TrecScoredDocs(ir_datasets.util.LocalDownload(tmp_path / "run"))
    assert run_dict(run_from(scored, qrels.ids, names), qrels.ids, names) == {**SCORES, "q3": {}}
