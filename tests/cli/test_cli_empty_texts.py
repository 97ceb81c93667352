"""Texts without words have no vector: every way to an encoder says which passage or question has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cli.cli_files import about, write_jsonl
from hopfuse.errors import InputError
from hopfuse.recipes import HybridRRF
from refusals import refused

ROWS = [{"id": "a", "text": "A river."}, {"id": "b", "text": ""}, {"id": "c", "title": "Sea", "text": ""}]
NO_WORDS = about("empty", "text", given="b")
CLI = "the command line's encoder is WordLlama (extra demo)"


class Lengths:
    """Encodes a text as its length and 1; refuses texts without words if ``strict``."""

    def __init__(self, strict: bool = True) -> None:
        self._strict = strict

    def encode_queries(self, texts: list[str]) -> Any:
        if self._strict and not all(text.strip() for text in texts):
            raise InputError("empty", "texts", "a text is empty")
        return np.array([[len(text), 1] for text in texts], np.float32)

    encode_passages = encode_queries


def test_a_passage_without_words_is_named() -> None:
    with refused(InputError, "empty", "text", given="b"):
        hf.Index.from_texts(ROWS, encoder=Lengths())
    assert hf.Index.from_texts([ROWS[0], ROWS[2]], encoder=Lengths()).num_passages == 2  # a title is enough
    assert hf.Index.from_texts(ROWS).num_passages == 3  # nothing is encoded
    assert hf.Index.from_texts(ROWS, encoder=Lengths(strict=False)).vectors[1].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u2003"])
def test_white_space_is_no_words(blank: str) -> None:
    """An encoder that makes something of white space and refuses an empty text: as models with tokens of it do."""

    class Tokens(Lengths):
        def encode_queries(self, texts: list[str]) -> Any:
            if not all(texts):
                raise InputError("empty", "texts", "a text is empty")
            return np.array([[len(text), 1] for text in texts], np.float32)

        encode_passages = encode_queries

    rows = [{"id": "a", "text": "A river."}, {"id": "b", "title": blank, "text": blank}]
    with refused(InputError, "empty", "text", given="b"):
        hf.Index.build(rows, encoder=Tokens())
    index = hf.Index.build(rows[:1], encoder=Tokens())
    with refused(InputError, "empty", "queries[0]"):
        HybridRRF(index, encoder=Tokens()).search([blank])
    assert hf.Index.build(rows).num_passages == 2  # nothing is encoded
    assert hf.Index.build(rows, encoder=Lengths(strict=False)).num_passages == 2


def test_a_change_with_a_passage_without_words_is_refused_before_anything_is_added(tmp_path: Path) -> None:
    hf.Index.from_texts(ROWS[:1], encoder=Lengths()).save(tmp_path / "index")
    with hf.Index.open(tmp_path / "index", writable=True, encoder=Lengths()) as live:
        with refused(InputError, "empty", "text", given="e"), live.change() as change:
            change.add_passages([{"id": "d", "text": "The sea."}, {"id": "e", "text": ""}])
        assert live.refresh().num_passages == 1


def test_the_command_line_names_it_too(tmp_path: Path, output_of: Any, refused_here: Any) -> None:
    pytest.importorskip("wordllama", reason=CLI)
    rows = write_jsonl(tmp_path / "rows.jsonl", ROWS)
    out = ("--encoder", "wordllama", "--out", tmp_path / "index")
    assert refused_here("build", rows, *out) == NO_WORDS
    assert refused_here("build", rows, "--reader", "words", *out) == NO_WORDS
    output_of("build", write_jsonl(tmp_path / "some.jsonl", [{"id": "z", "text": "The sea."}]), *out)
    assert refused_here("add", tmp_path / "index", rows, "--batch", 1) == NO_WORDS
    odd = write_jsonl(tmp_path / "odd.jsonl", [{"id": "d", "text": 5}])
    assert refused_here("add", tmp_path / "index", odd) == about("type", "text", column="text", given=5, place="line 1")
    assert hf.Index.open(tmp_path / "index").num_passages == 1


@pytest.mark.parametrize("text", ["", " \t\n"])
def test_a_question_without_words_is_named(text: str) -> None:
    index = hf.Index.from_texts(ROWS[:1], encoder=Lengths())
    recipe = HybridRRF(index, encoder=Lengths())
    with refused(InputError, "empty", "queries[1]"):
        recipe.search(["What river?", text])
    assert len(HybridRRF(index, encoder=Lengths(strict=False)).search(["What river?", text])) == 2
    assert len(recipe.search(["What river?", text], vectors=[[1.0, 0.0], [0.0, 1.0]])) == 2
    with refused(InputError, "type", "queries[1]", given="int"):
        recipe.search(["What river?", 5])  # type: ignore[list-item]


def test_a_query_without_words_is_named_before_any_is_scored(tmp_path: Path, refused_here: Any) -> None:
    pytest.importorskip("wordllama", reason=CLI)
    hf.Index.from_texts(ROWS[:1], encoder=hf.encoders.WordLlamaEncoder()).save(tmp_path / "index")
    queries = write_jsonl(tmp_path / "queries.jsonl", [{"text": "What river?"}] * 300 + [{"id": "q", "text": ""}])
    line = refused_here("score", tmp_path / "index", "--queries", queries, "--out", tmp_path / "out.jsonl")
    assert line == about("empty", "text", place="line 301")
    assert not list(tmp_path.glob("out*"))


def test_only_texts_can_be_searched_by_their_words() -> None:
    index = hf.Index.from_texts(ROWS)
    with refused(InputError, "missing", "words"):
        hf.Retriever(index, words="none")
    retriever = hf.Retriever(index)
    assert [[hit.id for hit in row] for row in retriever.search(["river?", "?"], k=1)] == [["a"], []]
    with refused(InputError, "empty", "questions[1]"):
        retriever.search(["river?", ""], k=1)
    with refused(InputError, "choice", "kind", given="fts"):
        hf.lexical.words_of(index, "fts")
