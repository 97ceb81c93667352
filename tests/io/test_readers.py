"""Each kind of input is read alike, and a malformed row is named with its file and line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hopfuse import Graph
from hopfuse.errors import InputError, MissingExtraError
from hopfuse.extract import WordReader
from hopfuse.index import Index
from index.index_files import assert_same
from refusals import refused

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


OTHERS = [{"id": "a", "text": "a", "user": "ada"}, {"id": "b", "text": "b", "user": "bob"}]


@pytest.mark.parametrize("kind", KINDS)
def test_other_columns_of_passages_are_refused_in_mappings_and_named_in_tables(tmp_path: Path, kind: str) -> None:
    given = sources(kind, tmp_path, "passages", OTHERS)
    if kind in ("list", "iterator"):
        with refused(InputError, "unknown", "user", given="user", place="passages[0]") as caught:
            Index.build(given)
        assert "metadata" in caught.value.values["fix"]
        return
    with pytest.warns(UserWarning, match=r"that are not read: user\. .*metadata"):
        index = Index.build(given)
    assert_same(index, Index.build([{"id": row["id"], "text": row["text"]} for row in OTHERS]))


@pytest.mark.parametrize("kind", ["list", "jsonl", "parquet"])
def test_every_door_for_rows_tells_of_other_columns(tmp_path: Path, kind: str) -> None:
    """Readers, changes, metadata and entities, as Index.build."""
    index = Index.build([{"id": "a", "text": "a"}, {"id": "b", "text": "b"}])
    index.save(tmp_path / "index")
    given = partial(sources, kind, tmp_path, "rows")
    with Index.open(tmp_path / "index", writable=True) as live:
        for call in (
            lambda: Index.build(given(OTHERS), reader="words"),
            lambda: WordReader().read(given(OTHERS)),
            lambda: live.change().add_passages(given(OTHERS), replace=True),
            lambda: live.change().replace_passages(given(OTHERS)),
            lambda: Index.build([{"text": "a"}], entities=given([{"name": "Ada", "user": "x"}])),
            lambda: index.with_metadata(given([{"id": "a", "metadata": {"n": 1}, "user": "x"}])),
        ):
            if kind == "list":
                with refused(InputError, "unknown", "user", given="user"):
                    call()
            else:
                with pytest.warns(UserWarning, match="that are not read: user"):
                    call()


def test_a_column_of_a_later_line_is_named(tmp_path: Path) -> None:
    rows = [{"id": str(at), "text": "a"} for at in range(9000)]
    for at, name in ((3, "user"), (8950, "usr"), (8960, "user")):
        rows[at][name] = "x"
    with pytest.warns(UserWarning, match="columns of") as caught:
        Index.build(write_jsonl(tmp_path / "p.jsonl", rows))
    named = [str(one.message).partition("not read: ")[2].partition(".")[0] for one in caught]
    assert named == ["user", "usr"]


def test_a_position_is_for_readers_of_the_same_rows() -> None:
    rows = [{"id": "a", "text": "a", "document": "d", "position": 1}]
    assert Index.build(rows).num_passages == Index.build(rows, reader="words").num_passages == 1
    index = Index.build(rows)
    assert index.with_metadata([row | {"metadata": {"n": 1}} for row in rows]).metadata.row(0) == {"n": 1}


@pytest.mark.parametrize("suffix", ["jsonl", "tsv"])
def test_empty_files_are_empty_tables(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"empty.{suffix}"
    path.write_bytes(b"")
    index = Index.build(passages=path, graph=path, entities=path)
    assert index.num_passages == 0
    assert index.graph is not None
    assert index.graph.num_nodes == 0


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("p.jsonl", '{"text": "a"}\n{"text": \n', ("syntax", None, {"place": "p.jsonl, line 2"})),
        ("p.jsonl", '{"text": "a"}\n["b"]\n', ("type", "passages", {"given": "list", "place": "p.jsonl, line 2"})),
        (
            "p.jsonl",
            '{"text": "a"}\n{"title": "b"}\n',
            ("missing", "text", {"allowed": "a string", "place": "p.jsonl, line 2"}),
        ),
        (
            "p.jsonl",
            '{"_id": "a", "key": "a", "content": "b"}\n',
            ("missing", "text", {"allowed": "a string", "place": "p.jsonl, line 1"}),
        ),
        ("p.jsonl", '{"text": 5}\n', ("type", "text", {"allowed": "a string", "given": 5, "place": "p.jsonl, line 1"})),
        ("p.jsonl", '{"text": "a", "title": 3}\n', ("type", "title", {"given": 3, "place": "p.jsonl, line 1"})),
        ("p.jsonl", '{"id": 1, "text": "a"}\n{"text": "b"}\n', ("missing", "id", {"place": "p.jsonl, line 2"})),
        ("p.jsonl", '{"id": true, "text": "a"}\n', ("type", "id", {"given": True, "place": "p.jsonl, line 1"})),
        (
            "p.jsonl",
            '{"id": "1", "text": "a"}\n{"id": "1", "text": "b"}\n',
            ("duplicate", "id", {"given": "1", "place": "p.jsonl, line 2"}),
        ),
        (
            "p.jsonl",
            '{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n',
            ("duplicate", "id", {"given": 1, "place": "p.jsonl, line 2"}),
        ),
        (
            "p.jsonl",
            '{"id": 1, "text": "a"}\n{"id": "1", "text": "b"}\n',
            ("type", "id", {"given": "1", "other": 1, "place": "p.jsonl, line 2"}),
        ),
        (
            "p.jsonl",
            '{"id": "1", "text": "a"}\n{"id": 2, "text": "b"}\n',
            ("type", "id", {"given": 2, "other": "1", "place": "p.jsonl, line 2"}),
        ),
        ("p.jsonl", '{"id": 9223372036854775808, "text": "a"}\n', ("type", "id", {"place": "p.jsonl, line 1"})),
        ("p.jsonl", '{"text": "\\ud800"}\n', ("syntax", None, {"given": "\\ud800", "place": "p.jsonl, line 1"})),
        ("p.jsonl", "[" * 100_000, ("syntax", None, {"place": "p.jsonl, line 1"})),
        ("p.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', ("syntax", None, {"place": "p.jsonl, line 2"})),
        (
            "p.tsv",
            "id\ttext\n1\ta\n2\tb\tc\n",
            ("syntax", None, {"allowed": "id, text", "given": 3, "place": "p.tsv, line 3"}),
        ),
        ("p.tsv", "id\ttitle\n1\ta\n", ("missing", "text", {"place": "p.tsv, line 1"})),
        ("p.tsv", "Text\n1\n", ("missing", "text", {"place": "p.tsv, line 1"})),
        ("p.tsv", "text\ttext\na\tb\n", ("duplicate", "text", {"place": "p.tsv, line 1"})),
        ("p.tsv", "just one field\n", ("syntax", None, {"given": 1, "place": "p.tsv, line 1"})),
        ("p.tsv", "1\ta\n2\n", ("syntax", None, {"given": 1, "place": "p.tsv, line 2"})),
        ("p.parquet", b"not parquet", ("syntax", None, {"place": "p.parquet"})),
        ("p.csv", "text\na\n", ("choice", "passages", {"allowed": ".jsonl, .tsv, .parquet"})),
    ],
)
@pytest.mark.filterwarnings("ignore:columns of")
def test_a_malformed_passage_is_named(
    tmp_path: Path, name: str, content: str | bytes, expected: tuple[Any, ...]
) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with refused(InputError, *expected):
        Index.build(passages=path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "0\t1\tcontext\t1.0\n0\tx\tcontext\t1.0\n",
            ("type", "dst", {"allowed": "an integer 0 .. 2", "given": "x", "place": "e.tsv, line 2"}),
        ),
        (
            "src\tdst\n0\t1\n0\t3\n",
            ("range", "dst", {"allowed": "an integer 0 .. 2", "given": 3, "place": "e.tsv, line 3"}),
        ),
        ("src\tdst\n0\t-1\n", ("range", "dst", {"given": -1, "place": "e.tsv, line 2"})),
        ("src\tdst\n0\t1_0\n", ("type", "dst", {"given": "1_0", "place": "e.tsv, line 2"})),
        ("src\tdst\n0\t99999999999999999999\n", ("type", "dst", {"place": "e.tsv, line 2"})),
        (
            "src\tdst\tweight\n0\t1\t-2\n",
            ("range", "weight", {"allowed": "a finite number of at least 0", "given": "-2", "place": "e.tsv, line 2"}),
        ),
        ("src\tdst\tweight\n0\t1\tnan\n", ("type", "weight", {"given": "nan", "place": "e.tsv, line 2"})),
        ("src\tdst\tweight\n0\t1\t1e999\n", ("range", "weight", {"given": "1e999", "place": "e.tsv, line 2"})),
        ("src\tdst\tweigth\n0\t1\t2\n", ("unknown", "weigth", {"place": "e.tsv, line 1"})),
        ("0\t1\ta\t1\t0\textra\n", ("syntax", None, {"given": 6, "place": "e.tsv, line 1"})),
        ("head\ttail\n0\t1\n", ("type", "src", {"given": "head", "place": "e.tsv, line 1"})),
        ("0\n", ("syntax", None, {"given": 1, "place": "e.tsv, line 1"})),
    ],
)
def test_a_malformed_edge_is_named(tmp_path: Path, content: str, expected: tuple[Any, ...]) -> None:
    path = tmp_path / "e.tsv"
    path.write_text(content)
    with refused(InputError, *expected):
        Index.build(passages=[{"text": "a"}, {"text": "b"}], entities=["c"], graph=path)


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([{"src": 0, "dst": 1}, {"src": 0}], ("missing", "dst", {"place": "graph[1]"})),
        ([{"src": 0, "dst": 1.5}], ("type", "dst", {"given": 1.5, "place": "graph[0]"})),
        ([{"src": 0, "dst": True}], ("type", "dst", {"given": True, "place": "graph[0]"})),
        ([{"src": 0, "dst": "1"}], ("type", "dst", {"given": "1", "place": "graph[0]"})),
        ([{"src": 0, "dst": 2**70}], ("type", "dst", {"place": "graph[0]"})),
        ([{"src": 0, "dst": 1, "type": "a"}, {"src": 0, "dst": 1}], ("missing", "type", {"place": "graph[1]"})),
        ([{"src": 0, "dst": 1, "type": 3}], ("type", "type", {"allowed": "a string", "given": 3, "place": "graph[0]"})),
        ([{"src": 0, "dst": 1, "weight": 1.0}, {"src": 0, "dst": 1}], ("missing", "weight", {"place": "graph[1]"})),
        ([{"src": 0, "dst": 1, "weight": "1"}], ("type", "weight", {"given": "1", "place": "graph[0]"})),
        ([{"src": 0, "dst": 1, "weight": float("nan")}], ("range", "weight", {"place": "graph[0]"})),
        ([{"src": 0, "dst": 1, "weight": 10**400}], ("range", "weight", {"place": "graph[0]"})),
        ([{"src": 0, "dst": 1, "kind": "a"}], ("unknown", "kind", {"place": "graph[0]"})),
        ([(0, 1)], ("type", "graph", {"given": "tuple", "place": "graph[0]"})),
        ({"src": [0], "dst": [1]}, ("type", "graph", {"given": "dict"})),
        (np.array([[0, 1]]), ("type", "graph", {"given": "ndarray"})),
        (5, ("type", "graph", {"given": "int"})),
    ],
)
def test_a_malformed_edge_object_is_named(edges: Any, expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        Index.build(passages=[{"text": "a"}, {"text": "b"}], graph=edges)


def test_malformed_arrow_tables_are_named() -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    passages = [{"text": "a"}]
    cases = [
        ({"src": [0]}, "missing", "dst", "graph", None),
        ({"src": [0], "dst": [1], "kind": ["a"]}, "unknown", "kind", "graph", "kind"),
        ({"src": [0, 0], "dst": [1, None]}, "missing", "dst", "graph row 1", None),
        ({"src": [0], "dst": [0.5]}, "type", "dst", "graph row 0", 0.5),
        ({"src": arrow.array([2**63], arrow.uint64()), "dst": [0]}, "range", "src", "graph row 0", 2**63),
        ({"src": [0], "dst": [0], "weight": [float("inf")]}, "range", "weight", "graph row 0", np.inf),
        ({"src": [0], "dst": [0], "weight": ["1"]}, "type", "weight", "graph row 0", "1"),
    ]
    for columns, code, field, place, given in cases:
        with refused(InputError, code, field, place=place, **({} if given is None else {"given": given})):
            Index.build(passages=passages, graph=arrow.table(columns))
    with refused(InputError, "missing", "text", place="passages row 1"):
        Index.build(passages=arrow.table({"text": ["a", None]}))
    with refused(InputError, "type", "text", place="passages row 0"):
        Index.build(passages=arrow.table({"text": [1]}))


def test_without_pyarrow_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.parquet"
    path.write_bytes(b"")
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with refused(MissingExtraError, "missing_extra", extra="arrow") as caught:
        Index.build(passages=path)
    assert caught.value.extra == "arrow"
    assert caught.value.package == "pyarrow"

    class Capsule:
        def __arrow_c_stream__(self, schema: object = None) -> Iterator[object]:
            raise AssertionError("pyarrow is not there to ask")

    with refused(MissingExtraError, "missing_extra"):
        Index.build(passages=Capsule())


#: More than one batch of rows.
MANY = 9000


@pytest.mark.parametrize("kind", ["list", "jsonl", "tsv", "arrow", "parquet"])
def test_rows_of_several_batches_are_one_table(tmp_path: Path, kind: str) -> None:
    rows: list[dict[str, Any]] = [
        {"id": f"p{at}", "text": f"Text {at}.", "document": f"d{at % 3}" if at > 8500 else ""} for at in range(MANY)
    ]
    edges = [{"src": at, "dst": MANY + at % 2, "type": "late" if at > 8500 else "early"} for at in range(MANY)]
    index = Index.build(
        passages=sources(kind, tmp_path, "passages", rows),
        graph=sources(kind, tmp_path, "edges", edges),
        entities=sources(kind, tmp_path, "entities", [{"name": name} for name in NAMES]),
    )
    assert list(index.passage_ids) == [row["id"] for row in rows]
    assert list(index.texts) == [row["text"] for row in rows]
    assert list(index.documents)[8500:8503] == [None, "d2", "d0"]
    assert index.info()["graph"]["edge_types"] == {"early": 8501, "late": 499}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"id": "p1"}, ("duplicate", "id", {"given": "p1", "place": "line 8951"})),
        ({"id": 7}, ("type", "id", {"given": 7, "other": "p0", "place": "line 8951"})),
        ({"id": None}, ("missing", "id", {"place": "line 8951"})),
        ({"text": None}, ("missing", "text", {"place": "line 8951"})),
        ({"document": 7}, ("type", "document", {"given": 7, "other": "d", "place": "line 8951"})),
        ({"language": "e n"}, ("syntax", "language", {"given": "e n", "place": "line 8951"})),
        ({"metadata": {"year": "x"}}, ("type", "metadata.year", {"given": "x", "place": "line 8951"})),
    ],
)
def test_a_malformed_passage_of_a_later_batch_is_named(
    tmp_path: Path, change: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    rows = [{"id": f"p{at}", "text": "a", "document": "d", "metadata": {"year": 1}} for at in range(MANY)]
    rows[8950] |= change
    with refused(InputError, *expected):
        Index.build(write_jsonl(tmp_path / "p.jsonl", rows))


@pytest.mark.parametrize("column", ["id", "document"])
def test_a_column_that_begins_in_a_later_batch(column: str) -> None:
    rows: list[dict[str, Any]] = [{"text": "a"} for _ in range(MANY)]
    rows[8950][column] = "b"
    if column == "id":
        with refused(InputError, "missing", "id", place="passages[0]"):
            Index.build(rows)
    else:
        assert [at for at, one in enumerate(Index.build(rows).documents) if one] == [8950]


@pytest.mark.parametrize("column", ["type", "weight"])
@pytest.mark.parametrize("first", [True, False], ids=["in the first batch alone", "in a later batch alone"])
def test_edges_have_a_column_in_all_batches_or_none(column: str, first: bool) -> None:
    given = {"type": "knows", "weight": 2.0}[column]
    edges: list[dict[str, Any]] = [{"src": 0, "dst": 1} for _ in range(MANY)]
    for edge in edges[:8192] if first else edges[8192:]:
        edge[column] = given
    with refused(InputError, "missing", column, place="graph[8192]" if first else "graph[0]"):
        Index.build([{"text": "a"}, {"text": "b"}], graph=edges)


def test_edges_state_passages_in_any_batch() -> None:
    edges: list[dict[str, Any]] = [{"src": 1, "dst": 2} for _ in range(MANY)]
    edges[8950] |= {"passage": 0}
    index = Index.build([{"text": "a"}], entities=["b", "c"], graph=edges)
    assert index.part([0]).index.graph is not None
    edges[8950] |= {"passage": 1}
    with refused(InputError, "range", "passage", given=1, place="graph[8950]"):
        Index.build([{"text": "a"}], entities=["b", "c"], graph=edges)


def test_ids_that_only_their_hashes_share_are_distinct() -> None:
    ids = [-1, -2, 2**61 - 1, 0, *range(1, MANY)]
    assert list(Index.build([{"id": id, "text": ""} for id in ids]).passage_ids) == ids
    with refused(InputError, "duplicate", "id", given=-2, place="passages[9003]"):
        Index.build([{"id": id, "text": ""} for id in [*ids, -2]])


def test_a_lone_surrogate_is_named_by_its_row() -> None:
    with refused(InputError, "syntax", "text", place="passages[1]"):
        Index.build([{"text": "a"}, {"text": "\ud800"}])


def test_columns_of_arrow_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    text = arrow.StringArray.from_buffers(1, arrow.py_buffer(b"\0\0\0\0\1\0\0\0"), arrow.py_buffer(b"\xff"))
    with refused(InputError, "syntax", "text", column="text", place="passages"):
        Index.build(passages=arrow.table({"text": text}))
