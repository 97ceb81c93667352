"""Parquet files, a group of rows at a time: none is read that says it is larger than memory should take at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InputError, MissingExtraError

#: Bytes that the columns that are read may have in one group of rows, uncompressed: 2 GiB.
MOST_GROUP_BYTES = 2**31


def open_parquet(path: Path, purpose: str) -> Any:
    """Return a file as pyarrow's ``ParquetFile``; only its footer is read.

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
        return parquet.ParquetFile(path)
    except (ValueError, OSError) as error:
        raise _unreadable(path, error) from None


def read_groups(file: Any, path: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Yield each group of rows as an Arrow table of some columns; its size is checked before it is read.

    Raises
    ------
    InputError
        A group whose columns have more than :data:`MOST_GROUP_BYTES`, or that cannot be read.
    """
    for group in range(file.metadata.num_row_groups):
        check_group(file, path, group, columns)
        try:
            table = file.read_row_group(group, columns=list(columns))
        except (ValueError, OSError) as error:
            raise _unreadable(path, error) from None
        yield table


def check_group(file: Any, path: Path, group: int, columns: Collection[str]) -> None:
    """Refuse a group of rows whose columns have more than :data:`MOST_GROUP_BYTES`, by the file's footer.

    Raises
    ------
    InputError
    """
    stated = file.metadata.row_group(group)
    chunks = [stated.column(at) for at in range(stated.num_columns)]
    size = sum(chunk.total_uncompressed_size for chunk in chunks if _is_of(chunk.path_in_schema, columns))
    if size > MOST_GROUP_BYTES:
        raise InputError(
            f"{path}: row group {group} has {stated.num_rows:,} rows of {size:,} bytes; a group may have "
            f"{MOST_GROUP_BYTES:,}: write the file anew in smaller ones, such as by pyarrow.parquet.write_table(..., "
            f"row_group_size={_fitting(stated.num_rows, size)})"
        )


def _fitting(rows: int, size: int) -> int:
    """Return how many rows of their mean size take half of what a group may have."""
    return max(1, rows * MOST_GROUP_BYTES // (2 * size))


def _is_of(path: str, columns: Collection[str]) -> bool:
    """Return whether a leaf of the schema belongs to one of some columns."""
    return any(path == name or path.startswith(f"{name}.") for name in columns)


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} cannot be read as Parquet: {error}")
