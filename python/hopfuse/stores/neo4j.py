"""Neo4j graphs as a source: nodes and relationships from an export (:mod:`hopfuse.stores.apoc`) or the driver.

Nodes of one label are passages, those of another are entities; relationships between them are edges of their type. The
tests had no Neo4j server: they read files in the documented formats, and objects of the driver's own classes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .._validation import wrong_type
from ..errors import InputError
from .row_batches import Row, row_batches
from .tables import TableReader


@dataclass(frozen=True)
class Node:
    """A node: its id in the export, labels and properties."""

    id: str
    labels: tuple[str, ...]
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Relationship:
    """A relationship between two nodes, by their ids in the export."""

    type: str
    start: str
    end: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Labels:
    """Names of labels and properties in a graph.

    Attributes
    ----------
    passages, entities : str
        Labels of the nodes that are passages and entities.
    id, text, title, name, vector, weight : str
        Properties: of passages ``id``, ``text`` and ``title``; of entities ``name``; of both ``vector``; of
        relationships ``weight``. A passage without the property ``id`` gets the node's id.
    """

    passages: str = "Chunk"
    entities: str = "Entity"
    id: str = "id"
    text: str = "text"
    title: str = "title"
    name: str = "name"
    vector: str = "embedding"
    weight: str = "weight"


class Neo4jSource:
    """A graph of Neo4j nodes and relationships.

    Parameters
    ----------
    read : callable
        Returns all :class:`Node` and then all :class:`Relationship` objects, at every call.
    labels : Labels, optional

    Raises
    ------
    InputError
        During the read: a passage has no text, an entity no name or that of another, a node is both, vectors have
        several dimensions, a relationship's node is missing, or ``read`` can be called only once.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.stores.neo4j import Neo4jSource, Node, Relationship
    >>> nodes = [Node("0", ("Chunk",), {"text": "Ada wrote."}), Node("1", ("Entity",), {"name": "Ada"})]
    >>> source = Neo4jSource(lambda: [*nodes, Relationship("MENTIONS", "0", "1", {})])
    >>> hf.Index.build(source).graph
    Graph(undirected, nodes=2, stored=2, types=['MENTIONS'])
    """

    def __init__(self, read: Callable[[], Iterable[Node | Relationship]], labels: Labels | None = None) -> None:
        self._items, self._labels = read, labels or Labels()

    @contextmanager
    def snapshot(self) -> Iterator[TableReader]:
        """Return the graph. An export has one state if it was made in one transaction."""
        yield TableReader(_Graph(self._items, self._labels).read)


class _Graph:
    """The tables of one snapshot; each reads all items again."""

    def __init__(self, items: Callable[[], Iterable[Node | Relationship]], labels: Labels) -> None:
        self._items, self._labels = items, labels
        self._was_empty = True

    def read(self, table: str) -> Iterator[Any] | None:
        """Return the batches of a table."""
        if table == "facts":
            return None
        rows = {"passages": self._passages, "entities": self._entities, "edges": self._edges}[table]
        return row_batches(table, rows())

    def _read(self) -> Iterator[Node | Relationship]:
        empty = True
        for one in self._items():
            yield one
            empty = False
        if empty and not self._was_empty:
            raise InputError(
                "changed",
                "read",
                "{field} returned nodes once and none at its next call; it must read them again each time",
            )
        self._was_empty = self._was_empty and empty

    def _nodes(self, label: str) -> Iterator[Node]:
        return (one for one in self._read() if isinstance(one, Node) and label in one.labels)

    def _passages(self) -> Iterator[Row]:
        own = self._labels
        kept = {own.id, own.text, own.title, own.vector}
        for node in self._nodes(own.passages):
            others = {name: value for name, value in node.properties.items() if name not in kept}
            yield {
                "id": _id(node, own),
                "text": _string(node, own.passages, own.text, "text"),
                "title": node.properties.get(own.title),
                "vector": node.properties.get(own.vector),
                "metadata": json.dumps(others, default=_json_value) if others else None,
            }

    def _entities(self) -> Iterator[Row]:
        own = self._labels
        for node in self._nodes(own.entities):
            name = _string(node, own.entities, own.name, "name")
            yield {"name": name, "vector": node.properties.get(own.vector)}

    def _edges(self) -> Iterator[Row]:
        ends: dict[str, tuple[str, Any] | None] = {}  # None: a node with neither label
        for one in self._read():
            if isinstance(one, Node):
                ends[one.id] = _end(one, self._labels)
                continue
            for id in (one.start, one.end):
                if id not in ends:
                    raise InputError(
                        "order",
                        "read",
                        "the relationship {type} from node {start} to node {end} comes before node {node}, or that "
                        "node is missing; {field} must give all nodes, then all relationships",
                        type=one.type,
                        start=one.start,
                        end=one.end,
                        node=id,
                    )
            start, end = ends[one.start], ends[one.end]
            if start is not None and end is not None:
                yield {
                    f"src_{start[0]}": start[1],
                    f"dst_{end[0]}": end[1],
                    "type": one.type,
                    "weight": _weight(one, self._labels.weight),
                }


def _end(node: Node, labels: Labels) -> tuple[str, Any] | None:
    """Return the end of edges that a node is, a passage or an entity; None if it is neither."""
    if labels.passages in node.labels and labels.entities in node.labels:
        raise InputError(
            "conflict",
            "labels",
            "node {node} has both {field}, {passages!r} of passages and {entities!r} of entities; it may have one of "
            "them",
            node=node.id,
            passages=labels.passages,
            entities=labels.entities,
        )
    if labels.passages in node.labels:
        return "passage", _id(node, labels)
    return ("entity", node.properties.get(labels.name)) if labels.entities in node.labels else None


def _id(node: Node, labels: Labels) -> Any:
    found = node.properties.get(labels.id)
    return node.id if found is None else found


def _string(node: Node, label: str, name: str, what: str) -> str:
    found = node.properties.get(name)
    if not isinstance(found, str):
        raise InputError(
            "type",
            what,
            "node {node} with the label {label!r} has {property} = {given!r}; it must be a string: name the property "
            "by {what:@}",
            node=node.id,
            label=label,
            property=name,
            given=found,
            what=what,
        )
    return found


def _weight(one: Relationship, name: str) -> float:
    found = one.properties.get(name)
    try:
        return 1.0 if found is None else float(found)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            "type",
            "weight",
            "the relationship {type} from node {start} to node {end} has {property} = {given!r}; a {field} must be a "
            "number",
            type=one.type,
            start=one.start,
            end=one.end,
            property=name,
            given=found,
        ) from None


def _json_value(value: Any) -> str:
    """Return a date or time of Neo4j's or Python's in ISO 8601."""
    for method in ("iso_format", "isoformat"):
        if hasattr(value, method):
            return str(getattr(value, method)())
    raise InputError(
        "type",
        "metadata",
        "{field} cannot hold {given!r} of the type {kind}; leave the property out, or convert it",
        given=value,
        kind=type(value).__name__,
    )


def read_records(records: Iterable[Any]) -> Iterator[Node | Relationship]:
    """Yield the nodes and relationships in records of Neo4j's driver, such as those of ``MATCH (n) RETURN n``.

    Records of nodes must come before those of relationships.

    Raises
    ------
    InputError
        A value is neither a node nor a relationship.
    """
    for record in records:
        for value in record.values():
            if hasattr(value, "labels"):
                yield Node(value.element_id, tuple(value.labels), dict(value.items()))
            elif hasattr(value, "start_node"):
                ends = (value.start_node.element_id, value.end_node.element_id)
                yield Relationship(value.type, *ends, dict(value.items()))
            else:
                raise wrong_type(
                    value,
                    "records",
                    "whole nodes and relationships: MATCH (n) RETURN n, then MATCH ()-[r]->() RETURN r",
                )
