"""Names in questions, linked as a person would read them."""

from __future__ import annotations

import string
from itertools import pairwise

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.extract import EntityLinker, Match
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

pytest.importorskip("ahocorasick", reason="names are found by pyahocorasick (extra text)")

NAMES = ("Of", "Time", "Reading", "Tbilisi", "New York", "York", "New York City", "US", "São Paulo", "St. Louis")
NAMES += (
    "Saint-Denis",
    "Bank of England",
    "The Who",
    "İzmir",
    "Ἀθῆναι",
    "first",
    "Mercury",
    "Mercury (planet)",
    "上海",
    "Same",
)
ALIASES = {"Tbilisi": ["Tiflis"], "Mercury (planet)": ["Mercury"], "US": ["U.S."]}
PLAIN = "What time is it? The time of reading matter is the time of day, and of the first time."


def build(texts=(), names=NAMES, aliases=None, also=()):
    """An index with a passage for each name, which is about it, and others; ``also``: (passage, entity) joined."""
    own = [f"{name} is a place." for name in names]
    aliases = {name: others for name, others in ALIASES.items() if name in names} if aliases is None else aliases
    passages = len(own) + len(texts)
    edges = [(p, passages + p) for p in range(len(own))] + [(p, passages + e) for p, e in also]
    return hf.Index.build(
        passages=[{"text": text} for text in (*own, *texts)], entities=list(names), aliases=aliases, graph=rows(edges)
    )


def rows(edges):
    return [{"src": src, "dst": dst} for src, dst in edges]


@pytest.fixture(scope="module")
def linker():
    return EntityLinker(build([PLAIN] * 60))


def surfaces(linker, question, **options):
    return [match.surface for match in linker.match([question], **options)[0]]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What is the currency of the country where Tbilisi is?", ["Tbilisi"]),
        ("what is the currency of the country where tbilisi is", ["tbilisi"]),
        ("WHAT IS THE CURRENCY OF THE COUNTRY WHERE TBILISI IS", ["TBILISI"]),
        ("What Is The Currency Of The Country Where Tbilisi Is?", ["Tbilisi"]),
        ("Tbilisi?", ["Tbilisi"]),
        ("tbilisi's currency", ["tbilisi"]),
        ("What is Tbilisi's currency, and Tiflis’ own?", ["Tbilisi", "Tiflis"]),
        ("Tbilisi-based firms", ["Tbilisi"]),
        ("at what time is reading of interest in Tbilisi", ["Tbilisi"]),
        ("What is the country where Of is?", ["Of"]),
        ("Is Of in the country of Time?", ["Of", "Time"]),
        ("Of which country is Tbilisi?", ["Tbilisi"]),
        ("Who wrote The Fellowship Of The Ring in Tbilisi?", ["Tbilisi"]),
        ("Lord Of war and Tbilisi are what", ["Tbilisi"]),
        ("Where do I find out about tbilisi", ["tbilisi"]),
        ("us or US, which of us is from the US?", ["US", "US"]),
        ("What does Us say to the US?", ["US"]),
        ("the time of TIME in a word", ["TIME"]),
        ("Is it New York City, New York or York?", ["New York City", "New York", "York"]),
        ("is new york city in new york", ["new york city", "new york"]),
        ("is york new", ["york"]),
        ("is são paulo or sao paulo big", ["são paulo", "sao paulo"]),
        ("IS SÃO PAULO OR SAO PAULO BIG", ["SÃO PAULO", "SAO PAULO"]),
        ("How big is Sao Paulo or St Louis or Saint Denis?", ["Sao Paulo", "St Louis", "Saint Denis"]),
        ("st louis and saint-denis and st. louis", ["st louis", "saint-denis", "st. louis"]),
        ("Is the Bank Of England or the bank of england old?", ["Bank Of England"]),
        ("who is in The Who", ["The Who"]),
        ("who are the who", []),
        ("where is izmir", ["izmir"]),
        ("Where is Izmir, İZMIR or İzmir?", ["Izmir", "İZMIR", "İzmir"]),
        ("Is Ἀθῆναι or ἈΘΗ͂ΝΑΙ or αθηναι a town?", ["Ἀθῆναι", "ἈΘΗ͂ΝΑΙ"]),
        ("where is 上海 ?", ["上海"]),
        ("of the and in it, where", []),
        ("OF THE AND IN IT", []),
        ("", []),
        (" \n\t", []),
        ("?!.,;:'’", []),
    ],
)
def test_names_are_read_as_a_person_reads_them(linker, question, found):
    assert surfaces(linker, question) == found


CODES = {
    "Italy": [".it", "+39", "IT", "ITA"],
    "Iceland": [".is", "+354", "IS"],
    "India": [".in", "+91", "IN", "IND"],
    "Norway": [".no", "+47", "NO"],
    "Svalbard": ["+47", ".sj"],
    "Germany": [".de", "+49", "DE"],
    "Bahamas": ["+1-242", ".bs"],
    "United States of America": ["USA", ".us", "+1"],
    "Turkish Lira": ["TRY"],
    "Pa'anga": ["TOP"],
    "Lek": ["ALL"],
    "Euro": ["EUR"],
}


@pytest.fixture(scope="module")
def codes():
    return EntityLinker(build((), tuple(CODES), CODES))


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("is it in de facto use, or no", []),
        ("what is it in", []),
        ("IS IT IN USE, OR NO", []),
        ("Is it in Germany, or no?", ["Germany"]),
        ("Rio de Janeiro or no", []),
        ("what should i try all day on top", []),
        ("WHERE DO I TRY ALL OF IT", []),
        ("Where do I try all the tops?", []),
        ("Try it on top of India", ["India"]),
        ("Is it 39, 47 or 354?", []),
        ("39 times 91", []),
        ("a++39 b+39c", []),
        ("which country has the domain .it", [".it"]),
        ("WHICH COUNTRY HAS THE DOMAIN .IT?", [".IT"]),
        (".de is the domain of which country?", [".de"]),
        ("Whose are .is, .in and .no?", [".is", ".in", ".no"]),
        ("this is the end.it is over", []),
        ("A call from +39, where is that?", ["+39"]),
        ("+49 country", ["+49"]),
        ("+1-242 or +1 242 or +1", ["+1-242", "+1 242", "+1"]),
        ("call +391", []),
        ("where can i pay with EUR", ["EUR"]),
        ("Where can I pay with EUR or TRY?", ["EUR", "TRY"]),
        ("EUR is used where?", ["EUR"]),
        ("where can i pay with eur", []),
        ("what is the capital of the usa", ["usa"]),  # the initials of the name
        ("What's the capital of the USA", ["USA"]),
        ("what is IND", ["IND"]),
        ("what's the EUR in italy", ["EUR", "italy"]),
    ],
)
def test_codes_are_names_with_their_sign_or_in_capitals(codes, question, found):
    assert list(dict.fromkeys(surfaces(codes, question))) == found


def test_a_calling_code_of_two_countries_gives_both(codes):
    (found,) = codes.match(["who has the calling code +47"])
    assert [list(CODES)[match.entity] for match in found] == ["Norway", "Svalbard"]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("what is the ISO number used in tbilisi", ["tbilisi"]),
        ("what is the ISO time in tbilisi", ["tbilisi"]),
        ("What is the ISO number of time?", []),
        ("which GPS is in time", ["time"]),
        ("at what time is the BBC News of Time", ["Time"]),
    ],
)
def test_a_word_in_capitals_says_nothing_about_the_others(linker, question, found):
    assert surfaces(linker, question) == found


def test_a_word_that_begins_a_question_is_in_doubt_as_in_one_case():
    linker = EntityLinker(build([PLAIN] * 2, ("Reading", "Tbilisi")), least=0.2)
    found = linker.match(["Reading is in which country, and is Tbilisi?", "where is reading"])
    assert [(m.surface, m.confidence) for m in found[0]] == [("Reading", 1 / 3), ("Tbilisi", 1.0)]
    assert [(m.surface, m.confidence) for m in found[1]] == [("reading", 1 / 3)]


def test_the_confidence_is_the_share_of_passages_that_are_about_the_name():
    texts = ["a reading room", "reading on, Reading", "Reading by train", "rereading", "readings", "in Reading"]
    index = build(texts, ("Reading",), also=[(3, 0), (6, 0)])
    (found,) = EntityLinker(index).match(["where is reading"])[0]
    assert found == Match(0, "reading", 9, 16, "exact", 3 / (3 + 2))
    (sure,) = EntityLinker(index).match(["Where is the town of Reading?"])[0]
    assert sure.confidence == 1.0
    assert surfaces(EntityLinker(index, least=0.6), "Reading is in which country") == ["Reading"]
    assert surfaces(EntityLinker(index, least=0.7), "Reading is in which country") == []


@pytest.mark.parametrize("common", [0, 3, 7, 8, 9, 10, 11, 300])
def test_a_match_below_the_least_confidence_does_not_count(common):
    linker = EntityLinker(build(["time after time"] * common, ("Time", "Praha")), least=0.1)
    expected = 1 / (1 + common)
    found = {m.surface: m.confidence for m in linker.match(["time in praha"])[0]}
    assert found == {"praha": 1.0} | ({"time": expected} if expected >= 0.1 else {})


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("what is the currency of the country where time is", ["time"]),
        ("WHAT IS THE CURRENCY OF THE COUNTRY WHERE TIME IS", ["TIME"]),
        ("which currency is used in time?", ["time"]),
        ("which clocks are used in time, and why", ["time"]),
        ("is reading in the country of time", ["reading"]),  # the more certain of two
        ("what time is it", []),
        ("which time is it", []),
        ("in which time lies the town", ["time"]),
        ("what is the country's time", []),
        ("when is time of interest", ["time"]),
        ("on time out", ["time"]),
        ("does time fly", ["time"]),
        ("does local time apply", []),
        ("is reading matter", []),  # as in the passages
        ("where time is", ["time"]),
        ("Where time is", []),  # whoever writes capitals would write "Time"
        ("where time is in tbilisi", ["tbilisi"]),
        ("which languages are spoken where of is", ["of"]),
        ("WHICH LANGUAGES ARE SPOKEN WHERE OF IS", ["OF"]),
        ("what is the capital of the country of of", ["of"]),
        ("does of have a port", ["of"]),
        ("is reading in the country of of", ["reading"]),
        ("which code has the country that of belongs to", ["of"]),
        ("which countries border the country where of lies", ["of"]),
        ("what is the country of same", ["same"]),
        ("does same have a port", ["same"]),
        ("is it the same", []),
        ("in the same country", []),
        ("what is of interest", []),
        ("which town is it part of", []),
        ("what is the country i am in made of", []),
    ],
)
def test_the_only_name_of_a_question_in_one_case_may_be_a_common_word(linker, question, found):
    assert surfaces(linker, question) == found


def test_the_only_name_keeps_its_small_confidence():
    index = build([PLAIN] * 60)
    for question, plain in (("where is time", 60), ("where of is", 61)):  # "Bank of England" has the word too
        (found,) = EntityLinker(index).match([question])[0]
        assert found.confidence == 1 / (1 + plain)


def test_a_name_that_no_passage_is_about_is_doubted_where_the_texts_have_the_word():
    index = hf.Index.build(
        passages=[{"text": "a time"}, {"text": "Praha"}],
        entities=["Time", "Praha"],
        graph=rows([(1, 3)]),
    )
    assert surfaces(EntityLinker(index), "time in praha") == ["praha"]


def test_a_filter_counts_and_knows_what_an_index_of_the_passages_alone_does():
    texts = ["time after time", "Time and Bath", "a time", "the bath", "New Bath"]
    names = ("Time", "Bath", "New Bath")
    rng = np.random.default_rng(3)
    own = [f"{name} is a place." for name in names]
    questions = ["time and new bath", "What is New Bath, or Bath, at the time?", "bath", "Time and new Bath is what"]
    edges = [(0, 0), (1, 1), (2, 2), (4, 0), (4, 1), (7, 2)]
    linker = EntityLinker(build(texts, names, also=edges[3:]))
    for _ in range(40):
        mask = rng.random(8) < 0.6
        kept = np.flatnonzero(mask).tolist()
        entities = sorted({e for p, e in edges if p in kept})
        alone = hf.Index.build(
            passages=[{"text": (own + texts)[p]} for p in kept],
            entities=[names[e] for e in entities],
            graph=rows((kept.index(p), len(kept) + entities.index(e)) for p, e in edges if p in kept),
        )
        expected = [
            [m._replace(entity=entities[m.entity]) for m in row] for row in EntityLinker(alone).match(questions)
        ]
        assert linker.match(questions, allow=mask) == expected
        assert linker.match(questions, allow=[mask] * 4) == expected
        assert linker.match(questions[:1], allow=kept) == expected[:1]


def test_every_question_is_linked_by_itself(linker):
    questions = ["where is time", "Where is Time?", "New York", "", "of", "us"]
    assert linker.match(questions) == [linker.match([question])[0] for question in questions]
    assert linker.match(questions[::-1]) == linker.match(questions)[::-1]


def test_one_name_of_several_entities_gives_them_all(linker):
    assert [(m.entity, m.kind) for m in linker.match(["Is Mercury near?"])[0]] == [(16, "exact"), (17, "alias")]
    assert [m.entity for m in linker.match(["Is Mercury (planet) near?"])[0]] == [17]


def test_names_in_lower_case_are_in_doubt():
    linker = EntityLinker(build(["the first", "first"], ("first",)), least=0.1)
    assert [m.confidence for m in linker.match(["Who was first in Rome?"])[0]] == [1 / 3]
    assert linker.match(["Who was the First Lady in Rome?"]) == [[]]


def test_other_function_words_and_short_names():
    index = build(names=("Der", "X", "Ulm"))
    assert surfaces(EntityLinker(index), "wo ist der dom von ulm") == ["der", "ulm"]
    assert surfaces(EntityLinker(index, function_words=["der"]), "wo ist der dom von ulm") == ["ulm"]
    assert surfaces(EntityLinker(index, min_length=1), "x") == ["x"]
    assert surfaces(EntityLinker(index), "x") == []


def test_an_index_without_a_graph_has_nothing_to_doubt_by():
    index = hf.Index.build(passages=[{"text": "time"}], entities=["Time", " "])
    assert [m.confidence for m in EntityLinker(index).match(["what is time"])[0]] == [1.0]
    assert repr(EntityLinker(index)) == "EntityLinker(surfaces=1, least=0.4)"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"min_length": 0}, ("range", "min_length", {"given": 0})),
        ({"function_words": "of"}, ("type", "function_words", {"given": "str"})),
        ({"least": 1.5}, ("range", "least", {"given": 1.5})),
        ({"least": 0}, ("range", "least", {"given": 0})),
        ({"least": True}, ("range", "least", {"given": True})),
    ],
)
def test_bad_options_are_refused(options, error):
    with refused(InputError, *error):
        EntityLinker(build(), **options)


@pytest.mark.parametrize(
    ("texts", "allow", "error"),
    [
        ("a", None, ("type", "texts", {"given": "str"})),
        ([1], None, ("type", "texts[0]", {"given": "int"})),
        (["a"], [99], ("unknown", "allow", {"given": 99})),
    ],
)
def test_bad_questions_and_filters_are_refused(linker, texts, allow, error):
    with refused(InputError, *error):
        linker.match(texts, allow=allow)


PIECES = st.sampled_from([*NAMES, "of", "the", "in", "reading", "time", "Where", "is", "-", "'s", "?", ". ", "I"])


@given(st.lists(st.one_of(PIECES, st.text(string.printable, max_size=3)), max_size=9), st.sampled_from(["", " "]))
def test_mentions_of_any_question_stand_where_they_say_and_do_not_overlap(linker, pieces, joint):
    text = joint.join(pieces)
    found = linker.match([text, text.lower(), text.upper()])
    for row, written in zip(found, (text, text.lower(), text.upper()), strict=True):
        for match in row:
            assert match.surface == written[match.start : match.end]
            assert 0.4 <= match.confidence <= 1 or len({match.start for match in row}) == 1
        places = sorted({(match.start, match.end) for match in row})
        assert all(a[1] <= b[0] for a, b in pairwise(places))
