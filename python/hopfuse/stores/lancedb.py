"""LanceDB databases as a source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from .._validation import check_names, import_extra
from ..errors import InputError
from .tables import RENAMED, ROWS, TABLES, TableReader, existing, not_in_store, split_place, table_batches


class LanceDBSource:
    """A LanceDB database with the tables of an index.

    Each table is read at the version that it has when the snapshot is taken. The column of lists of numbers is the
    vector; further columns of passages become metadata.

    Parameters
    ----------
    path : path
        Folder of the database.
    tables : mapping of str to str, optional
        LanceDB's names of ``passages``, ``entities``, ``edges`` and ``facts``; by default the same. Of these defaults,
        only ``passages`` must exist.
    columns : mapping of str to str, optional
        LanceDB's names of columns: ``{"text": "body"}``. ``vector`` selects one of several vectors.

    Raises
    ------
    InputError
        The folder does not exist, or ``tables`` or ``columns`` has an unknown key.
    MissingExtraError
        LanceDB is not installed.

    Examples
    --------
    >>> from hopfuse.stores.lancedb import LanceDBSource
    >>> source = LanceDBSource("lance-folder", {"passages": "chunks"}, columns={"text": "body"})  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        tables: Mapping[str, str] | None = None,
        *,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self._lancedb = import_extra("lancedb", "reading LanceDB")
        self._path = existing(Path(path), "the folder of a LanceDB database")
        check_names(tables or (), "tables", TABLES)
        check_names(columns or (), "columns", RENAMED)
        self._tables = dict(tables or {})
        self._renames = {stored: name for name, stored in (columns or {}).items()}

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Return the tables at their present versions.

        Raises
        ------
        StoreError
            A table or a column does not exist.
        """
        database = self._lancedb.connect(os.fspath(self._path))
        known = list(database.list_tables().tables)
        names = {table: self._tables.get(table, table) for table in TABLES}
        for table, name in names.items():
            if name not in known and (table in self._tables or table == "passages"):
                raise not_in_store("LanceDB", table, name, known)
        opened = {}
        for table, name in names.items():
            if name in known:
                opened[table] = database.open_table(name)
                opened[table].checkout(opened[table].version)
        stored = {name for table in opened.values() for name in table.schema.names}
        missing = [own for own in self._renames if own not in stored]
        if missing:
            raise not_in_store("LanceDB", f"columns[{self._renames[missing[0]]!r}]", missing[0], sorted(stored))
        yield TableReader(partial(self._read, opened))

    def _read(self, opened: Mapping[str, Any], table: str) -> Iterator[Any] | None:
        return None if table not in opened else self._batches(opened[table], table)

    def _batches(self, stored: Any, table: str) -> Iterator[Any]:
        yield from table_batches(stored.schema, stored.search().to_batches(ROWS), table, self._renames)


def open_place(place: str, queries: Mapping[str, Sequence[str]]) -> LanceDBSource:
    """Return the source of ``lancedb:PATH?text=body``; the queries are names of tables."""
    path, columns = split_place(place, RENAMED)
    for table, names in queries.items():
        if len(names) > 1:
            raise InputError(
                "unsupported", table, "{field} has several tables, {given}; LanceDB takes the name of one", given=names
            )
    return LanceDBSource(path, {table: names[0] for table, names in queries.items()}, columns=columns)
