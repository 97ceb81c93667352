"""Merge a generation with the batches after it: the arrays equal those of an index built from the rows at that seq.

Rows are in the order of their insertion. A passage is deleted with its edges and statements, a fact with the last
passage that states it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from ...errors import FormatError, InputError
from .. import parts
from ..contents import Contents
from ..file.columns import string_arrays
from ..file.sections import Section, as_section
from ..parts import graph_log, metadata_log
from ..schema import in_file_order
from .lineage import MergeResult
from .rows import DeltaRows, Places, places


def slots_to_rows(base: Contents, log: DeltaRows, before: MergeResult | None = None) -> Places:
    """Return the maps between slots and rows after the batches."""
    first = base.num_entities if base.words is None else base.words.first
    return places(log, first, None if before is None else (before.log, before.at))


def merge(base: Contents, log: DeltaRows, before: MergeResult | None = None) -> MergeResult:
    """Return the index after the batches: its sections, and the objects that some were made from.

    ``before`` is what was merged of fewer batches of the same log; what did not change is taken from it.

    Raises
    ------
    FormatError
        The batches do not fit the generation.
    """
    try:
        return _merge(base, log, before)
    except InputError as error:
        raise error.about(kind=FormatError).at("the log does not fit its generation") from None


def _merge(base: Contents, log: DeltaRows, before: MergeResult | None) -> MergeResult:
    at = slots_to_rows(base, log, before)
    made: dict[str, Any] = {}
    earlier: Mapping[str, Any] = {} if before is None else before.made
    arrays: dict[str, NDArray[Any] | Section] = {
        **parts.passages.merge(log, at.passages),
        **parts.entities.merge(log, at),
        **parts.encoder.kept(base.sections),
    }
    made["metadata"], own = metadata_log.merge(log, at.passages)
    arrays |= own
    if base.corpus is not None:
        vectors = ("passage.vectors", log, base.corpus, at.passages)
        made["corpus"], own = parts.encoder.merge(*vectors, earlier.get("corpus"))
        arrays |= own
    if base.entity_corpus is not None:
        vectors = ("entity.vectors", log, base.entity_corpus, at.entities)
        made["entity_corpus"], own = parts.encoder.merge(*vectors, earlier.get("entity_corpus"))
        arrays |= own
    source = base.source if log.source is None else log.source
    if source is not None:
        arrays |= string_arrays("source.state", [source])
    if base.words is not None:
        made["words"], own = parts.words.merge(base.words, base.sections, at)
        arrays |= own
    if base.graph is not None:
        graph, own = graph_log.merge(base.graph, base.edge_statements, log, at, before)
        made |= graph
        arrays |= own
    if base.facts is not None:
        made["facts"], own = parts.facts.merge(base.facts, log, at, before)
        arrays |= own
    if base.lexical is not None:
        made["lexical"], own = parts.terms.merge(base.lexical, log, at, before)
        arrays |= own
    sections = in_file_order({name: as_section(name, one) for name, one in arrays.items()})
    return MergeResult(log, at, made, sections)
