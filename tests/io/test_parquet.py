"""Parquet files are read a group of rows at a time, and a group that is too large is refused before it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hopfuse as hf
import pytest
from hopfuse.errors import FormatError, InputError
from hopfuse.io import MOST_GROUP_BYTES, QueryRows, count_queries, read_queries, read_run_file
from refusals import refused

arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS: list[dict[str, Any]] = [
    {"id": at, "text": f"text {at}", "metadata": {"year": 2000 + at}, "unread": "x" * 400 * (at % 2)} for at in range(7)
]


def written(path: Path, rows: list[dict[str, Any]], size: int) -> Path:
    parquet.write_table(arrow.Table.from_pylist(rows), path, row_group_size=size)
    return path


@pytest.mark.parametrize("size", [1, 3, 7])
def test_groups_of_rows_are_read_as_one_table(tmp_path: Path, size: int) -> None:
    with pytest.warns(UserWarning, match=r"p\.parquet that are not read: unread\."):
        index = hf.Index.build(passages=written(tmp_path / "p.parquet", ROWS, size))
    assert list(index.passage_ids) == list(range(7))
    assert list(index.texts) == [row["text"] for row in ROWS]
    assert list(index.metadata["year"]) == [2000 + at for at in range(7)]


def test_a_value_that_one_group_lacks_is_named_by_its_row(tmp_path: Path) -> None:
    rows = [{"src": 0, "dst": 1}, {"src": 0, "dst": 1}, {"src": 1, "dst": None}, {"src": 1, "dst": 0}]
    path = written(tmp_path / "edges.parquet", rows, 2)
    with refused(InputError, "missing", "dst", place="edges.parquet, row 2"):
        hf.Index.build(passages=[{"text": "a"}], graph=path)
    assert hf.Index.build(passages=[{"text": "a"}], graph=written(path, rows[:2], 1)).graph.num_stored == 2


def test_no_rows_give_no_groups(tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    parquet.write_table(arrow.table({"text": arrow.array([], arrow.string())}), path)
    assert hf.Index.build(passages=path).num_passages == 0


def test_a_column_that_is_there_twice_is_named(tmp_path: Path) -> None:
    twice = arrow.Table.from_arrays([arrow.array(["a"])] * 3, ["text", "title", "title"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    with refused(InputError, "duplicate", "title"):
        hf.Index.build(passages=tmp_path / "twice.parquet")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose second group of rows has more bytes than are allowed, and a reader that may not be asked for it."""
    rows = [{"id": str(at), "text": "word " * (1 if at < 4 else 400), "hits": []} for at in range(8)]
    path = written(tmp_path / "p.parquet", rows, 4)
    monkeypatch.setattr("hopfuse.io.parquet.MOST_GROUP_BYTES", 600)
    kind = parquet.ParquetFile
    read, batches = kind.read_row_group, kind.iter_batches

    def refuses(self: Any, group: int, **options: Any) -> Any:
        assert group == 0
        return read(self, group, **options)

    def refuses_all(self: Any, row_groups: list[int], **options: Any) -> Any:
        assert row_groups == [0]
        return batches(self, row_groups=row_groups, **options)

    monkeypatch.setattr(kind, "read_row_group", refuses)
    monkeypatch.setattr(kind, "iter_batches", refuses_all)
    return path


TOO_LARGE: tuple[Any, ...] = ("limit", None, {"group": 1, "rows": 4, "allowed": 600, "place": "p.parquet"})


@pytest.mark.filterwarnings("ignore:columns of")
def test_a_group_that_is_too_large_is_refused_before_it_is_read(small: Path) -> None:
    with refused(InputError, *TOO_LARGE) as caught:
        hf.Index.build(passages=small)
    assert 1 <= caught.value.values["fitting"] <= 3
    with refused(InputError, *TOO_LARGE):
        list(read_queries(small))
    assert [query.id for query in QueryRows(small).read(0, 4)] == ["0", "1", "2", "3"]
    with refused(InputError, *TOO_LARGE):
        QueryRows(small).read(4, 1)
    with refused(FormatError, *TOO_LARGE):
        read_run_file(small)


@pytest.mark.filterwarnings("ignore:columns of")
def test_columns_that_are_not_read_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "p.parquet", [row | {"unread": f"{at}" * 400} for at, row in enumerate(ROWS)], 7)
    monkeypatch.setattr("hopfuse.io.parquet.MOST_GROUP_BYTES", 1500)
    assert hf.Index.build(passages=path).num_passages == 7
    monkeypatch.setattr("hopfuse.io.parquet.MOST_GROUP_BYTES", 100)
    with refused(InputError, "limit", group=0, rows=7):
        hf.Index.build(passages=path)


def test_the_limit_is_two_gigabytes() -> None:
    assert MOST_GROUP_BYTES == 2 * 1024**3


def test_a_footer_that_states_other_numbers_of_rows_is_refused(tmp_path: Path) -> None:
    """One of them is changed at a time, from 1 as Thrift writes it to 28: of the file, of the group, of a column."""
    rows = [{"id": "q", "text": "Who?"}]
    whole = written(tmp_path / "queries.parquet", rows, 1).read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    stated = [at for at in range(footer, len(whole) - 8) if whole[at : at + 2] == b"\x16\x02"]
    assert len(stated) >= 2
    said = []
    for at in stated:
        path = tmp_path / "changed.parquet"
        path.write_bytes(whole[: at + 1] + b"\x38" + whole[at + 2 :])
        try:
            assert [query.text for query in read_queries(path)] == ["Who?"]
            assert count_queries(path) == 1
            assert hf.Index.build(passages=path).num_passages == 1
        except InputError as error:
            said.append(str(error))
    assert sum("and the footer says 28" in one for one in said) >= 1, said
