"""Metadata of passages: typed columns that round-trip, are strict, and are verified before their first use."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.index import Index
from hypothesis import given
from hypothesis import strategies as st
from index.index_files import METADATA, PASSAGES, Forge, forged, full_index, generation_file
from refusals import refused

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
VALUES = {
    "bool": st.booleans(),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "string": st.text(st.characters(codec="utf-8"), max_size=5),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
    "strings": st.lists(st.text("abc東", max_size=2), max_size=3),
}


def texts(*metadata: Any) -> list[dict[str, Any]]:
    return [{"id": f"p{row}", "text": "", "metadata": values} for row, values in enumerate(metadata)]


@given(st.data())
def test_every_type_round_trips_with_missing_values(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    types = data.draw(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(list(VALUES)), max_size=5))
    count = data.draw(st.integers(0, 6))
    rows = [
        {name: data.draw(st.none() | VALUES[kind]) for name, kind in types.items() if data.draw(st.booleans())}
        for _ in range(count)
    ]
    index = Index.build(passages=texts(*rows), metadata_types=types)
    directory = tmp_path_factory.mktemp("index")
    index.save(directory)
    expected = [
        {name: tuple(v) if isinstance(v, list) else v for name, v in row.items() if v is not None} for row in rows
    ]
    for found in (index, Index.open(directory), Index.open(directory, verify="full")):
        assert dict(found.metadata.types) == types
        assert [found.metadata.row(row) for row in range(count)] == expected
        for name, kind in types.items():
            assert found.metadata[name].present.tolist() == [name in row for row in expected]
            assert found.metadata[name].type == kind


def test_types_are_those_of_the_first_values_and_columns_in_their_order() -> None:
    metadata = Index.build(
        passages=texts({"b": None, "a": 1}, None, {"b": True, "c": 0.5, "d": "x", "e": NOON, "f": []})
    ).metadata
    assert list(metadata.types.items()) == [
        ("a", "int64"),
        ("b", "bool"),
        ("c", "float64"),
        ("d", "string"),
        ("e", "timestamp"),
        ("f", "strings"),
    ]
    assert metadata.row(0) == {"a": 1}
    assert metadata.row(1) == {}
    assert metadata["f"][2] == ()
    assert metadata["a"][:] == [1, None, None]
    assert "a" in metadata
    assert "z" not in metadata
    assert metadata.get("z") is None


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        (NOON, 0),
        (NOON.astimezone(timezone(timedelta(hours=5))), 0),
        ("2024-05-01T12:00:00.000007Z", 7),
        ("2024-05-01T14:00:00+02:00", 0),
        (np.datetime64("2024-05-01T12:00:00.000003"), 3),
        (np.datetime64("2024-05-01T12"), 0),
    ],
)
def test_times_are_of_one_zone(value: Any, micros: int) -> None:
    index = Index.build(passages=texts({"day": value}), metadata_types={"day": "timestamp"})
    assert index.metadata["day"][0] == NOON + timedelta(microseconds=micros)


@pytest.mark.parametrize(
    ("metadata", "types", "expected"),
    [
        ([{"y": 1}, {"y": 1.5}], {}, ("type", "metadata.y", {"given": 1.5, "place": "passages[1]"})),
        ([{"y": 1}, {"y": True}], {}, ("type", "metadata.y", {"given": True})),
        ([{"y": 1.5}, {"y": 2}, {"y": 2**53 + 1}], {}, ("type", "metadata.y", {"place": "passages[2]"})),
        ([{"y": float("nan")}], {}, ("type", "metadata.y")),
        ([{"y": 2**63}], {}, ("type", "metadata.y", {"allowed": "an integer of 64 bits"})),
        ([{"y": "1"}], {"y": "int64"}, ("type", "metadata.y", {"given": "1"})),
        ([{"y": ["a", 1]}], {}, ("type", "metadata.y")),
        ([{"y": {"z": 1}}], {}, ("type", "metadata.y")),
        ([{"y": datetime(2024, 5, 1)}], {}, ("type", "metadata.y")),
        ([{"y": "2024-05-01"}], {"y": "timestamp"}, ("type", "metadata.y")),
        ([{"y": np.datetime64("2024-05-01T12:00:00.000000001")}], {}, ("type", "metadata.y")),
        ([{"y": np.datetime64("NaT", "us")}], {}, ("type", "metadata.y")),
        ([{"y": np.datetime64("20000-01-01")}], {}, ("type", "metadata.y")),
        ([{"": 1}], {}, ("type", "metadata")),
        ([{3: 1}], {}, ("type", "metadata", {"given": 3})),
        (["no"], {}, ("syntax", "metadata", {"allowed": "a JSON object"})),
        ([[1]], {}, ("type", "metadata", {"allowed": "an object of names and values"})),
        ([{}], {"y": "date"}, ("choice", "metadata_types['y']", {"given": "date"})),
        ([{}], {"": "bool"}, ("type", "metadata", {"place": "metadata_types"})),
        ([{}], ["y"], ("type", "metadata_types")),
    ],
)
def test_bad_metadata_is_refused(metadata: list[Any], types: Any, expected: tuple[Any, ...]) -> None:
    with refused(InputError, *expected):
        Index.build(passages=texts(*metadata), metadata_types=types)


def test_a_column_without_a_value_is_left_out_unless_it_has_a_type() -> None:
    rows = texts({"y": None, "z": 1}, {"y": None}, {"y": None, "": None})
    with refused(InputError, "type", "metadata"):
        Index.build(passages=rows)
    with pytest.warns(UserWarning, match=r"the metadata 'y' is left out: .* give metadata_types=\{'y': 'string'\}"):
        index = Index.build(passages=rows[:2])
    assert index.metadata.types == {"z": "int64"}
    assert Index.build(passages=rows[:2], metadata_types={"y": "string"}).metadata.types == {
        "y": "string",
        "z": "int64",
    }


def test_an_integer_is_a_number_where_the_column_has_numbers() -> None:
    index = Index.build(passages=texts({"y": 2}, {"y": 1.5}, {"y": 2**53}), metadata_types={"y": "float64"})
    assert list(index.metadata["y"]) == [2.0, 1.5, 2.0**53]


def test_files_have_metadata_too_and_errors_name_the_line(tmp_path: Path) -> None:
    rows = texts({"year": 1999, "tags": ["a"]}, None, {"year": None})
    lines, table = tmp_path / "p.jsonl", tmp_path / "p.tsv"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table.write_text("id\ttext\tmetadata\n" + "".join(f"{r['id']}\t\t{json.dumps(r['metadata'])}\n" for r in rows))
    for path in (lines, table):
        index = Index.build(passages=path)
        assert [index.metadata.row(row) for row in range(3)] == [{"year": 1999, "tags": ("a",)}, {}, {}]
    lines.write_text(
        lines.read_text() + '{"text": "", "metadata": {"year": "1999"}}\n'.replace("{", '{"id": "p9", ', 1)
    )
    with refused(InputError, "type", "metadata.year", given="1999", place="p.jsonl, line 4"):
        Index.build(passages=lines)


def test_arrow_tables_and_parquet_files_have_structs(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = texts({"year": 1999, "tags": ["a"], "day": NOON}, {"year": None, "tags": None, "day": None})
    table = arrow.Table.from_pylist(rows)
    parquet.write_table(table, tmp_path / "p.parquet")
    for source in (table, tmp_path / "p.parquet"):
        metadata = Index.build(passages=source).metadata
        assert metadata.types == {"year": "int64", "tags": "strings", "day": "timestamp"}
        assert [metadata.row(row) for row in range(2)] == [{"year": 1999, "tags": ("a",), "day": NOON}, {}]


def test_metadata_is_replaced_and_taken_out() -> None:
    index = full_index()
    assert index.metadata.row(0)["year"] == 1843
    other = index.with_metadata([{"id": "东京", "metadata": {"year": 7}}])
    assert [other.metadata.row(row) for row in range(3)] == [{}, {}, {"year": 7}]
    assert index.with_metadata([{"metadata": {"a": row}} for row in range(3)]).metadata["a"][:] == [0, 1, 2]
    assert not index.with_metadata(None).metadata
    assert index.with_metadata(None).info()["metadata"] is None
    assert index.info()["metadata"] == index.metadata.types
    assert index.metadata.row(0)["year"] == 1843
    mixed = [{"id": "ada", "metadata": {"a": 1}}, {"id": "empty", "metadata": {"a": "x"}}]
    for rows, expected in (
        ([{"metadata": {}}], ("length", "metadata", {"given": 1, "allowed": "3 passages"})),
        ([{"id": "nobody", "metadata": {}}], ("unknown", "ids", {"given": "nobody"})),
        ([{"year": 1843}] * 3, ("unknown", "year", {"place": "metadata[0]"})),
        ([{"id": "ada"}], ("missing", "metadata")),
        (mixed, ("type", "metadata.a", {"given": "x", "place": "metadata[1]"})),
    ):
        with refused(InputError, *expected):
            index.with_metadata(rows)


def test_hits_have_the_metadata_of_their_passages() -> None:
    index = hf.Index.from_texts(
        [{"text": "A river.", "metadata": {"depth": 3}}, "The sea."], metadata_types={"depth": "float64"}
    )
    recipe = hf.recipes.HybridRRF(index, lexical=hf.lexical.FTS5.build(index.texts_to_index()))
    found = recipe.search(["river", "sea"], k=1)
    assert [row[0].metadata for row in found] == [{"depth": 3.0}, {}]


def spoil(name: str, at: int, value: Any) -> Callable[[Forge], None]:
    def change(forge: Forge) -> None:
        forge.array(name)[at] = value

    return change


# Columns of full_index: year, draft, rank, tags, 東, day; of passage 1 all is missing.
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (spoil("metadata.type", 0, 6), ("range", None, {"given": 6, "last": 5})),
        (spoil("metadata.type", 0, 0), ("length", None, {})),
        (
            spoil("metadata.present", 0, 2),
            ("damaged", None, {"column": "year", "wrong": "a mark of presence is not 0 or 1"}),
        ),
        (spoil("metadata.flag", 0, 2), ("damaged", None, {"column": "draft", "wrong": "a bool is not 0 or 1"})),
        (spoil("metadata.flag", 1, 1), ("damaged", None, {"column": "draft", "wrong": "a missing value is not 0"})),
        (spoil("metadata.real", 0, np.nan), ("damaged", None, {"column": "rank", "wrong": "a number is NaN"})),
        (spoil("metadata.number", 1, 5), ("damaged", None, {"column": "year", "wrong": "a missing value is not 0"})),
        (spoil("metadata.number", 5, 2**62), ("damaged", None, {"column": "day"})),
        (spoil("metadata.code", 0, 3), ("damaged", None, {"column": "東"})),
        (spoil("metadata.code", 1, 0), ("damaged", None, {"column": "東"})),
        (spoil("metadata.item", 0, -1), ("damaged", None, {"column": "tags"})),
        (spoil("metadata.list", 1, 9), ("order", None, {"column": "tags"})),
        (spoil("metadata.list", 2, 3), ("damaged", None, {"column": "tags", "wrong": "a missing list has items"})),
        (
            spoil("metadata.value.bytes", 0, ord("z")),
            ("order", None, {"place": "section 'metadata.value.bytes'"}),
        ),
        (spoil("metadata.name.bytes", 0, 0xFF), ("syntax", None, {})),
        (spoil("metadata.list", 0, 1), ("damaged", None, {"place": "section 'metadata.item'"})),
    ],
)
def test_forged_metadata_is_refused_before_its_first_use(
    change: Callable[[Forge], None], expected: tuple[str, None, dict[str, Any]], tmp_path: Path
) -> None:
    full_index().save(tmp_path)
    forged(tmp_path, change)
    with refused(FormatError, *expected):
        Index.open(tmp_path, verify="full")
    lazy = Index.open(tmp_path)
    assert lazy.texts[0] == PASSAGES[0]["text"]
    if expected[-1].get("place"):
        return  # the order of all strings, and of all lists, is read in full verification alone
    with refused(FormatError, *expected):
        [lazy.metadata.row(row) for row in range(len(METADATA))]


def test_a_column_is_read_where_it_is_asked_for(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    path = generation_file(tmp_path)
    forge = Forge(path.read_bytes())
    forge.array("metadata.real")[0] = 9.0
    path.write_bytes(forge.data)
    index = Index.open(tmp_path)
    assert index.metadata["year"][0] == 1843
    with refused(FormatError, "damaged"):
        index.metadata["rank"]
