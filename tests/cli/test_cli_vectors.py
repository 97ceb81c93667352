"""``score`` and ``trace`` need vectors of the questions if the recipe, its mode or its policy reads them."""

from __future__ import annotations

import json

import hopfuse as hf
import pytest
from cli.cli_files import about, hopfuse, read_jsonl, write_jsonl
from cli.recipe_files import ASKED, QUESTION, explaining, scoring
from hopfuse.lexical import FTS5
from hopfuse.recipes import HybridRRF, Policy, PolicyRAG

BY_WORDS = ("--recipe", "triple-hybrid", "--option", "mode=lexical", "--words", "fts5")
TEXTS = ["Alien is a film.", "The sea is cold.", "Who was born by the sea?"]
NO_PASSAGES = "version = 1\n[seeds]\npassages = 0.0\n[switches]\ndense_fallback = false\n"


@pytest.fixture
def texts_alone(tmp_path):
    """An index of passages, with neither vectors nor a graph, and questions for it that name entities."""
    hf.Index.build(passages=[{"text": text} for text in TEXTS]).save(tmp_path / "texts")
    rows = [{"text": text, "entities": names} for text, names in ASKED]
    return tmp_path / "texts", write_jsonl(tmp_path / "asked.jsonl", rows)


def test_words_need_no_vector(memory, output_of, refused_here) -> None:
    asked = ("trace", memory / "index", QUESTION, *BY_WORDS)
    shown = output_of(*asked)
    assert "1. Alien" in shown
    assert "Seeds" not in shown, "nothing was near by vector"
    assert json.loads(output_of(*asked, "--json"))["hits"][0]["name"] == "Alien"
    noted = json.loads(output_of(*explaining(memory, *BY_WORDS[1:], "--json")))["notes"]
    assert [(one["code"], one["field"]) for one in noted] == [("unused", "vectors")]
    assert refused_here(*explaining(memory, *BY_WORDS[1:], "--strict")) == about("unused", "vectors")


def test_vectors_that_nothing_reads_are_noted(memory, refused_here, tmp_path) -> None:
    (tmp_path / "p.toml").write_text(NO_PASSAGES, encoding="utf-8")
    out = tmp_path / "out.jsonl"
    for recipe, more in (("triple-hybrid", BY_WORDS[2:]), ("policy-rag", ("--policy", tmp_path / "p.toml"))):
        args = scoring(memory, recipe, out, "--overwrite", *more)
        assert refused_here(*args, "--strict") == about("unused", "vectors[0]", place="line 1")
        said = hopfuse(*args).stderr
        assert "3 of 3 queries have notes, such as 0: vector is given" in said
        noted = [[(one["code"], one["field"]) for one in row["notes"]] for row in read_jsonl(out)]
        assert all(("unused", "vector") in row for row in noted)


@pytest.mark.parametrize("mode", ["hybrid", "graph", "vector"])
def test_other_modes_need_one(memory, refused_here, tmp_path, mode) -> None:
    more = ("--recipe", "triple-hybrid", "--option", f"mode={mode}")
    files = ("--queries", memory / "queries.jsonl", "--out", tmp_path / "out.jsonl")
    line = refused_here("score", memory / "index", *files, *more)
    assert line == about("missing", "encoder", place="queries.jsonl, line 1")
    assert refused_here("trace", memory / "index", QUESTION, *more) == about("missing", "encoder")


def test_texts_alone_need_none(texts_alone, output_of, refused_here, memory, tmp_path) -> None:
    index, queries = texts_alone
    more = ("--recipe", "hybrid-rrf", "--words", "fts5")
    files = (index, "--queries", queries, "--out", tmp_path / "out.jsonl")
    output_of("score", *files, *more)
    opened = hf.Index.open(index)
    own = HybridRRF(opened, lexical=FTS5.build([f"\n{text}" for text in TEXTS])).search([text for text, _ in ASKED])
    expected = [[{"id": opened.passage_ids[p], "score": s} for p, s in own.hits.row(b)] for b in range(len(ASKED))]
    assert [row["hits"] for row in read_jsonl(tmp_path / "out.jsonl")] == expected
    assert any(expected)
    assert "Lexical list of" in output_of("trace", index, "The cold sea", *more)
    given = ("--vectors", memory / "vectors.npy")
    assert refused_here("score", *files, *more, *given, "--overwrite", "--strict").field == "vectors[0]"


def test_an_encoder_of_which_nothing_reads_a_vector_is_refused(memory, texts_alone, refused_here, tmp_path) -> None:
    pytest.importorskip("wordllama")
    encoder = ("--encoder", "wordllama")
    asked = ("trace", memory / "index", QUESTION, *BY_WORDS)
    assert refused_here(*asked, *encoder) == about("unused", "encoder", recipe="triple-hybrid")
    index, queries = texts_alone
    more = ("--recipe", "hybrid-rrf", "--words", "fts5", "--queries", queries, "--out", tmp_path / "out.jsonl")
    assert refused_here("score", index, *more, *encoder) == about("unused", "encoder", recipe="hybrid-rrf")


def test_a_policy_that_reads_no_passages_vectors_needs_none(memory, output_of, tmp_path) -> None:
    (tmp_path / "p.toml").write_text(NO_PASSAGES, encoding="utf-8")
    files = ("--queries", memory / "queries.jsonl", "--out", tmp_path / "out.jsonl", "--policy", tmp_path / "p.toml")
    output_of("score", memory / "index", *files, "--recipe", "policy-rag")
    index = hf.Index.open(memory / "index")
    recipe = PolicyRAG(index, Policy.from_toml(NO_PASSAGES))
    own = recipe.search([text for text, _ in ASKED], entities=[names for _, names in ASKED], k=10)
    expected = [[{"id": index.passage_ids[p], "score": s} for p, s in own.hits.row(b)] for b in range(len(ASKED))]
    assert [row["hits"] for row in read_jsonl(tmp_path / "out.jsonl")] == expected
