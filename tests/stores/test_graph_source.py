"""Invalid Neo4j graphs are refused; unusual but valid export files are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hopfuse as hf
import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.stores import open_source
from hopfuse.stores.neo4j import Neo4jSource, Node, Relationship
from refusals import refused

pytest.importorskip("pyarrow")


def chunk(at: int, **values: Any) -> Node:
    return Node(str(at), ("Chunk",), {"text": "t", "embedding": [1.0, 0.0], **values})


@pytest.mark.parametrize(
    ("items", "error"),
    [
        ([*map(chunk, range(9000)), chunk(9000, embedding=[1.0])], ("shape", "vector", {"given": 1})),
        ([chunk(0), chunk(1, embedding=None)], ("missing", "vector")),
        (
            [*(chunk(at, embedding=None) for at in range(9000)), chunk(9000)],
            ("missing", "passages"),
        ),
        (
            [chunk(0), chunk(1, embedding="0, 1")],
            ("type", "passages", {"row": 1, "property": "vector", "given": "0, 1"}),
        ),
        ([chunk(0, id="a"), chunk(1, id="a")], ("duplicate", "id", {"given": "a"})),
        (
            [chunk(0, id="a"), chunk(1, id=5)],
            ("type", "passages", {"row": 1, "property": "id", "given": "5"}),
        ),
        ([chunk(0, text=None)], ("type", "text", {"given": None})),
        ([chunk(0, place=object())], ("type", "metadata")),
        ([Node("0", ("Chunk", "Entity"), {"text": "t", "name": "n"})], ("conflict", "labels")),
        ([chunk(0), Relationship("NEXT", "0", "7", {})], ("order", "read")),
        (
            [chunk(0), chunk(1), Relationship("NEXT", "0", "1", {"weight": "high"})],
            ("type", "weight", {"given": "high"}),
        ),
    ],
)
def test_errors_name_the_faulty_node_or_relationship(items: list[Any], error: tuple[Any, ...]) -> None:
    with refused(InputError, *error):
        hf.Index.build(Neo4jSource(lambda: items))


def test_each_table_reads_the_graph_again() -> None:
    items = [chunk(0), chunk(1), Relationship("NEXT", "0", "1", {})]
    with Neo4jSource(lambda: items).snapshot() as snapshot:
        assert [batch.num_rows for batch in snapshot.edges()] == [1]
    once = iter(items)
    with refused(InputError, "changed", "read"):
        hf.Index.build(Neo4jSource(lambda: once))
    assert hf.Index.build(Neo4jSource(list)).num_passages == 0


def test_a_csv_export_keeps_long_texts_and_names_with_underscores(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    text = "long " * 40_000
    path.write_text(f'_id,_labels,_note,text,_start,_end,_type\n0,:Chunk,kept,"{text}",,,\n', encoding="utf-8")
    index = hf.Index.build(open_source(f"apoc:{path}"))
    assert (list(index.texts), index.metadata.row(0)) == ([text], {"_note": "kept"})
    path.write_bytes(path.read_bytes().replace(b"kept", b"\xff"))
    with refused(FormatError, "damaged"):
        hf.Index.build(open_source(f"apoc:{path}"))


def test_a_key_that_is_twice_in_a_row_of_an_export_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text('{"type": "node", "id": "0", "properties": {"text": "a", "text": "b"}}\n', encoding="utf-8")
    with refused(FormatError, "damaged"):
        hf.Index.build(open_source(f"apoc:{path}"))
