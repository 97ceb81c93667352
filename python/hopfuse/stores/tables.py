"""What bulk readers share: tables read by name, and record batches of a store turned into those of a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..index.arrow_columns import arrow, empty_batch

TABLES = ("passages", "entities", "edges", "facts")
#: Columns of each table besides ``vector``; see :class:`hopfuse.io.source.Snapshot`.
COLUMNS: dict[str, tuple[str, ...]] = {
    "passages": ("id", "text", "title", "document", "language", "metadata"),
    "entities": ("name", "aliases"),
    "edges": ("src_passage", "src_entity", "dst_passage", "dst_entity", "type", "weight", "passage"),
    "facts": ("head", "relation", "tail", "passage"),
}
REQUIRED = {"passages": ("id", "text"), "entities": ("name",), "edges": (), "facts": COLUMNS["facts"]}
#: Columns that a store may have under other names.
RENAMED = tuple(dict.fromkeys(("vector", *(name for names in COLUMNS.values() for name in names))))
#: Rows of a record batch.
ROWS = 8192


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
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            "duplicate",
            None,
            "{table} has two columns {twice!r}; give each a name of its own, or leave one out",
            table=table,
            twice=twice,
        )
    columns = dict(zip(names, zip(batch.schema.names, batch.columns, strict=True), strict=True))
    vectors = [name for name, (_, column) in columns.items() if is_vector(column.type)]
    if "vector" in vectors and "vector" in renames.values():
        columns = {name: column for name, column in columns.items() if name == "vector" or name not in vectors}
        vectors = ["vector"]
    if "vector" in columns and not vectors and batch.num_rows:
        own, column = columns["vector"]
        raise InputError(
            "type",
            None,
            "{table} has {own!r} of the type {type}; a vector is a list of floating-point numbers: "
            "convert it, or rename it",
            table=table,
            own=own,
            type=column.type,
        )
    if "weight" in columns and pa.types.is_decimal(columns["weight"][1].type):
        columns["weight"] = (columns["weight"][0], columns["weight"][1].cast(pa.float64()))
    takes_vector = table in ("passages", "entities")
    if len(vectors) > takes_vector:
        raise InputError(
            "UNSORTED",
            None,
            "{table} has the vectors {names}; {value}",
            table=table,
            names=", ".join(vectors),
            value="select one of them" if takes_vector else "leave them out",
        )
    missing = [name for name in REQUIRED[table] if name not in columns]
    if missing:
        raise InputError(
            "missing",
            None,
            "{table} has the columns {value}; {missing!r} is missing: rename a column, in SQL by AS {missing}",
            table=table,
            value=", ".join(batch.schema.names) or "none",
            missing=missing[0],
        )
    others = [name for name in columns if name not in COLUMNS[table] and name not in vectors]
    if others and "metadata" in columns:
        raise InputError(
            "UNSORTED",
            None,
            "{table} has metadata, and {others!r}, which would be part of it; leave one of them out",
            table=table,
            others=others[0],
        )
    if others and table != "passages":
        raise InputError(
            "choice",
            None,
            "{table} has the column {others!r}; allowed: {allowed}",
            table=table,
            others=others[0],
            allowed=", ".join(COLUMNS[table]),
        )
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
    narrow = values.astype(np.float32)
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
    found = {table: [one] if isinstance(one, str) else list(one) for table, one in queries.items() if one}
    unknown = [table for table in found if table not in TABLES]
    if unknown:
        raise InputError(
            "choice",
            "queries",
            "{field} has {unknown!r}; allowed: {allowed}",
            unknown=unknown[0],
            allowed=", ".join(TABLES),
        )
    if "passages" not in found:
        raise InputError(
            "missing",
            None,
            "{store} is read by queries, and --passages is missing: give one with the columns id and text",
            store=store,
        )
    several = [table for table, one in found.items() if len(one) > 1 and table != "edges"]
    if several:
        raise InputError(
            "UNSORTED",
            None,
            "{several} has {number} queries; only edges may have several: use UNION ALL",
            several=several[0],
            number=len(found[several[0]]),
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
            "UNSORTED", None, "{place!r} names no file or folder; write it as {scheme}:PATH", place=place, scheme=scheme
        )
    try:
        values = parse_qs(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise InputError(
            "UNSORTED",
            None,
            "{place!r} has {query!r} after the question mark; write {scheme}:PATH?name=value",
            place=place,
            query=query,
            scheme=scheme,
        ) from None
    for name, given in values.items():
        if name not in allowed:
            raise InputError(
                "choice",
                None,
                "{place!r} has {name!r}; allowed: {allowed}",
                place=place,
                name=name,
                allowed=", ".join(allowed) or "a path alone",
            )
        if len(given) > 1 or not given[0]:
            raise InputError(
                "UNSORTED",
                None,
                "{place!r} gives {name!r} {value}; give it one",
                place=place,
                name=name,
                value="twice" if len(given) > 1 else "no value",
            )
    return Path(path), {name: given[0] for name, given in values.items()}


def existing(path: Path, what: str) -> Path:
    """Return the path, which must exist: no reader creates an empty store.

    Raises
    ------
    InputError
    """
    if not path.exists():
        raise InputError("UNSORTED", None, "{path} does not exist; give {what}", path=path, what=what)
    return path


def table_batches(schema: Any, batches: Iterable[Any], table: str, renames: Mapping[str, str]) -> Iterator[Any]:
    """Yield the batches of a store as those of a table, after one without rows that has the columns."""
    yield as_table(table, empty_batch(schema), renames)
    for batch in batches:
        yield as_table(table, batch, renames)
