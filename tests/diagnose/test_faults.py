"""Each fault is found in an index that has it, and not in one that has not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.diagnose import Fault, drawn_rows, find_faults, language_of, script_of
from hopfuse.encoders import ArrayEncoder
from hopfuse.extract import WordReader, build_memory
from hopfuse.index import EncoderInfo, WordInfo
from hopfuse.text import RULE

for package in ("bm25s", "Stemmer"):
    pytest.importorskip(package, reason="lists of stop words and stems")

TOWNS = ("Lima", "Oslo", "Rome", "Bonn", "Kyiv", "Riga", "Cork", "Lyon", "Bari", "Graz")
ENGLISH = [f"The harbour of {town} is older than the town itself, and it was built by the sea." for town in TOWNS]
FRENCH = [f"Le port de {town} est dans la ville, et les bateaux ne sont pas dans le port." for town in TOWNS]
CHINESE = [f"{town}港口位于城市的南部，那里的船只每天早晨都会离开码头前往大海深处捕鱼" for town in TOWNS]


def words(texts: list[str], language: str | None = "english", rule: int = RULE) -> hf.Index:
    reader = WordReader.like(replace(WordReader(language).info, rule=rule))
    return build_memory(reader.read([{"text": text} for text in texts])).index()


def graph(texts: list[str], names: list[str], edges: list[tuple[int, int]], **more: Any) -> hf.Index:
    made = [{"src": a, "dst": len(texts) + b} for a, b in edges]
    return hf.Index.build(passages=[{"text": text} for text in texts], entities=names, graph=made, **more)


def named(name: str, every: int = 1) -> hf.Index:
    """A graph whose names are those of the towns, and one more that every n-th passage has."""
    edges = [(at, at) for at in range(10)] + [(at, 10) for at in range(0, 10, every)]
    return graph(ENGLISH, [*TOWNS, name], edges)


def encoded(texts: list[str], name: str, kept: list[str] | None = None) -> hf.Retriever:
    """A retriever whose encoder has vectors of ``texts``; the index has those of ``kept``."""
    rng = np.random.default_rng(0)
    of = {text: rng.normal(size=8) for text in {*texts, *(kept or [])}}
    encoder = ArrayEncoder(8, passages=of, queries=of, name=name)
    vectors = np.array([of[text] for text in kept or texts], np.float32)
    index = hf.Index.build(
        passages=[{"text": text} for text in texts], vectors=vectors, encoder=EncoderInfo(name, 8, True)
    )
    return hf.Retriever(index, encoder=encoder)


def texts(*given: str) -> hf.Index:
    return hf.Index.build(passages=[{"text": text} for text in given])


def lexical(given: list[str], language: str) -> hf.Index:
    index = hf.Index.build([{"text": text} for text in given])
    return index.with_lexical(hf.lexical.BM25.build(given, stopwords=language, stemmer=language).matrix)


def vectors(zeros: int) -> hf.Index:
    made = np.eye(10, dtype=np.float32)
    made[:zeros] = 0
    return hf.Index.build(passages=[{"text": text} for text in ENGLISH], vectors=made)


Made = Callable[[], hf.Index | hf.Retriever]
#: By what a fault says first: an index with it, how many it concerns and of how many, its example, and one without it.
CASES: dict[str, tuple[Made, tuple[int, int], str, Made]] = {
    "Passages without text": (lambda: texts(*ENGLISH, "", " "), (2, 12), "10", lambda: texts(*ENGLISH)),
    "Passages with the letters of an earlier one": (
        lambda: texts(*ENGLISH, ENGLISH[3].upper() + " 3!"),
        (1, 11),
        "10 and 3",
        lambda: texts(*ENGLISH),
    ),
    "Passages of 6 times the median length": (
        lambda: texts(*ENGLISH, " ".join(ENGLISH)),
        (1, 11),
        "10, ",
        lambda: texts(*ENGLISH, " ".join(ENGLISH[:3])),
    ),
    "Passages whose vectors are all zeros": (lambda: vectors(3), (3, 10), "0", lambda: vectors(0)),
    "Passages whose vectors are not those": (
        lambda: encoded(ENGLISH, "mine", kept=FRENCH),
        (10, 10),
        "6",
        lambda: encoded(ENGLISH, "mine"),
    ),
    "Passages in another language than english": (
        lambda: lexical(FRENCH, "english"),
        (10, 10),
        "6",
        lambda: lexical(ENGLISH, "english"),
    ),
    "Passages in another language than french": (
        lambda: words(ENGLISH, "french"),
        (10, 10),
        "6",
        lambda: words(FRENCH, "french"),
    ),
    "Passages in another language than that of the encoder": (
        lambda: encoded(FRENCH, "wordllama-256"),
        (10, 10),
        "6",
        lambda: encoded(FRENCH, "multilingual-e5"),
    ),
    "Passages in a script without spaces between words (Han)": (
        lambda: words(CHINESE, None, rule=1),
        (10, 10),
        "6",
        lambda: words(CHINESE, None),
    ),
    "Passages in which no reader found": (
        lambda: graph(ENGLISH, ["Oslo"], [(1, 0)]),
        (9, 10),
        "0",
        lambda: named("sea"),
    ),
    "Names of a single passage": (
        lambda: named("sea", every=10),
        (11, 11),
        "'Lima'",
        lambda: graph(ENGLISH, ["A", "B"], [(at, at % 2) for at in range(10)]),
    ),
    "Function words among the names": (
        lambda: named("of the"),
        (1, 11),
        "'of the', in 10 passages",
        lambda: named("Will"),
    ),
}


def of(found: list[Fault], what: str) -> list[Fault]:
    return [fault for fault in found if fault.what.startswith(what)]


@pytest.mark.parametrize("what", CASES)
def test_a_fault_is_found_where_it_is(what: str) -> None:
    faulty, counts, example, sound = CASES[what]
    (fault,) = of(find_faults(faulty()), what)
    assert (fault.count, fault.total) == counts
    assert fault.example.startswith(example)
    assert str(fault).startswith(f"{fault.what}: {fault.count:,} of {fault.total:,} (")
    assert fault.fix in str(fault)
    assert fault.to_dict()["share"] == fault.count / fault.total
    assert not of(find_faults(sound()), what)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (97, "97 of 1,000 (10 %)"),
        (94, "94 of 1,000 (9 %)"),
        (1, "1 of 1,000 (0.1 %)"),
        (1000, "1,000 of 1,000 (100 %)"),
    ],
)
def test_a_share_is_said_in_digits(count: int, said: str) -> None:
    assert f": {said}. " in str(Fault("Texts", count, 1000, "Why.", "a", "Fix."))


def test_nothing_is_wrong_with_good_data() -> None:
    assert find_faults(words(ENGLISH)) == []
    assert find_faults(hf.Index.build(passages=[])) == []


def test_words_of_another_language_than_they_were_read_in_are_function_words() -> None:
    (fault,) = of(find_faults(words(FRENCH)), "Function words")
    assert fault.example.endswith("in 10 passages")
    assert "french" in fault.fix
    assert not of(find_faults(words(FRENCH, "french")), "Function words")
    own = words(ENGLISH)
    assert own.words is not None
    assert isinstance(own.words, WordInfo)
    assert own.words.stemmer == "english"


def test_related_languages_are_not_told_apart() -> None:
    danish = [f"Havnen i {town} er ikke så gammel som byen, men den har været der i mange år." for town in TOWNS]
    assert not of(find_faults(lexical(danish, "danish")), "Passages in another language")
    assert not of(find_faults(lexical(danish, "norwegian")), "Passages in another language")
    assert of(find_faults(lexical(danish, "english")), "Passages in another language")


def test_the_share_of_long_texts_counts_beside_their_length() -> None:
    """One long passage of many has little of the text, so that little is lost by it."""
    many = [f"The harbour of town {at} is older than the town itself." for at in range(100)]
    long, longest = " ".join(many[:9]), " ".join(many)
    assert not of(find_faults(texts(*many, long)), "Passages of 6 times")
    assert of(find_faults(texts(*many, long, longest)), "Passages of 6 times")[0].count == 2


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH[0], "english"),
        (FRENCH[0], "french"),
        ("Der Hafen ist nicht in der Stadt, und die Schiffe sind auf dem Meer und nicht bei uns.", "german"),
        ("El puerto no está en la ciudad, y los barcos que hay en el mar son de otros.", "spanish"),
        ("Порт не в городе, и он был там всегда, но не для нас и не для вас.", "russian"),
        ("Lima Oslo Rome Bonn Kyiv Riga Cork Lyon Bari", None),
        ("The sea.", None),
    ],
)
def test_languages_are_told_by_their_stop_words(text: str, language: str | None) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("text", "script"),
    [(CHINESE[0], "Han"), ("ひらがなで書く", "kana"), ("Москва", "Cyrillic"), ("Ἀθῆναι", "Greek"), ("ᚠᚢᚦ", "other")],
)
def test_scripts_are_those_of_most_letters(text: str, script: str) -> None:
    assert script_of(text) == script


def test_rows_are_drawn_by_their_ids() -> None:
    rows = [{"id": f"p{at}", "text": text} for at, text in enumerate(ENGLISH)]
    index = hf.Index.build(passages=rows)
    drawn = drawn_rows(index)
    assert sorted(drawn) == list(range(10))
    assert drawn != list(range(10))
    turned = hf.Index.build(passages=rows[::-1])
    assert [index.passage_ids[row] for row in drawn] == [turned.passage_ids[row] for row in drawn_rows(turned)]
