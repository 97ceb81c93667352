"""The facts of an index: kept with it, checked before they are used, and never another index's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.index import Index
from index.index_files import (
    ENTITIES,
    Forge,
    assert_same,
    assert_same_facts,
    forged,
    full_index,
    generation_file,
    is_mapped,
    stated,
)
from refusals import refused

STATEMENTS: list[dict[str, Any]] = [
    {"head": "Ada Lovelace", "relation": "knows", "tail": "Charles Babbage", "passage": 2},
    {"head": "東京", "relation": "東", "tail": "東京", "passage": 2},
    {"head": "Charles Babbage", "relation": "knows", "tail": "Ada Lovelace", "passage": 0},
    {"head": "Ada Lovelace", "relation": "knows", "tail": "Charles Babbage", "passage": 0},
    {"head": "Ada Lovelace", "relation": "knows", "tail": "Charles Babbage", "passage": 2},
]


def by_node(row: dict[str, Any]) -> dict[str, Any]:
    return row | {end: 3 + ENTITIES.index(row[end]) for end in ("head", "tail")}


def write_tsv(path: Path, rows: list[dict[str, Any]], header: bool) -> Path:
    lines = ["\t".join(map(str, row.values())) for row in rows]
    path.write_text("\n".join([*(["\t".join(rows[0])] if header else []), *lines]) + "\n", encoding="utf-8")
    return path


def test_facts_come_back_mapped(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    index = Index.open(tmp_path)
    opened = index.facts
    assert opened is not None
    assert index.facts is opened
    assert_same_facts(opened, stated())
    for array in (opened.rows, opened.indptr, opened.passages):
        assert is_mapped(array)
        assert not array.flags.writeable


def test_facts_are_added_replaced_and_taken_out(tmp_path: Path) -> None:
    plain, first = full_index(parts=("lexical",)), stated()
    assert (plain.facts, plain.info()["facts"]) == (None, None)
    with_first = plain.with_facts(first)
    assert plain.facts is None
    assert with_first.facts is first
    assert with_first.graph is plain.graph
    other = stated(relations=["likes", "is"])
    with_first.save(tmp_path)
    opened = Index.open(tmp_path)
    assert opened.with_facts(other).save(tmp_path) == 2
    assert_same_facts(Index.open(tmp_path, verify="full").facts, other)
    assert_same_facts(opened.facts, first)
    opened.with_facts(None).save(tmp_path)
    assert_same(Index.open(tmp_path, verify="full"), plain)


def test_parts_are_in_file_order_whichever_comes_first(tmp_path: Path) -> None:
    index = full_index()
    assert index.lexical is not None
    again = index.with_lexical(None).with_lexical(index.lexical)
    assert again.facts is index.facts
    again.save(tmp_path)
    assert_same(Index.open(tmp_path, verify="full"), index)
    assert Index.open(tmp_path).with_lexical(None).with_facts(None).save(tmp_path) == 2


def test_build_takes_facts_and_tables_of_them(tmp_path: Path) -> None:
    nodes = [by_node(row) for row in STATEMENTS]
    expected = stated()
    built = full_index(parts=("lexical",), facts=expected)
    assert built.facts is expected
    by_name = [STATEMENTS, *(write_tsv(tmp_path / f"{h}.tsv", STATEMENTS, bool(h)) for h in (0, 1))]
    for table in by_name:
        assert_same(full_index(parts=("lexical",), facts=table), built)
    for table in (nodes, *(write_tsv(tmp_path / f"n{h}.tsv", nodes, bool(h)) for h in (0, 1))):
        assert_same(full_index(parts=("lexical",), facts=table, fact_ends="node"), built)
    built.save(tmp_path)
    assert_same(Index.open(tmp_path, verify="full"), built)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"facts": stated(num_passages=4)}, ("length", "facts", {"given": (4, 4), "allowed": (3, 4)})),
        ({"facts": stated(num_entities=5)}, ("length", "facts", {"given": (3, 5), "allowed": (3, 4)})),
        ({"facts": stated(), "fact_ends": "node"}, ("unused", "fact_ends")),
        ({"facts": None, "fact_ends": "node"}, ("unused", "fact_ends")),
        ({"facts": STATEMENTS, "fact_ends": "id"}, ("choice", "fact_ends", {"allowed": "name, node", "given": "id"})),
        (
            {"facts": [STATEMENTS[0] | {"head": "Ada"}]},
            ("unknown", "entities", {"count": "no", "given": "Ada", "place": "facts[0]"}),
        ),
        (
            {"facts": [STATEMENTS[0] | {"passage": 3}]},
            ("range", "passage", {"allowed": "an integer 0 .. 2", "given": 3, "place": "facts[0]"}),
        ),
        ({"facts": [STATEMENTS[0] | {"relation": 3}]}, ("type", "relation", {"given": 3, "place": "facts[0]"})),
        ({"facts": [STATEMENTS[0] | {"weight": 3}]}, ("unknown", "weight")),
        ({"facts": [{"head": "東京"}]}, ("missing", "passage", {"place": "facts[0]"})),
        ({"facts": 3}, ("type", "facts", {"given": "int"})),
        (
            {"facts": STATEMENTS, "fact_ends": "node"},
            ("type", "head", {"allowed": "an integer 0 .. 6", "given": "Ada Lovelace"}),
        ),
        (
            {"facts": [by_node(STATEMENTS[0]) | {"tail": 7}], "fact_ends": "node"},
            ("range", "tail", {"allowed": "an integer 0 .. 6"}),
        ),
        ({"facts": [by_node(STATEMENTS[0]) | {"tail": 2}], "fact_ends": "node"}, ("range", "tail", {"given": 2})),
        (
            {"facts": [STATEMENTS[1]], "entities": ["東京"] * 2 + ["a", "b"], "aliases": None},
            ("duplicate", "entities", {"count": "several", "given": "東京"}),
        ),
    ],
)
def test_bad_facts_are_refused(changes: dict[str, Any], expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        full_index(**changes)


def test_a_file_s_line_is_named(tmp_path: Path) -> None:
    rows = [STATEMENTS[0], STATEMENTS[1] | {"tail": "Kyoto"}]
    for header in (False, True):
        path = write_tsv(tmp_path / "facts.tsv", rows, header)
        with refused(InputError, "unknown", "entities", given="Kyoto", place=f"facts.tsv, line {2 + header}"):
            full_index(facts=path)


def test_with_facts_takes_facts_alone() -> None:
    with refused(InputError, "type", "facts", given="list"):
        full_index().with_facts(STATEMENTS)  # type: ignore[arg-type]


def test_info_counts_without_reading_the_rows(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    path = generation_file(tmp_path)
    forge = Forge(path.read_bytes())
    forge.data[forge.row("fact.row")[5]] ^= 0x01
    path.write_bytes(bytes(forge.data))
    index = Index.open(tmp_path)
    assert index.info()["facts"] == {"facts": 3, "relations": 2, "statements": 4}
    with refused(FormatError, "damaged", place="section 'fact.row'"):
        _ = index.facts


@pytest.mark.parametrize(("passages", "entities"), [(0, 0), (1, 2)])
def test_no_facts_are_facts_that_round_trip(tmp_path: Path, passages: int, entities: int) -> None:
    none = hf.Facts([], [], [0], [], num_entities=entities, num_passages=passages)
    built = Index.build(passages=[{"text": ""}] * passages, entities=["a"] * entities, facts=none)
    assert built.info()["facts"] == {"facts": 0, "relations": 0, "statements": 0}
    built.save(tmp_path)
    assert_same(Index.open(tmp_path, verify="full"), built)


def _poke(section: str, at: Any, value: Any) -> Callable[[Forge], None]:
    def change(forge: Forge) -> None:
        forge.array(section)[at] = value

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_poke("fact.row", (0, 0), -1), ("range", "rows", {"last": 3})),
        (_poke("fact.row", (2, 2), 4), ("range", "rows", {"last": 3})),
        (_poke("fact.row", (0, 0), 2**31 - 1), ("range", "rows", {"last": 3})),
        (_poke("fact.row", (1, 1), 2), ("range", "rows", {"last": 1})),
        (_poke("fact.row", (1, 1), -1), ("range", "rows", {"last": 1})),
        (_poke("fact.row", (0, 1), 1), ("order", "relations")),
        (_poke("fact.row", (1, 1), 0), ("order", "relations")),
        (_poke("fact.row", 2, [0, 0, 1]), ("duplicate", "rows", {"first": 0, "given": [0, 0, 1], "second": 2})),
        (_poke("fact.indptr", 0, 1), ("length", "indptr", {"allowed": 4, "end": 4, "given": 4})),
        (_poke("fact.indptr", -1, 2**62), ("length", "indptr", {"allowed": 4, "end": 4, "given": 4})),
        (_poke("fact.indptr", 1, -1), ("order", "indptr")),
        (_poke("fact.indptr", 1, 2**62), ("order", "indptr")),
        (_poke("fact.indptr", 1, 3), ("order", "indptr")),
        (_poke("fact.passage", 0, -1), ("range", "passages", {"last": 2})),
        (_poke("fact.passage", 3, 3), ("range", "passages", {"last": 2})),
        (_poke("fact.passage", 0, 2), ("order", "passages")),
        (_poke("fact.relation.bytes", -1, 0xFF), ("syntax",)),
        (_poke("fact.relation.bytes", slice(0, 5), 0x80), ("syntax",)),
        (_poke("fact.relation.offsets", 1, 2**62), ("order",)),
        (_poke("fact.relation.offsets", 0, -1), ("order",)),
    ],
)
def test_forged_facts_are_refused_before_their_first_use(
    tmp_path: Path, change: Callable[[Forge], None], expected: tuple[Any, ...]
) -> None:
    full_index().save(tmp_path)
    index = Index.open(forged(tmp_path, change))
    assert index.num_passages == 3
    for _ in range(2):
        with refused(FormatError, *expected):
            _ = index.facts
    with pytest.raises(FormatError):
        Index.open(tmp_path, verify="full")


def test_a_relation_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    full_index().with_facts(stated(relations=["a", "b"])).save(tmp_path)
    index = Index.open(forged(tmp_path, _poke("fact.relation.bytes", 1, ord("a"))))
    with refused(FormatError, "duplicate", "relations", first=0, given="a", second=1):
        _ = index.facts


def test_full_verification_reads_all_offsets(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    forged(tmp_path, _poke("fact.relation.offsets", 0, 1))
    with refused(FormatError, "order", place="section 'fact.relation.offsets'"):
        Index.open(tmp_path, verify="full")


def test_no_rows_keep_their_shape(tmp_path: Path) -> None:
    full_index().with_facts(stated(rows=np.zeros((0, 3), np.int32), relations=[], indptr=[0], passages=[])).save(
        tmp_path
    )
    assert Index.open(tmp_path).info()["sections"]["fact.row"] == {"dtype": "int32", "shape": (0, 3), "bytes": 0}
