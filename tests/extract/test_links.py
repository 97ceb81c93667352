"""Edges that no fact states: from titles, within sentences, and given explicitly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hopfuse.errors import InputError
from hopfuse.extract import Extraction, Predicates, SpacyReader, build_memory
from refusals import refused

TEXT = "Ada met Bob in Rome. Bob knew Cleo."
NAMED = ("Ada", "Bob", "Rome", "Cleo")
#: How many names may be between the ends of a link within a sentence.
MOST_APART = 8


def reader(names: Sequence[str], *links: str) -> SpacyReader:
    """Return a reader whose model finds these names as persons, ends sentences at full stops, and parses nothing."""
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'hopfuse[spacy]'")

    def tag(doc: Any) -> Any:
        for token in doc:
            token.pos_ = "PROPN" if token.text[:1].isupper() else "NOUN"
        return doc

    model = spacy.blank("en")
    spacy.Language.component("capitals", func=tag)
    for name, kind in (("tagger", "capitals"), ("parser", "sentencizer"), ("attribute_ruler", "capitals")):
        model.add_pipe(kind, name=name)
    patterns = [{"label": "PERSON", "pattern": name} for name in (*names, "nobody")]  # it warns if it has none
    model.add_pipe("entity_ruler", name="ner").add_patterns(patterns)
    return SpacyReader(model, links=links)


def test_a_title_is_linked_to_the_names_in_its_passage() -> None:
    (found,) = reader(NAMED, "title").read([{"title": "Ada", "text": TEXT}])
    assert found.links == tuple(("title", "Ada", name) for name in ("Bob", "Rome", "Cleo"))
    assert reader(NAMED, "title").read([{"text": TEXT}])[0].links == ()


def test_names_in_a_sentence_are_linked() -> None:
    (found,) = reader(NAMED, "sentence").read([{"title": "Ada", "text": TEXT}])
    pairs = [("Ada", "Bob"), ("Ada", "Rome"), ("Bob", "Rome"), ("Bob", "Cleo")]
    assert found.links == tuple(("sentence", *pair) for pair in pairs)


def test_a_long_list_of_names_has_few_pairs() -> None:
    names = [f"n{at:03}" for at in range(100)]
    listed, titled = reader(names, "title", "sentence").read(
        [{"text": " ".join(names)}, {"title": "n000", "text": " ".join(names)}]
    )
    pairs = {(names.index(a), names.index(b)) for kind, a, b in listed.links if kind == "sentence"}
    assert pairs == {(a, b) for a in range(100) for b in range(a + 1, min(100, a + MOST_APART + 1))}
    assert sum(kind == "title" for kind, *_ in titled.links) == 99


def test_whole_titles_are_sure_and_shared_short_ones_are_not() -> None:
    titles = ("Blue Train (album)", "Blue Train (ship)", "Red Line (film)", "Marley (film)", "Oslo", " ")
    text = "Blue Train, Red Line, Marley and Oslo"
    found = reader((), "title").read([{"title": title, "text": text} for title in titles])
    assert [one.entities for one in found] == [
        ("Blue Train (album)", "Blue Train", "Red Line", "Oslo"),
        ("Blue Train (ship)", "Blue Train", "Red Line", "Oslo"),
        ("Red Line", "Oslo"),
        ("Marley", "Red Line", "Oslo"),
        ("Oslo", "Red Line"),
        ("Red Line", "Oslo"),
    ]
    small = reader((), "title").read([{"title": title, "text": "blue train"} for title in titles])
    assert [one.entities for one in small][2:] == [("Red Line",), ("Marley",), ("Oslo",), ()]
    assert reader((), "title").read([{"text": "anything"}])[0].entities == ()


def test_links_become_typed_edges_weighted_by_passages() -> None:
    memory = build_memory(
        [
            Extraction("a", "Ada", "", ("Ada", "Bob"), links=(("title", "Ada", "Bob"), ("title", "Bob", "ada"))),
            Extraction("b", "Ada", "", ("ADA", "Bob"), links=(("title", "Ada", "Bob"), ("sentence", "Ada", "Cleo"))),
            Extraction("c", "", "", (), links=(("sentence", "Ada", "the Ada"),)),
        ]
    )
    assert memory.entities == ("Ada", "Bob", "Cleo")
    assert {kind: rows.tolist() for kind, rows in memory.links.items()} == {
        "title": [[0, 1, 2]],
        "sentence": [[0, 2, 1]],
    }
    assert memory.mentions.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]]
    columns = zip(*(column.tolist() for column in memory.graph().edges()), strict=True)
    edges = [(min(src, dst), max(src, dst), weight, kind) for src, dst, weight, kind in columns]
    assert memory.graph().edge_type_names == ("context", "title", "sentence")
    assert (3, 4, 2.0, 1) in edges
    assert (3, 5, 1.0, 2) in edges
    assert memory.aliases[0] == ("ADA",)


def test_invalid_links_are_refused() -> None:
    for wrong in ([("title", "Ada")], [("title", "Ada", "")], [("title", "Ada", 3)]):
        with refused(InputError, "shape", "links[0]"):
            Extraction("a", "", "", links=tuple(wrong))
    with refused(InputError, "type", "links"):
        Extraction("a", "", "", links="title")  # type: ignore[arg-type]
    for family in ("title", "sentence", "word", "sequence"):
        with refused(InputError, "conflict", "families"):
            Predicates({family: ("word",)})
