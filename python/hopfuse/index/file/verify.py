"""Full verification of an index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...types import Graph
from .. import parts
from ..parts.metadata import check_metadata
from ..parts.passages import DOCUMENT, LANGUAGE, check_labels
from ..schema import RULES
from .columns import RaggedStrings, id_column, string_column
from .format import Settings
from .sections import Section, damage_of


def verify_sections(sections: Mapping[str, Section], settings: Settings) -> dict[str, Any]:
    """Read and verify all of an index, and return its parts.

    In addition to the checks at first use, this verifies whole offset arrays, the UTF-8 of every string, the symmetry
    of an undirected graph, and the counts that are derived from texts and graph.

    Raises
    ------
    FormatError
        For the first error found.
    """
    for name in RULES:
        if name.endswith(".offsets") and name in sections:
            string_column(sections, name.removesuffix(".offsets")).check()
    RaggedStrings(sections["entity.alias.rows"], string_column(sections, "entity.alias")).check()
    _verify_passages(sections)
    num_passages, num_entities = sections["passage.length"].shape[0], sections["entity.alias.rows"].shape[0] - 1
    graph = parts.graph.load(sections, settings)
    if graph is not None:
        if not graph.directed:
            parts.graph.check_symmetry(graph.to_arrays())
        _verify_statements(sections, graph, num_passages)
        derived = parts.graph.build(graph, num_passages)
        for name in ("entity.passage_frequency", "graph.edge_count"):
            _check_equal(derived[name], sections[name])
    return {
        "graph": graph,
        "corpus": parts.encoder.load_corpus(sections, settings, "passage.vectors"),
        "entity_corpus": parts.encoder.load_corpus(sections, settings, "entity.vectors"),
        "encoder": parts.encoder.load(sections),
        "words": parts.words.load(sections, num_entities),
        "lexical": parts.terms.load(sections, num_passages),
        "facts": parts.facts.load(sections, num_passages, num_entities),
        "metadata": check_metadata(sections, num_passages),
        "documents": check_labels(sections, DOCUMENT, num_passages),
        "languages": check_labels(sections, LANGUAGE, num_passages),
        "stated": parts.entities.load_stated(sections, num_entities),
        "name_rule": parts.entities.load_rule(sections),
    }


def _verify_statements(sections: Mapping[str, Section], graph: Graph, num_passages: int) -> None:
    statements = parts.graph.load_statements(sections, graph, num_passages)
    if statements is None:
        return
    with damage_of(sections["edge.end"]):
        parts.graph.check_statements(statements, graph, num_passages)


def _verify_passages(sections: Mapping[str, Section]) -> None:
    ids, texts = id_column(sections), string_column(sections, "passage.text")
    lengths = np.fromiter((len(text.split()) for text in texts), np.int32, len(texts))
    _check_equal(lengths, sections["passage.length"])
    if len(set(ids)) != len(ids):
        name = "passage.id.number" if "passage.id.number" in sections else "passage.id.bytes"
        raise FormatError("duplicate", None, "two passages have the same id").at(sections[name].label)


def _check_equal(derived: NDArray[Any], stored: Section) -> None:
    if not np.array_equal(derived, stored.whole()):
        raise FormatError("conflict", None, "the values do not agree with the index's texts and graph").at(stored.label)
