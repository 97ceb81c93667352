"""Edges that no fact states: from titles, within sentences, and given explicitly."""

from __future__ import annotations

from hopfuse.errors import InputError
from hopfuse.extract import Extraction, Predicates, build_memory
from hopfuse.extract._spacy_links import LINKS, MAX_APART, links_of
from hopfuse.extract._spacy_names import Mention
from refusals import refused


def mentions(text: str, *names: str) -> list[Mention]:
    places = ((text.index(name), name) for name in names)
    return sorted(Mention(at, at + len(name), name) for at, name in places)


TEXT = "Ada met Bob in Rome. Bob knew Cleo."
NAMED = mentions(TEXT, "Ada", "Bob", "Rome", "Cleo")


def test_a_title_is_linked_to_the_names_in_its_passage() -> None:
    found = links_of(("title",), "ada", [20, 35], [*NAMED, Mention(21, 24, "Bob")], [])
    assert found == [("title", "ada", name) for name in ("Bob", "Rome", "Cleo")]
    assert links_of(("title",), "", [20, 35], NAMED, []) == []


def test_names_in_a_sentence_are_linked_unless_a_fact_links_them() -> None:
    again = sorted([*NAMED, Mention(21, 24, "Bob")])
    found = links_of(("sentence",), "Ada", [20, 35], again, [("Bob", "met", "The Ada")])
    assert found == [("sentence", "Ada", "Rome"), ("sentence", "Bob", "Rome"), ("sentence", "Bob", "Cleo")]


def test_a_long_list_of_names_has_few_pairs() -> None:
    names = [f"n{at:03}" for at in range(100)]
    text = " ".join(names)
    found = links_of(LINKS, "n000", [len(text)], mentions(text, *names), [])
    pairs = {(names.index(a), names.index(b)) for kind, a, b in found if kind == "sentence"}
    assert pairs == {(a, b) for a in range(100) for b in range(a + 1, min(100, a + MAX_APART + 1))}
    assert sum(kind == "title" for kind, *_ in found) == 99


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
