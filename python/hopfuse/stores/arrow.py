"""Arrow tables in memory, and folders of Parquet files, as sources."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._validation import import_extra, wrong_type
from ..errors import InputError
from ..io.arrow import empty_batch
from ..io.parquet import open_parquet, read_groups
from .tables import TABLES, TableReader


class ArrowSource:
    """Arrow tables in memory, with the columns of :class:`hopfuse.io.source.Snapshot`.

    Parameters
    ----------
    passages, entities, edges, facts : Arrow table, record batch, iterable of those, or None
        Any object with the Arrow PyCapsule interface of streams or arrays, such as those of pyarrow, polars and DuckDB.

    Raises
    ------
    InputError
        A table has another type.
    MissingExtraError
        pyarrow is not installed.

    Examples
    --------
    >>> import pyarrow as pa, hopfuse as hf
    >>> passages = pa.table({"id": ["a", "b"], "text": ["Ada wrote.", "Babbage built."]})
    >>> edges = pa.table({"src_passage": ["b"], "dst_entity": ["Babbage"]})
    >>> source = hf.stores.ArrowSource(passages=passages, entities=pa.table({"name": ["Babbage"]}), edges=edges)
    >>> hf.Index.build(source)
    Index(passages=2, entities=1, dim=None, graph=True, lexical=False, metric='ip', storage='float32')
    """

    def __init__(self, *, passages: Any, entities: Any = None, edges: Any = None, facts: Any = None) -> None:
        given = {"passages": passages, "entities": entities, "edges": edges, "facts": facts}
        self._tables = {name: None if one is None else _batches(one, name) for name, one in given.items()}

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Return the tables."""
        yield TableReader(self._tables.get)


def _batches(given: Any, what: str) -> list[Any]:
    """Return pyarrow record batches; a table without rows gives one, which has its columns."""
    arrow = import_extra("pyarrow", f"reading {what} from Arrow")
    if hasattr(given, "__arrow_c_stream__"):
        table = arrow.table(given)
        return table.to_batches() or [arrow.RecordBatch.from_pylist([], schema=table.schema)]
    if hasattr(given, "__arrow_c_array__"):
        return [arrow.record_batch(given)]
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return [batch for one in given for batch in _batches(one, what)]
    raise wrong_type(given, what, "an Arrow table or an iterable of record batches")


class ParquetSource:
    """A folder of ``passages.parquet`` and, optionally, ``entities.parquet``, ``edges.parquet`` and ``facts.parquet``.

    Their columns are listed by :class:`hopfuse.io.source.Snapshot`. One row group is in memory at a time. It is not a
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
        return _groups(path, table) if path.is_file() else None


def _groups(path: Path, table: str) -> Iterator[Any]:
    file = open_parquet(path, f"reading {table} from a Parquet file")
    with file:
        names = file.schema_arrow.names
        yield empty_batch(file.schema_arrow)
        for group in read_groups(file, path, names):
            yield from group.to_batches()
