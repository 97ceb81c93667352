"""Notes: what could not be used of a question, beside its hits."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.extract import EntityLinker
from hopfuse.lexical import BM25
from hopfuse.recipes import GuidedWalk, HybridRRF, PhaseGraph, PolicyRAG, TripleHybrid
from recipes.policy_world import WordVectors

ENCODER = WordVectors()
TEXTS = ["Ada wrote notes on the Engine.", "The Engine was built by Babbage.", "Lisbon lies by the sea."]
ENTITIES = ["Ada", "Engine", "Babbage", "Lisbon"]


def made() -> hf.Index:
    edges = [(0, 3), (0, 4), (1, 4), (1, 5), (2, 6)]
    return hf.Index.build(
        passages=[{"title": title, "text": TEXTS[at]} for at, title in enumerate("xyz")],
        vectors=ENCODER.encode_passages(TEXTS),
        entities=ENTITIES,
        entity_vectors=ENCODER.encode_passages(ENTITIES),
        graph=[{"src": src, "dst": dst} for src, dst in edges],
    )


INDEX = made()
WORDS, LINKER = BM25.build(INDEX.texts_to_index()), EntityLinker(INDEX)
WITH_WORDS = {
    "guided": GuidedWalk(INDEX, encoder=ENCODER, matcher=LINKER, lexical=WORDS),
    "phase": PhaseGraph(INDEX, encoder=ENCODER, matcher=LINKER, lexical=WORDS),
    "hybrid": HybridRRF(INDEX, encoder=ENCODER, matcher=LINKER, lexical=WORDS),
}
BY_NAMES = {
    "guided": GuidedWalk(INDEX, encoder=ENCODER, matcher=LINKER),
    "phase": PhaseGraph(INDEX, encoder=ENCODER, matcher=LINKER),
    "hybrid": HybridRRF(INDEX, encoder=ENCODER, matcher=LINKER),
    "policy": PolicyRAG(INDEX, encoder=ENCODER, matcher=LINKER),
}


def said(found: Any) -> list[list[tuple[str, str | None]]]:
    for note in (note for row in found.notes for note in row):
        assert isinstance(note, InputError)
        assert str(note)
    return [[(note.code, note.field) for note in row] for row in found.notes]


@pytest.mark.parametrize("recipe", BY_NAMES.values(), ids=BY_NAMES)
@pytest.mark.parametrize("scope", [None, "isolated", "results"])
def test_an_entity_that_the_index_does_not_have_is_noted(recipe: Any, scope: Any) -> None:
    how = {} if scope is None else {"allow_scope": scope, "allow": [[0, 1], [1, 2], [0, 1, 2]]}
    entities = [["Ada", "nobody", "ada", "nowhere"], [2, "Engine", " "], []]
    found = recipe.search(["A b", "B c", "C d"], entities=entities, **how)
    assert said(found) == [[("unknown", "entities[1]"), ("unknown", "entities[3]")], [("unknown", "entities[2]")], []]
    assert found.notes[0][0].given == "nobody"


@pytest.mark.parametrize("recipe", BY_NAMES.values(), ids=BY_NAMES)
def test_an_entity_outside_the_allowed_passages_is_noted_where_they_are_alone(recipe: Any) -> None:
    ask: dict[str, Any] = {"queries": ["A b", "B c"], "entities": [[3, "Ada", "Lisbon"], ["Lisbon"]]}
    allow = [[0, 1], [0, 1, 2]]
    assert said(recipe.search(**ask, allow=allow)) == [[("unknown", "entities[2]")], []]
    assert said(recipe.search(**ask, allow=allow, allow_scope="results")) == [[], []]


@pytest.mark.parametrize("recipe", BY_NAMES.values(), ids=BY_NAMES)
@pytest.mark.parametrize("allow", [None, [[0, 1], [1, 2], [0], [0, 1, 2]]])
def test_a_question_without_a_known_name_is_noted(recipe: Any, allow: Any) -> None:
    texts = ["Who was Ada?", "Who was Karl?", "the notes", "KARL"]
    unknown = [("unknown", "text")]
    assert said(recipe.search(texts, allow=allow)) == [[], unknown, unknown, unknown]
    given = recipe.search(texts, entities=[["Ada"], None, [], [0]], allow=allow)
    assert said(given) == [[], unknown, [], []]


@pytest.mark.parametrize("recipe", WITH_WORDS.values(), ids=WITH_WORDS)
@pytest.mark.parametrize("allow", [None, [[0, 1], [1, 2], [0], [0, 1, 2]]])
def test_a_question_without_a_known_name_or_word_is_noted(recipe: Any, allow: Any) -> None:
    texts = ["Who was Ada?", "Who was Karl?", "the notes", "karl"]
    unknown = [("unknown", "text")]
    assert said(recipe.search(texts, allow=allow)) == [[], unknown, [], unknown]
    assert said(recipe.search(texts, entities=[[], [], [], ["Ada"]], allow=allow)) == [[], unknown, [], []]


@pytest.mark.parametrize("recipe", WITH_WORDS.values(), ids=WITH_WORDS)
@pytest.mark.parametrize("scope", ["isolated", "results"])
def test_a_filter_that_allows_nothing_is_noted_and_nothing_else(recipe: Any, scope: Any) -> None:
    found = recipe.search(["Ada?", "Ada?", "Zzz?"], allow=[[], [0, 1], []], allow_scope=scope, k=3)
    assert [[(note.code, note.field) for note in row] for row in found.notes] == [
        [("empty", "allow")],
        [],
        [("empty", "allow")],
    ]
    assert [len(row) for row in found] == [0, 2, 0]


def test_a_question_without_a_text_has_no_note_of_its_text() -> None:
    recipe, vectors = WITH_WORDS["guided"], ENCODER.encode_queries(["a", "b", "c"])
    assert said(recipe.search([None, "", "karl"], vectors=vectors, entities=[[]] * 3)) == [
        [],
        [],
        [("unknown", "text")],
    ]
    assert said(recipe.search(vectors=vectors, entities=[["nobody"]] * 3)) == [[("unknown", "entities[0]")]] * 3
    assert said(GuidedWalk(INDEX).search(["karl"], vectors=vectors[:1], entities=[[]])) == [[]]


def test_words_that_only_raise_weights_are_known_words() -> None:
    recipe = GuidedWalk(INDEX, encoder=ENCODER, matcher=LINKER, lexical=WORDS, lexical_weight=0)
    assert "lexical" not in recipe.search(["the notes"]).lists
    assert said(recipe.search(["the notes"], entities=[[]])) == [[]]


def test_a_title_is_a_known_word() -> None:
    recipe = HybridRRF(INDEX, encoder=ENCODER, matcher=LINKER, exact_bonus=0.5)
    assert said(recipe.search(["what is y", "what is w"])) == [[], [("unknown", "text")]]


def test_words_are_those_of_the_entities_where_a_recipe_ranks_them() -> None:
    names = BM25.build(ENTITIES, stopwords=None, stemmer=None)
    recipe = TripleHybrid(INDEX, mode="lexical", lexical=names)
    assert said(recipe.search(["ada", "karl"])) == [[], [("unknown", "text")]]
    assert said(TripleHybrid(INDEX, mode="vector", encoder=ENCODER).search(["karl"])) == [[]]


def test_a_policy_that_reads_no_names_has_no_notes_of_them() -> None:
    policy = hf.recipes.Policy.from_toml("version = 1\n[seeds]\nsource = 'question'")
    assert said(PolicyRAG(INDEX, policy, encoder=ENCODER).search(["karl"])) == [[]]


def test_every_question_has_its_own_list() -> None:
    found = BY_NAMES["phase"].search(vectors=np.ones((2, ENCODER.dim)), entities=[["Ada"], ["Ada"]])
    assert found.notes == [[], []]
    assert found.notes[0] is not found.notes[1]
    assert BY_NAMES["phase"].search([]).notes == []
