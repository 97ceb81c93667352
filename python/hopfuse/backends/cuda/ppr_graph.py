"""A graph on the device: rows once per runtime, degrees once per edge-type normalisation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ...types import Graph
from ..prepared_graph import prepared_graph
from .arguments import LONG_ROWS, ROW_SET, Arguments
from .residents import require, resident_key
from .runtime import DeviceArray, Runtime

SEGMENT, TILE = _native.PPR_SEGMENT, _native.PPR_TILE


@dataclass(frozen=True)
class RowSet:
    """A bit set of rows in 64-bit words, and the number of set rows before each word."""

    words: DeviceArray
    rank: DeviceArray
    size: int

    @property
    def arguments(self) -> Arguments:
        return ROW_SET(words=self.words, rank=self.rank)

    @classmethod
    def upload(cls, runtime: Runtime, rows: NDArray[Any], num_nodes: int) -> RowSet:
        words = np.zeros(max(1, -(-num_nodes // 64)), np.uint64)
        np.bitwise_or.at(words, rows >> 6, np.uint64(1) << (rows & 63).astype(np.uint64))
        per_word = np.bincount(rows >> 6, minlength=words.size)
        rank = (np.cumsum(per_word) - per_word).astype(np.int32)
        return cls(runtime.upload(words), runtime.upload(rank), int(rows.size))


@dataclass(frozen=True)
class Rows:
    """The arrays that do not depend on the edge-type normalisation: stored rows, and the segments of long ones."""

    runtime: Runtime  # kept alive so that its id is not reused
    num_nodes: int
    num_stored: int
    num_types: int
    directed: bool
    weighted: bool
    longest_row: DeviceArray
    joined_nodes: DeviceArray
    indptr: DeviceArray
    indices: DeviceArray
    weight: DeviceArray | None
    edge_type: DeviceArray | None
    degree: DeviceArray
    node_of: DeviceArray
    internal_of: DeviceArray
    long_rows: RowSet
    first_of: DeviceArray
    segment_begin: DeviceArray
    segment_end: DeviceArray
    row_of: DeviceArray
    num_segments: int
    spread: float  # the mean number of entries of a row that an entry leads to

    def segments(self, allowed: DeviceArray | None, before: DeviceArray | None) -> Arguments:
        """Return the segments of long rows as kernels read them; ``allowed`` and ``before`` are of masked lanes."""
        return LONG_ROWS(
            begin=self.segment_begin, end=self.segment_end, first_of=self.first_of, row_of=self.row_of,
            allowed=allowed, before=before,
        )  # fmt: skip

    @property
    def num_tiles(self) -> int:
        return -(-self.num_nodes // TILE)


@dataclass(frozen=True)
class DeviceGraph(Rows):
    """Rows with the degrees of one edge-type normalisation: the fields of PprGraph in hopfuse/ppr.h."""

    scale64: DeviceArray
    scale32: DeviceArray
    unscale64: DeviceArray | None
    unscale32: DeviceArray | None
    volume: DeviceArray
    total_degree: float  # the volume, on the host
    least_degree: float  # of nodes with outgoing edges; 1 if there are none
    out: dict[str, DeviceArray | None]  # outgoing rows, if degrees of a directed graph are summed per query


def device_graph(runtime: Runtime, graph: Graph, per_type: bool, counts_edges: bool) -> DeviceGraph:
    """Return the graph on the device; its first use uploads it."""
    with_out = counts_edges and graph.directed
    key = f"{resident_key(runtime)}:{per_type}:{with_out}"
    prepared: DeviceGraph | None = graph.derived.get(key)
    if prepared is None:
        arrays = (graph.indptr, graph.indices, graph.weight, graph.edge_type, graph.node_of, graph.internal_of)
        stored = sum(0 if array is None else array.nbytes for array in arrays) * (2 if with_out else 1)
        require(runtime, stored + 5 * graph.degree.nbytes, "the graph")
        rows: Rows | None = graph.derived.get(f"{resident_key(runtime)}:rows")
        with runtime.resident():  # waits at the end, so that other streams may read the arrays
            rows = rows or _upload(runtime, graph)
            prepared = _derive(rows, graph, per_type, with_out)
        graph.derived[f"{resident_key(runtime)}:rows"] = rows
        graph.derived[key] = prepared
    return prepared


def _derive(rows: Rows, graph: Graph, per_type: bool, with_out: bool) -> DeviceGraph:
    runtime = rows.runtime
    prepared = prepared_graph(graph)
    degrees = prepared.degrees(per_type)
    walks = degrees["scale64"][degrees["scale64"] > 0]
    smallest = 1.0 / float(walks.max()) if walks.size else 1.0
    return DeviceGraph(
        **{field.name: getattr(rows, field.name) for field in fields(rows)},
        scale64=runtime.upload(degrees["scale64"]),
        scale32=runtime.upload(degrees["scale32"]),
        unscale64=_given(runtime, degrees["unscale64"]),
        unscale32=_given(runtime, degrees["unscale32"]),
        volume=runtime.upload(np.array([degrees["volume"]])),
        total_degree=degrees["volume"],
        least_degree=smallest,
        out={name: _given(runtime, array) for name, array in prepared.outgoing().items()} if with_out else {},
    )


def _given(runtime: Runtime, array: NDArray[Any] | None) -> DeviceArray | None:
    return None if array is None else runtime.upload(array)


def _upload(runtime: Runtime, graph: Graph) -> Rows:
    length = np.diff(graph.indptr)
    rows = np.flatnonzero(length > SEGMENT)
    segments = -(-length[rows] // SEGMENT)
    first_of = np.concatenate([[0], np.cumsum(segments)]).astype(np.int64)
    row_of = np.repeat(rows, segments)
    begin = graph.indptr[row_of] + SEGMENT * (np.arange(row_of.size) - np.repeat(first_of[:-1], segments))
    longest, joined = prepared_graph(graph).counts
    return Rows(
        runtime=runtime,
        num_nodes=graph.num_nodes,
        num_stored=graph.num_stored,
        num_types=graph.num_edge_types,
        directed=graph.directed,
        weighted=graph.weight is not None,
        longest_row=runtime.upload(np.array([longest], np.uint64)),
        joined_nodes=runtime.upload(np.array([joined], np.uint64)),
        indptr=runtime.upload(graph.indptr),
        indices=runtime.upload(graph.indices),
        weight=_given(runtime, graph.weight),
        edge_type=_given(runtime, graph.edge_type),
        degree=runtime.upload(graph.degree),
        node_of=runtime.upload(graph.node_of),
        internal_of=runtime.upload(graph.internal_of),
        long_rows=RowSet.upload(runtime, rows, graph.num_nodes),
        first_of=runtime.upload(first_of),
        segment_begin=runtime.upload(begin.astype(np.int64)),
        segment_end=runtime.upload(np.minimum(begin + SEGMENT, graph.indptr[row_of + 1]).astype(np.int64)),
        row_of=runtime.upload(np.repeat(np.arange(rows.size, dtype=np.int32), segments)),
        num_segments=int(row_of.size),
        spread=float(np.square(length, dtype=np.float64).sum()) / max(1, graph.num_stored),
    )
