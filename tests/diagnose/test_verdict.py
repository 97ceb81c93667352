"""The verdict on judged questions: where the walk wins, where it loses, and where chance decides."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from diagnose.made import Set, both, retriever, walk_loses, walk_wins
from hopfuse.diagnose import RANKINGS, Difference, RecipeComparison, Verdict, compare_recipes, judge, verdict
from hopfuse.errors import InputError
from hopfuse.evaluate import Qrels, compare, detectable_mean_difference, evaluate, holm, queries_needed
from refusals import refused

pytest.importorskip("scipy", reason="intervals need the extra eval")
LEGS = ("dense", "words", "plain-hybrid")


def judged(made: Set, *recipes: str) -> Verdict:
    rankings = [*LEGS, *recipes] if recipes else list(RANKINGS)
    return judge(retriever(made.index), made.questions, made.qrels, vectors=made.vectors, rankings=rankings)


def test_the_walk_wins() -> None:
    made = walk_wins()
    found = judged(made)
    assert (found.bar, found.questions) == ("plain-hybrid", 40)
    best = found.of(found.use)
    assert best.recall.mean == 1.0
    assert found.use == found.best != found.bar
    assert best.compared is not None
    assert best.compared.sign == 1
    assert found.graph is not None
    assert (found.graph.answer, found.graph.leg) == ("yes", "plain-hybrid")
    assert found.graph.walk_milliseconds > 0
    assert found.graph.walk_weight is not None
    assert 0.5 < found.graph.walk_weight <= 1
    assert f"names is {found.graph.walk_weight:.2f} on average" in str(found.graph)
    assert found.sentences[0].startswith(f"Use {found.use}: its recall@5 is 100.0 %")
    assert found.sentences[1].startswith("The graph is worth its time.")
    assert set(found.left_out) == {"triple-hybrid", "triple-vector", "triple-graph"}
    assert found.needed is None


def test_every_number_is_that_of_evaluate() -> None:
    made = walk_wins(12)
    asked = {"vectors": made.vectors, "rankings": [*LEGS, "policy-rag", "hybrid-rrf"]}
    comparison = compare_recipes(retriever(made.index), made.questions, made.qrels, ["recall@5", "mrr"], **asked)
    found, evaluation = verdict(comparison), comparison.evaluation
    assert [one.ranking for one in found.figures] == list(evaluation.runs)
    values = evaluation.per_query
    for run in evaluation.runs:
        assert found.of(run).recall == evaluation.estimate(run, "recall@5")
        assert found.of(run).mrr == evaluation.estimate(run, "mrr")
    recipes = ["hybrid-rrf", "policy-rag"]
    for metric, name in (("recall@5", "recall"), ("mrr", "mrr")):
        raw = [compare(values[run][metric], values[found.bar][metric], binary=False) for run in recipes]
        for run, one, p in zip(recipes, raw, holm([one.p_value for one in raw]), strict=True):
            shown = getattr(found.of(run).compared, name)
            assert (shown.difference, shown.p_value, shown.p_holm) == (one.difference, one.p_value, p)


def test_the_walk_loses() -> None:
    found = judged(walk_loses(), "policy-rag")
    assert (found.use, found.bar, found.best) == ("plain-hybrid", "plain-hybrid", "policy-rag")
    assert found.graph is not None
    assert found.graph.answer == "no"
    assert "No recipe is better than plain-hybrid beyond chance on 40 questions." in str(found)
    assert "The graph is not worth its time on these questions." in str(found)
    assert found.needed is None


EVEN, LOWER, HIGHER, FEW = np.zeros(20), np.full(20, -0.5), np.full(20, 0.5), np.array([0.5, 0.5, *[0.0] * 18])


@pytest.mark.parametrize(
    ("recall", "mrr", "sign"),
    [
        (HIGHER, LOWER, 1),
        (LOWER, HIGHER, -1),
        (EVEN, LOWER, -1),
        (FEW, HIGHER, 1),
        (FEW, EVEN, 0),
        (EVEN, EVEN, 0),
    ],
)
def test_where_recall_differs_by_chance_the_reciprocal_rank_decides(recall: Any, mrr: Any, sign: int) -> None:
    bar = np.full(20, 0.5)
    found = Difference(*(compare(bar + values, bar, binary=False) for values in (recall, mrr)))
    assert found.sign == sign
    assert ("of MRR" in str(found)) == (recall is not HIGHER and recall is not LOWER and sign != 0)


def test_chance_decides() -> None:
    found = judged(both(5, 3), "policy-rag")
    assert (found.use, found.best) == ("plain-hybrid", "policy-rag")
    assert found.graph is not None
    assert found.graph.answer == "open"
    assert "within chance" in str(found.graph)


def found_by(count: int, **found: range) -> Verdict:
    """Return the verdict on questions of which each ranking finds some; "_" in a name is "-"."""
    runs = {
        name.replace("_", "-"): hf.Hits([[int(at not in rows)] for at in range(count)], [[1.0]] * count)
        for name, rows in found.items()
    }
    qrels = Qrels([str(at) for at in range(count)], [[0]] * count)
    evaluation = evaluate(qrels, runs, ["recall@5", "mrr"], baseline="dense" if "dense" in runs else "words")
    return verdict(RecipeComparison(evaluation, {}, None, {}, {}, frozenset(), None, {}, 0, 0, 0))


def test_chance_says_how_many_questions_would_decide_but_not_from_a_few() -> None:
    some = {"dense": range(10), "words": range(10), "plain_hybrid": range(10), "policy_rag": range(11)}
    many, few = found_by(40, **some), found_by(20, **some)
    compared = many.of("policy-rag").compared
    assert compared is not None
    assert (many.few, many.needed) == (False, queries_needed(1 / 40, compared.recall.deviation))
    assert "To show this difference takes about" in str(many)
    assert (few.few, few.best, few.needed) == (True, "policy-rag", None)
    assert "To show this difference" not in str(few)


@pytest.mark.parametrize(("dense", "words", "weak"), [(20, 36, True), (34, 36, False), (36, 20, False)])
def test_an_encoder_that_is_behind_words_is_weak(dense: int, words: int, weak: bool) -> None:
    found = found_by(40, dense=range(dense), words=range(words), plain_hybrid=range(30))
    assert (found.behind is not None) == (found.hint is not None) == weak
    if found.hint is not None:
        assert found.hint.startswith("The encoder is weak on these texts: dense differs from words by -40.0 points (")
        assert found.to_dict()["hint"] == found.hint


def test_the_questions_needed_show_the_difference() -> None:
    needed = queries_needed(0.031, 0.42, power=0.9)
    shown = [detectable_mean_difference(n, 0.42, power=0.9) for n in (needed, needed - 1)]
    assert shown[0] <= 0.031 < shown[1]
    assert queries_needed(5.0, 0.1) == 1
    with refused(InputError, "range", "difference", given=0):
        queries_needed(0, 0.4)


def test_a_leg_that_is_better_than_the_plain_hybrid_is_the_bar() -> None:
    """The words of a question lead astray, and fill the first places of the plain hybrid."""
    count = 40
    rows = [{"text": f"Topic {at}."} for at in range(count)]
    rows += [{"text": f"zebra{at} {n}"} for at in range(count) for n in range(6)]
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(len(rows), 16)).astype(np.float32)
    for at in range(count):
        vectors[count + 6 * at : count + 6 * at + 6] = vectors[at] + 0.3 * rng.normal(size=(6, 16))
    index = hf.Index.build(passages=rows, vectors=vectors)
    qrels = Qrels([str(at) for at in range(count)], [[at] for at in range(count)])
    questions = [f"Where is zebra{at}?" for at in range(count)]
    found = judge(retriever(index), questions, qrels, vectors=vectors[:count])
    assert (found.bar, found.use, found.graph) == ("dense", "dense", None)
    plain = found.of("plain-hybrid").compared
    assert plain is not None
    assert plain.recall.low is not None
    assert plain.recall.high is not None
    low, difference, high = (-100 * end for end in (plain.recall.high, plain.recall.difference, plain.recall.low))
    assert f"It is better than plain-hybrid, by {difference:+.1f} points ({low:+.1f} to {high:+.1f}, p" in str(found)


def test_without_judged_questions_there_is_no_verdict() -> None:
    index = walk_wins(4).index
    for questions, gold in ((["Who?"], [()]), ([], [])):
        with refused(InputError, "empty", "qrels"):
            judge(retriever(index), questions, Qrels(["q"] * len(gold), gold))


def test_without_vectors_words_are_the_bar() -> None:
    made = walk_wins(12)
    found = judge(retriever(made.index.with_vectors(None)), made.questions, made.qrels)
    assert found.bar == "words"
    assert found.graph is not None
    assert (found.graph.walk, found.graph.leg) == ("hybrid-rrf", "words")
    ran = [one.ranking for one in found.figures]
    assert not {"dense", "plain-hybrid"} & set(ran)
    assert (found.left_out["plain-hybrid"].code, found.left_out["plain-hybrid"].field) == ("missing", "index")


def test_a_recipe_that_is_the_bar_is_not_the_best() -> None:
    rows = [{"text": f"A report on topic{at}."} for at in range(12)]
    asked = [f"topic{at}" for at in range(12)]
    found = judge(hf.Index.build(passages=rows), asked, Qrels(asked, [[at] for at in range(12)]))
    assert (found.use, found.best) == ("words", None)
    assert "No recipe that runs differs from words on 12 questions." in str(found)
    assert "+0.0" not in str(found)


@pytest.mark.parametrize("name", ["dense", "words", "plain-hybrid", "phase-graph+words", "guided-walk"])
def test_the_arguments_of_a_ranking_are_its_options(name: str) -> None:
    index = walk_wins(4).index
    given = RANKINGS[name].arguments(index)
    assert given[:2] == ["--recipe", RANKINGS[name].recipe]
    said = dict(one.split("=") for one in given if "=" in one)
    assert set(said) == set(RANKINGS[name].options) | ({"weights"} if name == "words" else set())
    words = {"dense": ["none"], "phase-graph+words": ["auto"]}.get(name, [])
    assert [given[at + 1] for at, one in enumerate(given) if one == "--words"] == words
