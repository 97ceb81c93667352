"""Read the tables of entities, edges and facts batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._validation import counted
from ..errors import InputError
from ..io import tables
from ..io.tables import Places, Presence, Table, first_repeated, refuse_repeated
from ..types import EdgeStatements, Facts, Graph
from ..types.edge_statements import NO_PASSAGE, UNKNOWN
from ..types.facts import merged, numbered
from ..types.graph import MAX_NODES, check_node_count
from .left_out import Rows
from .parts.graph import check_owners
from .spool import Vectors

#: The type of edges in batches without types, if other batches have types; also the default of Graph.from_edges.
UNTYPED = "edge"
_SIDES = ("src", "dst")


# ---- Entities ----


class Entities(NamedTuple):
    """Names, which of them a user stated, and the aliases of some, by number."""

    names: list[str]
    stated: NDArray[np.bool_]
    aliases: dict[int, list[str]]

    @classmethod
    def numbered(cls, count: int) -> Self:
        """Return entities whose names are their numbers."""
        return cls([str(entity) for entity in range(count)], np.ones(0, np.bool_), {})


def read_entities(batches: Iterable[Table], vectors: Vectors, rows: Rows, *, distinct: bool) -> Entities:
    """Return the table of entities; its vectors go to ``vectors``."""
    names: list[str] = []
    stated: list[bool] = []
    aliases: dict[int, list[str]] = {}
    places = Places()
    for table in batches:
        for part, own, corpus in rows.read("entities", table, lambda part: (part, _named(part), vectors.checked(part))):
            aliases |= {len(names) + at: others for at, others in own.aliases.items()}
            names += own.names
            stated += own.stated
            vectors.keep(part, corpus)
            places.add(part)
    if distinct and len(set(names)) < len(names):
        row, earlier = first_repeated(names)
        refuse_repeated("name", names[row], places.where(row), places.where(earlier))
    return Entities(names, np.array(stated, np.bool_), aliases)


class _Named(NamedTuple):
    names: list[str]
    stated: list[bool]
    aliases: dict[int, list[str]]


def _named(table: Table) -> _Named:
    """Return the entities of a batch."""
    aliases: dict[int, list[str]] = {}
    for at, own in enumerate(table.values("aliases")):
        if own is None:
            continue
        if not isinstance(own, list) or not all(isinstance(alias, str) for alias in own):
            table.refuse(at, "aliases", own, "a list of strings")
        aliases[at] = own
    return _Named(tables.texts(table, "name"), tables.flags(table, "stated"), aliases)


# ---- Edges ----


class Nodes:
    """The nodes of a graph: P passages, which a store names by ids, and entities, which it names.

    Parameters
    ----------
    num_passages : int
    names : list of str, optional
        Of the entities; None if it is the edges that say how many there are.
    rows : callable, optional
        Returns the row of each id of a store.
    """

    def __init__(
        self, num_passages: int, names: Sequence[str] | None, rows: Callable[[], Mapping[Any, int]] | None
    ) -> None:
        self.num_passages, self.are_known = num_passages, names is not None
        self.limit = MAX_NODES if names is None else num_passages + len(names)
        self._names, self._rows = names or (), rows

    @cached_property
    def _row(self) -> Mapping[Any, int]:
        return {} if self._rows is None else self._rows()

    @cached_property
    def _node(self) -> Mapping[str, int]:
        return {name: node for node, name in enumerate(self._names, self.num_passages)}

    def check(self, nodes: int) -> None:
        """Refuse a number of nodes that is not that of the passages and entities."""
        if not self.are_known and nodes < self.num_passages:
            raise InputError(
                "length",
                "graph",
                "{field} has {given} nodes for {passages} passages; nodes 0 .. P-1 are the passages",
                given=nodes,
                passages=self.num_passages,
            )
        if self.are_known and nodes != self.limit:
            raise InputError(
                "length",
                "graph",
                "{field} has {given} nodes; {passages} and {entities} are {allowed}: give num_nodes={allowed} to "
                "Graph.from_edges",
                given=nodes,
                passages=counted(self.num_passages, "passage"),
                entities=counted(self.limit - self.num_passages, "entity"),
                allowed=self.limit,
            )

    def passages(self, table: Table, name: str) -> NDArray[np.int64]:
        """Return the node of each passage in a column of ids; -1 for a missing one."""
        return _found(table, name, self._row, "the id of a passage")

    def check_names(self, table: Table, columns: Iterable[str]) -> None:
        """Refuse a row of a table that names no entity in one of the columns."""
        for name in sorted(columns):
            self.entities(table, name)

    def entities(self, table: Table, name: str) -> NDArray[np.int64]:
        """Return the node of each entity in a column of names; -1 for a missing one."""
        return _found(table, name, self._node, "the exact name of an entity")


def _found(table: Table, name: str, place: Mapping[Any, int], allowed: str) -> NDArray[np.int64]:
    if name not in table.columns:
        return np.full(table.num_rows, -1)
    values = tables.keys(table, name)
    found = [-1 if value is None else place.get(value, -2) for value in values]
    if -2 in found:
        row = found.index(-2)
        given, known = values[row], next(iter(place), "")
        is_other = isinstance(given, str) != isinstance(known, str)
        fix = f", {'a string' if isinstance(known, str) else 'an integer'}: convert the column" if is_other else ""
        fix = fix or ": leave the row out, or add it"
        table.refuse(row, name, given, f"{allowed}{fix}", "type" if is_other else "unknown")
    return np.array(found, np.int64)


class Edges(NamedTuple):
    """Undirected edges between nodes; None for a column that no batch has."""

    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    weight: NDArray[np.float64] | None
    type: NDArray[np.int32] | None
    passage: NDArray[np.int64] | None
    """Of each edge, the passage that states it, -1 or -2."""
    type_names: list[str]

    def graph(self, nodes: Nodes) -> tuple[Graph, EdgeStatements | None]:
        """Return the graph of the edges and, with a column of passages, the edges as stated."""
        size = nodes.limit
        if not nodes.are_known:
            size = max(nodes.num_passages, int(max(self.src.max(initial=-1), self.dst.max(initial=-1))) + 1)
            check_node_count(size - nodes.num_passages, self.src.size, "graph", size - 1, "entities", "entity")
        names = None if self.type is None else self.type_names
        graph = Graph.from_edges(
            self.src, self.dst, self.weight, num_nodes=size, edge_type=self.type, edge_type_names=names
        )
        if self.passage is None:
            return graph, None
        weights = np.ones(self.src.size) if self.weight is None else self.weight
        kinds = np.zeros(self.src.size, np.uint8) if self.type is None else self.type.astype(np.uint8)
        kept = np.flatnonzero(weights > 0)
        ends = np.stack([self.src, self.dst], axis=1)[kept].astype(np.int32)
        stated = EdgeStatements(ends, kinds[kept], weights[kept], self.passage[kept].astype(np.int32))
        check_owners(stated, nodes.num_passages)
        return graph, stated


def read_edges(batches: Iterable[Table], nodes: Nodes, rows: Rows, *, stored: bool) -> Edges:
    """Return the table of edges. Batches of a store may differ in their columns."""
    presence = {"type": Presence("type", "a string"), "weight": Presence("weight", tables.WEIGHTS)}
    number: dict[str, int] = {}
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in ("src", "dst", "weight", "type", "passage")}
    found = set[str]()
    for table in batches:
        has = {name for name in parts if name in table.columns}
        if not stored:
            has -= {name for name, one in presence.items() if not one.of(table)}
        for batch in rows.read("edges", table, partial(_edges_of, nodes=nodes, has=has, stored=stored)):
            for name, own in batch.arrays.items():
                parts[name].append(own)
            kinds = (number.setdefault(kind, len(number)) for kind in batch.kinds)
            parts["type"].append(np.fromiter(kinds, np.int32, len(batch.kinds)))
            found |= has if batch.kinds else set()
    whole = {
        name: np.concatenate([np.zeros(0, np.int32), *own]) if name in found or name in _SIDES else None
        for name, own in parts.items()
    }
    return Edges(**whole, type_names=list(number))  # type: ignore[arg-type]


class _EdgeBatch(NamedTuple):
    arrays: dict[str, NDArray[Any]]
    kinds: list[str]


def _edges_of(table: Table, nodes: Nodes, has: Set[str], *, stored: bool) -> _EdgeBatch:
    """Return the edges of a batch, which has some of the columns ``type`` and ``weight``."""
    src, dst, passage = _ends_and_passages(table, nodes, stored=stored)
    weights = tables.weights(table, "weight") if "weight" in has else np.ones(table.num_rows)
    kinds = tables.texts(table, "type") if "type" in has else [UNTYPED] * table.num_rows
    # Weights are copied: the batch is released.
    return _EdgeBatch({"src": src, "dst": dst, "passage": passage, "weight": np.array(weights)}, kinds)


def _ends_and_passages(
    table: Table, nodes: Nodes, *, stored: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the ends of edges, and the passages that state them."""
    if "src" in table.columns:
        src, dst = (np.array(tables.integers(table, side, nodes.limit)) for side in _SIDES)
        passage = np.full(table.num_rows, NO_PASSAGE)
        if "passage" in table.columns:
            given = tables.integers_or_none(table, "passage")
            passage = np.array([NO_PASSAGE if one is None else one for one in given], np.int64)
        wrong = np.flatnonzero((passage < NO_PASSAGE) | (passage >= nodes.num_passages))
        if wrong.size:
            row = int(wrong[0])
            table.refuse(row, "passage", int(passage[row]), f"a row 0 .. {nodes.num_passages - 1}, or -1", "range")
    else:
        src, dst = (_end(table, side, nodes) for side in _SIDES)
        passage = nodes.passages(table, "passage")
    if stored and "passage" not in table.columns:
        passage[(src >= nodes.num_passages) & (dst >= nodes.num_passages)] = UNKNOWN
    return src, dst, passage


def _end(table: Table, side: str, nodes: Nodes) -> NDArray[np.int64]:
    """Return the nodes of one end of the edges."""
    passage, entity = f"{side}_passage", f"{side}_entity"
    if not {passage, entity} & table.columns.keys():
        raise InputError(
            "missing",
            passage,
            "the columns are {given}; each end needs {passage!r} (an id) or {entity!r} (a name): rename the column (AS "
            "{passage})",
            given=list(table.columns),
            passage=passage,
            entity=entity,
        ).at(table.what)
    ends = nodes.passages(table, passage), nodes.entities(table, entity)
    given = np.sum([one >= 0 for one in ends], axis=0)
    wrong = np.flatnonzero(given != 1)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            "conflict" if given[row] else "missing",
            passage if passage in table.columns else entity,
            "the row has {given} of {passage!r} and {entity!r}; each end is one of them: leave the row out",
            given="both" if given[row] else "none",
            passage=passage,
            entity=entity,
        ).at(table.place(row))
    return np.maximum(*ends)


# ---- Facts ----


def read_facts(
    batches: Iterable[Table], nodes: Nodes, names: Sequence[str], rows: Rows, *, ends: str, stored: bool
) -> Facts:
    """Return the table of facts, whose ``ends`` are names of entities or nodes; a store names passages by ids."""
    places = Places()

    def passages_of(table: Table) -> NDArray[np.int64]:
        if not stored:
            return tables.integers(table, "passage", nodes.num_passages)
        found = nodes.passages(table, "passage")
        if (found < 0).any():
            table.refuse(int(np.argmin(found)), "passage", None, "the id of the passage that states it")
        return found

    def facts(read: Callable[[Table, str], Sequence[Any]]) -> Iterator[tuple[Any, str, Any, int]]:
        def columns(table: Table) -> tuple[Table, Sequence[Sequence[Any]]]:
            passages, relations = passages_of(table).tolist(), tables.texts(table, "relation")
            heads, tails = read(table, "head"), read(table, "tail")
            if stored:
                nodes.check_names(table, {"head", "tail"})
            return table, (heads, relations, tails, passages)

        for table in batches:
            for part, found in rows.read("facts", table, columns):
                places.add(part)
                yield from zip(*found, strict=True)

    if ends == "node":
        found = merged(facts(lambda table, name: _entities_at(table, name, nodes.num_passages, len(names))))
    else:
        found = merged(numbered(facts(tables.texts), names, places.where))
    return Facts(*found, num_entities=len(names), num_passages=nodes.num_passages)


def _entities_at(table: Table, name: str, num_passages: int, num_entities: int) -> list[int]:
    """Return the numbers of the entities at nodes."""
    nodes = tables.integers(table, name, num_passages + num_entities)
    if (nodes < num_passages).any():
        row = int(np.flatnonzero(nodes < num_passages)[0])
        allowed = f"the node of an entity, {num_passages} .. {num_passages + num_entities - 1}"
        table.refuse(row, name, int(nodes[row]), allowed, "range")
    found: list[int] = (nodes - num_passages).tolist()
    return found
