"""Passages that follow each other: a document's parts, a conversation's turns, and rows that say nonsense of them."""

from __future__ import annotations

import itertools
from typing import Any

import hopfuse as hf
import pytest
from hopfuse.errors import InputError
from hopfuse.extract import Extraction, WordReader, build_memory
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

pytest.importorskip("Stemmer", reason="words need PyStemmer (extra text)")

CONVERSATION = [
    {"id": "t2", "document": "monday", "position": 2, "text": "Thanks, I will bring the violin."},
    {"id": "t1", "document": "monday", "position": 1, "text": "The rehearsal begins at seven."},
    {"id": "t4", "document": "monday", "position": 40, "text": "See you there!"},
    {"id": "u1", "document": "tuesday", "text": "My brother moved to Lisbon."},
    {"id": "alone", "text": "A passage of its own."},
    {"id": "u2", "document": "tuesday", "text": "He likes it."},
]


def pairs(rows: list[dict[str, Any]]) -> list[list[Any]]:
    memory = build_memory(WordReader().read(rows))
    return [[memory.ids[a], memory.ids[b]] for a, b in memory.sequence.tolist()]


def test_turns_are_joined_in_their_order() -> None:
    assert pairs(CONVERSATION) == [["t1", "t2"], ["t2", "t4"], ["u1", "u2"]]


def test_an_index_walks_from_a_turn_to_its_neighbours() -> None:
    index = build_memory(WordReader().read(CONVERSATION)).index()
    assert index.info()["graph"]["edge_types"]["sequence"] == 3
    lisbon = list(index.entity_names).index("lisbon")
    seeds = hf.Seeds.from_rows([{index.num_passages + lisbon: 1.0}], 1)
    without = {name: 0.0 if name == "sequence" else 1.0 for name in index.graph.edge_type_names}
    found, alone = (hf.ppr(index.graph, seeds, edge_type_weights=weights).scores[0] for weights in (None, without))
    answer, neighbour = index.row_of("u1"), index.row_of("u2")
    assert found[answer] > found[neighbour] > 0
    assert alone[answer] > alone[neighbour] == 0


@given(st.lists(st.tuples(st.sampled_from(["a", "b", 3, None]), st.integers(-50, 50)), max_size=30))
def test_every_document_is_one_chain(rows: list[tuple[Any, int]]) -> None:
    kept = list(dict.fromkeys(rows))
    documents = [document for document, _ in kept]
    positions = [None if document is None else at for document, at in kept]
    read = zip(documents, positions, strict=True)
    rows = [Extraction(at, "", "", document=one, position=place) for at, (one, place) in enumerate(read)]
    found = build_memory(rows).sequence.tolist()
    expected = set()
    for document in set(documents) - {None}:
        chain = sorted((at, row) for row, (one, at) in enumerate(kept) if one == document)
        expected |= {(a, b) for (_, a), (_, b) in itertools.pairwise(chain)}
    assert set(map(tuple, found)) == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([{"position": 3}], ("missing", "document")),
        ([{"document": "a", "position": 1}, {"document": "a"}], ("missing", "position")),
        ([{"document": "a", "position": 1}] * 2, ("duplicate", "position", {"given": 1})),
        (
            [{"document": "a"}, {"document": 1}],
            ("type", "document", {"column": "document", "given": 1, "first": "passages[0]", "other": "a"}),
        ),
        ([{"document": 1.5}], ("type", "document", {"column": "document"})),
        ([{"document": True}], ("type", "document", {"column": "document"})),
        ([{"document": "a", "position": "first"}], ("type", "position")),
        ([{"document": "a", "position": 1.5}], ("type", "position")),
        ([{"document": ["a"]}], ("type", "document", {"column": "document"})),
    ],
)
def test_nonsense_is_refused_before_anything_is_read(rows: list[dict[str, Any]], error: tuple[Any, ...]) -> None:
    with refused(InputError, *error):
        WordReader().read([{"text": "a word", **row} for row in rows])


def test_a_file_of_text_has_positions_too(tmp_path: Any) -> None:
    path = tmp_path / "turns.tsv"
    path.write_text("id\ttext\tdocument\tposition\nx\tone word\td\t10\ny\ttwo words\td\t9\nz\tthree\t\t\n")
    memory = build_memory(WordReader().read(path))
    assert memory.sequence.tolist() == [[1, 0]]
    path.write_text("text\tdocument\tposition\none word\td\tnine\n")
    with refused(InputError, "type", "position"):
        WordReader().read(path)


def test_extractions_made_by_hand_are_checked() -> None:
    for wrong in ({"document": 1.5}, {"document": True}, {"position": "1"}, {"position": True}):
        (field,) = wrong
        with refused(InputError, "type", field, given=type(wrong[field]).__name__, place="passage 'a'"):
            Extraction("a", "", "", **wrong)
    rows = [Extraction(id, "", "", document="d", position=at) for id, at in (("a", 1), ("b", None))]
    with refused(InputError, "missing", "position"):
        build_memory(rows)
