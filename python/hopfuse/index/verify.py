"""Everything that can be wrong with an index, looked for at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..types import Graph
from .build import graph_arrays
from .facts import check_facts
from .graph_check import check_symmetry
from .lexical import check_lexical
from .loading import type_names
from .sections import Section

if TYPE_CHECKING:
    from .index import Index


def verify_index(index: Index, sections: Mapping[str, Section]) -> None:
    """Read all of an index and raise FormatError at the first thing that is wrong.

    Beyond what every use verifies: offsets as a whole, the UTF-8 of every string, the symmetry of an
    undirected graph, and the counts that are derived from texts and graph.
    """
    for column in (index.passage_ids, index.titles, index.texts, index.entity_names, index.entity_aliases):
        column.check()
    lengths = np.fromiter((len(text.split()) for text in index.texts), np.int32, index.num_passages)
    _check_equal(lengths, sections["passage.length"])
    if len(set(index.passage_ids)) != index.num_passages:
        raise FormatError(f"{sections['passage.id.bytes'].label}: two passages have the same id")
    _ = index.corpus, index.entity_corpus
    check_lexical(sections)
    check_facts(sections)
    _ = index.lexical, index.facts
    if index.graph is not None:
        _verify_graph(index, index.graph, sections)


def _verify_graph(index: Index, graph: Graph, sections: Mapping[str, Section]) -> None:
    type_names(sections).check()
    if not graph.directed:
        check_symmetry(graph.to_arrays())
    derived = graph_arrays(graph, index.num_passages)
    for name in ("entity.passage_frequency", "graph.edge_count"):
        _check_equal(derived[name], sections[name])


def _check_equal(derived: NDArray[Any], stored: Section) -> None:
    if not np.array_equal(derived, stored.whole()):
        raise FormatError(f"{stored.label}: its values are not those that the index's texts and graph give")
