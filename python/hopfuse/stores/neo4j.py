"""Graphs of Neo4j as a source: files of APOC's export procedures, and records of its driver.

A label says which nodes are passages and which are entities; relationships between those are the edges, by their types.
No Neo4j server was available to the tests: they read files in the documented forms, and the driver's own classes.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import FormatError, InputError
from ..index.arrow_columns import arrow
from .tables import ROWS, TableReader, as_table, existing, split_place

#: Fields of a node's and a relationship's own in APOC's CSV and Arrow files, by the form's names for them.
_CSV = {"id": "_id", "labels": "_labels", "start": "_start", "end": "_end", "type": "_type"}
_ARROW = {"id": "<id>", "labels": "<labels>", "start": "<source.id>", "end": "<target.id>", "type": "<type>"}


@dataclass(frozen=True)
class Node:
    """A node: its id in the export, labels and properties."""

    id: str
    labels: tuple[str, ...]
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Relationship:
    """A relationship of two nodes, by their ids in the export."""

    type: str
    start: str
    end: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Labels:
    """What nodes and properties are called in a graph.

    Attributes
    ----------
    passages, entities : str
        Labels of the nodes that are passages and entities.
    id, text, title, name, vector, weight : str
        Properties: of passages ``id``, ``text`` and ``title``; of entities ``name``; of both ``vector``; of
        relationships ``weight``. A passage without ``id`` has the node's own.
    """

    passages: str = "Chunk"
    entities: str = "Entity"
    id: str = "id"
    text: str = "text"
    title: str = "title"
    name: str = "name"
    vector: str = "embedding"
    weight: str = "weight"


@dataclass
class _Named:
    """Passages and entities that were met, by the ids of their nodes, as columns of edges."""

    ends: dict[str, tuple[str, Any]] = field(default_factory=dict)


class Neo4jSource:
    """Nodes and relationships of Neo4j.

    Parameters
    ----------
    read : callable
        Gives all :class:`Node` and then all :class:`Relationship` objects, each time that it is called.
    labels : Labels, optional

    Raises
    ------
    InputError
        When it is read: a passage without text, an entity without a name, two that share it, vectors of several
        dimensions.

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
        """Return the graph as it is read; an export is of one state if it was made in one transaction."""
        named = _Named()
        yield TableReader(partial(self._read, named))

    def _read(self, named: _Named, table: str) -> Iterator[Any] | None:
        if table == "facts":
            return None
        rows = {"passages": self._passages, "entities": self._entities, "edges": self._edges}[table]
        return _batches(table, rows(named))

    def _nodes(self, label: str) -> Iterator[Node]:
        return (one for one in self._items() if isinstance(one, Node) and label in one.labels)

    def _passages(self, named: _Named) -> Iterator[dict[str, Any]]:
        own = self._labels
        kept = {own.id, own.text, own.title, own.vector}
        for node in self._nodes(own.passages):
            text = node.properties.get(own.text)
            if not isinstance(text, str):
                raise InputError(
                    f"node {node.id} of the label {own.passages!r} has {own.text} = {text!r}; it must be a string: "
                    f"say which property has the text"
                )
            id = node.properties.get(own.id, node.id)
            named.ends[node.id] = ("passage", id)
            others = {name: value for name, value in node.properties.items() if name not in kept}
            yield {
                "id": id,
                "text": text,
                "title": node.properties.get(own.title),
                "vector": node.properties.get(own.vector),
                "metadata": json.dumps(others) if others else None,
            }

    def _entities(self, named: _Named) -> Iterator[dict[str, Any]]:
        own = self._labels
        for node in self._nodes(own.entities):
            name = node.properties.get(own.name)
            if not isinstance(name, str):
                raise InputError(
                    f"node {node.id} of the label {own.entities!r} has {own.name} = {name!r}; it must be a string: "
                    f"say which property has the name"
                )
            named.ends[node.id] = ("entity", name)
            yield {"name": name, "vector": node.properties.get(own.vector)}

    def _edges(self, named: _Named) -> Iterator[dict[str, Any]]:
        for one in self._items():
            if not isinstance(one, Relationship) or one.start not in named.ends or one.end not in named.ends:
                continue
            (src, src_key), (dst, dst_key) = named.ends[one.start], named.ends[one.end]
            weight = one.properties.get(self._labels.weight, 1.0)
            yield {f"src_{src}": src_key, f"dst_{dst}": dst_key, "type": one.type, "weight": float(weight)}


def _batches(table: str, rows: Iterator[dict[str, Any]]) -> Iterator[Any]:
    """Give rows as record batches; those of edges with other ends in batches of their own."""
    waiting: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    kinds: dict[tuple[str, ...], Any] = {}
    empty = True
    for row in rows:
        columns = tuple(row)
        group = waiting.setdefault(columns, [])
        group.append(row)
        if len(group) == ROWS:
            yield _batch(table, group, kinds)
            empty = False
            group.clear()
    for group in waiting.values():
        if group:
            yield _batch(table, group, kinds)
            empty = False
    if empty:
        pa = arrow()
        names = {"passages": ("id", "text"), "entities": ("name",), "edges": ("src_passage", "dst_entity")}[table]
        yield pa.record_batch([pa.array([], pa.string()) for _ in names], names=names)


def _batch(table: str, rows: Sequence[dict[str, Any]], kinds: dict[tuple[str, ...], Any]) -> Any:
    pa = arrow()
    columns = tuple(rows[0])
    made = pa.RecordBatch.from_pylist(list(rows)) if columns not in kinds else None
    if made is not None:
        vectors = made.column("vector").null_count < len(rows) if "vector" in columns else False
        kept = [name for name in columns if name != "vector" or vectors]
        dims = {len(row["vector"] or ()) for row in rows} if vectors else set()
        kinds[columns] = pa.schema(
            [
                pa.field(
                    name,
                    pa.list_(pa.float32(), max(dims))
                    if name == "vector"
                    else pa.string()
                    if pa.types.is_null(made.schema.field(name).type)
                    else made.schema.field(name).type,
                )
                for name in kept
            ]
        )
    schema = kinds[columns]
    try:
        return as_table(table, pa.RecordBatch.from_pylist(list(rows), schema=schema), {})
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{table}: {error}; give all values of a property one type, and vectors one dimension"
        ) from None


# ---- Files of APOC ----------------------------------------------------------------------------------------------


def read_apoc(path: str | os.PathLike[str]) -> Iterator[Node | Relationship]:
    """Read a file of ``apoc.export.json.all``, ``apoc.export.csv.all`` or ``apoc.export.arrow.all``, by its ending.

    Raises
    ------
    InputError
        No such file, another ending.
    FormatError
        A row that is not of the form; the message names file and row.
    """
    file = existing(Path(path), "a file of APOC's export")
    readers = {".json": _json_items, ".jsonl": _json_items, ".csv": _csv_items, ".arrow": _arrow_items}
    if file.suffix not in readers:
        raise InputError(f"{file} ends in {file.suffix or 'nothing'}; allowed: {', '.join(readers)}")
    return readers[file.suffix](file)


def _json_items(path: Path) -> Iterator[Node | Relationship]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                properties = row.get("properties", {})
                if row["type"] == "node":
                    yield Node(str(row["id"]), tuple(row.get("labels", ())), properties)
                elif row["type"] == "relationship":
                    yield Relationship(row["label"], str(row["start"]["id"]), str(row["end"]["id"]), properties)
                else:
                    raise FormatError(f"{path} line {number} is of type {row['type']!r}; allowed: node, relationship")
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if isinstance(error, FormatError):
                    raise
                raise FormatError(f"{path} line {number} is no row of apoc.export.json: {error}") from None


def _csv_items(path: Path) -> Iterator[Node | Relationship]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        missing = [name for name in _CSV.values() if name not in (rows.fieldnames or ())]
        if missing:
            raise FormatError(f"{path} has no column {missing[0]!r}; a file of apoc.export.csv.all has it")
        for row in rows:
            values = {name: _csv_value(value) for name, value in row.items() if name and value and name[0] != "_"}
            yield _item(row, _CSV, values, tuple(part for part in (row["_labels"] or "").split(":") if part))


def _csv_value(text: str) -> Any:
    """Return a list of numbers or strings from JSON, as APOC writes lists; anything else stays text."""
    if text.startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _arrow_items(path: Path) -> Iterator[Node | Relationship]:
    pa = arrow()
    try:
        with pa.OSFile(os.fspath(path)) as file:
            for batch in _arrow_batches(file, path):
                missing = [name for name in ("<id>", "<labels>") if name not in batch.schema.names]
                if missing:
                    raise FormatError(f"{path} has no column {missing[0]!r}; a file of apoc.export.arrow.all has it")
                for row in batch.to_pylist():
                    values = {name: value for name, value in row.items() if value is not None and name[0] != "<"}
                    yield _item(row, _ARROW, values, tuple(row["<labels>"] or ()))
    except pa.ArrowInvalid as error:
        raise FormatError(f"{path} is no Arrow file: {error}") from None


def _arrow_batches(file: Any, path: Path) -> Iterator[Any]:
    """Give the batches of an Arrow file or stream: APOC writes either."""
    ipc = arrow().ipc
    with path.open("rb") as begin:
        is_file = begin.read(6) == b"ARROW1"
    if not is_file:
        yield from ipc.open_stream(file)
        return
    reader = ipc.open_file(file)
    for at in range(reader.num_record_batches):
        yield reader.get_batch(at)


def _item(
    row: Mapping[str, Any], names: Mapping[str, str], properties: Mapping[str, Any], labels: tuple[str, ...]
) -> Node | Relationship:
    if row.get(names["type"]):
        return Relationship(row[names["type"]], str(row[names["start"]]), str(row[names["end"]]), properties)
    return Node(str(row[names["id"]]), labels, properties)


# ---- Records of the driver --------------------------------------------------------------------------------------


def read_records(records: Iterable[Any]) -> Iterator[Node | Relationship]:
    """Read the nodes and relationships of records that Neo4j's driver gives, as ``MATCH (n) RETURN n`` asks for.

    Records of nodes come before those of relationships.

    Raises
    ------
    InputError
        A value that is neither.
    """
    for record in records:
        for value in record.values():
            if hasattr(value, "labels"):
                yield Node(value.element_id, tuple(value.labels), dict(value.items()))
            elif hasattr(value, "start_node"):
                ends = (value.start_node.element_id, value.end_node.element_id)
                yield Relationship(value.type, *ends, dict(value.items()))
            else:
                raise InputError(
                    f"a record has a {type(value).__name__}; return whole nodes and relationships: "
                    "MATCH (n) RETURN n, then MATCH ()-[r]->() RETURN r"
                )


def open_place(place: str, queries: Mapping[str, Sequence[str]]) -> Neo4jSource:
    """Return the store of ``apoc:FILE?passages=Chunk&entities=Entity&text=text``."""
    path, values = split_place(place)
    known = Labels.__dataclass_fields__
    unknown = [name for name in values if name not in known]
    if unknown:
        raise InputError(f"{place!r} has {unknown[0]!r}; allowed: {', '.join(known)}")
    if queries:
        raise InputError(
            f"{place!r} is read whole, with the queries {', '.join(queries)}; leave them out, and name labels: "
            "apoc:FILE?passages=Chunk&entities=Entity"
        )
    existing(path, "a file of APOC's export")
    return Neo4jSource(partial(read_apoc, path), Labels(**values))
