"""The part of an index for some passages, equal to an index built from their rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import parts
from .contents import Contents
from .file.sections import ArraysOrSections, Section
from .log.encode import Slots
from .log.rows import Places, places_of
from .parts import metadata_build

Rows = NDArray[np.int64]


class PartArrays(NamedTuple):
    """The sections of a part, the objects that some were made from, and the rows of the whole index that it has."""

    arrays: ArraysOrSections
    made: dict[str, Any]
    passages: Rows
    entities: Rows
    facts: Rows


def part_arrays(whole: Contents, allow: NDArray[np.bool_]) -> PartArrays:
    """Return the sections of an index of some passages alone, in the order of the whole; ``allow`` is a mask (P,).

    It contains an entity if an edge joins it to one of the passages, or one of them states an edge or a fact about it.
    """
    graph, known, terms = whole.graph, whole.facts, whole.lexical
    seen, edges, facts = np.zeros(whole.num_entities, np.bool_), None, np.zeros(0, np.int64)
    if graph is not None:
        edges = parts.graph.stated_at(graph, whole.edge_statements, allow)
        seen[parts.graph.entities_at(graph, edges, allow)] = True
    if known is not None:
        facts = parts.facts.stated_by(known, allow)
        seen[known.rows[facts][:, [0, 2]]] = True
    at = _places(whole, np.flatnonzero(allow), np.flatnonzero(seen))
    made: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any] | Section] = {
        **parts.passages.subset(whole.sections, at.passages),
        **parts.entities.subset(whole.sections, whole.stated, at.entities),
        **parts.encoder.subset(whole.sections, at),
        **metadata_build.subset(whole.metadata, at.passages),
    }
    if whole.words is not None:
        made["words"], own = parts.words.moved(whole.words, at)
        arrays |= own
    if graph is not None:
        made["graph"], own = parts.graph.subset(graph, edges, at)
        arrays |= own
    if known is not None:
        made["facts"], own = parts.facts.subset(known, facts, at)
        arrays |= own
    if terms is not None and terms.counts is not None:
        made["lexical"], more = parts.terms.subset(terms, whole.sections, at.passages)
        arrays |= more
    return PartArrays(arrays, made, at.passages, at.entities, facts)


def _places(whole: Contents, passages: Rows, entities: Rows) -> Places:
    """Return the maps between rows of the whole index and of the part."""
    first = whole.num_entities if whole.words is None else whole.words.first
    names = int(np.searchsorted(entities, first))
    return places_of(passages, entities, Slots(whole.num_passages, whole.num_entities), names)
