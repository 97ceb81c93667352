"""What one owner's questions find where others' passages are in the index: mass, seeds, names, words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_hits_equal
from hopfuse import reference
from hopfuse.errors import InputError
from recipes.worlds import DIM, Encoder, World, lists_of, random_questions, random_world
from refusals import refused

#: Passages 0 and 1 are ours, 2 and 3 theirs; the entity "Hub" is everybody's, "Secret" theirs alone.
OWNERS = World(
    np.eye(4, DIM, dtype=np.float32),
    ["Hub", "Ours", "Secret", "Hidden"],
    np.eye(4, DIM, dtype=np.float32),
    [
        (0, 4, "context", 1.0),
        (0, 5, "context", 1.0),
        (1, 5, "context", 1.0),
        (2, 4, "context", 1.0),
        (3, 4, "context", 1.0),
        (2, 6, "context", 1.0),
        (5, 6, "synonym", 1.0),
        (6, 7, "relation", 1.0),
    ],
    {1: ["Secret", "Mine"], 2: ["Mine"]},
)
ASK = {"vectors": np.ones((1, DIM), np.float32)}


def search(entities: list[Any], **options: Any) -> Any:
    recipe = hf.recipes.PhaseGraph(OWNERS.index(), encoder=Encoder(OWNERS), entity_threshold=-1, damping=0.5)
    found = recipe.search(**ASK, entities=[entities], trace=True, **options)
    return found, found.traces[0]  # type: ignore[index]


def test_mass_stays_among_what_is_allowed() -> None:
    """Ours leads to Secret by a synonym and Hub to both of their passages: neither is walked over."""
    found, trace = search(["Hub"], allow=[0, 1])
    assert found.lists["graph"].row(0) == pytest.approx(expected_walk(), abs=1e-6)
    assert [(seed["name"], seed["weight"], seed["passage_frequency"]) for seed in trace["seeds"]] == [("Hub", 1.0, 1)]
    shared, shared_trace = search(["Hub"], allow=[0, 1], allow_scope="results")
    assert shared_trace["seeds"][0]["weight"] == pytest.approx(1 / 3)
    assert shared.lists["graph"].counts.tolist() == [2]
    assert shared.lists["graph"].row(0)[0][1] < found.lists["graph"].row(0)[0][1] / 2


def expected_walk() -> list[Any]:
    """Hub - 0 - Ours - 1, a path: the oracle over those four nodes."""
    path = hf.Graph.from_edges([0, 1, 2], [1, 2, 3])
    x = reference.ppr(path, [{0: 1.0}], damping=0.5)[0]
    return [pytest.approx((0, x[1])), pytest.approx((1, x[3]))]


def test_entities_that_may_not_be_seen_are_left_out_and_listed() -> None:
    found, trace = search(["Hidden", 2, "Ours"], allow=[0, 1])
    names = [(seed["name"], seed["match"]) for seed in trace["left_out"]]
    assert names == [("Secret", "given")]
    assert all(seed["weight"] == 0 and seed["passage_frequency"] == 0 for seed in trace["left_out"])
    assert found.seeds.nodes[0].tolist().count(-1) == 8 - len(trace["seeds"])
    found, trace = search([2, 3], allow=[0, 1])
    assert trace["seeds"] == []
    assert found.fell_back.tolist() == [True]
    assert found.lists["graph"].row(0) == found.lists["dense"].row(0)
    assert found.hits.counts.tolist() == [2]


def test_a_name_finds_the_same_as_in_an_index_of_its_own_passages() -> None:
    """Secret is theirs by name and ours by alias; Mine is an alias of both; Hidden goes to the nearest of ours."""
    _, trace = search(["Secret"], allow=[0, 1])
    assert [(seed["name"], seed["match"]) for seed in trace["seeds"]] == [("Ours", "alias")]
    assert trace["left_out"] == []
    _, trace = search(["Mine"], allow=[0, 1])
    assert [seed["name"] for seed in trace["seeds"]] == ["Ours"]
    _, trace = search(["Hidden"], allow=[0, 1])
    assert [seed["match"] for seed in trace["seeds"]] == ["nearest"]
    assert {seed["name"] for seed in trace["seeds"]} <= {"Hub", "Ours"}


class Words:
    """A lexical leg that cannot filter."""

    def search(self, questions: Sequence[str], k: int, /) -> hf.Hits:
        rng = np.random.default_rng(3)
        scores = rng.integers(1, 6, (len(questions), 24)).astype(np.float32)
        return hf.Hits(np.tile(np.arange(24), (len(questions), 1)), scores).head(k)


class FilteringWords(Words):
    """One that can."""

    def search(self, questions: Sequence[str], k: int, /, *, allow: Any = None) -> hf.Hits:
        found = super().search(questions, 24)
        rows = np.broadcast_to(allow, (len(questions), 24))
        kept = [[hit for hit in found.row(b) if rows[b][hit[0]]][:k] for b in range(len(questions))]
        return hf.Hits.from_lists(kept)


@pytest.mark.parametrize("each", [False, True])
def test_the_lexical_pool_is_of_allowed_passages(each: bool) -> None:
    index, ask, questions = random_world(5).index(), random_questions(6, batch=4), ["a", "b", "c", "d"]
    masks = np.random.default_rng(1).random((4, 24)) < 0.4
    allowed = masks if each else masks[0]
    answers = [
        hf.recipes.PhaseGraph(index, lexical=leg, lexical_k=5).search(
            questions, **ask, allow=allowed, allow_scope="results"
        )
        for leg in (Words(), FilteringWords())
    ]
    whole = Words().search(questions, 24)
    for b in range(4):
        expected = [hit for hit in whole.row(b) if np.atleast_2d(allowed)[b if each else 0][hit[0]]][:5]
        assert answers[0].lists["lexical"].row(b) == expected  # type: ignore[union-attr]
    for pool in ("lexical", "hits"):
        assert_hits_equal(lists_of(answers[0])[pool], lists_of(answers[1])[pool])


def test_a_leg_and_a_matcher_that_know_the_whole_index_are_refused() -> None:
    index, ask = random_world(5).index(), random_questions(6, batch=1)
    with refused(InputError, "unsupported", "lexical", method="part(rows)"):
        hf.recipes.PhaseGraph(index, lexical=Words()).search(["a"], **ask, allow=[0])

    class Matcher:
        def match(self, texts: Sequence[str], /) -> Any:
            return [[0] for _ in texts]

    recipe = hf.recipes.PhaseGraph(index, matcher=Matcher())
    assert recipe.search(["a"], **ask, allow=[0]).hits.counts.tolist() == [1]
    with refused(InputError, "unsupported", "matcher", method="part(part)"):
        recipe.search(["a"], vectors=ask["vectors"], allow=[0])
    assert recipe.search(["a"], vectors=ask["vectors"], allow=[0], allow_scope="results").hits.counts.tolist() == [1]


def test_bm25_counts_the_words_of_allowed_passages() -> None:
    pytest.importorskip("bm25s", reason="BM25 needs bm25s (extra text)")
    index = random_world(5).index()
    bm25 = hf.lexical.BM25.build(list(index.titles), stopwords=None, stemmer=None)
    found = hf.recipes.PhaseGraph(index, lexical=bm25).search(["title 3"], **ASK, entities=[[]], allow=[3, 4])
    alone = hf.lexical.BM25.build(["Title 3", "Title 4"], stopwords=None, stemmer=None).search(["title 3"], 5)
    assert found.lists["lexical"].row(0) == [(3 + row, score) for row, score in alone.row(0)]
    assert found.lists["lexical"].counts.tolist() == [2]
