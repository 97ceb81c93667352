"""``--words``: BM25 of the index or computed at the start, SQLite's if chosen or if there is no other."""

from __future__ import annotations

import sys

import hopfuse as hf
import pytest
from cli.cli_files import about, read_jsonl, write_jsonl
from cli.recipe_files import by_hand, rows_of, scoring
from hopfuse.errors import MissingExtraError
from hopfuse.lexical import BM25, FTS5, words_of
from refusals import refused as raises_refusal

for package in ("bm25s", "Stemmer"):
    pytest.importorskip(package, reason=f"{package} is not installed: pip install 'hopfuse[text]'")

PASSAGES = [("Alien", "a film of the sea"), ("Scott", "films, filmed"), ("Sea", "by the river")]
TEXTS = [f"{title}\n{text}" for title, text in PASSAGES]
ASKED = ["Which film is by the sea?", "Who is Scott?", "?"]


@pytest.fixture
def plain():
    return hf.Index.build(passages=[{"title": title, "text": text} for title, text in PASSAGES])


def same(leg, other) -> bool:
    mine, theirs = leg.search(ASKED, 3), other.search(ASKED, 3)
    return type(leg) is type(other) and (mine.ids == theirs.ids).all() and (mine.scores == theirs.scores).all()


def test_the_indexs_own_words_come_first(plain) -> None:
    own = plain.with_lexical(BM25.build(TEXTS, k1=0.5, stemmer=None).matrix)
    for kind in (None, "bm25"):
        assert same(words_of(own, kind), BM25(own.lexical))
        assert not same(words_of(own, kind), BM25.build(TEXTS))
    assert same(words_of(own, "fts5"), FTS5.build(TEXTS))


def test_an_index_without_words_has_them_counted(plain) -> None:
    assert same(words_of(plain), BM25.build(TEXTS))
    assert same(words_of(plain, "bm25"), BM25.build(TEXTS))
    assert same(words_of(plain, "fts5"), FTS5.build(TEXTS))


@pytest.mark.parametrize("package", ["bm25s", "Stemmer"])
def test_without_its_packages_sqlite_counts(plain, monkeypatch, package) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert same(words_of(plain), FTS5.build(TEXTS))
    with raises_refusal(MissingExtraError, "missing_extra", extra="text"):
        words_of(plain, "bm25")


@pytest.mark.parametrize("recipe", ["hybrid-rrf", "phase-graph"])
@pytest.mark.parametrize("kind", ["bm25", "fts5"])
def test_a_recipe_has_the_words_that_are_asked_for(memory, output_of, tmp_path, recipe, kind) -> None:
    output_of(*scoring(memory, recipe, tmp_path / "out.jsonl", "--words", kind))
    index = hf.Index.open(memory / "index")
    texts = [f"{title}\n{text}" for title, text in zip(index.titles, index.texts, strict=True)]
    leg = BM25.build(texts) if kind == "bm25" else FTS5.build(texts)
    found, names = by_hand(memory, recipe, lexical=leg)
    assert [row["hits"] for row in read_jsonl(tmp_path / "out.jsonl")] == rows_of(found, names)


@pytest.mark.parametrize("kind", ["bm25", "fts5"])
def test_a_query_without_text_is_refused(memory, refused_here, tmp_path, kind) -> None:
    write_jsonl(tmp_path / "q.jsonl", [{"id": "q", "entities": ["Alien"]}, {"text": "a"}, {"text": "b"}])
    args = scoring(memory, "hybrid-rrf", tmp_path / "o.jsonl", "--words", kind)
    line = refused_here(*(tmp_path / "q.jsonl" if arg == memory / "queries.jsonl" else arg for arg in args))
    assert line == about("missing", "text", place="line 1")


def test_words_can_be_left_out(memory, output_of, refused_here, tmp_path) -> None:
    out = tmp_path / "out.jsonl"
    output_of(*scoring(memory, "hybrid-rrf", out, "--words", "none"))
    found, names = by_hand(memory, "hybrid-rrf", lexical=None)
    assert [row["hits"] for row in read_jsonl(out)] == rows_of(found, names)
    line = refused_here(*scoring(memory, "policy-rag", out, "--words", "fts5", "--overwrite"))
    assert line == about("unused", "words", recipe="policy-rag")
