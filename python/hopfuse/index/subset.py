"""The part of an index for some passages, equal to an index built from their rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import entries_of, indptr_of
from .._validation import counted
from ..errors import InputError
from ..types import EdgeStatements, Facts, Graph, Incidence
from ..types.edge_statements import NO_PASSAGE, UNKNOWN
from . import parts
from .contents import Contents
from .file.columns import StringColumn, string_column
from .file.sections import Section
from .parts.encoder import EncoderInfo
from .parts.metadata_build import metadata_rows
from .parts.passages import LABELS, label_part

#: Arrays, and sections whose bytes stay with the whole index until they are read.
Arrays = dict[str, NDArray[Any] | Section]
Rows = NDArray[np.int64]


class PartArrays(NamedTuple):
    """The sections of a part, the objects that some were made from, and the rows of the whole index that it has."""

    arrays: Arrays
    made: dict[str, Any]
    passages: Rows
    entities: Rows
    facts: Rows


def part_arrays(whole: Contents, allow: NDArray[np.bool_]) -> PartArrays:
    """Return the sections of an index of some passages alone, in the order of the whole; ``allow`` is a mask (P,).

    It contains an entity if an edge joins it to one of the passages, or one of them states an edge or a fact about it.
    """
    passages = np.flatnonzero(allow)
    edges = _edges(whole, allow) if whole.graph is not None and _has_statements(whole) else None
    facts = None if whole.facts is None else np.flatnonzero(_num_stated(whole.facts, allow))
    entities = _entities(whole, edges, facts, allow)
    node = np.full(whole.num_passages + whole.num_entities, -1, np.int64)
    node[np.concatenate([passages, whole.num_passages + entities])] = np.arange(passages.size + entities.size)
    made: dict[str, Any] = {}
    arrays: Arrays = {
        **_passage_arrays(whole, passages),
        **_entity_arrays(whole, entities),
        **metadata_rows(whole.metadata, passages),
    }
    for label in LABELS:
        arrays |= label_part(whole.sections, label, passages)
    if whole.encoder is not None and not whole.sections.keys().isdisjoint(("passage.vectors", "entity.vectors")):
        arrays |= parts.encoder.build(EncoderInfo.of(whole.encoder))
    if whole.words is not None:
        made["words"] = replace(whole.words, first=int(np.searchsorted(entities, whole.words.first)))
        arrays |= parts.words.build(made["words"], entities.size)
    if whole.graph is not None:
        if edges is None:
            made["graph"], kept = whole.graph.induced(np.flatnonzero(node >= 0)), None
        else:
            made["graph"], kept = _graph(edges, whole.graph, node, passages)
        Incidence.kept_of(made["graph"], passages.size)  # for the counts of the index, and for recipes
        arrays |= parts.graph.build(made["graph"], passages.size)
        if kept is not None:
            arrays |= parts.graph.build_statements(kept)
    if facts is not None:
        assert whole.facts is not None
        made["facts"] = _facts(whole.facts, facts, allow, node, passages.size, entities.size, whole.num_passages)
        arrays |= parts.facts.build(made["facts"], passages.size, entities.size)
    if whole.lexical is not None and whole.lexical.counts is not None:
        made["lexical"] = terms = whole.lexical.part(passages)
        assert terms.of_whole is not None
        strings = string_column(whole.sections, "lexical.term").take("lexical.term", terms.of_whole)
        arrays |= parts.terms.build(terms, passages.size, strings)
    return PartArrays(arrays, made, passages, entities, np.zeros(0, np.int64) if facts is None else facts)


def _edges(whole: Contents, allow: NDArray[np.bool_]) -> EdgeStatements:
    """Return the edges at some passages, those that they state, and those that no passage states.

    Raises
    ------
    InputError
        There are edges between two entities for which it is not known which passages state them.
    """
    graph, first = whole.graph, whole.num_passages
    assert graph is not None
    stated = _stated(whole)
    src, dst = stated.ends[:, 0], stated.ends[:, 1]
    unknown = int(((stated.passages == UNKNOWN) & (src >= first) & (dst >= first)).sum())
    if unknown:
        raise InputError(
            "missing",
            "allow",
            "it is not known which passages state {count} of the graph between two entities, so an isolated answer "
            "cannot leave out those of other passages; build the index with a column 'passage' of the edges, or "
            "with {@statements}, or give {@allow_scope}'results'",
            count=counted(unknown, "edge"),
        )
    seen = np.concatenate([allow, np.ones(whole.num_entities + 1, np.bool_)])  # the last is no passage, -1 or -2
    rows = np.flatnonzero(seen[src] & seen[dst] & seen[np.maximum(stated.passages, NO_PASSAGE)])
    return EdgeStatements(*(np.ascontiguousarray(part[rows]) for part in _parts(stated)))


def _stated(whole: Contents) -> EdgeStatements:
    """Return the edges as stated, or the graph's, which are kept with it."""
    graph, known = whole.graph, whole.edge_statements
    assert graph is not None
    if known is None:
        known = graph.derived.get("statements") or parts.graph.statements_of(graph)
        graph.derived["statements"] = known
    return known


def _has_statements(whole: Contents) -> bool:
    """Return whether edges are selected by who states them; else each is at a passage, and holds where its ends do."""
    graph, first = whole.graph, whole.num_passages
    assert graph is not None
    if whole.edge_statements is not None or graph.directed or not graph.keeps_order:
        return True
    key = f"joins from {first}"
    if key not in graph.derived:
        graph.derived[key] = bool((graph.indices[graph.indptr[first] :] >= first).any())
    return bool(graph.derived[key])


def _entities(whole: Contents, edges: EdgeStatements | None, facts: Rows | None, allow: NDArray[np.bool_]) -> Rows:
    seen = np.zeros(whole.num_entities, np.bool_)
    first = whole.num_passages
    if edges is None and whole.graph is not None:
        ends, _ = entries_of(whole.graph.indptr, whole.graph.indices, np.flatnonzero(allow))
        seen[ends[ends >= first] - first] = True
    if edges is not None:
        src, dst = edges.ends[:, 0], edges.ends[:, 1]
        speaks = (edges.passages >= 0) | (src < first) | (dst < first)
        for end in (src[speaks], dst[speaks]):
            seen[end[end >= first] - first] = True
    if facts is not None:
        assert whole.facts is not None
        seen[whole.facts.rows[facts][:, [0, 2]]] = True
    return np.flatnonzero(seen)


def _graph(edges: EdgeStatements, whole: Graph, node: Rows, passages: Rows) -> tuple[Graph, EdgeStatements | None]:
    """Return the graph, and its edges as stated if some of them join two entities."""
    ends = node[edges.ends]
    rows = np.flatnonzero((ends[:, 0] >= 0) & (ends[:, 1] >= 0))
    row_of = np.where(
        edges.passages >= 0, node[np.maximum(edges.passages, 0)] if node.size else NO_PASSAGE, edges.passages
    )
    kept = EdgeStatements(
        ends[rows].astype(np.int32), edges.types[rows], edges.weights[rows], row_of[rows].astype(np.int32)
    )
    graph = kept.graph(whole, int((node >= 0).sum()))
    return graph, kept if parts.graph.joins_entities(kept, passages.size) else None


def _facts(
    facts: Facts,
    kept: Rows,
    allow: NDArray[np.bool_],
    node: Rows,
    num_passages: int,
    num_entities: int,
    first: int,
) -> Facts:
    rows = facts.rows[kept].astype(np.int64)
    ends = node[first + rows[:, [0, 2]]] - num_passages
    used, order, number = np.unique(rows[:, 1], return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(order))  # relations are numbered by their first facts
    names = [facts.relations[int(used[at])] for at in np.argsort(order)]
    passages, count = entries_of(facts.indptr, facts.passages, kept)
    seen = allow[passages] if passages.size else np.zeros(0, np.bool_)
    of = np.repeat(np.arange(kept.size), count)[seen]
    return Facts(
        np.stack([ends[:, 0], rank[number].reshape(-1), ends[:, 1]], axis=1).astype(np.int32).reshape(-1, 3),
        names,
        indptr_of(of, kept.size),
        node[passages[seen]].astype(np.int32),
        num_entities=num_entities,
        num_passages=num_passages,
    )


def _num_stated(facts: Facts, allow: NDArray[np.bool_]) -> Rows:
    of = np.repeat(np.arange(len(facts)), np.diff(facts.indptr))
    return np.bincount(of[allow[facts.passages]], minlength=len(facts)) if len(facts) else np.zeros(0, np.int64)


def _passage_arrays(whole: Contents, rows: Rows) -> Arrays:
    ids = whole.passage_ids
    arrays: Arrays = {
        **whole.titles.take("passage.title", rows),
        **whole.texts.take("passage.text", rows),
        "passage.length": whole.passage_lengths[rows],
    }
    if isinstance(ids, StringColumn) and rows.size:
        arrays |= ids.take("passage.id", rows)
    else:
        numbers = np.array(ids[:], np.int64) if not isinstance(ids, StringColumn) else np.zeros(0, np.int64)
        arrays["passage.id.number"] = numbers[rows]
    if whole.dim is not None:
        arrays["passage.vectors"] = whole.sections["passage.vectors"].take(rows)
    return arrays


def _entity_arrays(whole: Contents, rows: Rows) -> Arrays:
    arrays: Arrays = {
        **whole.entity_names.take("entity.name", rows),
        **whole.entity_aliases.take("entity.alias", rows),
        **parts.entities.build_stated(whole.stated[rows]),
        **parts.entities.build_rule(whole.name_rule),
    }
    if "entity.vectors" in whole.sections:
        arrays["entity.vectors"] = whole.sections["entity.vectors"].take(rows)
    return arrays


def _parts(edges: EdgeStatements) -> tuple[NDArray[Any], ...]:
    return edges.ends, edges.types, edges.weights, edges.passages
