"""``check_question``, ``check`` and arguments that a recipe does not read: what a search would refuse."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from refusals import refused


class Letters:
    """Encodes a text by its letters a and b; it has no vector for a blank one."""

    name, dim, normalize = "letters", 2, False

    def encode_queries(self, texts: list[str]) -> Any:
        if not all(text.strip() for text in texts):
            raise InputError("empty", "texts", "{field} has a blank text")
        return np.array([[text.count("a"), text.count("b") + 1] for text in texts], np.float32).reshape(-1, 2)

    encode_passages = encode_queries


class Lenient(Letters):
    """Has a vector for a blank text too."""

    def encode_queries(self, texts: list[str]) -> Any:
        return super().encode_queries([text.strip() or "b" for text in texts])


@pytest.fixture
def index() -> hf.Index:
    edges = [{"src": 0, "dst": 2}, {"src": 1, "dst": 3}]
    rows = [{"id": "p", "text": "Ada."}, {"id": "q", "text": "Bab."}]
    return hf.Index.build(passages=rows, vectors=[[1.0, 2.0], [0.5, 1.0]], entities=["Ada", "Bab"], graph=edges)


def test_a_question_is_refused_as_a_search_would(index: hf.Index) -> None:
    retriever = hf.Retriever(index, encoder=Letters())
    retriever.check_question("Ada?")
    retriever.check_question(None, [1.0, 2.0], [1])
    for given, code, field in (
        ((" ", None, None), "empty", "text"),
        (("Ada?", [1.0, 2.0, 3.0], None), "shape", "vector"),
        (("Ada?", [0.0, 0.0], None), "zero", "vector"),
        (("Ada?", [1.0, 1e300], None), "finite", "vector"),
        (("Ada?", [1.0, 10**400], None), "dtype", "vector"),
        (("Ada?", None, ["Ada", 2]), "unknown", "entities[1]"),
        ((None, None, [0]), "missing", "vector"),
    ):
        with refused(InputError, code, field):
            retriever.check_question(*given)


@pytest.mark.parametrize("encoder", [Letters(), Lenient()])
@pytest.mark.parametrize("text", ["", " \t"])
def test_a_text_without_words_is_as_none_whatever_the_encoder_says(index: hf.Index, encoder: Any, text: str) -> None:
    retriever = hf.Retriever(index, encoder=encoder)
    for vectors, entities in ((None, None), ([None, [1.0, 2.0]], None), (None, [None, ["Ada"]])):
        with refused(InputError, "empty", "questions[1]", given=text):
            retriever.search(["Ada?", text], vectors=vectors, entities=entities)
    given: dict[str, Any] = {"vectors": [None, [1.0, 2.0]], "entities": [None, ["Ada"]]}
    asked, none = retriever.search(["Ada?", text], **given), retriever.search(["Ada?", None], **given)
    assert asked.hits.ids.tolist() == none.hits.ids.tolist()
    assert asked.notes == none.notes == [[], []]
    retriever.check_question(text, [1.0, 2.0], ["Ada"])
    with refused(InputError, "empty", "text", given=text):
        retriever.check_question(text, [1.0, 2.0])
    words = retriever.variant("hybrid-rrf", words="fts5")
    with refused(InputError, "empty", "questions[0]", given=text):
        words.search(text, vectors=[[1.0, 2.0]], entities=[[]])


def test_an_encoder_of_another_space_is_refused_where_it_is_needed(index: hf.Index) -> None:
    class Longer(Letters):
        dim = 3

    retriever = hf.Retriever(index, encoder=Longer())
    assert len(retriever.search("Ada?", vectors=[[1.0, 2.0]])[0]) == 2
    with refused(InputError, "shape", "encoder", given=3, allowed=2):
        retriever.search("Ada?")
    with refused(InputError, "missing", "vector"):
        retriever.check_question("Ada?")


def test_with_strict_a_question_has_no_input_that_is_not_read(index: hf.Index) -> None:
    plain = hf.Index.from_texts(["The sea.", "A river."])
    loose, strict = (hf.Retriever(plain, words="fts5", strict=one) for one in (False, True))
    loose.check_question("sea", [1.0], ["Ada"])
    strict.check_question("sea")
    with refused(InputError, "unused", "vector"):
        strict.check_question("sea", [1.0])
    with refused(InputError, "unused", "entities"):
        strict.check_question("sea", None, ["Ada"])


def test_arguments_that_the_recipe_does_not_read_are_refused(index: hf.Index) -> None:
    plain = hf.Index.from_texts(["The sea.", "A river."])
    with refused(InputError, "unused", "names"):
        hf.Retriever(plain, words="fts5", names="case-sensitive")
    with refused(InputError, "type", "config"):
        hf.Retriever(index, "phase-graph", config=hf.recipes.Policy())
    assert hf.Retriever(index, encoder="none").check(per_document=1).hits.counts.size == 0
