"""A batch with gaps: what a question is given without is made by the encoder and the matcher, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.extract import EntityLinker, QuestionMatcher
from hopfuse.lexical import BM25
from hopfuse.recipes import GuidedWalk, HybridRRF, PhaseGraph, Policy, PolicyRAG, TripleHybrid
from recipes.policy_world import PASSAGES, PolicyWorld
from recipes.worlds import lists_of
from refusals import refused

WORLD = PolicyWorld(5)
INDEX, ENCODER = WORLD.index, WORLD.encoder
WORDS = BM25.build(INDEX.texts_to_index())
TEXTS = [text if b % 2 else text.lower() for b, text in enumerate(WORLD.questions)]
VECTORS = ENCODER.encode_queries(TEXTS)[:, ::-1].copy()
MASKS = np.random.default_rng(0).random((6, PASSAGES)) < 0.6
HAS = {
    "texts": [True, True, True, False, True, True],
    "vectors": [False, True, False, True, True, False],
    "entities": [False, True, True, True, False, False],
}
"""What each question is given; the fourth has no text."""
NAMES = BM25.build(list(INDEX.entity_names), stopwords=None, stemmer=None)


def recipes() -> dict[str, Any]:
    linker, facts = EntityLinker(INDEX), ENCODER.encode_passages(WORLD.fact_texts)
    both = Policy.from_toml("version = 1\n[seeds]\nsource = 'both'")
    return {
        "guided": GuidedWalk(INDEX, encoder=ENCODER, matcher=linker),
        "words": GuidedWalk(INDEX, encoder=ENCODER, matcher=linker, lexical=WORDS, lexical_weight=0.5),
        "phase": PhaseGraph(INDEX, encoder=ENCODER, matcher=QuestionMatcher(INDEX)),
        "leg": PhaseGraph(INDEX, encoder=ENCODER, matcher=linker, lexical=WORDS),
        "hybrid": HybridRRF(INDEX, encoder=ENCODER, matcher=linker),
        "titles": HybridRRF(INDEX, encoder=ENCODER, matcher=linker, lexical=WORDS, exact_bonus=0.5),
        "policy": PolicyRAG(INDEX, encoder=ENCODER, matcher=linker),
        "both": PolicyRAG(INDEX, both, encoder=ENCODER, matcher=linker, fact_vectors=facts),
        "triples": TripleHybrid(INDEX, encoder=ENCODER),
        "nearest": TripleHybrid(INDEX, mode="vector", encoder=ENCODER),
        "names": TripleHybrid(INDEX, mode="lexical", lexical=NAMES),
    }


RECIPES = recipes()


def given(recipe: Any, rows: Sequence[int]) -> dict[str, Any]:
    """Some questions as the recipe may be asked them, with gaps."""

    def some(name: str, values: Any, *, always: bool = False) -> list[Any]:
        return [values[b] if HAS[name][b] or always else None for b in rows]

    needs = recipe.needs
    made: dict[str, Any] = {"queries": some("texts", TEXTS, always=needs.texts)}
    if needs.vectors:
        made["vectors"] = some("vectors", VECTORS)
    if needs.entities:
        made["entities"] = some("entities", WORLD.mentions)
    return made


def whole(asked: dict[str, Any]) -> dict[str, Any]:
    """One question, as it was asked before there were gaps: an argument is given or not."""
    return {name: None if rows[0] is None else rows for name, rows in asked.items()}


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("scope", [None, "isolated", "results"])
def test_a_batch_with_gaps_is_each_question_alone(name: str, scope: Any) -> None:
    recipe = RECIPES[name]
    how: dict[str, Any] = {"k": 5, "trace": True} | ({} if scope is None else {"allow_scope": scope})
    found = recipe.search(**given(recipe, range(6)), **how, allow=None if scope is None else MASKS)
    for b in range(6):
        alone = recipe.search(**whole(given(recipe, [b])), **how, allow=None if scope is None else MASKS[b])
        assert [(hit.id, hit.score) for hit in found[b]] == [(hit.id, hit.score) for hit in alone[0]]
        assert {one: hits.row(b) for one, hits in lists_of(found).items()} == {
            one: hits.row(0) for one, hits in lists_of(alone).items()
        }
        assert found.traces is not None
        assert alone.traces is not None
        assert found.traces[b] | {"query": 0} == alone.traces[0] | {"query": 0}
        assert [str(note) for note in found.notes[b]] == [str(note) for note in alone.notes[0]]


@pytest.mark.parametrize("name", RECIPES)
def test_nothing_but_gaps_is_nothing_given(name: str) -> None:
    recipe = RECIPES[name]
    gaps = {one: [None] * 6 for one in ("vectors", "entities")}
    found, plain = recipe.search(TEXTS, **gaps), recipe.search(TEXTS)
    assert {one: hits.ids.tolist() for one, hits in lists_of(found).items()} == {
        one: hits.ids.tolist() for one, hits in lists_of(plain).items()
    }


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.needs.texts])
@pytest.mark.parametrize("scope", ["isolated", "results"])
def test_a_text_that_is_needed_is_missed_by_its_number(name: str, scope: Any) -> None:
    with refused(InputError, "missing", "queries[1]"):
        RECIPES[name].search(["one", None, "three"], allow=MASKS[:3], allow_scope=scope)
    with refused(InputError, "missing", "queries"):
        RECIPES[name].search(**({"vectors": VECTORS} if RECIPES[name].needs.vectors else {}))


@pytest.mark.parametrize("allow", [None, MASKS[:3]])
def test_what_cannot_be_made_is_missed_by_its_number(allow: Any) -> None:
    names: list[Any] = [["a"], ["b"], ["c"]]
    recipe = RECIPES["guided"]
    for vectors, entities in (([VECTORS[0], VECTORS[1], None], names), (VECTORS[:3], [*names[:2], None])):
        with refused(InputError, "missing", "queries[2]"):
            recipe.search(["one", "two", None], vectors=vectors, entities=entities, allow=allow)
        with refused(InputError, "missing", "queries[2]"):
            recipe.search(vectors=vectors, entities=entities, allow=allow)
    bare = GuidedWalk(INDEX)
    with refused(InputError, "missing", "vectors[2]"):
        bare.search(TEXTS[:3], vectors=[VECTORS[0], VECTORS[1], None], entities=names, allow=allow)
    with refused(InputError, "missing", "vectors"):
        bare.search(TEXTS[:3], entities=names, allow=allow)
    with refused(InputError, "missing", "entities[1]"):
        bare.search(TEXTS[:3], vectors=VECTORS[:3], entities=[["a"], None, ["c"]], allow=allow)
    with refused(InputError, "missing", "entities"):
        bare.search(TEXTS[:3], vectors=VECTORS[:3], allow=allow)


@pytest.mark.parametrize("allow", [None, MASKS[:3]])
def test_a_wrong_row_is_named_by_its_number(allow: Any) -> None:
    recipe = RECIPES["guided"]
    ask: dict[str, Any] = {"queries": TEXTS[:3], "allow": allow}
    with refused(InputError, "type", "queries[2]"):
        recipe.search([*TEXTS[:2], 3], allow=allow)
    with refused(InputError, "shape", "vectors[1]"):
        recipe.search(**ask, vectors=[None, VECTORS[:2], None])
    with refused(InputError, "shape", "vectors[1]"):
        recipe.search(**ask, vectors=[None, VECTORS[0, :3], VECTORS[0]])
    with refused(InputError, "length", "vectors"):
        recipe.search(**ask, vectors=[None, VECTORS[0]])
    with refused(InputError, "length", "entities"):
        recipe.search(**ask, entities=[None, ["a"]])
    with refused(InputError, "type", "entities[2]"):
        recipe.search(**ask, entities=[None, ["a"], "b"])
    with refused(InputError, "type", "entities[1][1]"):
        recipe.search(**ask, entities=[None, ["a", None], ["b"]])
    with refused(InputError, "unknown", "entities[2][0]", given=INDEX.num_entities):
        recipe.search(**ask, entities=[None, ["a"], [INDEX.num_entities]])


@pytest.mark.parametrize("allow", [None, MASKS[:3]])
@pytest.mark.parametrize("name", ["guided", "policy", "triples"])
def test_a_wrong_vector_is_named_by_its_number(name: str, allow: Any) -> None:
    for wrong, code in ((VECTORS[0] * 0, "zero"), (VECTORS[0] * np.float32("nan"), "finite")):
        with refused(InputError, code, "vectors[2]"):
            RECIPES[name].search(TEXTS[:3], vectors=np.stack([VECTORS[0], VECTORS[1], wrong]), allow=allow)
    with refused(InputError, "shape", "vectors"):
        RECIPES[name].search(TEXTS[:3], vectors=VECTORS[:3, :2], allow=allow)


@pytest.mark.parametrize("allow", [None, MASKS[:3]])
def test_an_empty_text_that_is_to_be_encoded_is_named_by_its_number(allow: Any) -> None:
    class Strict:
        name, dim, normalize = "strict", ENCODER.dim, False

        def encode_queries(self, texts: Sequence[str]) -> Any:
            if not all(text.strip() for text in texts):
                raise ValueError("a text is empty")
            return ENCODER.encode_queries(texts)

    recipe = GuidedWalk(INDEX, encoder=Strict(), matcher=EntityLinker(INDEX))
    with refused(InputError, "empty", "queries[2]"):
        recipe.search(["one", "TWO", " "], vectors=[VECTORS[0], None, None], allow=allow)
    found = recipe.search(["one", "TWO", " "], vectors=[None, None, VECTORS[0]], allow=allow)
    assert len(found) == 3


def test_rows_that_are_made_are_made_in_one_call() -> None:
    """The encoder and the matcher are asked once, for the rows that lack something."""
    asked = []

    class Counted:
        def encode_queries(self, texts: Sequence[str]) -> Any:
            asked.append(list(texts))
            return ENCODER.encode_queries(texts)

        def match(self, texts: Sequence[str]) -> Any:
            asked.append(list(texts))
            return [[] for _ in texts]

    both = Counted()
    both.encode_passages = both.encode_queries  # type: ignore[attr-defined]
    recipe = hf.recipes.PhaseGraph(INDEX, encoder=both, matcher=both)
    recipe.search(["A", "B", "C", "D"], vectors=[None, VECTORS[0], None, VECTORS[1]], entities=[[], None, [], None])
    assert asked == [["B", "D"], ["A", "C"]]
