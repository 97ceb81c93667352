"""Views of graphs for the CPU kernels, with one order of rows for blocks of many queries and one for few."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..types import Graph
from .calls import PprQueries
from .cpu_layout import Layout, Slices, Tiles
from .graph_arrays import Arrays, Degrees, entry_counts, out_rows

MANY_LANES = 32
"""The most queries that walk together in a block."""
NARROW_NODES = 2**16
"""The most nodes that 16-bit numbers can address."""
CACHED_NODES = _native.PPR_CACHED_NODES
"""The most nodes for which the state of a lane (1 MiB) fits a core's L2 cache."""
WINDOW = 256
"""Rows sorted by length at a time for many lanes; their state fits a core's L1 cache, so locality is kept."""


@lru_cache(maxsize=1024)
def lane_blocks(batch: int, at_once: int = 1) -> tuple[int, ...]:
    """Return the lane counts of the blocks of ppr_f32.cpp for a batch, ``at_once`` of which walk at the same time."""
    rounds, rest = divmod(batch, MANY_LANES * at_once)
    lanes = [MANY_LANES] * (rounds * at_once)
    shares = at_once if _native.ppr_are_shared(rest, at_once) else 1
    for share in range(shares):
        lanes += _lanes_in_turn(rest * (share + 1) // shares - rest * share // shares)
    return tuple(lanes)


def _lanes_in_turn(queries: int) -> list[int]:
    """Return the lane counts of blocks that walk one after another."""
    half = MANY_LANES // 2
    lanes = []
    while queries:
        taken = MANY_LANES if queries >= MANY_LANES else half if queries > half else queries
        lanes.append(next(width for width in (1, 4, 8, half, MANY_LANES) if width >= taken))
        queries -= taken
    return lanes


def threads_used(graph: Graph, queries: PprQueries) -> int:
    """Return the most threads that a batch uses: blocks that walk at once, or threads of the widest block."""
    batch, at_once = queries.damping.size, _blocks_at_once(graph, queries)
    if at_once > 1:
        return at_once
    widest = max(lane_blocks(batch), default=1)
    return _native.ppr_threads(graph.num_nodes, graph.num_stored, widest, queries.threads)


def _blocks_at_once(graph: Graph, queries: PprQueries) -> int:
    return _native.ppr_blocks_at_once(graph.num_nodes, graph.num_stored, queries.damping.size, queries.threads)


def graph_view(graph: Graph, queries: PprQueries, *, regroups: bool = False) -> _native.GraphView:
    """Return the kernels' view of a graph, cached by edge-type normalisation, out-rows and layouts.

    With ``regroups``, unfinished queries are regrouped into narrower blocks, which need the layout for few lanes.
    """
    with_rows = graph.directed and (queries.allow is not None or queries.node_weights is not None)
    lanes = lane_blocks(queries.damping.size, _blocks_at_once(graph, queries))
    is_large = graph.num_nodes > CACHED_NODES
    few = regroups or min(lanes) <= (_native.PPR_TILE_LANES if is_large else _native.PPR_FEW_LANES)
    many = not is_large and max(lanes) > _native.PPR_FEW_LANES
    key = f"cpu:{'per_type' if queries.per_type else 'joint'}{':out' if with_rows else ''}"
    name = f"{key}:{few:d}{many:d}"
    if name not in graph.derived:
        graph.derived[name] = _view(graph, key, queries.per_type, with_rows, few, many)
    made: _native.GraphView = graph.derived[name]
    return made


def _view(graph: Graph, key: str, per_type: bool, with_rows: bool, few: bool, many: bool) -> _native.GraphView:
    """Make a view; views with the same ``key`` share their arrays."""
    kept = graph.derived
    if key not in kept:
        derived = Degrees.of(graph, per_type)
        kept[key] = _arrays(graph, derived, with_rows), derived.volume
    arrays, volume = kept[key]
    if few and f"{key}:few" not in kept:
        kept[f"{key}:few"] = _for_few(graph, arrays, volume)
    if many and f"{key}:many" not in kept:
        kept[f"{key}:many"] = _reordered(graph, arrays, WINDOW)
    return _make_view(graph, kept[f"{key}:many"] if many else arrays, volume, **(kept[f"{key}:few"] if few else {}))


def _for_few(graph: Graph, arrays: Arrays, volume: float) -> dict[str, Any]:
    """Return the layout for few lanes: tiles of a large graph, else rows by length with their slices."""
    tiles = _tiled(arrays) if graph.num_nodes > CACHED_NODES else None
    if tiles is not None:
        return {"tiles": tiles}
    laid = _reordered(graph, arrays)
    return {"by_length": _make_view(graph, laid, volume, slices=_sliced(laid))}


ROWS = ("indptr", "indices", "weight", "edge_type", "share32")
OUT_ROWS = ("out_indptr", "out_indices", "out_weight", "out_edge_type")
NODES = ("degree", "node_of", "scale64", "scale32", "unscale64", "unscale32")


def _arrays(graph: Graph, derived: Degrees, with_rows: bool) -> Arrays:
    """Return the arrays that the kernels read, by internal node."""
    return {
        **{name: getattr(graph, name) for name in (*ROWS[:-1], "degree", "node_of")},
        "share32": _shares(graph, derived) if derived.unscale64 is None else None,
        **{name: getattr(derived, name) for name in NODES[2:]},
        **(out_rows(graph) if with_rows else dict.fromkeys(OUT_ROWS)),
        "row_of": graph.internal_of,
        "place": None,
        "internal": None,
    }


def _shares(graph: Graph, derived: Degrees) -> NDArray[np.float32]:
    """Return 1 / (degree of the source, by the entry's type) per entry, so that kernels read it sequentially."""
    types = graph.num_edge_types
    source = graph.indices.astype(np.int64) * types
    return derived.scale32.reshape(-1)[source if graph.edge_type is None else source + graph.edge_type]


def _reordered(graph: Graph, arrays: Arrays, window: int | None = None) -> Arrays:
    """Return the arrays with rows sorted by length, all together or within windows."""
    layout = Layout.of(graph, window)
    laid = layout.rows({name: arrays[name] for name in ROWS}) | layout.nodes({name: arrays[name] for name in NODES})
    outgoing = {name: arrays[name] for name in OUT_ROWS}
    laid |= outgoing if outgoing["out_indptr"] is None else layout.rows(outgoing)
    return laid | layout._asdict() | {"row_of": layout.place[graph.internal_of]}


def _sliced(laid: Arrays) -> _native.SlicesView:
    """Return the slices of rows sorted by length."""
    indptr, source = laid["indptr"], laid["indices"]
    assert indptr is not None
    assert source is not None
    slices = Slices.of(indptr)
    fits = indptr.size - 1 <= NARROW_NODES
    more = {name: array if array is None else array[slices.entry] for name in ROWS[2:] for array in (laid[name],)}
    arrays: dict[str, Any] = {
        **slices.arrays(),
        **more,
        "narrow": source.astype(np.uint16)[slices.entry] if fits else None,
        "wide": None if fits else source[slices.entry],
    }
    return _native.SlicesView.make(owner=arrays, long_rows=slices.long_rows, **arrays)


def _tiled(arrays: Arrays) -> _native.TilesView | None:
    """Return the entries in tiles, or None if 64 rows have more units than a block can hold."""
    indptr, source = arrays["indptr"], arrays["indices"]
    assert indptr is not None
    assert source is not None
    tiles = Tiles.of(indptr, source, {name: arrays[name] for name in ROWS[2:]})
    if tiles is None:
        return None
    made: dict[str, Any] = tiles._asdict()
    made |= made.pop("more")
    return _native.TilesView.make(owner=made, **made)


def _make_view(
    graph: Graph,
    arrays: dict[str, Any],
    volume: float,
    *,
    by_length: _native.GraphView | None = None,
    slices: _native.SlicesView | None = None,
    tiles: _native.TilesView | None = None,
) -> _native.GraphView:
    longest, joined = entry_counts(graph)
    return _native.GraphView.make(
        owner=(arrays, by_length, slices, tiles),
        directed=graph.directed,
        num_types=graph.num_edge_types,
        volume=volume,
        longest_row=longest,
        joined_nodes=joined,
        by_length=by_length,
        slices=slices,
        tiles=tiles,
        **arrays,
    )
