"""The rows of a store that were touched, and their changes applied to a live index, as one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._validation import check_distinct
from ..errors import InputError
from ..index import Index
from ..index.change import Change
from ..index.input_links import UNTYPED
from ..io import tables
from ..io.source import stored_batches
from ..io.tables import Table

#: ("passage", id) or ("entity", name).
End = tuple[str, Any]


@dataclass
class TouchedKeys:
    """Keys of rows that may have been inserted, updated or deleted.

    Attributes
    ----------
    passages : set of id
    entities : set of name
    edges : set of pairs of ends
        A pair stands for its edges of all types.
    facts : set of (head, relation, tail)
    """

    passages: set[Any] = field(default_factory=set)
    entities: set[str] = field(default_factory=set)
    edges: set[tuple[End, End]] = field(default_factory=set)
    facts: set[tuple[str, str, str]] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self.passages or self.entities or self.edges or self.facts)


@dataclass(frozen=True)
class RowChanges:
    """The rows that were touched between two states of a store, as batches of :class:`Snapshot`'s tables.

    ``edges`` and ``facts`` also have the rows of touched passages and entities: deleting these deletes their edges and
    facts, which must then be added again.
    """

    touched: TouchedKeys
    passages: Sequence[Any]
    entities: Sequence[Any]
    edges: Sequence[Any]
    facts: Sequence[Any]


_ENDS = (("src_passage", "src_entity"), ("dst_passage", "dst_entity"))


class KnownRows:
    """Keys of the passages, entities and edge types of an index, updated after each change."""

    def __init__(self, index: Index) -> None:
        self.passages: set[Any] = set(index.passage_ids)
        self.entities: set[str] = set(index.entity_names)
        try:
            check_distinct(index.entity_names, "entities")
        except InputError as error:
            raise error.at("an index that follows a store") from None
        self.types: list[str] = [] if index.graph is None else list(index.graph.edge_type_names)
        self.dim, self.entity_dim = index.dim, None if index.entity_corpus is None else index.entity_corpus.dim
        self.has_graph, self.has_facts = index.graph is not None, index.facts is not None


def apply_changes(change: Change, known: KnownRows, changes: RowChanges) -> Callable[[], None]:
    """Add changes of a store to a change of the index; return a function that updates ``known``, to call after commit.

    Raises
    ------
    InputError
        The index cannot hold a row, which the message names. Do not commit the change.
    """
    touched = changes.touched
    passages = _Passages(changes.passages, known)
    entities = _Entities(changes.entities, known)
    ids, names = set(passages.ids), set(entities.names)
    gone = [id for id in touched.passages if id in known.passages and id not in ids]
    plain = known.entity_dim is None and not entities.has_aliases  # such an entity has nothing but its name
    left = {name for name in touched.entities if name in known.entities and not (plain and name in names)}
    change.delete_passages(gone)
    change.delete_entities(left)
    if known.has_graph:
        pairs = [pair for pair in touched.edges if all(_is_there(end, known) for end in pair)]
        ends = [{"src": src, "dst": dst} for src, dst in pairs]
        change.delete_edges({**pair, "type": kind} for pair in ends for kind in known.types)
    if known.has_facts:
        change.delete_facts(fact for fact in touched.facts if fact[0] in known.entities and fact[2] in known.entities)
    after = _After(known.passages, set(gone), ids), _After(known.entities, left, names)
    passages.add(change)
    entities.add(change, {name for name in names if name not in known.entities or name in left})
    edges = list(_edges(changes.edges, *after))
    if known.has_graph:
        change.add_edges(edges)
    if known.has_facts:
        change.add_facts(_facts(changes.facts, *after))

    def update() -> None:
        for one in after:
            one.update()
        known.types += [kind for kind in dict.fromkeys(edge["type"] for edge in edges) if kind not in known.types]

    return update


class _After:
    """The keys after a change."""

    def __init__(self, before: set[Any], gone: set[Any], new: set[Any]) -> None:
        self._before, self._gone, self._new = before, gone, new

    def __contains__(self, key: object) -> bool:
        return key in self._new or (key in self._before and key not in self._gone)

    def update(self) -> None:
        """Update the known keys."""
        self._before -= self._gone
        self._before |= self._new


def _is_there(end: End, known: KnownRows) -> bool:
    return end[1] in (known.passages if end[0] == "passage" else known.entities)


def _changed(batches: Iterable[Any], table: str) -> Iterator[Table]:
    """Yield batches that have rows; a batch without rows states columns alone."""
    return stored_batches((batch for batch in batches if batch.num_rows), table)


class _Passages:
    """The passages to add or replace."""

    def __init__(self, batches: Sequence[Any], known: KnownRows) -> None:
        self.ids: list[Any] = []
        self._parts: list[tuple[list[dict[str, Any]], Any]] = []
        seen: set[Any] = set()
        for table in _changed(batches, "passages"):
            ids, texts = tables.keys(table, "id"), tables.texts(table, "text")
            for row, id in enumerate(ids):
                if id is None or id in seen:
                    table.refuse(row, "id", id, "the id of a single passage: SELECT DISTINCT ON (id)")
                seen.add(id)
            titles = tables.texts(table, "title", default="")
            others = {name: tables.listed(table.values(name)) for name in ("document", "language", "metadata")}
            if "vector" in table.columns and known.dim is None:
                raise InputError(
                    "unsupported",
                    "passages",
                    "{field} has vectors, and the index was built without them; build it anew",
                )
            vectors = tables.vectors(table, "vector", known.dim) if "vector" in table.columns else None
            self._parts.append(
                (
                    [
                        {"id": id, "title": title, "text": text, **dict(zip(others, own, strict=True))}
                        for id, title, text, *own in zip(ids, titles, texts, *others.values(), strict=True)
                    ],
                    vectors,
                )
            )
            self.ids += ids

    def add(self, change: Change) -> None:
        """Add the passages, replacing those with their ids."""
        for rows, vectors in self._parts:
            change.add_passages(rows, vectors=vectors, replace=True)


class _Entities:
    """The entities of a change."""

    def __init__(self, batches: Sequence[Any], known: KnownRows) -> None:
        self.names: list[str] = []
        self.has_aliases = any("aliases" in batch.schema.names for batch in batches)
        self._vectors: dict[str, Any] = {}
        self._aliases: dict[str, list[str]] = {}
        seen: set[str] = set()
        for table in _changed(batches, "entities"):
            names = tables.texts(table, "name")
            for row, name in enumerate(names):
                if name in seen:
                    table.refuse(row, "name", name, "the name of a single entity")
                seen.add(name)
            self.names += names
            if "vector" in table.columns:
                self._vectors |= dict(zip(names, tables.vectors(table, "vector", known.entity_dim), strict=True))
            aliases = tables.listed(table.values("aliases"))
            self._aliases |= {name: own for name, own in zip(names, aliases, strict=True) if own}

    def add(self, change: Change, new: set[str]) -> None:
        """Add the entities with these names."""
        added = [name for name in self.names if name in new]
        if not added:
            return
        change.add_entities(added, vectors=[self._vectors[name] for name in added] if self._vectors else None)
        change.add_aliases({name: self._aliases[name] for name in added if name in self._aliases})


def _edges(batches: Sequence[Any], passages: _After, entities: _After) -> Iterator[dict[str, Any]]:
    for table in _changed(batches, "edges"):
        ends = [_ends(table, names, passages, entities) for names in _ENDS]
        kinds = tables.texts(table, "type") if "type" in table.columns else [UNTYPED] * table.num_rows
        weights = tables.listed(table.values("weight")) if "weight" in table.columns else [1.0] * table.num_rows
        stated = tables.keys(table, "passage")
        for row, (src, dst, kind, weight, by) in enumerate(zip(*ends, kinds, weights, stated, strict=True)):
            if weight is None:
                table.refuse(row, "weight", None, tables.WEIGHTS)
            if weight == 0:
                continue
            if by is not None and by not in passages:
                table.refuse(row, "passage", by, "the id of a passage, or null")
            edge = {"src": src, "dst": dst, "type": kind, "weight": weight}
            yield edge if by is None else {**edge, "stated_by": by}


def _ends(table: Table, names: tuple[str, str], passages: _After, entities: _After) -> list[End]:
    columns = [(name, tables.keys(table, name)) for name in names if name in table.columns]
    found: list[End] = []
    for row in range(table.num_rows):
        given = [(name, values[row]) for name, values in columns if values[row] is not None]
        if len(given) != 1:
            table.refuse(row, columns[0][0] if columns else names[0], None, f"one of {' and '.join(names)}")
        name, key = given[0]
        is_passage = name.endswith("_passage")
        if key not in (passages if is_passage else entities):
            table.refuse(row, name, key, "the id of a passage" if is_passage else "the name of an entity")
        found.append(("passage" if is_passage else "entity", key))
    return found


def _facts(batches: Sequence[Any], passages: _After, entities: _After) -> Iterator[tuple[str, str, str, Any]]:
    for table in _changed(batches, "facts"):
        columns = [tables.texts(table, name) for name in ("head", "relation", "tail")]
        for row, (head, relation, tail, passage) in enumerate(
            zip(*columns, tables.keys(table, "passage"), strict=True)
        ):
            for name, value in (("head", head), ("tail", tail)):
                if value not in entities:
                    table.refuse(row, name, value, "the name of an entity")
            if passage not in passages:
                table.refuse(row, "passage", passage, "the id of a passage")
            yield head, relation, tail, passage
