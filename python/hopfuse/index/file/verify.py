"""Full verification of an index."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from .. import parts
from ..contents import Contents, labels_of
from ..parts.metadata import check_metadata
from ..parts.passages import LABELS, check_labels
from ..schema import SECTIONS
from .columns import string_column
from .sections import Section, Sections, damage_of

#: Parts that are verified as a whole when they are loaded.
_LOADED = ("corpus", "entity_corpus", "encoder", "words", "lexical", "facts", "edge_statements", "stated", "name_rule")


def verify_index(contents: Contents) -> None:
    """Read and verify all of an index, whose parts stay loaded.

    In addition to the checks at first use, this verifies whole offset arrays, the UTF-8 of every string, the symmetry
    of an undirected graph, and the counts that are derived from texts and graph.

    Raises
    ------
    FormatError
        For the first error found.
    """
    sections = contents.sections
    for name in SECTIONS:
        if name.endswith(".offsets") and name in sections:
            string_column(sections, name.removesuffix(".offsets")).check()
    contents.entity_aliases.check()
    _verify_passages(contents, sections)
    _verify_graph(contents, sections)
    for name in _LOADED:
        getattr(contents, name)
    check_metadata(sections, contents.metadata)
    for label in LABELS:
        check_labels(sections, label, labels_of(contents, label))


def _verify_graph(contents: Contents, sections: Sections) -> None:
    graph, statements = contents.graph, contents.edge_statements
    if graph is None:
        return
    if not graph.directed:
        parts.graph.check_symmetry(graph.to_arrays())
    if statements is not None:
        with damage_of(sections["edge.end"]):
            parts.graph.check_statements(statements, graph, contents.num_passages)
    derived = parts.graph.build(graph, contents.num_passages)
    for name in ("entity.passage_frequency", "graph.edge_count"):
        _check_equal(derived[name], sections[name])


def _verify_passages(contents: Contents, sections: Sections) -> None:
    ids, texts = contents.passage_ids, contents.texts
    lengths = np.fromiter((len(text.split()) for text in texts), np.int32, len(texts))
    _check_equal(lengths, sections["passage.length"])
    if len(set(ids)) != len(ids):
        name = "passage.id.number" if "passage.id.number" in sections else "passage.id.bytes"
        raise FormatError("duplicate", None, "two passages have the same id").at(sections[name].label)


def _check_equal(derived: NDArray[Any], stored: Section) -> None:
    if not np.array_equal(derived, stored.whole()):
        raise FormatError("conflict", None, "the values do not agree with the index's texts and graph").at(stored.label)
