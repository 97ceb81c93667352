"""Read Parquet files a row group at a time; refuse groups that are too large for memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import HopfuseError, InputError, MissingExtraError
from .arrow import unreadable

#: The largest uncompressed size of the read columns in a row group: 2 GiB.
MOST_GROUP_BYTES = 2**31


def open_parquet(path: Path, purpose: str) -> Any:
    """Return pyarrow's ``ParquetFile`` for a file, reading only the footer.

    Raises
    ------
    InputError
        The file cannot be read as Parquet.
    MissingExtraError
        pyarrow is not installed.
    """
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError("pyarrow", "arrow", purpose) from None
    try:
        file = parquet.ParquetFile(path)
        _ = file.schema_arrow.names  # which are decoded here
    except unreadable() as error:
        raise _unreadable(path, error) from None
    stated = file.metadata
    in_groups = sum(stated.row_group(group).num_rows for group in range(stated.num_row_groups))
    _check_rows(in_groups, stated.num_rows, "the row groups have", path)
    return file


def read_groups(file: Any, path: Path, columns: Sequence[str], *, validate: bool = False) -> Iterator[Any]:
    """Yield some columns of each row group as an Arrow table; check the size of a group before reading it.

    Raises
    ------
    InputError
        A row group is larger than :data:`MOST_GROUP_BYTES`, or cannot be read, or to be validated and damaged, such as
        by a string that is not UTF-8.
    """
    for group in range(file.metadata.num_row_groups):
        check_group(file, path, group, columns)
        try:
            table = file.read_row_group(group, columns=list(columns))
            if validate:
                table.validate(full=True)
        except unreadable() as error:
            raise _unreadable(path, error) from None
        _check_group_rows(table.num_rows, file, group, path)
        yield table


def read_batches(file: Any, path: Path, size: int, group: int, columns: Sequence[str]) -> Iterator[Any]:
    """Yield some columns of a row group as validated record batches of at most ``size`` rows.

    Raises
    ------
    InputError
        The group cannot be read, or is damaged.
    """
    rows = 0
    try:
        for batch in file.iter_batches(batch_size=size, row_groups=[group], columns=list(columns)):
            batch.validate(full=True)
            rows += batch.num_rows
            yield batch
    except unreadable() as error:
        raise _unreadable(path, error) from None
    _check_group_rows(rows, file, group, path)


def rows_of(table: Any, path: Path) -> list[dict[str, Any]]:
    """Return the rows of a validated table or batch.

    Raises
    ------
    InputError
        A value has no counterpart in Python, such as a time beyond the year 9999.
    """
    try:
        rows: list[dict[str, Any]] = table.to_pylist()
    except unreadable() as error:
        raise _unreadable(path, error) from None
    return rows


def check_group(file: Any, path: Path, group: int, columns: Collection[str]) -> None:
    """Refuse a row group whose columns are larger than :data:`MOST_GROUP_BYTES`, according to the footer.

    Columns are looked at only if the whole group is larger: pyarrow ends the process at some damages of their metadata.
    """
    stated = file.metadata.row_group(group)
    if stated.total_byte_size <= MOST_GROUP_BYTES:
        return
    chunks = [stated.column(at) for at in range(stated.num_columns)]
    try:
        size = sum(chunk.total_uncompressed_size for chunk in chunks if _is_of(chunk.path_in_schema, columns))
    except UnicodeDecodeError as error:
        raise _unreadable(path, error) from None
    if size > MOST_GROUP_BYTES:
        raise InputError(
            "limit",
            None,
            "row group {group} has {rows:,} rows of {given:,} bytes; a group may have {allowed:,}: write the file "
            "again with smaller ones, as pyarrow.parquet.write_table(..., row_group_size={fitting})",
            group=group,
            rows=stated.num_rows,
            given=size,
            allowed=MOST_GROUP_BYTES,
            fitting=_fitting(stated.num_rows, size),
        ).at(path)


def _check_group_rows(rows: int, file: Any, group: int, path: Path) -> None:
    _check_rows(rows, file.metadata.row_group(group).num_rows, f"row group {group} has", path)


def _check_rows(rows: int, stated: int, what: str, path: Path) -> None:
    """Refuse a file that has another number of rows than its footer says, as a damaged one may."""
    if rows != stated:
        raise InputError(
            "syntax",
            None,
            "it cannot be read as Parquet: {what} {given:,} rows, and the footer says {stated:,}",
            what=what,
            given=rows,
            stated=stated,
        ).at(path)


def _fitting(rows: int, size: int) -> int:
    """Return the number of rows that take half of the allowed size, by their mean size."""
    return max(1, rows * MOST_GROUP_BYTES // (2 * size))


def _is_of(path: str, columns: Collection[str]) -> bool:
    """Return whether a leaf of the schema belongs to one of the columns."""
    return any(path == name or path.startswith(f"{name}.") for name in columns)


def _unreadable(path: Path, error: Exception) -> HopfuseError:
    return InputError("syntax", None, "it cannot be read as Parquet: {error}", error=error).at(path)
