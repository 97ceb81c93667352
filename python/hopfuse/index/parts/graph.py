"""The graph, and its edges as passages state them.

The checks of arrays from a file, on which kernels rely, read them in chunks: the largest temporary array has the size
of ``degree``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import check_range, entries_of
from ..._validation import counted
from ...errors import FormatError, InputError
from ...types import EdgeStatements, Graph, Incidence
from ...types.edge_statements import NO_PASSAGE, UNKNOWN
from ..file.columns import string_arrays, string_column
from ..file.format import Settings
from ..file.sections import Arrays, Sections, damage_of
from ..log.records import Slots
from ..log.rows import Places
from ..schema import GRAPH_ARRAYS

_CHUNK = 1 << 20
_TINY = np.finfo(np.float32).tiny


def check_graph(arrays: Arrays) -> None:
    """Raise FormatError unless the arrays satisfy all invariants of :class:`hopfuse.Graph` except symmetry.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        As from ``Graph.to_arrays``, with consistent dtypes and shapes.
    """
    nodes = arrays["node_of"].size
    _check_indptr(arrays["indptr"], arrays["indices"].size)
    _check_permutation(arrays["node_of"], arrays["internal_of"])
    total = np.zeros(arrays["degree"].shape, np.float64)
    for first, last in _chunks(arrays["indices"].size):
        _check_entries(arrays, nodes, first, last)
        _add_degrees(total, arrays, first, last)
    if not np.array_equal(total, arrays["degree"]):
        row, kind = (int(x) for x in np.argwhere(total != arrays["degree"])[0])
        raise FormatError(
            "conflict",
            None,
            "{array}[{row}, {kind}] is {given}; the stored edges sum to {allowed}",
            array="degree",
            row=row,
            kind=kind,
            given=float(arrays["degree"][row, kind]),
            allowed=float(total[row, kind]),
        )


def check_symmetry(arrays: Arrays) -> None:
    """Raise FormatError unless every entry (v, u) has an equal entry (u, v); call :func:`check_graph` first."""
    indices = arrays["indices"]
    row_of = np.repeat(np.arange(arrays["node_of"].size, dtype=np.int32), np.diff(arrays["indptr"]))
    transposed = np.argsort(indices, kind="stable")  # by (column, row, type)
    equal = np.array_equal(row_of[transposed], indices) and np.array_equal(indices[transposed], row_of)
    for name in ("weight", "edge_type"):
        equal = equal and (name not in arrays or np.array_equal(arrays[name][transposed], arrays[name]))
    if not equal:
        raise FormatError(
            "conflict", None, "the graph is marked as undirected, but its stored entries are not symmetric"
        )


def _chunks(size: int) -> Iterator[tuple[int, int]]:
    for first in range(0, size, _CHUNK):
        yield first, min(first + _CHUNK, size)


def _check_indptr(indptr: NDArray[np.int64], nnz: int) -> None:
    if indptr[0] != 0 or indptr[-1] != nnz or (indptr[1:] < indptr[:-1]).any():
        raise FormatError(
            "order",
            None,
            "{array} does not ascend from 0 to {entries}, the number of stored entries",
            array="indptr",
            entries=nnz,
        )


def _check_permutation(node_of: NDArray[np.int32], internal_of: NDArray[np.int32]) -> None:
    nodes = node_of.size
    for first, last in _chunks(nodes):
        part = node_of[first:last]
        if part.min() < 0 or part.max() >= nodes:
            raise _outside("node_of", nodes)
        if (internal_of[part] != np.arange(first, last)).any():
            raise FormatError("order", None, "{array} and node_of are not inverse permutations", array="internal_of")


def _outside(array: str, size: int) -> FormatError:
    return FormatError("range", None, "{array} has a number outside 0 .. {last}", array=array, last=size - 1)


def _check_entries(arrays: Arrays, nodes: int, first: int, last: int) -> None:
    indices = arrays["indices"][first:last]
    if indices.min() < 0 or indices.max() >= nodes:
        raise _outside("indices", nodes)
    if "edge_type" in arrays and arrays["edge_type"][first:last].max() >= arrays["degree"].shape[1]:
        raise _outside("edge_type", arrays["degree"].shape[1])
    if "weight" in arrays:
        weight = arrays["weight"][first:last]
        if not ((weight >= _TINY) & np.isfinite(weight)).all():
            raise FormatError(
                "finite", None, "{array} has an entry that is not a positive, normal float32 number", array="weight"
            )
    _check_order(arrays, max(first - 1, 0), last)


def _check_order(arrays: Arrays, first: int, last: int) -> None:
    """Check that (source, type) ascends strictly within each row."""
    key = arrays["indices"][first:last].astype(np.int64) * 256
    if "edge_type" in arrays:
        key += arrays["edge_type"][first:last]
    ascends = key[1:] > key[:-1]
    indptr = arrays["indptr"]
    starts = indptr[np.searchsorted(indptr, first, "right") : np.searchsorted(indptr, last, "left")]
    ascends[starts - first - 1] = True
    if not ascends.all():
        at = first + 1 + int(np.flatnonzero(~ascends)[0])
        raise FormatError(
            "order",
            None,
            "{array} do not ascend within a row (by node, then type) at the stored entry {entry}",
            array="indices",
            entry=at,
        )


def _add_degrees(total: NDArray[np.float64], arrays: Arrays, first: int, last: int) -> None:
    """Add the entries in stored order, which defines the sums bit for bit."""
    key = arrays["indices"][first:last].astype(np.intp) * total.shape[1]
    if "edge_type" in arrays:
        key += arrays["edge_type"][first:last]
    weight = arrays["weight"][first:last].astype(np.float64) if "weight" in arrays else np.ones(last - first)
    np.add.at(total.reshape(-1), key, weight)


# ---- Sections ----


def build(graph: Graph, num_passages: int) -> Arrays:
    """Return the sections ``graph.*``, and the counts derived from the graph."""
    mentioned = Incidence.from_graph(graph, num_passages).column_counts()
    return {
        "entity.passage_frequency": mentioned[num_passages:].astype(np.int32),
        **string_arrays("graph.type_name", graph.edge_type_names),
        "graph.edge_count": graph.counts_of_types(),
        **{f"graph.{name}": array for name, array in graph.to_arrays().items()},
    }


def load(sections: Sections, settings: Settings) -> Graph | None:
    """Return the graph, verified, or None if there is none."""
    if "graph.indptr" not in sections:
        return None
    label = sections["graph.indptr"].label
    names = list(string_column(sections, "graph.type_name"))
    if len(set(names)) != len(names):
        raise FormatError("duplicate", None, "the edge type names {given} repeat a name", given=names).at(label)
    arrays = {name.removeprefix("graph."): sections[name].whole() for name in GRAPH_ARRAYS if name in sections}
    try:
        check_graph(arrays)
    except FormatError as error:
        raise error.at(label) from None
    return Graph.from_arrays(arrays, directed=settings.directed, edge_type_names=names)


def info(sections: Sections, settings: Settings) -> dict[str, Any] | None:
    """Return the graph's part of ``Index.info``."""
    if "graph.indptr" not in sections:
        return None
    counts = sections["graph.edge_count"].whole().tolist()
    return {
        "nodes": sections["graph.node_of"].shape[0],
        "stored": sections["graph.indices"].shape[0],
        "directed": settings.directed,
        "weighted": "graph.weight" in sections,
        "edge_types": dict(zip(string_column(sections, "graph.type_name"), counts, strict=True)),
    }


def build_statements(statements: EdgeStatements) -> Arrays:
    """Return the sections ``edge.*``."""
    return {
        "edge.end": statements.ends,
        "edge.weight": statements.weights,
        "edge.type": statements.types,
        "edge.passage": statements.passages,
    }


def load_statements(sections: Sections, graph: Graph | None, num_passages: int) -> EdgeStatements | None:
    """Return the edges as stated, verified, or None if only the graph is stored."""
    if "edge.end" not in sections or graph is None:
        return None
    end, kind, weight, passage = (sections[f"edge.{name}"].whole() for name in ("end", "type", "weight", "passage"))
    with damage_of(sections["edge.end"]):
        stated = EdgeStatements(end, kind, weight, passage)
        check_range(end, "ends", graph.num_nodes)
        check_range(kind, "types", graph.num_edge_types)
        check_range(passage[passage >= 0], "passages", num_passages)
    return stated


def statements_of(graph: Graph) -> EdgeStatements:
    """Return a graph's merged edges, each stated once by an unknown passage."""
    edges = EdgeStatements.of_no_passage(graph)
    return replace(edges, passages=np.full(len(edges), UNKNOWN, np.int32))


def statements_kept_of(graph: Graph) -> EdgeStatements:
    """Return the statements of :func:`statements_of`, which the graph keeps."""
    if "statements" not in graph.derived:
        graph.derived["statements"] = statements_of(graph)
    found: EdgeStatements = graph.derived["statements"]
    return found


# ---- Statements ----


def joins_entities(statements: EdgeStatements, num_passages: int) -> bool:
    """Return whether an edge joins two entities; other edges belong to the passage at their end."""
    return bool(((statements.ends[:, 0] >= num_passages) & (statements.ends[:, 1] >= num_passages)).any())


def check_statements(statements: EdgeStatements, graph: Graph, num_passages: int) -> None:
    """Refuse statements that do not sum to the graph's edges."""
    if statements.ends.size and statements.ends.max() >= graph.num_nodes:
        raise InputError(
            "range",
            "statements",
            "{field} has the node {given}; nodes are 0 .. {last}",
            given=int(statements.ends.max()),
            last=graph.num_nodes - 1,
        )
    if len(statements) and statements.passages.max() >= num_passages:
        raise InputError(
            "range",
            "statements",
            "{field} has the passage {given}; passages are 0 .. {last}",
            given=int(statements.passages.max()),
            last=num_passages - 1,
        )
    ours, theirs = statements.graph(graph).to_arrays(), graph.to_arrays()
    if set(ours) != set(theirs) or any(not np.array_equal(ours[name], theirs[name]) for name in ours):
        raise InputError(
            "conflict",
            "statements",
            "{field} does not sum to the graph's edges; give one row for each statement of an edge",
        )


def check_owners(statements: EdgeStatements, num_passages: int) -> None:
    """Refuse edges at passages that another passage states."""
    named = np.flatnonzero((statements.ends < num_passages).any(axis=1) & (statements.passages >= 0))
    strangers = named[(statements.ends[named] != statements.passages[named, None]).all(axis=1)]
    if strangers.size:
        row = int(strangers[0])
        src, dst = statements.ends[row].tolist()
        raise InputError(
            "conflict",
            "passage",
            "the passage {given} states the edge from {src} to {dst}, which is at another passage; an edge at a "
            "passage is stated by that passage",
            given=int(statements.passages[row]),
            src=src,
            dst=dst,
        )


# ---- Some passages ----


def stated_at(
    graph: Graph, known: Callable[[], EdgeStatements | None], allow: NDArray[np.bool_]
) -> EdgeStatements | None:
    """Return the edges at some passages, those that they state, and those that no passage states.

    None if each edge is at a passage, and so holds where its ends do. ``known`` returns the graph's edges as stated; it
    is only called if they are needed.

    Raises
    ------
    InputError
        There are edges between two entities for which it is not known which passages state them.
    """
    first = allow.size
    if not _must_be_stated(graph, first):
        return None
    stated = known()
    if stated is None:
        stated = statements_kept_of(graph)
    src, dst = stated.ends[:, 0], stated.ends[:, 1]
    unknown = int(((stated.passages == UNKNOWN) & (src >= first) & (dst >= first)).sum())
    if unknown:
        raise InputError(
            "missing",
            "allow",
            "it is not known which passages state {count} of the graph between two entities, so an isolated answer "
            "is not possible; build the index with a column 'passage' of the edges, or with {@statements}, or give "
            "{@allow_scope}'results'",
            count=counted(unknown, "edge"),
        )
    seen = np.concatenate([allow, np.ones(graph.num_nodes - first + 1, np.bool_)])  # the last is no passage, -1 or -2
    rows = np.flatnonzero(seen[src] & seen[dst] & seen[np.maximum(stated.passages, NO_PASSAGE)])
    parts: tuple[NDArray[Any], ...] = (stated.ends, stated.types, stated.weights, stated.passages)
    return EdgeStatements(*(np.ascontiguousarray(part[rows]) for part in parts))


def _must_be_stated(graph: Graph, first: int) -> bool:
    """Return whether edges are selected by who states them; else each is at a passage, and holds where its ends do."""
    if graph.directed or not graph.keeps_order:
        return True
    key = f"joins from {first}"
    if key not in graph.derived:
        graph.derived[key] = bool((graph.indices[graph.indptr[first] :] >= first).any())
    return bool(graph.derived[key])


def entities_at(graph: Graph, edges: EdgeStatements | None, allow: NDArray[np.bool_]) -> NDArray[np.integer[Any]]:
    """Return the entities that edges join to some passages, or about which these state an edge; some are repeated."""
    first = allow.size
    if edges is None:
        ends, _ = entries_of(graph.indptr, graph.indices, np.flatnonzero(allow))
    else:
        speaks = (edges.passages >= 0) | (edges.ends < first).any(axis=1)
        ends = edges.ends[speaks].reshape(-1)
    return ends[ends >= first] - first


def subset(graph: Graph, edges: EdgeStatements | None, at: Places) -> tuple[Graph, Arrays]:
    """Return the graph of some passages and entities, and its sections; ``edges``: see :func:`stated_at`."""
    num_passages, kept = at.passages.size, None
    node = at.nodes_of(Slots(at.passage.size, at.entity.size))
    if edges is None:
        found = graph.induced(np.flatnonzero(node >= 0))
    else:
        ends = node[edges.ends]
        rows = np.flatnonzero((ends >= 0).all(axis=1))
        row_of = edges.passages[rows].astype(np.int64)
        row_of[row_of >= 0] = at.passage[row_of[row_of >= 0]]
        kept = EdgeStatements(
            ends[rows].astype(np.int32), edges.types[rows], edges.weights[rows], row_of.astype(np.int32)
        )
        found = kept.graph(graph, num_passages + at.entities.size)
    Incidence.kept_of(found, num_passages)  # for the counts of the index, and for recipes
    arrays = build(found, num_passages)
    if kept is not None and joins_entities(kept, num_passages):
        arrays |= build_statements(kept)
    return found, arrays
