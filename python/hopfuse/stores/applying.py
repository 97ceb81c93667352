"""The rows of a store that were touched, and their changes applied to a live index, as one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np

from .._validation import check_distinct
from ..errors import HopfuseError, InputError
from ..extract.added import AddedPassages
from ..extract.document_order import DocumentOrder
from ..extract.memory import SEQUENCE
from ..index import Index
from ..index.change import Change
from ..index.contents import passage_vectors, text_to_index
from ..index.input_links import UNTYPED
from ..index.left_out import EveryRow, Rows, plain_reason
from ..index.log.records import LEAST_WEIGHT, MOST_WEIGHT
from ..index.parts.metadata_build import metadata_arrays, types_of
from ..io import tables
from ..io.source import stored_batches
from ..io.tables import Table
from ..types import Corpus
from ..types.corpus import refusal

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
    """Keys of the passages, entities and edge types of an index, updated after each change.

    Parameters
    ----------
    index : Index
    reads : bool
        Readers made the entities, edges and facts; the store has only passages.
    """

    def __init__(self, index: Index, *, reads: bool = False) -> None:
        self.passages: set[Any] = set(index.passage_ids)
        self.entities: set[str] = set() if reads else set(index.entity_names)
        if not reads:
            try:
                check_distinct(index.entity_names, "entities")
            except InputError as error:
                raise error.at("an index that follows a store") from None
        self.types: list[str] = [] if index.graph is None else list(index.graph.edge_type_names)
        self.corpus, self.entity_dim = index.corpus, None if index.entity_corpus is None else index.entity_corpus.dim
        self.has_graph, self.has_facts = index.graph is not None, index.facts is not None
        self.metadata_types = dict(index.metadata.types)
        self.id_kind = next(map(type, index.passage_ids), None)
        self.document_kind = next((type(one) for one in index.documents if one is not None), None)
        self.order = DocumentOrder(index) if reads else None

    @property
    def dim(self) -> int | None:
        """The dimension of the passages' vectors."""
        return None if self.corpus is None else self.corpus.dim


@dataclass(frozen=True)
class Reading:
    """How rows become what the index has: every row by default, with neither a reader nor an encoder.

    Attributes
    ----------
    rows : Rows
        What reads the tables: a :class:`hopfuse.index.LeftOut` leaves out rows that the index cannot hold.
    added : AddedPassages, optional
        Reads the passages, if readers made the index.
    encoder : Encoder, optional
        Encodes passages whose table has no vectors, in place of the one with which the index was opened.
    """

    rows: Rows = field(default_factory=EveryRow)
    added: AddedPassages | None = None
    encoder: Any = None


class Applied(NamedTuple):
    """What a change lacks of passages, by what and id, with the reasons and texts; and what updates the known rows."""

    lacking: dict[str, dict[Any, str]]
    texts: dict[Any, str]
    update: Callable[[], None]


def apply_changes(change: Change, known: KnownRows, changes: RowChanges, how: Reading | None = None) -> Applied:
    """Add changes of a store to a change of the index; call what is returned to update ``known`` after the commit.

    Raises
    ------
    InputError
        The index cannot hold a row, which the message names, and ``how`` does not leave it out. Do not commit the
        change, and do not use ``known`` again.
    """
    touched, how = changes.touched, how or Reading()
    passages = _Passages(changes.passages, known, how)
    entities = _Entities(changes.entities, known, how.rows)
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
    edges = list(_edges(changes.edges, *after, how.rows))
    if known.has_graph:
        change.add_edges(edges)
    if known.has_facts:
        change.add_facts(_facts(changes.facts, *after, how.rows))
    lacking = {"vector": {id: why for id, why in passages.without_vector.items() if id in ids}}
    if how.added is not None:
        lacking["facts"] = _read(change, passages.rows, how.added)
        edges += _join(change, known, gone, passages.rows)

    def update() -> None:
        for one in after:
            one.update()
        known.types += [kind for kind in dict.fromkeys(edge["type"] for edge in edges) if kind not in known.types]
        passages.update(known)

    texts = {row["id"]: f"{row['title']} {row['text']}" for row in passages.rows if any(lacking.values())}
    return Applied(lacking, texts, update)


def _read(change: Change, rows: Sequence[Mapping[str, Any]], added: AddedPassages) -> dict[Any, str]:
    """Add what readers find in passages; return the reasons of those that could not be read, by id."""
    if not rows:
        return {}
    added.expect(None)
    names = ("id", "title", "text", "language")  # without documents: who follows whom is told by all passages
    memory = added.read([{name: row[name] for name in names} for row in rows])
    change.add_memory(memory)
    return {memory.ids[at]: reason for at, reason in memory.failures.items()}


def _join(
    change: Change, known: KnownRows, gone: Sequence[Any], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Join the passages that follow each other in a document now; return the edges."""
    if known.order is None:
        return []
    pairs = known.order.change(gone, rows)
    parted, joined = (
        [{"src": ("passage", a), "dst": ("passage", b), "type": SEQUENCE} for a, b in some]
        for some in (pairs.parted, pairs.joined)
    )
    change.delete_edges(parted)
    change.add_edges(joined)
    return joined


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


class _Part(NamedTuple):
    ids: list[Any]
    rows: list[dict[str, Any]]
    vectors: Any


class _Passages:
    """The passages to add or replace."""

    def __init__(self, batches: Sequence[Any], known: KnownRows, how: Reading) -> None:
        self.ids: list[Any] = []
        self.rows: list[dict[str, Any]] = []
        self.without_vector: dict[Any, str] = {}
        self._known, self._encoder = known, how.encoder
        self._parts: list[_Part] = []
        self._seen: set[Any] = set()
        self._types = dict(known.metadata_types)
        for table in _changed(batches, "passages"):
            if "vector" in table.columns and known.dim is None:
                raise InputError(
                    "unsupported",
                    "passages",
                    "{field} has vectors, and the index was built without them; build it anew",
                )
            for part in how.rows.read("passages", table, self._part):
                self._parts.append(part)
                self.ids += part.ids
                self.rows += part.rows
                self._seen.update(part.ids)
                self._types |= types_of([row["metadata"] for row in part.rows], self._types)

    def add(self, change: Change) -> None:
        """Add the passages, replacing those with their ids."""
        for part in self._parts:
            change.add_passages(part.rows, vectors=part.vectors, replace=True)

    def update(self, known: KnownRows) -> None:
        """Note the types that the passages have."""
        known.metadata_types |= self._types
        known.id_kind = known.id_kind or next(map(type, self.ids), None)
        documents = (type(row["document"]) for row in self.rows if row["document"] is not None)
        known.document_kind = known.document_kind or next(documents, None)

    def _part(self, table: Table) -> _Part:
        """Return the passages of a batch, which the index can hold."""
        known = self._known
        texts, titles = tables.texts(table, "text"), tables.texts(table, "title", default="")
        before = None if known.id_kind is None else ("the index", known.id_kind())
        ids = tables.keys(table, "id", before)
        seen = set[Any]()
        for row, id in enumerate(ids):
            if id is None or id in self._seen or id in seen:
                table.refuse(row, "id", id, "the id of a single passage: SELECT DISTINCT ON (id)")
            seen.add(id)
        before = None if known.document_kind is None else ("the index", known.document_kind())
        documents = tables.names_or_numbers(table, "document", before)
        columns = (
            ids,
            titles,
            texts,
            documents,
            tables.languages(table, "language"),
            tables.objects(table, "metadata"),
        )
        names = ("id", "title", "text", "document", "language", "metadata")
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        with catch_warnings():
            simplefilter("ignore")  # of columns without values, of which the commit warns
            metadata_arrays([row["metadata"] for row in rows], self._types, table.where)
        return _Part(ids, rows, self._vectors(table, rows))

    def _vectors(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> Any:
        """Return the vectors of passages, those that the encoder makes, or None if the change makes them."""
        corpus = self._known.corpus
        if corpus is None or not rows:
            return None
        if "vector" in table.columns:
            given = np.ascontiguousarray(tables.vectors(table, "vector", corpus.dim))
            wrong = Corpus.unchecked(given, metric=corpus.metric, storage=corpus.precision).unscorable()
            if wrong is not None:
                raise refusal(wrong, table.label("vector")).at(table.place(wrong.row))
            return given
        if self._encoder is None:
            return None
        texts, ids = [text_to_index(row["title"], row["text"]) for row in rows], [row["id"] for row in rows]
        return passage_vectors(self._encoder, texts, ids, partial(self._lacks, ids), corpus.metric)

    def _lacks(self, ids: Sequence[Any], at: int, error: HopfuseError) -> None:
        self.without_vector[ids[at]] = plain_reason(error)


class _Entities:
    """The entities of a change."""

    def __init__(self, batches: Sequence[Any], known: KnownRows, rows: Rows) -> None:
        self.names: list[str] = []
        self.has_aliases = any("aliases" in batch.schema.names for batch in batches)
        self._vectors: dict[str, Any] = {}
        self._aliases: dict[str, list[str]] = {}
        self._dim = known.entity_dim
        self._seen: set[str] = set()
        for table in _changed(batches, "entities"):
            for names, vectors, aliases in rows.read("entities", table, self._part):
                self.names += names
                self._seen.update(names)
                self._vectors |= vectors
                self._aliases |= aliases

    def _part(self, table: Table) -> tuple[list[str], dict[str, Any], dict[str, list[str]]]:
        names = tables.texts(table, "name")
        seen = set[str]()
        for row, name in enumerate(names):
            if name in self._seen or name in seen:
                table.refuse(row, "name", name, "the name of a single entity")
            seen.add(name)
        vectors: dict[str, Any] = {}
        if "vector" in table.columns:
            vectors = dict(zip(names, tables.vectors(table, "vector", self._dim), strict=True))
        aliases = tables.listed(table.values("aliases"))
        return names, vectors, {name: own for name, own in zip(names, aliases, strict=True) if own}

    def add(self, change: Change, new: set[str]) -> None:
        """Add the entities with these names."""
        added = [name for name in self.names if name in new]
        if not added:
            return
        change.add_entities(added, vectors=[self._vectors[name] for name in added] if self._vectors else None)
        change.add_aliases({name: self._aliases[name] for name in added if name in self._aliases})


def _edges(batches: Sequence[Any], passages: _After, entities: _After, rows: Rows) -> Iterator[dict[str, Any]]:
    for table in _changed(batches, "edges"):
        for found in rows.read("edges", table, partial(_edges_of, passages=passages, entities=entities)):
            yield from found


def _edges_of(table: Table, passages: _After, entities: _After) -> list[dict[str, Any]]:
    ends = [_ends(table, names, passages, entities) for names in _ENDS]
    kinds = tables.texts(table, "type") if "type" in table.columns else [UNTYPED] * table.num_rows
    given = tables.weights(table, "weight")
    weights = [1.0] * table.num_rows if given is None else given.tolist()
    stated = tables.keys(table, "passage")
    found = []
    for row, (src, dst, kind, weight, by) in enumerate(zip(*ends, kinds, weights, stated, strict=True)):
        if weight == 0:
            continue
        if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
            table.refuse(row, "weight", weight, "0, or 2⁻⁶⁴ .. 2⁶⁴", "range")
        if by is not None and by not in passages:
            table.refuse(row, "passage", by, "the id of a passage, or null")
        owners = [key for what, key in (src, dst) if what == "passage"]
        if by is not None and owners and by not in owners:
            table.refuse(row, "passage", by, f"null, or the passage of the edge, {owners[0]!r}", "conflict")
        edge = {"src": src, "dst": dst, "type": kind, "weight": weight}
        found.append(edge if by is None else {**edge, "stated_by": by})
    return found


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


def _facts(
    batches: Sequence[Any], passages: _After, entities: _After, rows: Rows
) -> Iterator[tuple[str, str, str, Any]]:
    for table in _changed(batches, "facts"):
        for found in rows.read("facts", table, partial(_facts_of, passages=passages, entities=entities)):
            yield from found


def _facts_of(table: Table, passages: _After, entities: _After) -> list[tuple[str, str, str, Any]]:
    columns = [tables.texts(table, name) for name in ("head", "relation", "tail")]
    found = []
    for row, (head, relation, tail, passage) in enumerate(zip(*columns, tables.keys(table, "passage"), strict=True)):
        for name, value in (("head", head), ("tail", tail)):
            if value not in entities:
                table.refuse(row, name, value, "the name of an entity")
        if passage not in passages:
            table.refuse(row, "passage", passage, "the id of a passage")
        found.append((head, relation, tail, passage))
    return found
