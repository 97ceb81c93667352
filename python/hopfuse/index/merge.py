"""Merge a generation with the batches after it: the arrays equal those of an index built from the rows at that seq.

Rows are in the order of their insertion. A passage is deleted with its edges and statements, a fact with the last
passage that states it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, InputError
from ..types import Corpus, Graph
from ..types.edge_statements import UNKNOWN
from .batch import Batch, Slots
from .contents import Contents
from .merge_facts import merge_facts
from .merge_metadata import merge_metadata
from .merge_terms import merge_terms
from .parts import fact_arrays, graph_arrays, lexical_arrays, word_arrays
from .rows import take_rows, take_strings

Arrays = dict[str, NDArray[Any]]


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


def slots_of(base: Contents) -> Slots:
    """Return the slots of a generation, which are its rows."""
    return Slots(base.num_passages, base.num_entities)


def places(base: Contents, batches: Sequence[Batch]) -> Places:
    """Return the maps between slots and rows after the batches."""
    start = slots_of(base)
    after = batches[-1].after if batches else start
    alive = [np.ones(after.passages, bool), np.ones(after.entities, bool)]
    for batch in batches:
        for lives, name in zip(alive, ("delete.passage", "delete.entity"), strict=True):
            lives[batch[name]] = False
    first = start.entities if base.words is None else base.words.first
    words = np.concatenate(
        [np.arange(start.entities) >= first, *(batch["entity.word"].astype(bool) for batch in batches)]
    )
    passages = np.flatnonzero(alive[0])
    names, others = np.flatnonzero(alive[1] & ~words), np.flatnonzero(alive[1] & words)
    entities = np.concatenate([names, others])
    return Places(
        _inverse(passages, after.passages), passages, _inverse(entities, after.entities), entities, names.size
    )


def merge(base: Contents, batches: Sequence[Batch]) -> tuple[Arrays, dict[str, Any]]:
    """Return the sections of the index after the batches, and the objects that some were made from.

    Raises
    ------
    FormatError
        The batches do not fit the base.
    """
    try:
        return _merge(base, batches)
    except InputError as error:
        raise FormatError(f"the log's changes do not fit its generation: {error}") from None


def _merge(base: Contents, batches: Sequence[Batch]) -> tuple[Arrays, dict[str, Any]]:
    for batch in batches:
        _check_parts(base, batch)
    at = places(base, batches)
    arrays = _passage_arrays(base, batches, at) | _entity_arrays(base, batches, at)
    arrays |= merge_metadata(base, batches, at.passages)
    made: dict[str, Any] = {}
    for key, name, order in (("corpus", "passage", at.passages), ("entity_corpus", "entity", at.entities)):
        section = f"{name}.vectors"
        kept = getattr(base, key)
        if kept is not None:
            added = [batch[section] for batch in batches if section in batch.arrays]
            arrays[section] = base.grown_rows(section).take(kept.vectors, added, order)
            made[key] = Corpus.from_stored(arrays[section], metric=kept.metric, storage=kept.storage)
    for name in ("encoder.name.offsets", "encoder.name.bytes", "encoder.setting"):
        if name in base.sections:
            arrays[name] = base.sections[name].whole()
    sources = [batch for batch in batches if "source.state.offsets" in batch.arrays]
    for name in ("source.state.offsets", "source.state.bytes"):
        if sources:
            arrays[name] = sources[-1][name]
        elif name in base.sections:
            arrays[name] = base.sections[name].whole()
    if base.words is not None:
        made["words"] = replace(base.words, first=at.num_names)
        arrays |= word_arrays(made["words"], at.entities.size)
    if base.graph is not None:
        made["graph"], statements = _graph(base, batches, at)
        arrays |= graph_arrays(made["graph"], at.passages.size) | statements
    if base.facts is not None:
        made["facts"], ranks = merge_facts(base, batches, at.passage, at.entity)
        arrays |= fact_arrays(made["facts"], at.passages.size, at.entities.size) | ranks
    if base.lexical is not None:
        made["lexical"] = merge_terms(base.lexical, batches, at.passage, at.passages.size)
        arrays |= lexical_arrays(made["lexical"], at.passages.size)
    return arrays, made


def _check_parts(base: Contents, batch: Batch) -> None:
    """Refuse a batch with parts that its generation lacks, or with other vectors."""
    new = batch.after.passages - batch.before.passages, batch.after.entities - batch.before.entities
    for corpus, name, rows in ((base.corpus, "passage", new[0]), (base.entity_corpus, "entity", new[1])):
        vectors = batch.arrays.get(f"{name}.vectors")
        found = None if vectors is None else (vectors.dtype, vectors.shape)
        right = None if corpus is None or not rows else (corpus.vectors.dtype, (rows, corpus.dim))
        if found != right:
            raise FormatError(f"a batch has {name}.vectors {found}; they must be {right}")
    for part, name in ((base.graph, "edge.end"), (base.facts, "fact.row"), (base.lexical, "lexical.indptr")):
        if part is None and name in batch.arrays:
            raise FormatError(f"a batch has {name}, but its generation has no such part")


def _inverse(order: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    place = np.full(size, -1)
    place[order] = np.arange(order.size)
    return place


def _passage_arrays(base: Contents, batches: Sequence[Batch], at: Places) -> Arrays:
    arrays = _ids(base, batches, at)
    for name in ("passage.title", "passage.text"):
        arrays |= _taken(base, batches, name, at.passages)
    lengths = [batch["passage.length"] for batch in batches]
    return arrays | {"passage.length": take_rows(base.passage_lengths, lengths, at.passages)}


def _ids(base: Contents, batches: Sequence[Batch], at: Places) -> Arrays:
    """Return ids of the index's type; an index without passages takes the type of the first ones added."""
    kinds = {name for batch in batches for name in ("passage.id.number", "passage.id.offsets") if name in batch.arrays}
    if base.num_passages:
        kinds.add("passage.id.number" if "passage.id.number" in base.sections else "passage.id.offsets")
    if len(kinds) > 1:
        raise FormatError("the log has passages with string ids and passages with integer ids")
    if "passage.id.offsets" in kinds and at.passages.size:
        return _taken(base, batches, "passage.id", at.passages)
    number = (
        base.sections["passage.id.number"].whole() if "passage.id.number" in base.sections else np.zeros(0, np.int64)
    )
    return {"passage.id.number": take_rows(number, [batch["passage.id.number"] for batch in batches], at.passages)}


def _taken(base: Contents, batches: Sequence[Batch], name: str, order: NDArray[np.int64]) -> Arrays:
    parts = f"{name}.offsets", f"{name}.bytes"
    none: Any = (np.zeros(1, np.int64), np.zeros(0, np.uint8))
    own: Any = tuple(base.sections[part].whole() for part in parts) if parts[0] in base.sections else none
    added: Any = [tuple(batch[part] for part in parts) for batch in batches if parts[0] in batch.arrays]
    return take_strings(name, own, added, order, base.grown_rows(parts[1]))


def _entity_arrays(base: Contents, batches: Sequence[Batch], at: Places) -> Arrays:
    rows = base.sections["entity.alias.rows"].whole()
    entity = np.concatenate(
        [np.repeat(np.arange(base.num_entities), np.diff(rows)), *(batch["alias.entity"] for batch in batches)]
    )
    kept = np.flatnonzero((at.entity[entity] >= 0) & ~_deleted_aliases(base, batches, entity))
    order = kept[np.argsort(at.entity[entity[kept]], kind="stable")]
    own: Any = tuple(base.sections[f"entity.alias.{part}"].whole() for part in ("offsets", "bytes"))
    added: Any = [
        tuple(batch[f"alias.name.{part}"] for part in ("offsets", "bytes"))
        for batch in batches
        if "alias.entity" in batch.arrays
    ]
    counts = np.bincount(at.entity[entity[kept]], minlength=at.entities.size)
    return {
        **_taken(base, batches, "entity.name", at.entities),
        "entity.alias.rows": np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        **take_strings("entity.alias", own, added, order),
    }


def _deleted_aliases(base: Contents, batches: Sequence[Batch], entity: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which aliases later batches delete."""
    deleted = np.zeros(entity.size, bool)
    if not any("delete.alias.entity" in batch.arrays for batch in batches):
        return deleted
    names = [alias for row in base.entity_aliases for alias in row]
    for batch in batches:
        gone = set(zip(batch["delete.alias.entity"].tolist(), batch.strings("delete.alias.name"), strict=True))
        pairs = zip(entity.tolist(), names, strict=False)  # later aliases are not read yet
        deleted[: len(names)] |= np.fromiter((pair in gone for pair in pairs), bool, len(names))
        names += batch.strings("alias.name")
    return deleted


# ---- Edges ----


class _Edges(NamedTuple):
    """Edges as stated; ends are nodes for a generation, and slots for a batch."""

    end: NDArray[Any]
    weight: NDArray[np.float64]
    type: NDArray[Any]
    passage: NDArray[Any]


def _graph(base: Contents, batches: Sequence[Batch], at: Places) -> tuple[Graph, Arrays]:
    """Build the graph of all remaining edges, in the order of their statements."""
    assert base.graph is not None
    names, start, directed = list(base.graph.edge_type_names), slots_of(base), base.graph.directed
    parts = [_base_edges(base)]
    gone = [np.zeros(len(parts[0].type), bool)]
    for batch in batches:
        own = batch.strings("edge.type_name")
        names += [name for name in dict.fromkeys(own) if name not in names]
        number = np.array([names.index(name) for name in own], np.int64)
        deleted = batch["delete.edge"]
        if deleted.size:
            for at_part, (part, dead) in enumerate(zip(parts, gone, strict=True)):
                ends = deleted[:, :2] if at_part else _base_nodes(deleted[:, :2], start)
                dead |= _is_among(part, ends, number[deleted[:, 2]], directed=directed)
        if "edge.end" in batch.arrays:
            parts.append(
                _Edges(batch["edge.end"], batch["edge.weight"], number[batch["edge.type"]], batch["edge.passage"])
            )
            gone.append(np.zeros(parts[-1].type.size, bool))
    table = at.nodes_of(start)
    nodes = np.concatenate([table[parts[0].end], *(at.nodes(part.end) for part in parts[1:])])
    weight = np.concatenate([part.weight for part in parts])
    kind, passage = (np.concatenate([part[column] for part in parts]) for column in (2, 3))
    is_stated = passage >= 0
    kept = (nodes[:, 0] >= 0) & (nodes[:, 1] >= 0) & ~np.concatenate(gone)
    if is_stated.any():
        passage = passage.astype(np.int64)
        passage[is_stated] = at.passage[passage[is_stated]]
        kept &= ~is_stated | (passage >= 0)
    if not kept.all():
        nodes, weight, kind, passage = nodes[kept], weight[kept], kind[kept], passage[kept]
    graph = Graph.from_edges(
        nodes[:, 0],
        nodes[:, 1],
        weight,
        num_nodes=at.passages.size + at.entities.size,
        directed=directed,
        edge_type=kind if len(names) > 1 else None,
        edge_type_names=names,
    )
    return graph, _statement_sections(graph, nodes, weight, kind, passage)


def _statement_sections(
    graph: Graph, nodes: NDArray[Any], weight: NDArray[Any], kind: NDArray[Any], stated: NDArray[Any]
) -> Arrays:
    """Return the sections ``edge.*``, or none if the graph alone determines the statements."""
    loops = int((graph.indices == np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))).sum())
    merged = graph.num_stored if graph.directed else (graph.num_stored + loops) // 2
    if merged == kind.size and (stated == UNKNOWN).all():
        return {}
    return {
        "edge.end": nodes.astype(np.int32),
        "edge.weight": weight.astype(np.float64),
        "edge.type": kind.astype(np.uint8),
        "edge.passage": stated.astype(np.int32),
    }


def _base_edges(base: Contents) -> _Edges:
    """Return a generation's edges as stated or, if that is not stored, as in the graph."""
    assert base.graph is not None
    if "edge.end" not in base.sections:
        src, dst, single, types = base.graph.edges()
        unknown = np.full(types.size, UNKNOWN, np.int32)
        return _Edges(np.stack([src, dst], axis=1), single.astype(np.float64), types, unknown)
    edges = _Edges(*(base.sections[f"edge.{part}"].whole() for part in ("end", "weight", "type", "passage")))
    for array, least, most in (
        (edges.end, 0, base.graph.num_nodes),
        (edges.type, 0, base.graph.num_edge_types),
        (edges.passage, UNKNOWN, base.num_passages),
    ):
        if array.size and (array.min() < least or array.max() >= most):
            raise FormatError(f"{base.sections['edge.end'].label}: a number is outside {least} .. {most - 1}")
    return edges


def _base_nodes(ends: NDArray[np.int64], base: Slots) -> NDArray[np.int64]:
    """Return the generation's nodes for ends of edges, negative for ends that were added later."""
    passage = np.where(ends < base.passages, ends, -1)
    entity = np.where(-1 - ends < base.entities, base.passages - 1 - ends, -1)
    return np.where(ends >= 0, passage, entity)


def _is_among(edges: _Edges, ends: NDArray[np.int64], kinds: NDArray[np.int64], *, directed: bool) -> NDArray[np.bool_]:
    """Return which edges have the ends and the type of one of the given edges."""
    own, wanted = _pairs(edges.end, directed), _pairs(ends, directed)
    found = np.zeros(own.size, np.bool_)
    for kind in np.unique(kinds):
        found |= (edges.type == kind) & np.isin(own, wanted[kinds == kind])
    return found


def _pairs(ends: NDArray[Any], directed: bool) -> NDArray[np.uint64]:
    """Encode pairs of ends, each from -2**31 to 2**31 - 1, as single numbers."""
    a, b = (ends.astype(np.int64) + 2**31).astype(np.uint64).T
    if not directed:
        a, b = np.minimum(a, b), np.maximum(a, b)
    pairs: NDArray[np.uint64] = a << np.uint64(32) | b
    return pairs
