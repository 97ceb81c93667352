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
from hypothesis import given, settings
from hypothesis import strategies as st
from index.index_files import METADATA, PASSAGES, Forge, forged, full_index, generation_file

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


@settings(max_examples=60, deadline=None)
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
    ("metadata", "types", "message"),
    [
        ([{"y": 1}, {"y": 1.5}], {}, r"passages\[1\] has metadata\['y'\] = 1.5, and the column is int64; .* 'float64'"),
        ([{"y": 1}, {"y": True}], {}, r"metadata\['y'\] = True, and the column is int64.*metadata_types=\{'y': 'bool'"),
        ([{"y": 1.5}, {"y": 2}, {"y": 2**53 + 1}], {}, r"passages\[2\].*the column is float64; it must be a number"),
        ([{"y": float("nan")}], {}, "a number that is not NaN"),
        ([{"y": 2**63}], {}, "an integer of 64 bits"),
        ([{"y": "1"}], {"y": "int64"}, r"'1', and the column is int64; it must be an integer: convert it, or build"),
        ([{"y": ["a", 1]}], {}, r"a list; allowed types: bool, .*\(a list of strings\)"),
        ([{"y": {"z": 1}}], {}, "a dict; allowed types: "),
        ([{"y": datetime(2024, 5, 1)}], {}, "a time with a time zone"),
        ([{"y": "2024-05-01"}], {"y": "timestamp"}, "a time with a time zone"),
        ([{"y": np.datetime64("2024-05-01T12:00:00.000000001")}], {}, "whole microseconds"),
        ([{"y": np.datetime64("NaT", "us")}], {}, "a time with a time zone"),
        ([{"y": np.datetime64("20000-01-01")}], {}, "a time with a time zone"),
        ([{"": 1}], {}, "a column's name is a string that is not empty"),
        ([{3: 1}], {}, "has the metadata 3; a column's name"),
        (["no"], {}, "it must be a JSON object"),
        ([[1]], {}, "it must be an object of names and values"),
        ([{}], {"y": "date"}, r"metadata_types has 'y': 'date'; allowed: bool, int64"),
        ([{}], {"": "bool"}, "metadata_types has the column ''"),
        ([{}], ["y"], "it must map a column's name to its type"),
    ],
)
def test_bad_metadata_is_refused(metadata: list[Any], types: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Index.build(passages=texts(*metadata), metadata_types=types)


def test_a_column_without_a_value_is_left_out_unless_it_has_a_type() -> None:
    rows = texts({"y": None, "z": 1}, {"y": None}, {"y": None, "": None})
    with pytest.raises(InputError, match="a column's name is a string that is not empty"):
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
    with pytest.raises(InputError, match=r"p\.jsonl, line 4 has metadata\['year'\] = '1999'"):
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
    for rows, message in (
        ([{"metadata": {}}], "1 row for 3 passages"),
        ([{"id": "nobody", "metadata": {}}], "no passage with the id 'nobody'"),
        ([{"year": 1843}] * 3, "no row of metadata has the field 'metadata'"),
        ([{"id": "ada", "year": 1843}], "no row of metadata has the field 'metadata'"),
        ([{"id": "ada", "metadata": {"a": 1}}, {"id": "empty", "metadata": {"a": "x"}}], r"metadata\[1\] has"),
    ):
        with pytest.raises(InputError, match=message):
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
    ("change", "message"),
    [
        (spoil("metadata.type", 0, 6), "a column has type 6; 0 to 5 are known"),
        (spoil("metadata.type", 0, 0), "entries; columns of"),
        (spoil("metadata.present", 0, 2), "'year' a mark of presence is not 0 or 1"),
        (spoil("metadata.flag", 0, 2), "'draft' a bool is not 0 or 1"),
        (spoil("metadata.flag", 1, 1), "'draft' a missing value is not 0"),
        (spoil("metadata.real", 0, np.nan), "'rank' a number is NaN"),
        (spoil("metadata.number", 1, 5), "'year' a missing value is not 0"),
        (spoil("metadata.number", 5, 2**62), "'day' a time is outside the years"),
        (spoil("metadata.code", 0, 3), "the index of a string is outside 0 .. 2"),
        (spoil("metadata.code", 1, 0), "not -1 for a missing value"),
        (spoil("metadata.item", 0, -1), "'tags' the index of an item is outside"),
        (spoil("metadata.list", 1, 9), "the lists of 'tags' do not ascend"),
        (spoil("metadata.list", 2, 3), "'tags' a missing list has items"),
        (spoil("metadata.value.bytes", 0, ord("z")), "the strings do not ascend"),
        (spoil("metadata.name.bytes", 0, 0xFF), "UTF-8"),
        (spoil("metadata.list", 0, 1), "do not follow one another"),
    ],
)
def test_forged_metadata_is_refused_before_its_first_use(
    change: Callable[[Forge], None], message: str, tmp_path: Path
) -> None:
    full_index().save(tmp_path)
    forged(tmp_path, change)
    with pytest.raises(FormatError, match=message):
        Index.open(tmp_path, verify="full")
    lazy = Index.open(tmp_path)
    assert lazy.texts[0] == PASSAGES[0]["text"]
    if ("ascend" in message and "lists" not in message) or "follow" in message:
        return  # the order of all strings, and of all lists, is read in full verification alone
    with pytest.raises(FormatError, match=message):
        [lazy.metadata.row(row) for row in range(len(METADATA))]


def test_a_column_is_read_where_it_is_asked_for(tmp_path: Path) -> None:
    full_index().save(tmp_path)
    path = generation_file(tmp_path)
    forge = Forge(path.read_bytes())
    forge.array("metadata.real")[0] = 9.0
    path.write_bytes(forge.data)
    index = Index.open(tmp_path)
    assert index.metadata["year"][0] == 1843
    with pytest.raises(FormatError, match="does not match its checksum"):
        index.metadata["rank"]
