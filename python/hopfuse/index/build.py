"""Make the sections of an index from the arguments of Index.build."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._validation import check_excludes, check_length, check_type, checked_texts, counted, is_whole, wrong_value
from ..encoders import Encoder, as_encoder
from ..errors import FormatError, InputError
from ..io import tables
from ..io.files import read_npy
from ..io.readers import read_table
from ..io.source import METADATA
from ..io.tables import Table
from ..types import Corpus, EdgeStatements, Facts, Graph
from ..types.corpus import refusal
from . import parts
from .contents import Contents
from .derive import Terms, terms_of
from .file.format import Settings
from .input import Inputs, Read
from .input_links import Entities, Nodes, read_edges, read_entities, read_facts
from .input_passages import Passages
from .left_out import EveryRow, Rows
from .parts.encoder import EncoderInfo
from .parts.metadata_build import check_types, metadata_arrays
from .spool import Buffer, Vectors

Arrays = dict[str, NDArray[Any]]


class Parts(NamedTuple):
    """The sections of an index, its settings, the objects that some sections were made from, and what is to derive."""

    arrays: Arrays
    settings: Settings
    made: dict[str, Any]
    encoder: Encoder | None
    """Makes the vectors of the passages."""
    name_encoder: Encoder | None
    terms: Terms | None


class _MetadataError(Exception):
    """A row's metadata do not have the types of their columns; the cause is the error about it."""


def build_parts(given: Inputs) -> Parts:
    """Check and convert the arguments of :meth:`hopfuse.Index.build`."""
    rows: Any = given.left_out
    if rows is None or given.source is None:
        return _parts(given, EveryRow(), None)
    rows.begin()
    try:
        found = _parts(given, rows, None)
    except _MetadataError:  # known when all rows are read: read them again, and check each batch
        rows.begin()
        found = _parts(given, rows, check_types(given.metadata_types))
    rows.check()
    return found


def _parts(given: Inputs, rows: Rows, column_types: dict[str, str] | None) -> Parts:
    """Return the parts of some rows, whose metadata are checked by batches if there are types."""
    terms = terms_of(given.lexical)
    check_types(given.metadata_types)
    metric, storage = given.metric, given.storage
    maker = info = None
    if given.encoder is not None and given.vectors is None and not isinstance(given.encoder, EncoderInfo):
        maker = as_encoder(given.encoder)
    elif given.encoder is not None:
        info = EncoderInfo.of(given.encoder)
    if isinstance(given.passages, Contents) and given.vectors is None and given.passages.corpus is not None:
        metric, storage = given.passages.metric, given.passages.storage
        info = given.passages.encoder if info is None else info
    stored = given.source is not None
    with given.buffers() as buffer, given.tables() as read:  # each table is read to its end before the next
        vectors, entity_vectors = Vectors(buffer, metric, storage), Vectors(buffer, metric, storage)
        arrays, row_of = _passages(given, read, buffer, vectors, rows, column_types)
        num_passages = arrays["passage.length"].size
        if isinstance(given.passages, Contents) and given.vectors is None:
            corpus = given.passages.corpus
        elif stored:
            corpus = vectors.corpus()
        else:
            corpus = load_vectors(given.vectors, "vectors", num_passages, metric, storage)
        table = read("entities")
        known = table is not None
        entities = read_entities(table or (), entity_vectors, rows, distinct=stored)
        nodes = Nodes(num_passages, entities.names if known else None, row_of)
        graph, stated = _graph(given, read("edges"), nodes, rows, stored=stored)
        if not known and graph is not None:
            entities = Entities.numbered(graph.num_nodes - num_passages)
        facts = _facts(given, read("facts"), nodes, entities.names, rows, stored=stored)
        entity_corpus = entity_vectors.corpus()
    names = entities.names
    if not stored and not given.encodes_names:
        entity_corpus = load_vectors(given.entity_vectors, "entity_vectors", len(names), metric, storage)
    aliases = entities.aliases if stored else given.aliases
    arrays |= parts.entities.build(names, _alias_rows(names, aliases), entities.stated)
    for name, own in (("passage.vectors", corpus), ("entity.vectors", entity_corpus)):
        if own is not None:
            arrays[name] = own.vectors
    if info is not None:
        parts.encoder.check_dim(info, *(None if one is None else one.dim for one in (corpus, entity_corpus)))
        arrays |= parts.encoder.build(info)
    if graph is not None:
        arrays |= parts.graph.build(graph, num_passages)
    if stated is not None:
        arrays |= parts.graph.build_statements(stated)
    if facts is not None:
        arrays |= parts.facts.build(facts, num_passages, len(names))
    if given.words is not None:
        arrays |= parts.words.build(given.words, len(names))
    made = {
        "graph": graph,
        "edge_statements": stated,
        "corpus": corpus,
        "entity_corpus": entity_corpus,
        "facts": facts,
        "encoder": info,
        "words": given.words,
    }
    settings = Settings(metric, storage, graph is not None and graph.directed)
    namer = as_encoder(given.entity_vectors) if given.encodes_names else None
    if namer is None and corpus is None and (known or stored):  # entities that are not known have numbers for names
        namer = maker
    return Parts(arrays, settings, made, maker, namer, terms)


def _passages(
    given: Inputs,
    read: Read,
    buffer: Callable[[], Buffer],
    vectors: Vectors,
    rows: Rows,
    column_types: dict[str, str] | None,
) -> tuple[Arrays, Callable[[], Mapping[Any, int]] | None]:
    """Return the sections of passages except vectors; and, of a store, what gives the row of each id."""
    if isinstance(given.passages, Contents):
        reason = "an index, whose metadata have types"
        check_excludes("metadata_types", given.metadata_types, "passages", given.passages, reason)
        groups = ("passage.", "document.", "language.", "metadata.")
        names = [name for name in given.passages.sections if name.startswith(groups)]
        return {name: given.passages.sections[name].whole() for name in names if name != "passage.vectors"}, None
    table = read("passages")
    if table is None:
        raise InputError(
            "missing",
            "passages",
            "{field} is a store without a table of passages; an index needs one, even without rows",
        )
    passages = Passages(buffer, column_types)
    passages.read(table, vectors, rows)
    try:
        metadata = passages.metadata(given.metadata_types)
    except InputError as error:
        if given.left_out is None or column_types is not None:
            raise
        raise _MetadataError from error
    return passages.arrays() | metadata, passages.rows if given.source is not None else None


def _graph(
    given: Inputs, edges: Iterable[Table] | None, nodes: Nodes, rows: Rows, *, stored: bool
) -> tuple[Graph | None, EdgeStatements | None]:
    """Return a given graph, checked, or that of a table of edges, and its edges as stated, if some join entities."""
    graph, stated = given.graph, given.statements
    if stated is not None and not (isinstance(graph, Graph) and isinstance(stated, EdgeStatements)):
        raise InputError(
            "type",
            "statements",
            "{field} is of the type {given}, and {@graph} of the type {kind}; give EdgeStatements with a Graph, or a "
            "table of edges with the column 'passage'",
            given=type(stated).__name__,
            kind=type(graph).__name__,
        )
    if edges is not None:
        graph, stated = read_edges(edges, nodes, rows, stored=stored).graph(nodes)
    elif graph is not None:
        nodes.check(graph.num_nodes)
        try:
            parts.graph.check_graph(graph.to_arrays())
            if not graph.directed:
                parts.graph.check_symmetry(graph.to_arrays())
        except FormatError as error:
            raise error.about("graph", kind=InputError).at("graph") from None
        if stated is not None:
            parts.graph.check_statements(stated, graph, nodes.num_passages)
            parts.graph.check_owners(stated, nodes.num_passages)
    if stated is not None and not parts.graph.joins_entities(stated, nodes.num_passages):
        stated = None
    return graph, stated


def _facts(
    given: Inputs, table: Iterable[Table] | None, nodes: Nodes, names: Sequence[str], rows: Rows, *, stored: bool
) -> Facts | None:
    """Return given facts, or those of a table whose ends are names of entities or nodes of the graph."""
    if table is not None:
        return read_facts(table, nodes, names, rows, ends=given.fact_ends, stored=stored)
    if given.fact_ends != "name":
        raise InputError(
            "unused",
            "fact_ends",
            "{field} is {given!r}, which applies to a table of facts only; leave it out",
            given=given.fact_ends,
        )
    facts: Facts | None = given.facts
    return facts


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


def _vectors_of(path: Path, what: str) -> NDArray[Any]:
    if path.suffix.lower() != ".npy":
        raise wrong_value(str(path), what, "an array, or the path of an .npy file", "choice")
    return read_npy(path, what)


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
        entity = index.get(key, -1) if isinstance(key, str) else int(key) if is_whole(key) else -1
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
