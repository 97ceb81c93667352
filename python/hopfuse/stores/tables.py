"""What bulk readers share: tables read by name, and record batches of a store turned into those of a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
from numpy.typing import NDArray

from .._validation import check_list, check_names, check_type, float32_of
from ..errors import InputError, StoreError
from ..io.arrow import arrow, empty_batch
from ..io.source import STORED
from ..io.tables import ROWS as ROWS

TABLES = tuple(STORED)
#: Columns of each table besides ``vector``; see :class:`hopfuse.io.source.Snapshot`.
COLUMNS = {table: tuple(name for name in spec.known if name != "vector") for table, spec in STORED.items()}
#: Columns that a store may have under other names.
RENAMED = tuple(dict.fromkeys(("vector", *(name for names in COLUMNS.values() for name in names))))


class VectorsChangedWarning(UserWarning):
    """A store returns other vectors than were written to it: normalised, or in another precision."""


class TableReader:
    """A snapshot that reads every table with one function of the table's name."""

    def __init__(self, read: Callable[[str], Iterable[Any] | None]) -> None:
        self._read = read

    def passages(self) -> Iterable[Any] | None:
        """Return the passages."""
        return self._read("passages")

    def entities(self) -> Iterable[Any] | None:
        """Return the entities."""
        return self._read("entities")

    def edges(self) -> Iterable[Any] | None:
        """Return the edges."""
        return self._read("edges")

    def facts(self) -> Iterable[Any] | None:
        """Return the statements of facts."""
        return self._read("facts")


def as_table(table: str, batch: Any, renames: Mapping[str, str]) -> Any:
    """Return a record batch of a store as one of a table.

    ``renames`` maps the store's column names to those of the table. The column of lists of floating-point numbers is
    the vector; if ``renames`` names it, other such columns are dropped. Further columns of passages become metadata.
    Weights may be SQL decimals.

    Raises
    ------
    InputError
        There are two vectors, two columns with one name, or columns that the table does not have.
    """
    pa = arrow()
    names = [renames.get(name, name) for name in batch.schema.names]
    check_columns(table, names)
    columns = dict(zip(names, zip(batch.schema.names, batch.columns, strict=True), strict=True))
    vectors = [name for name, (_, column) in columns.items() if is_vector(column.type)]
    if "vector" in vectors and "vector" in renames.values():
        columns = {name: column for name, column in columns.items() if name == "vector" or name not in vectors}
        vectors = ["vector"]
    if "vector" in columns and not vectors and batch.num_rows:
        own, column = columns["vector"]
        raise InputError(
            "type",
            table,
            "{field} has {column!r} of the type {given}; a vector is a list of floating-point numbers: convert it, or "
            "rename it",
            column=own,
            given=column.type,
        )
    if "weight" in columns and pa.types.is_decimal(columns["weight"][1].type):
        columns["weight"] = (columns["weight"][0], columns["weight"][1].cast(pa.float64()))
    takes_vector = table in ("passages", "entities")
    if len(vectors) > takes_vector:
        raise InputError(
            "unsupported",
            table,
            "{field} has the vectors {given}; {fix}",
            given=", ".join(vectors),
            fix="select one of them" if takes_vector else "leave them out",
        )
    missing = [name for name in STORED[table].required if name not in columns]
    if missing:
        raise InputError(
            "missing",
            table,
            "{field} has no column {column!r}, but {given}: rename one, in SQL by AS {column}",
            column=missing[0],
            given=", ".join(batch.schema.names) or "none",
        )
    others = [name for name in columns if name not in COLUMNS[table] and name not in vectors]
    if others and "metadata" in columns:
        raise InputError(
            "conflict",
            table,
            "{field} has metadata beside {column!r}, which would be part of it; leave one of them out",
            column=others[0],
        )
    if table != "passages":
        check_names(others, table, COLUMNS[table])
    found = {name: column for name, column in columns.items() if name in COLUMNS[table]}
    if vectors:
        found["vector"] = columns[vectors[0]]
    if others:
        found["metadata"] = ("metadata", pa.StructArray.from_arrays([columns[name][1] for name in others], others))
    fields = [pa.field(name, column.type, metadata={"column": own}) for name, (own, column) in found.items()]
    return pa.record_batch([column for _, column in found.values()], schema=pa.schema(fields))


def is_vector(kind: Any) -> bool:
    """Return whether an Arrow type is a list of floating-point numbers."""
    types = arrow().types
    listed = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(listed and types.is_floating(kind.value_type))


def vector_list(values: NDArray[Any]) -> Any:
    """Return an array (n, d) as an Arrow array of lists, without a Python object for each row."""
    pa = arrow()
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(values).reshape(-1)), values.shape[1])


def as_float32(values: NDArray[Any], store: str) -> NDArray[np.float32]:
    """Return numbers as float32; warn if that changes them."""
    narrow = float32_of(values)
    if not np.array_equal(narrow, values):
        warnings.warn(
            f"{store} returns vectors of {values.dtype} that are not float32; the index has them rounded",
            VectorsChangedWarning,
            stacklevel=3,
        )
    return narrow


def check_queries(store: str, queries: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the queries of each table: one of passages, at most one of entities and facts, any number of edges.

    Raises
    ------
    InputError
    """
    given = check_type(queries, "queries", Mapping, "a mapping: {'passages': 'SELECT …'}")
    found = {
        table: [one] if isinstance(one, str) else check_list(one, table, "a query, or a list of queries")
        for table, one in given.items()
        if one
    }
    check_names(found, "queries", TABLES)
    if "passages" not in found:
        raise InputError(
            "missing",
            "passages",
            "{field} is missing, and {store} is read by queries; give one with the columns id and text",
            store=store,
        )
    for table, one in found.items():
        if len(one) > 1 and table != "edges":
            raise InputError(
                "unsupported",
                table,
                "{field} has {count} queries; only edges may have several: use UNION ALL",
                count=len(one),
            )
    return found


def split_place(place: str, allowed: Collection[str] = ()) -> tuple[Path, dict[str, str]]:
    """Return the path of ``scheme:path?name=value`` and its values by name.

    The scheme may be followed by ``//``. Nothing in the path is decoded. If a file has the whole text as its name, the
    question mark is part of the path.

    Raises
    ------
    InputError
        There is no path, a part is not ``name=value``, or a name is repeated or not allowed.
    """
    scheme, _, whole = place.partition(":")
    whole = whole.removeprefix("//")
    path, _, query = (
        (whole, "", "") if Path(whole).exists() else whole.rpartition("?") if "?" in whole else (whole, "", "")
    )
    if not path:
        raise InputError(
            "syntax",
            "place",
            "{field} is {given!r}, which names no file or folder; write {scheme}:PATH",
            given=place,
            scheme=scheme,
        )
    try:
        values = parse_qs(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise InputError(
            "syntax",
            "place",
            "{field} is {given!r} with {query!r} after the question mark; write {scheme}:PATH?name=value",
            given=place,
            query=query,
            scheme=scheme,
        ) from None
    check_names(values, "place", allowed)
    for name, given in values.items():
        if len(given) > 1 or not given[0]:
            raise InputError(
                "syntax",
                "place",
                "{field} is {given!r} with {count} of {name!r}; give it one",
                given=place,
                count="two values" if len(given) > 1 else "no value",
                name=name,
            )
    return Path(path), {name: given[0] for name, given in values.items()}


def existing(path: Path, what: str) -> Path:
    """Return the path, which must exist: no reader creates an empty store.

    Raises
    ------
    InputError
    """
    if not path.exists():
        raise InputError(
            "missing",
            "path",
            "{field} is {given!r}, which does not exist; give {allowed}",
            given=str(path),
            allowed=what,
        )
    return path


def check_whole_place(place: str, queries: Mapping[str, Sequence[str]], fix: str = "") -> None:
    """Raise if queries are given to a store that is read whole; ``fix`` says how to select there."""
    for table in queries:
        raise InputError(
            "unused", table, "{field} is given, and {place!r} is read whole{fix}; leave it out", place=place, fix=fix
        )


def check_columns(table: str, names: Sequence[str]) -> None:
    """Raise if a query or table has two columns of the same name."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(
                "duplicate",
                table,
                "{field} has two columns {column!r}; give each a name of its own, or leave one out",
                column=name,
            )


def cannot_open(store: str, path: object, error: Exception) -> StoreError:
    """Return the error for a database that its library cannot open."""
    return StoreError(
        "failed",
        "path",
        "{field} is {given!r}, which {store} cannot open: {error}",
        given=str(path),
        store=store,
        error=error,
    )


def rejected(store: str, table: str, query: str, error: Exception) -> StoreError:
    """Return the error for a query that a database rejects."""
    return StoreError(
        "failed", table, "{field} is {given!r}, which {store} rejects: {error}", given=query, store=store, error=error
    )


def no_rows(table: str, query: str) -> InputError:
    """Return the error for a statement that is not a query."""
    return InputError("unsupported", table, "{field} is {given!r}, which gives no rows; give a SELECT", given=query)


def not_in_store(store: str, field: str, given: str, known: Sequence[str]) -> StoreError:
    """Return the error for the name of something that a store lacks."""
    return StoreError(
        "unknown",
        field,
        "{field} is {given!r}, which {store} does not have; it has {allowed}",
        given=given,
        store=store,
        allowed=", ".join(known) or "none",
    )


def table_batches(schema: Any, batches: Iterable[Any], table: str, renames: Mapping[str, str]) -> Iterator[Any]:
    """Yield the batches of a store as those of a table, after one without rows that has the columns."""
    yield as_table(table, empty_batch(schema), renames)
    for batch in batches:
        yield as_table(table, batch, renames)
