"""A folder of Parquet files as a source, one file for each table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..io.arrow import empty_batch
from ..io.parquet import open_parquet, read_groups
from .tables import TABLES, TableReader


class ParquetSource:
    """A folder of ``passages.parquet`` and, optionally, ``entities.parquet``, ``edges.parquet`` and ``facts.parquet``.

    Their columns are those of :class:`hopfuse.io.source.Snapshot`. One row group is in memory at a time. It is not a
    snapshot if files are replaced during the read.

    Parameters
    ----------
    folder : path

    Raises
    ------
    InputError
        The folder does not exist, or has no file ``passages.parquet``.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet, hopfuse as hf
    >>> folder = tempfile.mkdtemp()
    >>> pa.parquet.write_table(pa.table({"id": [1, 2], "text": ["one", "two"]}), f"{folder}/passages.parquet")
    >>> list(hf.Index.build(hf.stores.ParquetSource(folder)).texts)
    ['one', 'two']
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        if not self._path("passages").is_file():
            raise InputError(
                "missing",
                "folder",
                "{field} is {given!r}, which has no file passages.parquet; the files read are {allowed} (.parquet)",
                given=str(folder),
                allowed=", ".join(TABLES),
            )

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Return the files."""
        yield TableReader(self._read)

    def _path(self, table: str) -> Path:
        return self._folder / f"{table}.parquet"

    def _read(self, table: str) -> Iterator[Any] | None:
        path = self._path(table)
        return _batches(path, table) if path.is_file() else None


def _batches(path: Path, table: str) -> Iterator[Any]:
    file = open_parquet(path, f"reading {table} from a Parquet file")
    with file:
        names = file.schema_arrow.names
        yield empty_batch(file.schema_arrow)
        for group in read_groups(file, path, names):
            yield from group.to_batches()
