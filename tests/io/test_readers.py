"""Each kind of input is read alike, and a malformed row is named with its file and line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hopfuse import Graph
from hopfuse.errors import InputError, MissingExtraError
from hopfuse.index import Index
from index.index_files import assert_same

ROWS = [
    {"id": "x1", "title": "Eins", "text": "ein Text"},
    {"id": "x2", "title": "Zwei", "text": "日本 🗾"},
    {"id": "x3", "title": "", "text": ""},
]
EDGES = [
    {"src": 0, "dst": 3, "type": "context", "weight": 1.0},
    {"src": 1, "dst": 4, "type": "context", "weight": 1.0},
    {"src": 3, "dst": 4, "type": "relation", "weight": 2.5},
]
NAMES = ["Ada", "Bäbbage"]


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_tsv(path: Path, rows: list[dict[str, Any]], header: bool = True, end: str = "\n") -> Path:
    lines = ["\t".join(rows[0])] if header else []
    lines += ["\t".join(str(v) for v in row.values()) for row in rows]
    path.write_bytes("".join(line + end for line in lines).encode())
    return path


def sources(kind: str, directory: Path, name: str, rows: list[dict[str, Any]]) -> Any:
    """The same rows as each kind of input."""
    if kind == "list":
        return rows
    if kind == "iterator":
        return iter(rows)
    if kind == "jsonl":
        return write_jsonl(directory / f"{name}.jsonl", rows)
    if kind in ("tsv", "tsv-crlf"):
        return str(write_tsv(directory / f"{name}.tsv", rows, end="\r\n" if kind == "tsv-crlf" else "\n"))
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    table = arrow.Table.from_pylist(rows)
    if kind == "arrow":
        return table
    if kind == "arrow-dictionary":
        texts = [c for c in table.column_names if arrow.types.is_string(table.column(c).type)]
        for c in texts:
            table = table.set_column(table.column_names.index(c), c, table.column(c).dictionary_encode())
        return table
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, directory / f"{name}.parquet")
    return directory / f"{name}.parquet"


KINDS = ["list", "iterator", "jsonl", "tsv", "tsv-crlf", "arrow", "arrow-dictionary", "parquet"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_input_gives_the_same_index(tmp_path: Path, kind: str) -> None:
    index = Index.build(
        passages=sources(kind, tmp_path, "passages", ROWS),
        graph=sources(kind, tmp_path, "edges", EDGES),
        entities=sources(kind, tmp_path, "entities", [{"name": name} for name in NAMES]),
    )
    graph = Graph.from_edges(
        [0, 1, 3],
        [3, 4, 4],
        [1.0, 1.0, 2.5],
        num_nodes=5,
        edge_type=[0, 0, 1],
        edge_type_names=["context", "relation"],
    )
    assert_same(index, Index.build(passages=ROWS, graph=graph, entities=NAMES))


@pytest.mark.parametrize("kind", KINDS)
def test_optional_columns_may_be_absent_and_ids_may_be_integers(tmp_path: Path, kind: str) -> None:
    index = Index.build(
        passages=sources(kind, tmp_path, "passages", [{"id": 10, "text": "a"}, {"id": 20, "text": "b"}]),
        graph=sources(kind, tmp_path, "edges", [{"src": 0, "dst": 2}, {"src": 1, "dst": 2}]),
    )
    assert list(index.passage_ids) == (["10", "20"] if kind.startswith("tsv") else [10, 20])
    assert list(index.titles) == ["", ""]
    assert index.graph is not None
    assert index.graph.weight is None
    assert index.graph.edge_type_names == ("edge",)
    assert index.num_entities == 1


def test_a_tsv_without_a_header_has_the_documented_columns(tmp_path: Path) -> None:
    passages = write_tsv(tmp_path / "p.tsv", ROWS, header=False)
    passages.write_text("7\tein Text\tEins\n8\tzwei\tZwei\n", encoding="utf-8")
    edges = write_tsv(tmp_path / "e.tsv", EDGES, header=False)
    names = tmp_path / "n.tsv"
    names.write_text('Ada\nsays "hi"\nlast', encoding="utf-8")
    index = Index.build(passages=passages, graph=edges, entities=names)
    assert list(index.passage_ids) == ["7", "8"]
    assert list(index.titles) == ["Eins", "Zwei"]
    assert list(index.texts) == ["ein Text", "zwei"]
    assert list(index.entity_names) == ["Ada", 'says "hi"', "last"]
    assert index.info()["graph"]["edge_types"] == {"context": 2, "relation": 1}


def test_a_byte_order_mark_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "a"}\n{"text": "b"}')
    assert list(Index.build(passages=path).texts) == ["a", "b"]


def test_other_columns_of_passages_are_not_kept() -> None:
    index = Index.build(passages=[{"text": "a", "url": "http://x"}, {"text": "b", "title": None}])
    assert list(index.titles) == ["", ""]


@pytest.mark.parametrize("suffix", ["jsonl", "tsv"])
def test_empty_files_are_empty_tables(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"empty.{suffix}"
    path.write_bytes(b"")
    index = Index.build(passages=path, graph=path, entities=path)
    assert index.num_passages == 0
    assert index.graph is not None
    assert index.graph.num_nodes == 0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.jsonl", '{"text": "a"}\n{"text": \n', r"p\.jsonl, line 2 is not JSON"),
        ("p.jsonl", '{"text": "a"}\n\n{"text": "b"}\n', r"p\.jsonl, line 2 is blank"),
        ("p.jsonl", '{"text": "a"}\n["b"]\n', r"p\.jsonl, line 2 is a list; a row is a mapping"),
        ("p.jsonl", '{"text": "a"}\n{"title": "b"}\n', r"p\.jsonl, line 2 has no 'text'; it must be a string"),
        (
            "p.jsonl",
            '{"_id": "a", "key": "a", "content": "b"}\n',
            r"p\.jsonl, line 1 has no 'text'; it must be a string \(not read: key, content\)",
        ),
        ("p.jsonl", '{"text": 5}\n', r"p\.jsonl, line 1 has text = '5'; it must be a string"),
        ("p.jsonl", '{"text": "a", "title": 3}\n', r"line 1 has title = '3'"),
        ("p.jsonl", '{"id": 1, "text": "a"}\n{"text": "b"}\n', r"p\.jsonl, line 2 has no 'id'"),
        ("p.jsonl", '{"id": true, "text": "a"}\n', r"line 1 has id = 'True'"),
        ("p.jsonl", '{"id": "1", "text": "a"}\n{"id": "1", "text": "b"}\n', r"line 2: id '1' is also that of .*line 1"),
        ("p.jsonl", '{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n', r"line 2: id 1 is also that of .*line 1"),
        (
            "p.jsonl",
            '{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}\n',
            r"line 2 has the id .1., .*line 1 has 1;",
        ),
        (
            "p.jsonl",
            '{"id": "1", "text": "a"}\n{"id": 2, "text": "b"}\n',
            r"line 2 has the id 2, .*line 1 has .1.;",
        ),
        ("p.jsonl", '{"id": 9223372036854775808, "text": "a"}\n', r"line 1 has id = .* integer of 64 bits"),
        ("p.jsonl", '{"text": "\\ud800"}\n', r"passage\.text\[0\] cannot be written as UTF-8"),
        ("p.jsonl", "[" * 100_000, r"line 1 is not JSON"),
        ("p.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', r"p\.jsonl, line 2 is not UTF-8"),
        ("p.tsv", "id\ttext\n1\ta\n2\tb\tc\n", r"p\.tsv, line 3 has 3 fields; 2 are expected: id, text"),
        ("p.tsv", "id\ttitle\n1\ta\n", r"p\.tsv, line 1 is a header .* must have each of \['text'\] once"),
        ("p.tsv", "Text\n1\n", r"p\.tsv, line 1 is a header"),
        ("p.tsv", "text\ttext\na\tb\n", r"p\.tsv, line 1 is a header"),
        ("p.tsv", "just one field\n", r"p\.tsv, line 1 has 1 fields and is no header"),
        ("p.tsv", "1\ta\n2\n", r"p\.tsv, line 2 has 1 fields; 2 are expected"),
        ("p.parquet", b"not parquet", r"p\.parquet cannot be read as Parquet"),
        ("p.csv", "text\na\n", r"suffix must be one of \.jsonl, \.tsv, \.parquet"),
    ],
)
def test_a_malformed_passage_is_named(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError, match=message):
        Index.build(passages=path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0\t1\tcontext\t1.0\n0\tx\tcontext\t1.0\n", r"e\.tsv, line 2 has dst = 'x'; it must be an integer 0 \.\. 2"),
        ("src\tdst\n0\t1\n0\t3\n", r"e\.tsv, line 3 has dst = '3'; it must be an integer 0 \.\. 2"),
        ("src\tdst\n0\t-1\n", r"line 2 has dst = '-1'"),
        ("src\tdst\n0\t1_0\n", r"line 2 has dst = '1_0'"),
        ("src\tdst\n0\t99999999999999999999\n", r"line 2 has dst = '9{20}'"),
        ("src\tdst\tweight\n0\t1\t-2\n", r"line 2 has weight = '-2'; it must be a finite number of at least 0"),
        ("src\tdst\tweight\n0\t1\tnan\n", r"line 2 has weight = 'nan'"),
        ("src\tdst\tweight\n0\t1\t1e999\n", r"line 2 has weight = '1e999'"),
        ("src\tdst\tweigth\n0\t1\t2\n", r"line 1 has the column 'weigth'; allowed: src, dst, type, weight"),
        ("0\t1\ta\t1\t0\textra\n", r"line 1 has 6 fields and is no header"),
        ("head\ttail\n0\t1\n", r"line 1 has src = 'head'"),
        ("0\n", r"line 1 has 1 fields"),
    ],
)
def test_a_malformed_edge_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "e.tsv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        Index.build(passages=[{"text": "a"}, {"text": "b"}], entities=["c"], graph=path)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([{"src": 0, "dst": 1}, {"src": 0}], r"graph\[1\] has no 'dst'"),
        ([{"src": 0, "dst": 1.5}], r"graph\[0\] has dst = '1.5'"),
        ([{"src": 0, "dst": True}], r"graph\[0\] has dst = 'True'"),
        ([{"src": 0, "dst": "1"}], r"graph\[0\] has dst = '1'"),
        ([{"src": 0, "dst": 2**70}], r"graph\[0\] has dst"),
        ([{"src": 0, "dst": 1, "type": "a"}, {"src": 0, "dst": 1}], r"graph\[1\] has no 'type'"),
        ([{"src": 0, "dst": 1, "type": 3}], r"graph\[0\] has type = '3'; it must be a string"),
        ([{"src": 0, "dst": 1, "weight": 1.0}, {"src": 0, "dst": 1}], r"graph\[1\] has no 'weight'"),
        ([{"src": 0, "dst": 1, "weight": "1"}], r"graph\[0\] has weight = '1'"),
        ([{"src": 0, "dst": 1, "weight": float("nan")}], r"graph\[0\] has weight = 'nan'"),
        ([{"src": 0, "dst": 1, "weight": 10**400}], r"graph\[0\] has weight"),
        ([{"src": 0, "dst": 1, "kind": "a"}], r"graph\[0\] has the column 'kind'"),
        ([(0, 1)], r"graph\[0\] is a tuple; a row is a mapping"),
        ({"src": [0], "dst": [1]}, "graph is a dict; allowed: a path"),
        (np.array([[0, 1]]), "graph is a ndarray; allowed: a path"),
        (5, "graph is a int; allowed: a path"),
    ],
)
def test_a_malformed_edge_object_is_named(edges: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Index.build(passages=[{"text": "a"}, {"text": "b"}], graph=edges)


def test_malformed_arrow_tables_are_named() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    passages = [{"text": "a"}]
    cases = [
        ({"src": [0]}, "it must have 'dst' once"),
        ({"src": [0], "dst": [1], "kind": ["a"]}, "has the column 'kind'"),
        ({"src": [0, 0], "dst": [1, None]}, "graph row 1 has no 'dst'"),
        ({"src": [0], "dst": [0.5]}, "graph row 0 has dst = '0.5'"),
        ({"src": arrow.array([2**63], arrow.uint64()), "dst": [0]}, "graph row 0 has src = '9223372036854775808'"),
        ({"src": [0], "dst": [0], "weight": [float("inf")]}, "graph row 0 has weight = 'inf'"),
        ({"src": [0], "dst": [0], "weight": ["1"]}, "graph row 0 has weight = '1'"),
    ]
    for columns, message in cases:
        with pytest.raises(InputError, match=message):
            Index.build(passages=passages, graph=arrow.table(columns))
    with pytest.raises(InputError, match="passages row 1 has no 'text'"):
        Index.build(passages=arrow.table({"text": ["a", None]}))
    with pytest.raises(InputError, match="passages row 0 has text = '1'"):
        Index.build(passages=arrow.table({"text": [1]}))


def test_without_pyarrow_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.parquet"
    path.write_bytes(b"")
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'hopfuse\[arrow\]'") as caught:
        Index.build(passages=path)
    assert caught.value.extra == "arrow"
    assert caught.value.package == "pyarrow"

    class Capsule:
        def __arrow_c_stream__(self, schema: object = None) -> Iterator[object]:
            raise AssertionError("pyarrow is not there to ask")

    with pytest.raises(MissingExtraError, match="passages from an Arrow table"):
        Index.build(passages=Capsule())
