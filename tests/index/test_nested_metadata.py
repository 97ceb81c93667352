"""Objects in metadata: refused, or made columns of their entries, as the caller says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hopfuse import Index, where
from hopfuse.errors import InputError
from refusals import refused

#: What LangChain's splitters write.
ROWS: list[dict[str, Any]] = [
    {
        "id": "a",
        "text": "one",
        "metadata": {"source": "x.pdf", "loc": {"pageNumber": 1, "lines": {"from": 1, "to": 4}}},
    },
    {"id": "b", "text": "two", "metadata": {"source": "x.pdf", "loc": {"pageNumber": 2, "lines": None}}},
    {"id": "c", "text": "three", "metadata": {"source": "y.pdf", "loc": {}}},
    {"id": "d", "text": "four", "metadata": {"source": "y.pdf"}},
]
FLAT = [
    {"source": "x.pdf", "loc.pageNumber": 1, "loc.lines.from": 1, "loc.lines.to": 4},
    {"source": "x.pdf", "loc.pageNumber": 2},
    {"source": "y.pdf"},
    {"source": "y.pdf"},
]


def rows_of(index: Any) -> list[Any]:
    return [index.metadata.row(at) for at in range(index.num_passages)]


@pytest.mark.parametrize("types", [{"loc": "flatten"}, {"*": "flatten"}, {"loc": "flatten", "loc.pageNumber": "int64"}])
def test_objects_become_columns(tmp_path, types):
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    for given in (ROWS, path):
        index = Index.build(given, metadata_types=types)
        assert rows_of(index) == FLAT
        assert index.mask(where(**{"loc.lines.to__ge": 4})).tolist() == [True, False, False, False]
    same = Index.build([{"id": row["id"], "text": row["text"]} for row in ROWS])
    assert rows_of(same.with_metadata(ROWS, metadata_types=types)) == FLAT


def test_arrow_structs_become_columns():
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    assert rows_of(Index.build(arrow.Table.from_pylist(ROWS), metadata_types={"loc": "flatten"})) == FLAT


def test_objects_are_refused_by_default_with_the_fix(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    with refused(InputError, "type", "metadata.loc", column="loc.pageNumber", type="flatten", place="p.jsonl, line 1"):
        Index.build(path)
    with refused(InputError, "type", "metadata.loc", given=ROWS[0]["metadata"]["loc"]):
        Index.build(ROWS, metadata_types={"source": "flatten"})
    with refused(InputError, "type", "metadata.a", column="a.x"):
        Index.build([{"text": "t", "metadata": {"a": {}}}])


@pytest.mark.parametrize(
    ("metadata", "refusal"),
    [
        ({"a": {"b": 1}, "a.b": 2}, ("duplicate", "metadata.a.b")),
        ({"a.b": 2, "a": {"b": None}}, ("duplicate", "metadata.a.b")),
        ({"a": {"": 1}}, ("type", "metadata")),
        ({"a": {3: 1}}, ("type", "metadata")),
        ({3: {"b": 1}}, ("type", "metadata")),
        ({"a": {"b": [{"c": 1}]}}, ("type", "metadata.a.b")),
    ],
)
def test_entries_that_cannot_be_columns_are_refused(metadata, refusal):
    with refused(InputError, *refusal, place="passages[0]"):
        Index.build([{"text": "t", "metadata": metadata}], metadata_types={"*": "flatten"})


@pytest.mark.parametrize("types", [{"*": "int64"}, {"a": "flat"}])
def test_types_are_checked(types):
    with refused(InputError, "choice", f"metadata_types[{next(iter(types))!r}]"):
        Index.build(ROWS, metadata_types=types)


def test_deep_objects_become_a_column():
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": deep}
    index = Index.build([{"text": "t", "metadata": {"a": deep}}], metadata_types={"a": "flatten"})
    assert list(index.metadata.types) == [".".join("a" * 5001)]


def test_changes_flatten_as_the_index_did(tmp_path):
    Index.build(ROWS[:2], metadata_types={"loc": "flatten"}).save(tmp_path)
    with Index.open(tmp_path, writable=True) as live:
        with live.change() as change:
            change.add_passages([{"id": "e", "text": "five", "metadata": {"loc": {"pageNumber": 5}}}])
        with live.change() as change:
            change.replace_passages([{"id": "a", "text": "six", "metadata": {"loc": {"lines": {"from": 6}}}}])
        with refused(InputError, "type", "metadata.other"), live.change() as change:
            change.add_passages([{"id": "f", "text": "six", "metadata": {"other": {"x": 1}}}])
        index = live.refresh()
        assert {id: row for id, row in zip(index.passage_ids, rows_of(index), strict=True) if id in "ae"} == {
            "a": {"loc.lines.from": 6},
            "e": {"loc.pageNumber": 5},
        }


def test_a_filter_of_changes_holds_for_flat_metadata(tmp_path):
    Index.build(ROWS[:2], metadata_types={"loc": "flatten"}).save(tmp_path)
    only = where(**{"loc.pageNumber": 7})
    with Index.open(tmp_path, writable=True) as live:
        with live.change(only=only) as change:
            change.add_passages([{"id": "e", "text": "five", "metadata": {"loc": {"pageNumber": 7}}}])
        for wrong in ({"loc": {"pageNumber": 8}}, {"loc": {"pageNumber": 7, "other": 1}}, {"loc": {}}):
            with refused(InputError, "denied", "passages"), live.change(only=only) as change:
                change.add_passages([{"id": "f", "text": "six", "metadata": wrong}])
        assert list(live.refresh().passage_ids) == ["a", "b", "e"]
