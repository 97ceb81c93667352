"""Merge a generation with the batches after it: the arrays equal those of an index built from the rows at that seq.

Rows are in the order of their insertion. A passage is deleted with its edges and statements, a fact with the last
passage that states it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError, InputError
from ...types import Corpus, EdgeStatements, Graph
from ...types.continued_corpus import ContinuedCorpus
from ...types.edge_statements import UNKNOWN
from .. import parts
from ..file.columns import string_arrays
from ..file.rows import TakenRows, is_whole, take_rows, take_strings
from ..file.sections import Section, as_section
from ..membership import deleted_later, is_in
from ..schema import in_file_order
from .delta import DeltaRows
from .encode import Slots
from .merge_facts import merge_facts
from .merge_labels import merge_labels
from .merge_metadata import merge_metadata
from .merge_terms import MergedTerms

#: Arrays, and sections that are made when they are read.
Arrays = Mapping[str, NDArray[Any] | Section]


class Places(NamedTuple):
    """Maps between slots and rows: from slot to row (-1 if deleted), and from row to slot."""

    passage: NDArray[np.int64]  # by slot
    passages: NDArray[np.int64]  # by row
    entity: NDArray[np.int64]  # by slot
    entities: NDArray[np.int64]  # by row
    num_names: int

    def nodes_of(self, base: Slots) -> NDArray[np.int64]:
        """Return the new node of each node of the generation, -1 if it was deleted."""
        entity = self.entity[: base.entities]
        return np.concatenate([self.passage[: base.passages], np.where(entity < 0, -1, entity + self.passages.size)])

    def nodes(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the nodes of ends of edges, -1 for those that were deleted."""
        entity = self.entity[-1 - np.minimum(ends, -1)] if self.entity.size else np.full(ends.shape, -1)
        passage = self.passage[np.maximum(ends, 0)] if self.passage.size else np.full(ends.shape, -1)
        return np.where(ends >= 0, passage, np.where(entity < 0, -1, entity + self.passages.size))


def places(delta: DeltaRows) -> Places:
    """Return the maps between slots and rows after the batches."""
    base, start = delta.base, delta.before
    alive = [np.ones(delta.after.passages, bool), np.ones(delta.after.entities, bool)]
    for lives, name in zip(alive, ("delete.passage", "delete.entity"), strict=True):
        lives[delta[name]] = False
    first = start.entities if base.words is None else base.words.first
    words = np.concatenate([np.arange(start.entities) >= first, delta["entity.word"].astype(bool)])
    passages = np.flatnonzero(alive[0])
    names, others = np.flatnonzero(alive[1] & ~words), np.flatnonzero(alive[1] & words)
    entities = np.concatenate([names, others])
    after = delta.after
    return Places(
        _inverse(passages, after.passages), passages, _inverse(entities, after.entities), entities, names.size
    )


def merge(delta: DeltaRows) -> tuple[dict[str, Section], dict[str, Any]]:
    """Return the sections of the index after the batches, and the objects that some were made from.

    Raises
    ------
    FormatError
        The batches do not fit the generation.
    """
    try:
        return _merge(delta)
    except InputError as error:
        raise error.about(kind=FormatError).at("the log does not fit its generation") from None


def _merge(delta: DeltaRows) -> tuple[dict[str, Section], dict[str, Any]]:
    base, at = delta.base, places(delta)
    arrays = {**_passage_arrays(delta, at), **_entity_arrays(delta, at)}
    arrays |= merge_labels(delta, at.passages)
    arrays |= merge_metadata(delta, at.passages)
    made: dict[str, Any] = {}
    for key, name, order in (("corpus", "passage", at.passages), ("entity_corpus", "entity", at.entities)):
        kept = getattr(base, key)
        if kept is not None:
            vectors, made[key] = _vectors(f"{name}.vectors", delta, kept, order)
            arrays |= vectors
    for name in ("encoder.name.offsets", "encoder.name.bytes", "encoder.setting"):
        if name in base.sections:
            arrays[name] = base.sections[name].whole()
    source = base.source if delta.source is None else delta.source
    if source is not None:
        arrays |= string_arrays("source.state", [source])
    if base.words is not None:
        made["words"] = replace(base.words, first=at.num_names)
        arrays |= parts.words.build(made["words"], at.entities.size)
    if base.graph is not None:
        made["graph"], statements = _graph(delta, at)
        arrays |= {**parts.graph.build(made["graph"], at.passages.size), **statements}
    if base.facts is not None:
        made["facts"], ranks = merge_facts(delta, at.passage, at.entity)
        arrays |= parts.facts.build(made["facts"], at.passages.size, at.entities.size) | ranks
    if base.lexical is not None:
        made["lexical"] = MergedTerms(base.lexical, delta, at.passage, at.passages.size)
        arrays |= parts.terms.build_terms(made["lexical"])
    sections = {name: as_section(name, one) for name, one in arrays.items()}
    if base.lexical is not None:
        sections |= made["lexical"].sections()
    return in_file_order(sections), made


def _inverse(order: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    place = np.full(size, -1)
    place[order] = np.arange(order.size)
    return place


def _passage_arrays(delta: DeltaRows, at: Places) -> Arrays:
    return {
        **_ids(delta, at),
        **_taken(delta, "passage.title", at.passages),
        **_taken(delta, "passage.text", at.passages),
        "passage.length": take_rows(delta.whole("passage.length"), at.passages),
    }


def _ids(delta: DeltaRows, at: Places) -> Arrays:
    """Return ids of the index's type; an index without passages takes the type of the first ones added."""
    kinds = {name for name in ("passage.id.number", "passage.id.offsets") if delta.has(name)}
    if delta.before.passages:
        kinds.add("passage.id.number" if "passage.id.number" in delta.base.sections else "passage.id.offsets")
    if len(kinds) > 1:
        raise FormatError("conflict", None, "the log has passages with string ids and passages with integer ids")
    if "passage.id.offsets" in kinds and at.passages.size:
        return _taken(delta, "passage.id", at.passages)
    numbers = delta.whole("passage.id.number") if "passage.id.number" in kinds else np.zeros(0, np.int64)
    return {"passage.id.number": take_rows(numbers, at.passages)}


def _taken(delta: DeltaRows, name: str, order: NDArray[np.int64]) -> dict[str, Section]:
    return take_strings(name, *delta.column(name).arrays(), order)


def _vectors(name: str, delta: DeltaRows, base: Corpus, order: NDArray[np.int64]) -> tuple[dict[str, Section], Corpus]:
    """Return vectors in an order as a section, and as a corpus that shares those of the generation if it can."""
    whole = delta.whole(name)
    if is_whole(order, len(whole)):
        return {name: Section(name, whole)}, ContinuedCorpus(base, whole)
    if (order[1:] > order[:-1]).all():
        return {name: TakenRows(name, whole, order)}, ContinuedCorpus(base, whole, order)
    vectors = take_rows(whole, order)  # names that were added precede the words
    return {name: Section(name, vectors)}, Corpus.from_stored(vectors, metric=base.metric, storage=base.storage)


def _entity_arrays(delta: DeltaRows, at: Places) -> Arrays:
    rows = delta.base.sections["entity.alias.rows"].whole()
    entity = np.concatenate([np.repeat(np.arange(delta.before.entities), np.diff(rows)), delta["alias.entity"]])
    offsets, data = delta.whole("alias.name.offsets"), delta.whole("alias.name.bytes")
    row = at.entity[entity] if entity.size else entity
    kept = np.flatnonzero((row >= 0) & ~_deleted_aliases(delta, entity, offsets, data))
    order = kept[np.argsort(row[kept], kind="stable")]
    counts = np.bincount(row[kept], minlength=at.entities.size)
    return {
        **_stated(delta, at.entities),
        **parts.entities.build_rule(delta.base.name_rule),
        **_taken(delta, "entity.name", at.entities),
        "entity.alias.rows": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        **take_strings("entity.alias", offsets, data, order),
    }


def _stated(delta: DeltaRows, entities: NDArray[np.int64]) -> Arrays:
    """Return which entities a user stated, when they were added or later."""
    if not delta.knows("entity.stated"):
        return {}
    bits, later = delta.whole("entity.stated"), delta["stated.entity"]
    if later.size:
        bits = bits.copy()
        bits[later] = 1
    return parts.entities.build_stated(take_rows(bits, entities))


def _deleted_aliases(
    delta: DeltaRows, entity: NDArray[np.int64], offsets: NDArray[np.int64], data: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Return which aliases later batches delete."""
    deleted, gone = np.zeros(entity.size, bool), delta["delete.alias.entity"]
    if not gone.size:
        return deleted
    ends, names = delta.whole("delete.alias.name.offsets"), delta.whole("delete.alias.name.bytes")
    last = {}  # the last batch that deletes an alias
    for slot, batch, first, end in zip(
        gone.tolist(), delta.batch("delete.alias.entity").tolist(), ends[:-1], ends[1:], strict=True
    ):
        last[slot, names[first:end].tobytes()] = batch
    stated = np.concatenate([np.full(entity.size - delta.added("alias.entity"), -1), delta.batch("alias.entity")])
    for place in np.flatnonzero(is_in(entity, gone)).tolist():
        alias = data[offsets[place] : offsets[place + 1]].tobytes()
        deleted[place] = last.get((int(entity[place]), alias), -1) > stated[place]
    return deleted


# ---- Edges ----


def _graph(delta: DeltaRows, at: Places) -> tuple[Graph, Arrays]:
    """Build the graph of all remaining edges, in the order of their statements."""
    base, names = delta.base, delta.edge_types
    assert base.graph is not None
    own = parts.graph.statements_of(base.graph) if base.edge_statements is None else base.edge_statements
    table = at.nodes_of(delta.before)
    nodes = np.concatenate([table[own.ends], at.nodes(delta["edge.end"])])
    weight = np.concatenate([own.weights, delta["edge.weight"]])
    kind = np.concatenate([own.types, delta["edge.type"]])
    passage = np.concatenate([own.passages, delta["edge.passage"]])
    kept = (nodes >= 0).all(axis=1)
    if delta.has("delete.edge"):
        kept &= ~_deleted_edges(delta, own, kind)
    is_stated = passage >= 0
    if is_stated.any():
        passage[is_stated] = at.passage[passage[is_stated]]
        kept &= ~is_stated | (passage >= 0)
    if not kept.all():
        nodes, weight, kind, passage = nodes[kept], weight[kept], kind[kept], passage[kept]
    graph = Graph.from_edges(
        nodes[:, 0],
        nodes[:, 1],
        weight,
        num_nodes=at.passages.size + at.entities.size,
        directed=base.graph.directed,
        edge_type=kind if len(names) > 1 else None,
        edge_type_names=names,
    )
    return graph, _statement_sections(graph, nodes, weight, kind, passage)


def current_edges(delta: DeltaRows) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Return the statements of edges that exist, by slots: ends, numbers of types, weights, and passages.

    An end is the slot of a passage, or -1 minus the slot of an entity.
    """
    base, first = delta.base, delta.before.passages
    assert base.graph is not None
    own = parts.graph.statements_of(base.graph) if base.edge_statements is None else base.edge_statements
    ends = np.concatenate([_by_slot(own.ends, first), delta["edge.end"]]).astype(np.int64)
    kind = np.concatenate([own.types, delta["edge.type"]])
    weight = np.concatenate([own.weights, delta["edge.weight"]])
    passage = np.concatenate([own.passages, delta["edge.passage"]]).astype(np.int64)
    at = places(delta)
    kept: NDArray[np.bool_] = np.asarray((at.nodes(ends) >= 0).all(axis=1))
    if delta.has("delete.edge"):
        kept &= ~_deleted_edges(delta, own, kind)
    stated = np.flatnonzero(passage >= 0)
    kept[stated] &= at.passage[passage[stated]] >= 0
    return ends[kept], kind[kept], weight[kept], passage[kept]


def _by_slot(nodes: NDArray[np.int32], first: int) -> NDArray[np.int64]:
    """Return ends by slot of nodes of a generation, whose entities begin at node ``first``."""
    wide = nodes.astype(np.int64)
    return np.where(wide < first, wide, first - 1 - wide)


def _deleted_edges(delta: DeltaRows, own: EdgeStatements, kind: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which edges, of the generation and then of the batches, later batches delete."""
    assert delta.base.graph is not None
    directed, first = delta.base.graph.directed, delta.before.passages
    ends = np.concatenate([_by_slot(own.ends, first), delta["edge.end"]])
    stated = np.concatenate([np.full(len(own), -1), delta.batch("edge.type")])
    gone = delta["delete.edge"]
    edges = np.stack([_pairs(ends, directed), kind.astype(np.int64)], axis=1)
    deleted = np.stack([_pairs(gone[:, :2], directed), gone[:, 2]], axis=1)
    return deleted_later(edges, stated, deleted, delta.batch("delete.edge"))


def _statement_sections(
    graph: Graph, nodes: NDArray[Any], weight: NDArray[Any], kind: NDArray[Any], stated: NDArray[Any]
) -> Arrays:
    """Return the sections ``edge.*``, or none if the graph alone determines the statements."""
    loops = int((graph.indices == np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))).sum())
    merged = graph.num_stored if graph.directed else (graph.num_stored + loops) // 2
    if merged == kind.size and (stated == UNKNOWN).all():
        return {}
    ends, types, passages = nodes.astype(np.int32), kind.astype(np.uint8), stated.astype(np.int32)
    return parts.graph.build_statements(EdgeStatements(ends, types, weight, passages))


def _pairs(ends: NDArray[Any], directed: bool) -> NDArray[np.int64]:
    """Encode pairs of ends, each from -2**31 to 2**31 - 1, as single numbers."""
    a, b = (ends.astype(np.int64) + 2**31).astype(np.uint64).T
    if not directed:
        a, b = np.minimum(a, b), np.maximum(a, b)
    pairs: NDArray[np.int64] = (a << np.uint64(32) | b).view(np.int64)
    return pairs
