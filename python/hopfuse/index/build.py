"""Check the arguments of Index.build, and convert them to the sections of an index."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import (
    check_choice,
    check_excludes,
    check_length,
    check_list,
    check_type,
    checked_texts,
    counted,
    is_whole,
    wrong_value,
)
from ..errors import FormatError, InputError
from ..io import tables
from ..io.npy import read_npy
from ..io.readers import read_table
from ..io.source import Source
from ..io.tables import Spec, Table
from ..types import Corpus, EdgeStatements, Facts, Graph
from ..types.corpus import refusal
from ..types.edge_statements import NO_PASSAGE, UNKNOWN
from ..types.facts import merged, numbered
from ..types.graph import MAX_NODES, check_node_count
from . import parts
from .contents import Contents
from .file.format import METRICS, STORAGES, Settings
from .from_source import ReadSource, read_source
from .parts.encoder import EncoderInfo
from .parts.metadata_build import check_types, metadata_arrays
from .parts.passages import LABELS, label_arrays

STATEMENTS = Spec(
    "facts", ("head", "relation", "tail", "passage"), (), ("head", "relation", "tail", "passage"), others=False
)
#: The meaning of heads and tails in a table of facts.
FACT_ENDS = ("name", "node")
#: BEIR's name of the column of ids.
_BEIR = {"_id": "id"}
PASSAGES = Spec(
    "passages",
    ("text",),
    ("title", "id", "document", "language", "metadata"),
    ("id", "text", "title"),
    others=True,
    aliases=_BEIR,
)
#: Passages for a reader, which joins those that follow each other.
ORDERED = replace(PASSAGES, optional=(*PASSAGES.optional, "position"))
METADATA = Spec("metadata", ("metadata",), ("id",), ("id", "metadata"), others=True, aliases=_BEIR)
ENTITIES = Spec("entities", ("name",), ("stated",), ("name",), others=True)
EDGES = Spec(
    "graph", ("src", "dst"), ("type", "weight", "passage"), ("src", "dst", "type", "weight", "passage"), others=False
)

Arrays = dict[str, NDArray[Any]]


class Parts(NamedTuple):
    """The sections of an index, its settings, and the objects that some sections were made from."""

    arrays: Arrays
    settings: Settings
    made: dict[str, Any]


def build_parts(
    *,
    scratch: Any,
    passages: Any,
    metadata_types: Any,
    vectors: Any,
    graph: Any,
    statements: Any,
    entities: Any,
    aliases: Any,
    entity_vectors: Any,
    facts: Any,
    fact_ends: str,
    words: Any,
    encoder: Any,
    metric: Any,
    storage: Any,
) -> Parts:
    """Check and convert the arguments of :meth:`hopfuse.Index.build`."""
    _check_options(metric, storage, fact_ends)
    check_types(metadata_types)
    info = None if encoder is None else EncoderInfo.of(encoder)
    read: ReadSource | None = None
    if isinstance(passages, Source):
        folder = None if scratch is None else Path(scratch)
        read = read_source(passages, metadata_types=metadata_types, metric=metric, storage=storage, scratch=folder)
        graph, entities, aliases, facts = read.edges, read.entities, read.aliases, read.facts
        arrays, corpus = read.arrays, read.corpus
    elif isinstance(passages, Contents):
        check_excludes("metadata_types", metadata_types, "passages", passages, "an index, whose metadata have types")
        arrays = _passages_of(passages)
        corpus = None if vectors is not None else passages.corpus
        if corpus is not None:
            metric, storage = passages.metric, passages.storage
            info = passages.encoder if info is None else info
    else:
        arrays, corpus = _passage_arrays(passages, metadata_types), None
    num_passages = arrays["passage.length"].size
    if corpus is None and read is None:
        corpus = load_vectors(vectors, "vectors", num_passages, metric, storage)
    names, given = _entities_of(entities)
    own_graph, stated = _load_graph(graph, num_passages, None if names is None else len(names), statements)
    stated = None if stated is None or not parts.graph.joins_entities(stated, num_passages) else stated
    if names is None:
        names = [str(e) for e in range(0 if own_graph is None else own_graph.num_nodes - num_passages)]
    if read is None:
        entity_corpus = load_vectors(entity_vectors, "entity_vectors", len(names), metric, storage)
    else:
        entity_corpus = read.entity_corpus
    arrays |= parts.entities.build(names, _alias_rows(names, aliases), given)
    if corpus is not None:
        arrays["passage.vectors"] = corpus.vectors
    if entity_corpus is not None:
        arrays["entity.vectors"] = entity_corpus.vectors
    if info is not None:
        parts.encoder.check_dim(info, *(None if one is None else one.dim for one in (corpus, entity_corpus)))
        arrays |= parts.encoder.build(info)
    if own_graph is not None:
        arrays |= parts.graph.build(own_graph, num_passages)
        if stated is not None:
            arrays |= parts.graph.build_statements(stated)
    own_facts = _load_facts(facts, fact_ends, names, num_passages)
    if own_facts is not None:
        arrays |= parts.facts.build(own_facts, num_passages, len(names))
    if words is not None:
        arrays |= parts.words.build(words, len(names))
    settings = Settings(metric, storage, own_graph is not None and own_graph.directed)
    made = {
        "graph": own_graph,
        "edge_statements": stated,
        "corpus": corpus,
        "entity_corpus": entity_corpus,
        "facts": own_facts,
        "encoder": info,
        "words": words,
    }
    return Parts(arrays, settings, made)


def check_alone(given: Mapping[str, Any], other: str, reason: str) -> None:
    """Refuse arguments that are given beside another one."""
    for name, value in given.items():
        check_excludes(name, value, other, True, reason)


def rows_of_texts(texts: Any, ids: Any, titles: Any) -> list[dict[str, Any]]:
    """Return the rows of passages for the arguments of :meth:`hopfuse.Index.from_texts`."""
    listed = check_list(texts, "texts", "a list of strings, or of mappings with 'text'")
    rows = [{"text": text} if isinstance(text, str) else text for text in listed]
    for name, field, values in (("id", "ids", ids), ("title", "titles", titles)):
        if values is None:
            continue
        listed = check_list(values, field)
        check_length(len(listed), field, len(rows), "text")
        for at, row in enumerate(rows):
            if isinstance(row, Mapping):
                if name in row:
                    raise InputError(
                        "conflict",
                        f"texts[{at}]",
                        "{field} has {key} {given!r} of its own; leave {other:@} out",
                        key=name,
                        given=row[name],
                        other=field,
                    )
                rows[at] = {**row, name: listed[at]}
    return rows


def _check_options(metric: str, storage: str, fact_ends: str) -> None:
    """Refuse options before anything large is read."""
    check_choice(fact_ends, "fact_ends", FACT_ENDS)
    check_choice(metric, "metric", METRICS)
    check_choice(storage, "storage", STORAGES)


def _passage_arrays(passages: Any, metadata_types: Any) -> Arrays:
    """Return the sections ``passage.*`` except vectors, and ``metadata.*``."""
    table = read_table(passages, PASSAGES)
    texts, ids = tables.texts(table, "text"), tables.row_ids(table)
    arrays = parts.passages.build(ids, tables.texts(table, "title", default=""), texts)
    for label in LABELS:
        arrays |= label_arrays(label, label.read(table, label.what))
    return {
        **arrays,
        **metadata_arrays(tables.objects(table, "metadata"), metadata_types, table.where),
    }


def _passages_of(contents: Contents) -> Arrays:
    """Return the sections of an index's passages except vectors."""
    groups = ("passage.", "document.", "language.", "metadata.")
    names = [name for name in contents.sections if name.startswith(groups)]
    return {name: contents.sections[name].whole() for name in names if name != "passage.vectors"}


def metadata_of(
    given: Any, types: Any, num_passages: int, rows_of: Callable[[Iterable[Any]], NDArray[np.int64]]
) -> Arrays:
    """Return the sections ``metadata.*`` for rows with ids, or in the order of the passages."""
    table = read_table(given, METADATA)
    values = tables.objects(table, "metadata")
    if values and not any(value is not None for value in values):
        raise InputError(
            "missing",
            "metadata",
            "no row of {field} has the key 'metadata'; a row is {{'metadata': {{name: value}}}}, with the 'id' of its "
            "passage or in the order of the passages; to remove metadata, give None in place of the rows",
        )
    if "id" not in table.columns:
        check_length(table.num_rows, "metadata", num_passages, "passage")
        return metadata_arrays(values, types, table.where)
    rows = rows_of(tables.row_ids(table)).tolist()
    placed: list[Mapping[str, Any] | None] = [None] * num_passages
    place = dict(zip(rows, range(len(rows)), strict=True))
    for row, value in zip(rows, values, strict=True):
        placed[row] = value
    return metadata_arrays(placed, types, lambda row: table.where(place[row]))


def _entities_of(entities: Any) -> tuple[list[str] | None, NDArray[np.bool_]]:
    """Return names from a list of str or a table, or None for None, and which of them a user stated."""
    if entities is None:
        return None, np.ones(0, np.bool_)
    if isinstance(entities, (list, tuple)) and all(isinstance(name, str) for name in entities):
        return list(entities), np.ones(len(entities), np.bool_)
    table = read_table(entities, ENTITIES)
    return tables.texts(table, "name"), np.array(tables.flags(table, "stated"), np.bool_)


def load_vectors(vectors: Any, what: str, rows: int, metric: Any, storage: Any) -> Corpus | None:
    """Return a corpus over an array or an .npy file of (rows, d) numbers."""
    if vectors is None:
        return None
    array = _vectors_of(Path(vectors), what) if isinstance(vectors, (str, os.PathLike)) else vectors
    corpus = checked_corpus(array, what, metric, storage)
    check_length(corpus.num_vectors, what, rows, "entity" if what == "entity_vectors" else "passage")
    return corpus


def checked_corpus(vectors: Any, field: str, metric: Any, storage: Any) -> Corpus:
    """Return a corpus over an array, after checking that all vectors can be scored."""
    try:
        corpus = Corpus.unchecked(vectors, metric=metric, storage=storage)
    except InputError as error:
        raise error.about(field) from None
    wrong = corpus.unscorable()
    if wrong is not None:
        raise refusal(wrong, f"{field}[{wrong.row}]")
    return corpus


def _load_graph(
    graph: Any, num_passages: int, num_entities: int | None, statements: Any
) -> tuple[Graph | None, EdgeStatements | None]:
    """Return a given graph, checked, or one built from an edge table, and its edges as stated."""
    if statements is not None and not (isinstance(graph, Graph) and isinstance(statements, EdgeStatements)):
        raise InputError(
            "type",
            "statements",
            "{field} is of the type {given}, and {@graph} of the type {kind}; give EdgeStatements with a Graph, or a "
            "table of edges with the column 'passage'",
            given=type(statements).__name__,
            kind=type(graph).__name__,
        )
    if graph is None:
        return None, None
    if not isinstance(graph, Graph):
        table = graph if isinstance(graph, Table) else read_table(graph, EDGES)
        least = UNKNOWN if table is graph else NO_PASSAGE  # a source marks edges whose passage is unknown
        return _graph_from_table(table, num_passages, num_entities, least)
    _check_nodes(graph.num_nodes, num_passages, num_entities)
    try:
        parts.graph.check_graph(graph.to_arrays())
        if not graph.directed:
            parts.graph.check_symmetry(graph.to_arrays())
    except FormatError as error:
        raise error.about("graph", kind=InputError).at("graph") from None
    if statements is not None:
        parts.graph.check_statements(statements, graph, num_passages)
        parts.graph.check_owners(statements, num_passages)
    return graph, statements


def _load_facts(facts: Any, ends: str, names: list[str], num_passages: int) -> Facts | None:
    """Return given facts, or those of a table whose ends are names of entities or nodes of the graph."""
    if facts is None or isinstance(facts, Facts):
        if ends != "name":
            raise InputError(
                "unused",
                "fact_ends",
                "{field} is {given!r}, which applies to a table of facts only; leave it out",
                given=ends,
            )
        return facts
    table = facts if isinstance(facts, Table) else read_table(facts, STATEMENTS)
    passages = tables.integers(table, "passage", num_passages).tolist()
    relations = tables.texts(table, "relation")
    if ends == "node":
        heads, tails = (_entities(table, name, num_passages, len(names)) for name in ("head", "tail"))
        made = merged(zip(heads, relations, tails, passages, strict=True))
    else:
        written = zip(tables.texts(table, "head"), relations, tables.texts(table, "tail"), passages, strict=True)
        made = merged(numbered(written, names, table.where))
    return Facts(*made, num_entities=len(names), num_passages=num_passages)


def _vectors_of(path: Path, what: str) -> NDArray[Any]:
    if path.suffix.lower() != ".npy":
        raise wrong_value(str(path), what, "an array, or the path of an .npy file", "choice")
    return read_npy(path, what)


def _graph_from_table(
    table: Table, num_passages: int, num_entities: int | None, least: int
) -> tuple[Graph, EdgeStatements | None]:
    limit = MAX_NODES if num_entities is None else num_passages + num_entities
    src, dst = tables.integers(table, "src", limit), tables.integers(table, "dst", limit)
    weight, types = tables.weights(table, "weight"), tables.categories(table, "type")
    nodes = limit
    if num_entities is None:
        nodes = max(num_passages, int(max(src.max(initial=-1), dst.max(initial=-1))) + 1)
        check_node_count(nodes - num_passages, src.size, table.what, nodes - 1, "entities", "entity")
    graph = Graph.from_edges(
        src,
        dst,
        weight,
        num_nodes=nodes,
        edge_type=None if types is None else types[0],
        edge_type_names=None if types is None else types[1],
    )
    if "passage" not in table.columns:
        return graph, None
    given = tables.integers_or_none(table, "passage")
    for at, passage in enumerate(given):
        if passage is not None and not least <= passage < num_passages:
            tables.refuse_value(table.where(at), "passage", passage, f"a row 0 .. {num_passages - 1}, or -1", "range")
    weights = np.ones(src.size) if weight is None else np.asarray(weight, np.float64)
    kept = np.flatnonzero(weights > 0)
    passages = np.array([NO_PASSAGE if one is None else one for one in given], np.int32)
    kinds = np.zeros(src.size, np.uint8) if types is None else types[0].astype(np.uint8)
    stated = EdgeStatements(
        np.stack([src, dst], axis=1)[kept].astype(np.int32), kinds[kept], weights[kept], passages[kept]
    )
    parts.graph.check_owners(stated, num_passages)
    return graph, stated


def _check_nodes(nodes: int, num_passages: int, num_entities: int | None) -> None:
    if num_entities is None and nodes < num_passages:
        raise InputError(
            "length",
            "graph",
            "{field} has {given} nodes for {passages} passages; nodes 0 .. P-1 are the passages",
            given=nodes,
            passages=num_passages,
        )
    if num_entities is not None and nodes != num_passages + num_entities:
        raise InputError(
            "length",
            "graph",
            "{field} has {given} nodes; {passages} and {entities} are {allowed}: give num_nodes={allowed} to "
            "Graph.from_edges",
            given=nodes,
            passages=counted(num_passages, "passage"),
            entities=counted(num_entities, "entity"),
            allowed=num_passages + num_entities,
        )


def _alias_rows(names: list[str], aliases: Any) -> list[list[str]]:
    rows: list[list[str]] = [[] for _ in names]
    if aliases is None:
        return rows
    check_type(aliases, "aliases", Mapping, "a mapping of an entity's index or name to its aliases")
    index = {name: e for e, name in enumerate(names)}
    repeated = {name for e, name in enumerate(names) if index[name] != e}
    for key, values in aliases.items():
        own = checked_texts(values, f"aliases[{key!r}]")
        if isinstance(key, str) and key in repeated:
            raise InputError(
                "duplicate",
                "aliases",
                "{field} has the name {given!r}, which several entities have; use the entity's index",
                given=key,
            )
        entity = index.get(key, -1) if isinstance(key, str) else _entity_index(key)
        if not 0 <= entity < len(names):
            raise InputError(
                "unknown",
                "aliases",
                "{field} has the key {given!r}, which is not among {count}; a key is an entity's name or "
                "its index 0 .. E-1",
                given=key,
                count=counted(len(names), "entity"),
            )
        rows[entity].extend(own)
    return rows


def _entity_index(key: Any) -> int:
    return int(key) if is_whole(key) else -1


def _entities(table: tables.Table, name: str, num_passages: int, num_entities: int) -> list[int]:
    nodes = tables.integers(table, name, num_passages + num_entities).tolist()
    for at, node in enumerate(nodes):
        if node < num_passages:
            allowed = f"the node of an entity, {num_passages} .. {num_passages + num_entities - 1}"
            tables.refuse_value(table.where(at), name, node, allowed, "range")
    return [node - num_passages for node in nodes]
