"""An index goes on under the rule by which it was read: searched, added to and merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hopfuse as hf
import pytest
from hopfuse.extract import WordMatcher, WordReader, build_memory
from hopfuse.lexical import BM25
from hopfuse.text import NAME_RULE, RULE

pytest.importorskip("bm25s", reason="BM25 needs bm25s (extra text)")
pytest.importorskip("Stemmer", reason="the default stemmer is PyStemmer's (extra text)")

#: Written by hopfuse 0.1.0 from these texts, with words and BM25; its answers are below.
FIRST = Path(__file__).parents[1] / "golden" / "rules" / "rule-1.hopfuse"
TEXTS = [
    "Rivers flow into the sea.",
    "A river is long, and 3.14 is pi in snake_case.",
    "दिल्ली भारत की राजधानी है",
    "Le cafe\u0301 de la gare; café.",
    "Daten\u00adbank und Datenbank",
    "艾瑞克能打开哪里",
    "İstanbul ﬁle",
]
QUESTIONS = [
    "Where do rivers flow?",
    "दिल्ली राजधानी",
    "cafe",
    "café",
    "Daten\u00adbank",
    "Datenbank",
    "3.14 snake_case",
    "艾瑞克",
    "İstanbul",
]
PASSAGES = [[0, 1], [2], [3], [3], [4], [4], [1], [], [6]]
WORDS: list[list[str]] = [
    ["rivers", "flow"],
    ["दिल्ली", "राजधानी"],
    [],
    ["café"],
    ["daten", "bank"],
    ["datenbank"],
    ["3.14", "snake", "case"],
    [],
    ["i̇stanbul"],
]


@pytest.fixture
def first(tmp_path: Path) -> Path:
    (tmp_path / "generation-000000000001.hopfuse").write_bytes(FIRST.read_bytes())
    (tmp_path / "CURRENT").write_bytes(b"generation-000000000001.hopfuse\n")
    return tmp_path


def found(index: hf.Index) -> list[list[int]]:
    assert index.lexical is not None
    hits = BM25(index.lexical).search(QUESTIONS, 9)
    return [row[:count] for row, count in zip(hits.ids.tolist(), hits.counts.tolist(), strict=True)]


def named(index: hf.Index) -> list[list[str]]:
    return [[index.entity_names[match.entity] for match in row] for row in WordMatcher(index).match(QUESTIONS)]


def rules(index: hf.Index) -> tuple[Any, ...]:
    assert index.words is not None
    assert index.lexical is not None
    return index.name_rule, index.words.rule, index.lexical.rule


def test_an_index_of_the_first_rule_answers_as_before(first: Path) -> None:
    index = hf.Index.open(first, verify="full")
    assert rules(index) == (1, 1, 1)
    assert list(index.texts) == TEXTS
    assert found(index) == PASSAGES
    assert named(index) == WORDS


def test_what_is_added_is_read_by_the_rule_of_the_index(first: Path) -> None:
    with hf.Index.open(first, writable=True) as live:
        assert live.index.words is not None
        rows = [{"id": "new", "text": "Daten\u00adbank 艾瑞克能打开哪里"}]
        memory = build_memory(WordReader.like(live.index.words).read(rows))
        with live.change() as change:
            change.add_passages(rows)
            change.add_memory(memory)
        index = live.refresh()
        added = [row + [7] * (at == 4) for at, row in enumerate(PASSAGES)]
        assert [sorted(row) for row in found(index)] == added
        assert named(index) == WORDS
        live.compact()
        again = live.refresh()
        assert (rules(again), found(again), named(again)) == ((1, 1, 1), found(index), WORDS)


def test_a_new_index_is_read_by_the_new_rule() -> None:
    index = hf.Index.build(passages=[{"text": text} for text in TEXTS], reader="words", lexical=True)
    assert rules(index) == (NAME_RULE, RULE, RULE)
    assert found(index) == [[0, 1], [2], [3], [3], [4], [4], [1], [5], [6]]
    assert named(index) == [
        ["rivers", "flow"],
        ["दिल्ली", "राजधानी"],
        ["café"],
        ["café"],
        ["datenbank"],
        ["datenbank"],
        ["3.14", "snake", "case"],
        ["艾瑞", "瑞克"],
        ["istanbul"],
    ]
