"""Invalid Neo4j graphs are refused; unusual but valid export files are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hopfuse as hf
import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.stores import open_source
from hopfuse.stores.neo4j import Neo4jSource, Node, Relationship

pytest.importorskip("pyarrow")


def chunk(at: int, **values: Any) -> Node:
    return Node(str(at), ("Chunk",), {"text": "t", "embedding": [1.0, 0.0], **values})


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([*map(chunk, range(9000)), chunk(9000, embedding=[1.0])], r"row 9000 \(id '9000'\) has 'vector' of 1 comp"),
        ([chunk(0), chunk(1, embedding=None)], r"passages row 1 \(id '1'\) has no 'vector'"),
        (
            [*(chunk(at, embedding=None) for at in range(9000)), chunk(9000)],
            "passages row 9000 has a vector and the rows",
        ),
        (
            [chunk(0), chunk(1, embedding="0, 1")],
            "passages row 1 has vector = '0, 1', and the rows before it have the type list",
        ),
        ([chunk(0, id="a"), chunk(1, id="a")], "passages row 1: id 'a' is also that of passages row 0"),
        (
            [chunk(0, id="a"), chunk(1, id=5)],
            "passages row 1 has id = '5', and the rows before it have the type string",
        ),
        ([chunk(0, text=None)], "node 0 with the label 'Chunk' has text = None"),
        ([chunk(0, place=object())], "of the type object, which metadata cannot hold"),
        ([Node("0", ("Chunk", "Entity"), {"text": "t", "name": "n"})], "node 0 has both labels"),
        ([chunk(0), Relationship("NEXT", "0", "7", {})], "NEXT from node 0 to node 7 comes before node 7, or that"),
        (
            [chunk(0), chunk(1), Relationship("NEXT", "0", "1", {"weight": "high"})],
            "has weight = 'high'; a weight must",
        ),
    ],
)
def test_errors_name_the_faulty_node_or_relationship(items: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        hf.Index.build(Neo4jSource(lambda: items))


def test_each_table_reads_the_graph_again() -> None:
    items = [chunk(0), chunk(1), Relationship("NEXT", "0", "1", {})]
    with Neo4jSource(lambda: items).snapshot() as snapshot:
        assert [batch.num_rows for batch in snapshot.edges()] == [1]
    once = iter(items)
    with pytest.raises(InputError, match="it must read them again each time"):
        hf.Index.build(Neo4jSource(lambda: once))
    assert hf.Index.build(Neo4jSource(list)).num_passages == 0


def test_a_csv_export_keeps_long_texts_and_names_with_underscores(tmp_path: Path) -> None:
    path = tmp_path / "all.csv"
    text = "long " * 40_000
    path.write_text(f'_id,_labels,_note,text,_start,_end,_type\n0,:Chunk,kept,"{text}",,,\n', encoding="utf-8")
    index = hf.Index.build(open_source(f"apoc:{path}"))
    assert (list(index.texts), index.metadata.row(0)) == ([text], {"_note": "kept"})
    path.write_bytes(path.read_bytes().replace(b"kept", b"\xff"))
    with pytest.raises(FormatError, match=r"is not a row of apoc\.export\.csv"):
        hf.Index.build(open_source(f"apoc:{path}"))
