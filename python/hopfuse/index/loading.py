"""From the sections of a file to the types that operations take; contents are verified here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..errors import FormatError, InputError
from ..types import Corpus, Graph
from ..types.corpus import Metric, Storage
from .format import Settings
from .graph_check import check_graph
from .schema import GRAPH_ARRAYS
from .sections import Section
from .strings import StringColumn

Sections = Mapping[str, Section]


def load_corpus(sections: Sections, settings: Settings, name: str) -> Corpus | None:
    """A corpus over a section of vectors; None where there is no such section."""
    if name not in sections:
        return None
    metric, storage = cast(Metric, settings.metric), cast(Storage, settings.storage)
    try:
        return Corpus.from_stored(sections[name].whole(), metric=metric, storage=storage)
    except InputError as error:
        raise FormatError(f"{sections[name].label}: {error}") from None


def load_graph(sections: Sections, settings: Settings) -> Graph | None:
    """The graph, after a check of everything that kernels rely on; None where there is none."""
    if "graph.indptr" not in sections:
        return None
    label = sections["graph.indptr"].label
    names = list(type_names(sections))
    if len(set(names)) != len(names):
        raise FormatError(f"{label}: the edge type names {names} repeat a name")
    arrays = {name.removeprefix("graph."): sections[name].whole() for name in GRAPH_ARRAYS if name in sections}
    try:
        check_graph(arrays)
    except FormatError as error:
        raise FormatError(f"{label}: {error}") from None
    return Graph.from_arrays(arrays, directed=settings.directed, edge_type_names=names)


def graph_info(sections: Sections, settings: Settings) -> dict[str, Any] | None:
    """What ``Index.info`` says about the graph."""
    if "graph.indptr" not in sections:
        return None
    counts = sections["graph.edge_count"].whole().tolist()
    return {
        "nodes": sections["graph.node_of"].shape[0],
        "stored": sections["graph.indices"].shape[0],
        "directed": settings.directed,
        "weighted": "graph.weight" in sections,
        "edge_types": dict(zip(type_names(sections), counts, strict=True)),
    }


def type_names(sections: Sections) -> StringColumn:
    """Names of the edge types of an index with a graph."""
    return StringColumn(sections["graph.type_name.offsets"], sections["graph.type_name.bytes"])
