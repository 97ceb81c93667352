"""What a retriever chooses, says and refuses."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import HopfuseError, InputError
from hopfuse.extract import QuestionMatcher
from hopfuse.lexical import BM25, FTS5
from hopfuse.recipes import RECIPES
from refusals import refused
from retriever.shapes import QUESTION, ROWS, ByLength, Letters, built, leg, words_graph

BOTH = built("vectors", "graph")
FACTS = built("vectors", "graph", "facts")
SPEAKS = {"encoder": Letters()}
#: Without it nothing steers a walk by a question's words beside its names.
UNKNOWN = "the encoder of the passages"

# ---- Defaults --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "recipe", "reads", "lacks"),
    [
        (built(), "hybrid-rrf", {"text", "words"}, {"vectors", "a graph"}),
        (words_graph(), "hybrid-rrf", {"text", "words", "entities"}, {"vectors"}),
        (built("graph"), "hybrid-rrf", {"text", "words", "entities"}, {"vectors"}),
        (built("vectors"), "hybrid-rrf", {"text", "words", "vector"}, {"an encoder", "a graph"}),
        (BOTH, "guided-walk", {"vector", "entities"}, {"an encoder", UNKNOWN, "words"}),
        (FACTS, "guided-walk", {"vector", "entities"}, {"an encoder", UNKNOWN, "words"}),
    ],
    ids=["texts", "words", "graph", "vectors", "both", "facts"],
)
def test_the_recipe_and_its_legs_follow_from_the_index(
    index: hf.Index, recipe: str, reads: set[str], lacks: set[str]
) -> None:
    retriever = hf.Retriever(index)
    about = retriever.describe()
    assert (about.recipe, about.chosen, about.ranks) == (recipe, True, "passages")
    assert set(about.reads) == reads
    assert set(about.lacks) == lacks
    assert (about.words is not None, about.names is not None) == ("words" in reads, "entities" in reads)
    assert retriever.dim == (6 if "vector" in reads else None)
    if "an encoder" not in lacks:
        assert [hit.id for hit in retriever.search("What did Charles Babbage build?", k=1)[0]] == ["b"]


def test_an_encoder_that_the_index_does_not_record_steers_too() -> None:
    assert UNKNOWN not in hf.Retriever(BOTH, "guided-walk", encoder=Letters()).describe().lacks


def test_stored_words_steer_a_walk_and_words_that_are_not_stored_do_not() -> None:
    pytest.importorskip("bm25s", reason="stored words need the extra text")
    stored = BOTH.with_lexical(BM25.build(BOTH.texts_to_index()).matrix)
    assert isinstance(hf.Retriever(stored).words, BM25)
    assert hf.Retriever(BOTH).words is None
    assert hf.Retriever(stored, words="none").words is None
    assert isinstance(hf.Retriever(stored, words="fts5").words, FTS5)


def test_a_search_equals_that_of_the_recipe_with_the_same_collaborators() -> None:
    encoder, matcher = Letters(), QuestionMatcher(FACTS)
    facts = encoder.encode_passages(FACTS.facts.texts(FACTS.entity_names))  # type: ignore[union-attr]
    made: dict[str, Any] = {
        "guided-walk": hf.recipes.GuidedWalk(FACTS, encoder=encoder, matcher=matcher),
        "phase-graph": hf.recipes.PhaseGraph(FACTS, encoder=encoder, matcher=matcher),
        "hybrid-rrf": hf.recipes.HybridRRF(FACTS, encoder=encoder, matcher=matcher, lexical=leg(FACTS)),
        "plain-hybrid": hf.recipes.PlainHybrid(FACTS, encoder=encoder, lexical=leg(FACTS)),
        "policy-rag": hf.recipes.PolicyRAG(FACTS, encoder=encoder, matcher=matcher, fact_vectors=facts),
        "triple-hybrid": hf.recipes.TripleHybrid(FACTS, encoder=encoder),
    }
    assert set(made) == set(RECIPES)
    asked = [QUESTION, "which river is in london", "Who?"]
    for name, recipe in made.items():
        words = "fts5" if recipe.needs.words else None
        found = hf.Retriever(FACTS, name, encoder=encoder, words=words).search(asked, k=3)
        own = recipe.search(asked, k=3)
        assert found.hits.ids.tolist() == own.hits.ids.tolist()
        assert found.hits.scores.tolist() == own.hits.scores.tolist()
        assert [hit.id for hit in found[0]] == [RECIPES[name].hit_ids(FACTS)[row] for row, _ in own.hits.row(0)]


# ---- Encoders --------------------------------------------------------------------------------------------------------


def test_the_encoder_is_the_one_whose_name_the_index_keeps() -> None:
    pytest.importorskip("wordllama", reason="the texts' vectors are WordLlama's (extra demo)")
    encoder = hf.encoders.WordLlamaEncoder(64)
    retriever = hf.Retriever(hf.Index.from_texts(ROWS, encoder=encoder))
    assert (retriever.encoder.name, retriever.encoder.dim) == ("wordllama", 64)
    assert "an encoder" not in retriever.describe().lacks
    assert retriever.search(QUESTION, k=1)[0][0].id == "b"
    with refused(InputError, "conflict", "encoder"):
        hf.Retriever(retriever.index, encoder="wordllama:128")


def test_an_encoder_whose_files_are_not_known_is_asked_for_with_its_name() -> None:
    class Local(Letters):
        name = "a model in a folder"

    retriever = hf.Retriever(hf.Index.build(passages=ROWS, vectors=np.ones((4, 6)), encoder=Local()))
    with refused(InputError, "missing", "encoder", {"name": "a model in a folder"}):
        retriever.search(QUESTION)
    assert "a model in a folder" in retriever.describe().lacks["an encoder"]
    vectors = Local().encode_queries([QUESTION])
    assert len(retriever.search(QUESTION, vectors=vectors)[0]) == 4


def test_an_encoder_that_does_not_exist_is_refused_and_one_that_is_not_wanted_is_missing() -> None:
    with refused(InputError, "choice", "encoder", given="nope"):
        hf.Retriever(BOTH, encoder="nope")
    with refused(InputError, "missing", "encoder"):
        hf.Retriever(BOTH, encoder="none").search(QUESTION)
    with refused(InputError, "missing", "encoder"):
        hf.Retriever(BOTH).search([QUESTION])


# ---- Words and names -------------------------------------------------------------------------------------------------


def test_words_are_chosen_by_name_or_given() -> None:
    assert isinstance(hf.Retriever(BOTH, words="fts5").words, FTS5)
    assert hf.Retriever(BOTH, "hybrid-rrf", words="none").words is None
    own = leg(BOTH)
    assert hf.Retriever(BOTH, words=own).words is own
    with refused(InputError, "choice", "words", given="grep"):
        hf.Retriever(BOTH, words="grep")
    lexical = hf.Retriever(FACTS, "triple-hybrid", mode="lexical", words="fts5")
    assert [hit.id for hit in lexical.search("Thames", k=1)[0]] == ["Thames"]


def test_names_are_found_in_any_case_unless_another_way_is_chosen() -> None:
    asked = ["london", "London"]

    def named(**options: Any) -> list[bool]:
        found = hf.Retriever(BOTH, **SPEAKS, **options).search(asked, trace=True)
        return [bool(trace["seeds"]) for trace in found.traces or ()]

    assert named() == [True, True]
    assert named(names="case-sensitive") == [False, True]
    assert named(names="none") == [False, False]

    class Always:
        def match(self, texts: Any) -> list[list[int]]:
            return [[4] for _ in texts]

    assert named(names=Always()) == [True, True]
    with refused(InputError, "choice", "names", given="loud"):
        hf.Retriever(BOTH, names="loud")
    assert "names" in hf.Retriever(BOTH, names="none").describe().lacks


# ---- Refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "recipe", "given", "field"),
    [
        (built("graph"), "hybrid-rrf", {"encoder": Letters()}, "encoder"),
        (BOTH, "policy-rag", {"words": "fts5"}, "words"),
        (FACTS, "triple-hybrid", {"words": "fts5"}, "words"),
        (FACTS, "triple-hybrid", {"names": "case-sensitive"}, "names"),
        (FACTS, "triple-hybrid", {"reranker": ByLength()}, "reranker"),
        (BOTH, "guided-walk", {"llm": object()}, "llm"),
        (BOTH, "guided-walk", {"fact_vectors": np.eye(3)}, "fact_vectors"),
    ],
)
def test_an_argument_that_the_recipe_does_not_read_is_refused(
    index: hf.Index, recipe: str, given: dict[str, Any], field: str
) -> None:
    with refused(InputError, "unused", field):
        hf.Retriever(index, recipe, **given)


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        ({"recipe": "grep"}, "choice", "recipe"),
        ({"recipe": 3}, "type", "recipe"),
        ({"recipe": "phase-graph", "config": hf.recipes.Policy()}, "type", "config"),
        ({"dampening": 0.5}, "unknown", "dampening"),
        ({"tau": -1}, "range", "tau"),
        ({"recipe": "triple-hybrid"}, "missing", "index"),
        ({"strict": "yes"}, "type", "strict"),
        ({"threads": 0}, "range", "threads"),
        ({"names": 5}, "type", "names"),
        ({"reranker": "best"}, "type", "reranker"),
    ],
)
def test_an_invalid_argument_is_refused(arguments: dict[str, Any], code: str, field: str) -> None:
    with pytest.raises(HopfuseError) as caught:
        hf.Retriever(BOTH, **arguments)
    assert (caught.value.code, caught.value.field) == (code, field)


def test_an_error_about_a_vector_names_its_place_among_the_questions() -> None:
    wrong: list[tuple[Any, str, str]] = [
        (np.ones((2, 5)), "shape", "vectors"),
        (np.array([["a"] * 6] * 2), "dtype", "vectors"),
        (np.array([[1.0] * 6, [np.nan] * 6]), "finite", "vectors[1]"),
        (np.array([[1.0] * 6, [0.0] * 6]), "zero", "vectors[1]"),
    ]
    retriever = hf.Retriever(BOTH, **SPEAKS)
    for vectors, code, field in wrong:
        for search in (retriever.search, retriever.recipe.search):
            for allow in (None, [["a"], ["b"]], ["a"]):
                with refused(InputError, code, field):
                    search([QUESTION] * 2, vectors=vectors, allow=allow)


def test_an_error_names_the_arguments_of_the_retriever() -> None:
    with refused(InputError, "missing", "words", needed="words"):
        hf.Retriever(built(), words="none")
    with refused(InputError, "unused", "word_boost", other="words"):
        hf.Retriever(BOTH, words="none", word_boost=2)


def test_a_directory_is_opened_by_open() -> None:
    with refused(InputError, "type", "index"):
        hf.Retriever("my-index")  # type: ignore[arg-type]
    for opened in (hf.Retriever.open, hf.Index.open):
        with refused(InputError, "type", "directory", given="Index"):
            opened(BOTH)


@pytest.mark.parametrize(
    ("asked", "code", "field"),
    [
        ({"questions": [None]}, "missing", "vectors[0]"),
        ({"questions": [QUESTION, None], "vectors": np.ones((2, 6))}, "missing", "entities[1]"),
        ({"questions": None}, "missing", "vectors"),
        ({"questions": [3]}, "type", "questions[0]"),
        ({"questions": [QUESTION], "entities": [[9]]}, "unknown", "entities[0][0]"),
        ({"questions": [QUESTION], "vectors": np.ones((2, 6))}, "length", "vectors"),
        ({"questions": [QUESTION], "vectors": np.ones((1, 5))}, "shape", "vectors"),
        ({"questions": [QUESTION] * 2, "vectors": [np.ones(6), np.full(6, np.nan)]}, "finite", "vectors[1]"),
        ({"questions": b"Who?"}, "type", "questions"),
        ({"questions": QUESTION, "k": -1}, "range", "k"),
        ({"questions": QUESTION, "at_least": 9}, "unsupported", "at_least"),
        ({"questions": QUESTION, "per_document": 0}, "range", "per_document"),
    ],
)
def test_a_search_that_cannot_be_done_is_refused_by_its_arguments_names(
    asked: dict[str, Any], code: str, field: str
) -> None:
    with pytest.raises(HopfuseError) as caught:
        hf.Retriever(BOTH, **SPEAKS).search(**asked)
    assert (caught.value.code, caught.value.field) == (code, field)


@pytest.mark.parametrize(
    ("question", "code", "field"),
    [
        ((), "missing", "vector"),
        ((None, np.ones(6)), "missing", "entities"),
        ((QUESTION, np.ones(5)), "shape", "vector"),
        ((QUESTION, np.full(6, np.nan)), "finite", "vector"),
        ((QUESTION, np.zeros(6)), "zero", "vector"),
        ((QUESTION, None, [1, 9]), "unknown", "entities[1]"),
    ],
)
def test_a_question_is_checked_alone(question: tuple[Any, ...], code: str, field: str) -> None:
    retriever = hf.Retriever(BOTH, **SPEAKS)
    retriever.check_question(QUESTION)
    retriever.check_question(None, np.ones(6), ["London"])
    with refused(InputError, code, field):
        retriever.check_question(*question)


# ---- What it says ----------------------------------------------------------------------------------------------------


def test_a_description_is_sentences_and_data() -> None:
    retriever = hf.Retriever(FACTS, "policy-rag", **SPEAKS, reranker=ByLength())
    about = retriever.describe()
    data = about.data()
    assert data["recipe"] == "policy-rag"
    assert data["encoder"] == "letters, 6 dimensions"
    assert data["names"] == "those of the index"
    assert (data["words"], data["chosen"], data["lacks"]) == (None, False, {})
    assert set(data["reads"]) == {"vector", "text", "entities"}
    sentences = str(about).splitlines()
    assert len(sentences) == 1 + sum(data[part] is not None for part in ("encoder", "names", "facts", "reranker"))
    assert all(line.endswith(".") for line in sentences)
    without = hf.Retriever(FACTS, "policy-rag").describe()
    assert without.facts != about.facts
    assert str(without).splitlines()[-1].startswith("Without an encoder: ")
    assert "policy-rag" in repr(retriever)


# ---- Notes -----------------------------------------------------------------------------------------------------------


def test_what_is_not_used_or_not_known_is_noted_and_refused_where_strict() -> None:
    cases: list[tuple[hf.Index, dict[str, Any], tuple[str, str], str]] = [
        (built(), {"vectors": np.ones((1, 6))}, ("unused", "vector"), "vectors[0]"),
        (built(), {"entities": [["London"]]}, ("unused", "entities"), "entities[0]"),
        (built("graph"), {"entities": [["London", "Paris"]]}, ("unknown", "entities[1]"), "entities[0][1]"),
        (built("graph"), {"questions": "Quasars?"}, ("unknown", "text"), "questions[0]"),
    ]
    for index, given, note, field in cases:
        asked = {"questions": QUESTION, **given}
        notes = hf.Retriever(index).search(**asked).notes
        assert [[(one.code, one.field) for one in row] for row in notes] == [[note]]
        with refused(InputError, note[0], field):
            hf.Retriever(index, strict=True).search(**asked)
    clean = hf.Retriever(BOTH, **SPEAKS, strict=True).search([QUESTION, "London?"])
    assert clean.notes == [[], []]


def test_inputs_that_are_not_read_have_a_row_for_each_question() -> None:
    plain = hf.Retriever(built())
    notes = plain.search(QUESTION, vectors=np.ones(6)).notes
    assert [[(one.code, one.field) for one in row] for row in notes] == [[("unused", "vector")]]
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"vectors": np.ones((3, 6))}, "length", "vectors"),
        ({"vectors": [None, np.ones(6)]}, "length", "vectors"),
        ({"entities": [["London"], ["Thames"]]}, "length", "entities"),
        ({"entities": 5}, "type", "entities"),
    ]
    for given, code, field in cases:
        with refused(InputError, code, field):
            plain.search(QUESTION, **given)


def test_a_strict_retriever_warms_up() -> None:
    facts = built("vectors", "graph", "facts")
    hf.Retriever(facts, "triple-hybrid", encoder=Letters(), strict=True).warm_up()
    hf.Retriever(hf.Index.build(passages=[{"text": "of the"}]), strict=True).warm_up()
