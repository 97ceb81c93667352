"""The arguments of Index.build, and the ways that tables take into it."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import pytest
from hopfuse import Index
from hopfuse.index.input import Inputs
from hopfuse.io import source
from hopfuse.io.readers import read_table


def test_the_arguments_of_a_build_travel_as_one_object() -> None:
    given = inspect.signature(Index.build).parameters.values()
    assert {one.name: one.default for one in given} == {one.name: one.default for one in dataclasses.fields(Inputs)}


def test_types_of_metadata_are_those_of_arrow_on_every_way_in(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kind = pa.struct([("x", pa.int64()), ("y", pa.string())])
    table = pa.table({"text": ["a", "b"], "metadata": pa.array([{"x": 1, "y": None}] * 2, kind)})
    parquet.write_table(table, tmp_path / "p.parquet")
    for given in (table, tmp_path / "p.parquet", read_table(tmp_path / "p.parquet", source.PASSAGES)):
        assert dict(Index.build(given).metadata.types) == {"x": "int64", "y": "string"}
