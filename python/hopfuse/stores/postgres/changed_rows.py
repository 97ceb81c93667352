"""From the changed rows of tables to the keys to read again, and the conditions that select them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import StoreError
from ..touched import End, Touched
from .pgoutput import UNCHANGED, Row, Values
from .queries import ENDS, Query
from .slot import KEYS


def note_rows(touched: Touched, rows: Sequence[Row], queries: Sequence[Query]) -> None:
    """Add the keys of changed rows, before and after the change, to ``touched``."""
    for row in rows:
        for query in queries:
            names = [name for name in KEYS[query.table] if name in query.columns]
            if names and query.columns[names[0]].relation == row.relation:
                for values in _versions(row):
                    _note(touched, query, {name: _value(query, name, values) for name in names})


def _versions(row: Row) -> Iterator[Values]:
    """Yield the row before and after the change; unchanged values that are not sent are those before."""
    if row.old is not None:
        yield row.old
    if row.new is not None:
        before = row.old or {}
        yield {name: before.get(name, value) if value is UNCHANGED else value for name, value in row.new.items()}


def _value(query: Query, name: str, values: Values) -> Any:
    column = query.columns[name]
    found = values.get(column.attribute)
    if found is UNCHANGED:
        raise StoreError(
            "missing",
            query.table,
            "the server does not send {column} of a changed row of {field}, since the value is stored outside it; "
            "ALTER TABLE ... REPLICA IDENTITY FULL, and build the index anew",
            column=column.attribute,
        )
    return found if found is None else column.key(str(found))


def _note(touched: Touched, query: Query, values: dict[str, Any]) -> None:
    if query.table == "passages" and values["id"] is not None:
        touched.passages.add(values["id"])
    elif query.table == "entities" and values["name"] is not None:
        touched.entities.add(values["name"])
    elif query.table == "facts" and None not in values.values():
        touched.facts.add((values["head"], values["relation"], values["tail"]))
    elif query.table == "edges":
        ends: list[list[End]] = [
            [
                (what, values[name])
                for name, what in ENDS.items()
                if name.startswith(side) and values.get(name) is not None
            ]
            for side in ("src", "dst")
        ]
        touched.edges.update((src, dst) for src in ends[0] for dst in ends[1])


def condition_of(query: Query, touched: Touched) -> str | None:
    """Return the condition on the rows to read again; None if there are none.

    It includes the edges and facts of touched passages and entities, since the index deletes them with these.
    """
    passages, entities = touched.passages, touched.entities
    found: list[str | None]
    if query.table == "passages":
        found = [query.having("id", passages)]
    elif query.table == "entities":
        found = [query.having("name", entities)]
    elif query.table == "facts":
        found = [query.having(name, entities) for name in ("head", "tail")]
        found += [query.having("passage", passages), query.having_all(("head", "relation", "tail"), touched.facts)]
    else:
        found = [query.having(name, passages if what == "passage" else entities) for name, what in ENDS.items()]
        found.append(query.having("passage", passages))
        both = touched.edges | {(dst, src) for src, dst in touched.edges}
        for src in ("passage", "entity"):
            for dst in ("passage", "entity"):
                pairs = [(a[1], b[1]) for a, b in both if (a[0], b[0]) == (src, dst)]
                found.append(query.having_all((f"src_{src}", f"dst_{dst}"), pairs))
    given = [condition for condition in found if condition is not None]
    return " OR ".join(given) if given else None
