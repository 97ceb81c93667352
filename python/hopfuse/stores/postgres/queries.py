"""A user's queries: their columns, the tables these come from, and the same query restricted to some keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..tables import TABLES, check_columns
from .connection import database_errors

#: Columns of the ends of edges, and what they name.
ENDS = {"src_passage": "passage", "src_entity": "entity", "dst_passage": "passage", "dst_entity": "entity"}
_INTEGERS = ("smallint", "integer", "bigint")
_VECTORS = ("vector", "halfvec", "real[]", "double precision[]")


@dataclass(frozen=True)
class Column:
    """A column of a query: its type, and the table (its oid) and the column that it selects, if it is not computed."""

    type: str
    modifier: int
    """The dimension n of a ``vector(n)``, else -1."""
    relation: int
    attribute: str

    @property
    def is_vector(self) -> bool:
        """Whether the column is a vector, whatever schema pgvector is in."""
        return self.type.rpartition(".")[2] in _VECTORS

    def key(self, text: str) -> int | str:
        """Return a value from PostgreSQL's text format, with the type that Arrow gives it."""
        return int(text) if self.type in _INTEGERS else text


@dataclass(frozen=True)
class SqlQuery:
    """A query of one table of the index."""

    table: str
    text: str
    columns: Mapping[str, Column]

    def selecting(self, condition: str | None = None) -> str:
        """Return the query with uuids as text, restricted to the rows that meet a condition if there is one."""
        if condition is None and all(column.type != "uuid" for column in self.columns.values()):
            return self.text
        listed = [
            f"q.{quoted(name)}::text AS {quoted(name)}" if column.type == "uuid" else f"q.{quoted(name)}"
            for name, column in self.columns.items()
        ]
        where = "" if condition is None else f" WHERE {condition}"
        return f"SELECT {', '.join(listed)} FROM ({self.text}\n) AS q{where}"

    def having(self, name: str, values: Collection[Any]) -> str | None:
        """Return the condition that a column has one of the values; None if there is no such column or no value."""
        if name not in self.columns or not values:
            return None
        return f"q.{quoted(name)} = ANY({array(values, self.columns[name].type)})"

    def having_all(self, names: Sequence[str], rows: Collection[Sequence[Any]]) -> str | None:
        """Return the condition that columns equal one of the rows; None if a column is missing or there is no row."""
        if not rows or any(name not in self.columns for name in names):
            return None
        arrays = [
            array(values, self.columns[name].type) for name, values in zip(names, zip(*rows, strict=True), strict=True)
        ]
        columns = ", ".join(f"q.{quoted(name)}" for name in names)
        return f"({columns}) IN (SELECT * FROM unnest({', '.join(arrays)}))"


def describe(connection: Any, url: str, queries: Mapping[str, Sequence[str]]) -> list[SqlQuery]:
    """Return the queries with their columns; the server parses them and runs none.

    Raises
    ------
    InputError
        The server rejects a query.
    """
    described = []
    for table in TABLES:
        for given in queries.get(table, ()):
            text = given.strip().rstrip(";").strip()
            with database_errors(url, f"the query of {table}", table):
                described.append(SqlQuery(table, text, _columns(connection, table, text)))
    return described


def _columns(connection: Any, table: str, text: str) -> dict[str, Column]:
    found = connection.execute(f"SELECT * FROM ({text}\n) AS q LIMIT 0", prepare=False)
    result, names = found.pgresult, [column.name for column in found.description]
    check_columns(table, names)
    types = [(result.ftype(at), result.fmod(at)) for at in range(len(names))]
    origins = [(result.ftable(at), result.ftablecol(at)) for at in range(len(names))]
    written = connection.execute(
        "SELECT t.at, format_type(t.kind, NULL), coalesce(a.attname, '') "
        "FROM unnest(%s::oid[], %s::oid[], %s::int[]) WITH ORDINALITY AS t(kind, relation, attribute, at) "
        "LEFT JOIN pg_attribute a ON a.attrelid = t.relation AND a.attnum = t.attribute AND t.relation <> 0 ORDER BY "
        "t.at",
        (
            [kind for kind, _ in types],
            [relation for relation, _ in origins],
            [attribute for _, attribute in origins],
        ),
    ).fetchall()
    return {
        name: Column(kind, modifier, relation, attribute)
        for name, (_, kind, attribute), (_, modifier), (relation, _) in zip(names, written, types, origins, strict=True)
    }


def array(values: Collection[Any], kind: str) -> str:
    """Return an SQL array of quoted values."""
    items = ",".join("NULL" if value is None else literal(str(value)) for value in values)
    return f"ARRAY[{items}]::{kind}[]"


def literal(text: str) -> str:
    """Return an SQL string literal without NUL characters, which PostgreSQL's strings cannot have."""
    escaped = text.replace("\0", "").replace("\\", "\\\\").replace("'", "''")
    return f" E'{escaped}'"


def quoted(name: str) -> str:
    """Return a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
