"""PhaseGraph with a lexical leg: three lists over the oracle, traces, refusals; without one nothing changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_equal
from hopfuse.errors import InputError
from recipes.worlds import fuse_by_hand, lists_of, weights_by_hand
from refusals import refused

PASSAGES, ENTITIES, DIM, BATCH = 40, 25, 8, 6
QUESTIONS = [f"question {q}" for q in range(BATCH)]


class Lists:
    """A lexical leg that looks lists up."""

    def __init__(self, rows: dict[str, list[tuple[int, float]]]) -> None:
        self.rows = rows
        self.asked: list[tuple[list[str], int]] = []

    def search(self, questions: Sequence[str], k: int, /) -> hf.Hits:
        self.asked.append((list(questions), k))
        return hf.Hits.from_lists([self.rows[q][:k] for q in questions])


@pytest.fixture(scope="module")
def index() -> hf.Index:
    rng = np.random.default_rng(7)
    edges = [
        {"src": int(p), "dst": PASSAGES + int(e)}
        for p in range(PASSAGES)
        for e in rng.choice(ENTITIES, 3, replace=False)
    ]
    return hf.Index.build(
        passages=[{"title": f"Title {i}", "text": f"text {i}"} for i in range(PASSAGES)],
        vectors=rng.standard_normal((PASSAGES, DIM)).astype(np.float32),
        entities=[f"Entity {e}" for e in range(ENTITIES)],
        graph=edges,
        metric="cosine",
    )


@pytest.fixture(scope="module")
def ask() -> dict[str, Any]:
    vectors = np.random.default_rng(8).standard_normal((BATCH, DIM)).astype(np.float32)
    return {"vectors": vectors, "entities": [[1], [2, 3], [5, 6, 7], [], [], [9]]}


@pytest.fixture
def leg() -> Lists:
    """Lists of several lengths, one of them empty, with ties."""
    rng = np.random.default_rng(9)
    sizes = [12, 5, 0, 1, 20, 7]
    return Lists(
        {
            q: sorted(
                ((int(p), float(s)) for p, s in zip(rng.permutation(PASSAGES)[:n], rng.integers(1, 9, n), strict=True)),
                key=lambda hit: (-hit[1], hit[0]),
            )
            for q, n in zip(QUESTIONS, sizes, strict=True)
        }
    )


@pytest.mark.parametrize("options", [{}, {"consensus": 0.5, "lexical_weight": 1.25, "lexical_k": 6, "ties": "mean"}])
def test_three_lists_are_fused_as_the_oracle_does(
    index: hf.Index, ask: dict[str, Any], leg: Lists, options: dict[str, Any]
) -> None:
    recipe = hf.recipes.PhaseGraph(index, lexical=leg, **options)
    found = recipe.search(QUESTIONS, **ask, k=10)
    length = options.get("lexical_k", PASSAGES)
    assert leg.asked[-1] == (QUESTIONS, length)
    assert found.lists["lexical"] is not None
    expected = fuse_by_hand(
        [found.lists["dense"], found.lists["graph"], found.lists["lexical"]],
        (0.2, 0.8, 1.25) if options else weights_by_hand(found, "dense", "graph", "lexical"),
        method="boltzmann",
        temperature=0.1,
        consensus=options.get("consensus", 0.0),
        ties=options.get("ties", "strict"),
        k=10,
    )
    np.testing.assert_array_equal(found.hits.ids, expected.ids)
    np.testing.assert_allclose(found.hits.scores, expected.scores, atol=1e-5)
    assert [found.lists["lexical"].row(b) for b in range(BATCH)] == [leg.rows[q][:length] for q in QUESTIONS]
    assert found.lists["lexical"].shape == (BATCH, length)


def test_the_other_pools_are_those_of_a_recipe_without_the_leg(
    index: hf.Index, ask: dict[str, Any], leg: Lists
) -> None:
    recipe = hf.recipes.PhaseGraph(index)
    plain, found = recipe.search(**ask), hf.recipes.PhaseGraph(index, lexical=leg).search(QUESTIONS, **ask)
    assert "lexical" not in plain.lists
    assert_hits_equal(plain.lists["dense"], found.lists["dense"])
    assert_hits_equal(plain.lists["graph"], found.lists["graph"])
    weights = weights_by_hand(plain, "dense", "graph")
    assert_hits_equal(
        plain.hits, hf.fuse([plain.lists["dense"], plain.lists["graph"]], weights=weights, temperature=0.1, k=10)
    )
    assert (plain.hits.scores != found.hits.scores).any()


def test_a_weight_of_nothing_adds_nothing(index: hf.Index, ask: dict[str, Any], leg: Lists) -> None:
    """Passages that only the lexical list has come last, with a score of 0."""
    plain = hf.recipes.PhaseGraph(index, alpha=0.2).search(**ask, k=PASSAGES)
    found = hf.recipes.PhaseGraph(index, lexical=leg, lexical_weight=0).search(QUESTIONS, **ask, k=PASSAGES)
    for b in range(BATCH):
        above = [hit for hit in plain.hits.row(b) if hit[1] > 0]
        assert found.hits.row(b)[: len(above)] == above
        assert all(score == 0 for _, score in found.hits.row(b)[len(above) :])


def test_a_question_alone_gets_the_answer_it_gets_in_a_batch(index: hf.Index, ask: dict[str, Any], leg: Lists) -> None:
    recipe = hf.recipes.PhaseGraph(index, lexical=leg)
    together = recipe.search(QUESTIONS, **ask)
    for b, question in enumerate(QUESTIONS):
        one = {name: values[b : b + 1] for name, values in ask.items()}
        alone = recipe.search([question], **one)
        assert_bitwise(alone.hits.ids[0], together.hits.ids[b])
        assert_bitwise(alone.hits.scores[0], together.hits.scores[b])


def test_traces_add_up_to_the_scores(index: hf.Index, ask: dict[str, Any], leg: Lists) -> None:
    recipe = hf.recipes.PhaseGraph(index, lexical=leg, consensus=0.25, lexical_k=PASSAGES)
    found = recipe.search(QUESTIONS, **ask, trace=True)
    assert found.traces is not None
    legs = ("dense", "graph", "lexical")
    seen: set[tuple[str, ...]] = set()
    for b, trace in enumerate(found.traces):
        assert [(row["passage"], row["score"]) for row in trace["lexical"]] == leg.rows[QUESTIONS[b]]
        assert set(trace["temperatures"]) == set(legs)
        for hit in trace["hits"]:
            held = tuple(name for name in legs if any(row["passage"] == hit["passage"] for row in trace[name]))
            assert tuple(hit["contributions"]) == held
            assert hit["consensus"] == (0.25 if len(held) >= 2 else 0.0)
            assert sum(hit["contributions"].values()) + hit["consensus"] == pytest.approx(hit["score"], rel=1e-6)
            seen.add(held)
    assert legs in seen
    assert found.traces[2]["temperatures"]["lexical"] is None
    assert "lexical" not in hf.recipes.PhaseGraph(index).search(**ask, trace=True).traces[0]  # type: ignore[index]


@pytest.mark.emulator
def test_the_cuda_kernels_give_the_cpus_answers(
    index: hf.Index, ask: dict[str, Any], leg: Lists, emulated: Any
) -> None:
    recipe = hf.recipes.PhaseGraph(index, lexical=leg, consensus=0.1, lexical_k=15)
    few = {name: values[1:4] for name, values in ask.items()}  # one without a lexical list, one without seeds
    expected = recipe.search(QUESTIONS[1:4], **few, trace=True)
    emulated()
    result = recipe.search(QUESTIONS[1:4], **few, trace=True)
    for pool in ("hits", "dense", "graph", "lexical"):
        assert_hits_equal(lists_of(result)[pool], lists_of(expected)[pool])
    assert result.traces == expected.traces


def test_bm25_is_a_leg(index: hf.Index, ask: dict[str, Any]) -> None:
    pytest.importorskip("bm25s", reason="BM25 needs bm25s (extra text)")
    bm25 = hf.lexical.BM25.build(list(index.titles), stopwords=None, stemmer=None)
    asked = ["title", "Title 13 and 17", "13", "nothing", "", "title 39"]
    found = hf.recipes.PhaseGraph(index, lexical=bm25, lexical_k=3).search(asked, **ask)
    assert found.lists["lexical"] is not None
    assert_hits_equal(found.lists["lexical"], bm25.search(asked, 3))
    assert found.lists["lexical"].counts.tolist() == [3, 3, 1, 0, 0, 3]


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"lexical_weight": -1}, ("range", "lexical_weight")),
        ({"lexical_weight": np.nan}, ("range", "lexical_weight")),
        ({"lexical_weight": "1"}, ("range", "lexical_weight")),
        ({"lexical_k": 0}, ("range", "lexical_k")),
        ({"lexical": 3}, ("type", "lexical")),
    ],
)
def test_bad_options_are_refused_at_once(
    index: hf.Index, leg: Lists, options: dict[str, Any], refusal: tuple[str, str | None]
) -> None:
    with refused(InputError, *refusal):
        hf.recipes.PhaseGraph(index, **({"lexical": leg} | options))


def test_options_of_a_leg_that_is_not_there_are_refused(index: hf.Index) -> None:
    with refused(InputError, "unused", "lexical_weight", other="lexical"):
        hf.recipes.PhaseGraph(index, lexical_weight=99.0, lexical_k=3)


def test_bad_searches_say_what_is_wrong(index: hf.Index, ask: dict[str, Any], leg: Lists) -> None:
    with refused(InputError, "missing", "queries", needed="queries"):
        hf.recipes.PhaseGraph(index, lexical=leg).search(**ask)
    elsewhere = Lists({q: [(PASSAGES, 1.0)] for q in QUESTIONS})
    with refused(InputError, "reply", "lexical", given=40):
        hf.recipes.PhaseGraph(index, lexical=elsewhere).search(QUESTIONS, **ask)

    class Short(Lists):
        def search(self, questions: Sequence[str], k: int, /) -> hf.Hits:
            return super().search(questions[:-1], k)

    with refused(InputError, "reply", "lexical"):
        hf.recipes.PhaseGraph(index, lexical=Short(leg.rows)).search(QUESTIONS, **ask)
