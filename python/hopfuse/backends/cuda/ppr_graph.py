"""A graph on the device: uploaded once for each runtime and meaning of edge types, and kept with the graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types import Graph
from ..graph_arrays import Degrees, longest_row, out_rows
from .runtime import DeviceArray, Runtime

SEGMENT = TILE = 64  # PPR_SEGMENT and PPR_TILE of hopfuse/ppr.h


@dataclass(frozen=True)
class RowSet:
    """A bit for each row in words of 64 rows, and how many rows of the set come before each word."""

    words: DeviceArray
    rank: DeviceArray
    size: int

    @classmethod
    def upload(cls, runtime: Runtime, rows: NDArray[Any], num_nodes: int) -> RowSet:
        words = np.zeros(max(1, -(-num_nodes // 64)), np.uint64)
        np.bitwise_or.at(words, rows >> 6, np.uint64(1) << (rows & 63).astype(np.uint64))
        per_word = np.bincount(rows >> 6, minlength=words.size)
        rank = (np.cumsum(per_word) - per_word).astype(np.int32)
        return cls(runtime.upload(words), runtime.upload(rank), int(rows.size))


@dataclass(frozen=True)
class DeviceGraph:
    """What the kernels read of a graph: the fields of PprGraph in hopfuse/ppr.h, and the segments of long rows."""

    runtime: Runtime
    num_nodes: int
    num_stored: int
    num_types: int
    directed: bool
    weighted: bool
    longest_row: int
    indptr: DeviceArray
    indices: DeviceArray
    weight: DeviceArray | None
    edge_type: DeviceArray | None
    degree: DeviceArray
    node_of: DeviceArray
    internal_of: DeviceArray
    scale64: DeviceArray
    scale32: DeviceArray
    unscale64: DeviceArray | None
    unscale32: DeviceArray | None
    volume: DeviceArray
    out: dict[str, DeviceArray | None]
    long_rows: RowSet
    first_of: DeviceArray
    segment_begin: DeviceArray
    segment_end: DeviceArray
    num_segments: int

    @property
    def num_tiles(self) -> int:
        return -(-self.num_nodes // TILE)


def device_graph(runtime: Runtime, graph: Graph, per_type: bool, masked: bool) -> DeviceGraph:
    """The graph on this runtime's device; with outgoing rows where masked degrees of a directed graph need them."""
    key = f"{runtime.name}:{id(runtime)}:{per_type}:{masked and graph.directed}"
    if key not in graph._prepared:
        graph._prepared[key] = _upload(runtime, graph, per_type, masked and graph.directed)
    prepared: DeviceGraph = graph._prepared[key]
    return prepared


def _upload(runtime: Runtime, graph: Graph, per_type: bool, with_out: bool) -> DeviceGraph:
    def given(array: NDArray[Any] | None) -> DeviceArray | None:
        return None if array is None else runtime.upload(array)

    derived = Degrees.of(graph, per_type)
    length = np.diff(graph.indptr)
    rows = np.flatnonzero(length > SEGMENT)
    segments = -(-length[rows] // SEGMENT)
    first_of = np.concatenate([[0], np.cumsum(segments)]).astype(np.int64)
    row_of = np.repeat(rows, segments)
    begin = graph.indptr[row_of] + SEGMENT * (np.arange(row_of.size) - np.repeat(first_of[:-1], segments))
    return DeviceGraph(
        runtime=runtime,
        num_nodes=graph.num_nodes,
        num_stored=graph.num_stored,
        num_types=graph.num_edge_types,
        directed=graph.directed,
        weighted=graph.weight is not None,
        longest_row=longest_row(graph),
        indptr=runtime.upload(graph.indptr),
        indices=runtime.upload(graph.indices),
        weight=given(graph.weight),
        edge_type=given(graph.edge_type),
        degree=runtime.upload(graph.degree),
        node_of=runtime.upload(graph.node_of),
        internal_of=runtime.upload(graph.internal_of),
        scale64=runtime.upload(derived.scale64),
        scale32=runtime.upload(derived.scale32),
        unscale64=given(derived.unscale64),
        unscale32=given(derived.unscale32),
        volume=runtime.upload(np.array([derived.volume])),
        out={name: given(array) for name, array in out_rows(graph).items()} if with_out else {},
        long_rows=RowSet.upload(runtime, rows, graph.num_nodes),
        first_of=runtime.upload(first_of),
        segment_begin=runtime.upload(begin.astype(np.int64)),
        segment_end=runtime.upload(np.minimum(begin + SEGMENT, graph.indptr[row_of + 1]).astype(np.int64)),
        num_segments=int(row_of.size),
    )
