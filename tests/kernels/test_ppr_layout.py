"""Few queries walk over slices of rows by length, many over windows of rows by length: one answer."""

from __future__ import annotations

import itertools
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_restart
from compare import assert_bitwise
from hopfuse import _native
from hopfuse.backends import cpu_graph, cpu_layout
from hopfuse.backends.cpu_graph import MANY_LANES, NARROW_NODES, lane_blocks
from hopfuse.backends.cpu_layout import SEGMENT, SLICE, Layout, Slices, Tiles
from hypothesis import given
from hypothesis import strategies as st
from variants import use

NAMES = ("scores", "iterations", "residual", "bound", "converged")
FEW = (1, 2, 3, 4, 5, 7, 8)


def wide_graph(directed: bool, types: int, weights: str = "random") -> hf.Graph:
    """Rows longer than a segment, one of them much, and rows without entries; the last tile is not full."""
    n = 2748
    return random_graph(np.random.default_rng(3), n, 4 * n, directed=directed, types=types, weights=weights, hub=17)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("types", [1, 3])
@pytest.mark.parametrize("window", [None, 256])
def test_a_layout_keeps_rows_and_the_order_of_entries(directed: bool, types: int, window: int | None) -> None:
    graph = wide_graph(directed, types)
    layout = Layout.of(graph, window)
    assert (layout.place[layout.internal] == np.arange(graph.num_nodes)).all()
    rows = {"indptr": graph.indptr, "indices": graph.indices, "weight": graph.weight, "edge_type": graph.edge_type}
    stored = layout.rows(rows)
    for first in range(0, graph.num_nodes, window or graph.num_nodes):
        rows_of_window = slice(first, first + (window or graph.num_nodes))
        assert (np.diff(np.diff(stored["indptr"])[rows_of_window]) <= 0).all()
        assert set(layout.internal[rows_of_window]) == set(range(graph.num_nodes)[rows_of_window])
    for node in (0, 17, 1500, graph.num_nodes - 1):
        at, given = layout.place[node], slice(graph.indptr[node], graph.indptr[node + 1])
        laid = slice(stored["indptr"][at], stored["indptr"][at + 1])
        assert (layout.internal[stored["indices"][laid]] == graph.indices[given]).all()
        assert_bitwise(stored["weight"][laid], graph.weight[given], "weight")
        if types > 1:
            assert (stored["edge_type"][laid] == graph.edge_type[given]).all()


def units_of(slices: Slices) -> list[list[int]]:
    """The entries of each unit, read as the contract says."""
    units: list[list[int]] = []
    for first in range(0, slices.indptr.size - 1, SLICE):
        size = np.diff(slices.indptr[first : first + SLICE + 1])
        assert (np.diff(size) <= 0).all()
        at = iter(slices.entry[slices.indptr[first] : slices.indptr[first + SLICE]].tolist())
        found: list[list[int]] = [[] for _ in size]
        for _ in range(size[-1]):
            for unit in found:
                unit.append(next(at))
        for unit, length in zip(found, size, strict=True):
            unit.extend(next(at) for _ in range(length - size[-1]))
        units += found
    return units


@given(st.lists(st.one_of(st.integers(0, 9), st.integers(60, 70), st.integers(0, 700)), max_size=60))
def test_slices_hold_every_row_s_entries_in_their_order(lengths: list[int]) -> None:
    lengths.sort(reverse=True)
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    slices = Slices.of(indptr)
    assert slices.long_rows % SLICE == 0 or slices.long_rows == len(lengths)
    assert (np.array(lengths[slices.long_rows :]) <= SEGMENT).all()
    assert sorted(slices.entry.tolist()) == list(range(sum(lengths)))
    units = units_of(slices)
    assert len(units) % SLICE == 0
    segment_units = slices.segment.size
    segments = int(slices.row_segments[-1])
    of_segment = dict(zip(slices.segment.tolist(), units[:segment_units], strict=False))
    assert set(of_segment) - {segments} == set(range(segments))
    for row, length in enumerate(lengths):
        expected = list(range(indptr[row], indptr[row] + length))
        if row < slices.long_rows:
            mine = [of_segment[i] for i in range(*slices.row_segments[row : row + 2].tolist())]
            assert mine == [expected[i : i + SEGMENT] for i in range(0, length, SEGMENT)]
        else:
            assert units[segment_units + row - slices.long_rows] == expected
    rows = len(lengths) - slices.long_rows
    assert not any(units[segment_units + rows :])


@pytest.mark.parametrize("weights", ["ones", "random"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("types", "norm"), [(1, "joint"), (3, "joint"), (3, "per_type")])
@pytest.mark.parametrize("masked", [False, True])
def test_few_queries_get_the_bits_that_they_get_among_many(
    every_isa: list[str], directed: bool, types: int, norm: str, masked: bool, weights: str
) -> None:
    graph = wide_graph(directed, types, weights)
    rng = np.random.default_rng(4)
    masks = rng.random((MANY_LANES, graph.num_nodes)) < 0.8 if masked else None
    restart = random_restart(rng, graph.num_nodes, MANY_LANES, masks)
    damping = rng.choice([0.0, 0.5, 0.85], MANY_LANES)
    eta = rng.random((MANY_LANES, types)) / types if types > 1 else None

    def walk(rows: slice, threads: int) -> Any:
        options: dict[str, Any] = {"edge_type_norm": norm, "damping": damping[rows], "threads": threads}
        if masks is not None:
            options["allow"] = masks[rows]
        if eta is not None:
            options["edge_type_weights"] = eta[rows]
        return hf.ppr(graph, restart[rows], **options)

    use(every_isa[0])
    together = walk(slice(0, MANY_LANES), 2)
    fast = [name for name in every_isa if name != "baseline"] or every_isa
    for isa, (turn, count) in itertools.product(fast, enumerate(FEW)):
        use(isa)
        rows = slice(turn, turn + count)
        few = walk(rows, 1 + turn % 3)
        for name in NAMES:
            assert_bitwise(getattr(few, name), getattr(together, name)[rows], f"{name} ({isa}, {count} queries)")


def in_tiles(monkeypatch: pytest.MonkeyPatch, strip: int, block: int) -> None:
    """Have every graph in tiles of so many nodes and units."""
    monkeypatch.setattr(cpu_graph, "CACHED_NODES", 0)
    monkeypatch.setattr(cpu_layout, "STRIP", strip)
    monkeypatch.setattr(cpu_layout, "BLOCK", block)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("strip", "block"), [(100, 200), (2748, 300), (7, 2**16), (2**16, 2**16)])
def test_tiles_hold_every_row_s_entries_in_their_order(
    monkeypatch: pytest.MonkeyPatch, directed: bool, strip: int, block: int
) -> None:
    in_tiles(monkeypatch, strip, block)
    graph = wide_graph(directed, 1)
    tiles = Tiles.of(graph.indptr, graph.indices, {"weight": graph.weight, "share32": None})
    assert tiles is not None
    assert tiles.more["share32"] is None
    assert tiles.most_units <= block
    strips = -(-graph.num_nodes // strip)
    begin = tiles.begin[:-1].reshape(-1, strips)
    segments = -(-np.diff(graph.indptr) // SEGMENT)
    for number, (row, end) in enumerate(itertools.pairwise(tiles.block_row.tolist())):
        assert row % _native.PPR_TILE == 0
        found: list[list[tuple[int, float]]] = [[] for _ in range(segments[row:end].sum())]
        for column, first in enumerate(begin[number]):
            stop = tiles.begin[number * strips + column + 1]
            for e in range(first, stop):
                entry = column * strip + int(tiles.source[e]), float(tiles.more["weight"][e])
                found[tiles.unit[e]].append(entry)
        units = iter(found)
        for v in range(row, end):
            mine = slice(graph.indptr[v], graph.indptr[v + 1])
            expected = list(zip(graph.indices[mine].tolist(), graph.weight[mine].tolist(), strict=True))
            for at in range(0, len(expected), SEGMENT):
                assert next(units) == expected[at : at + SEGMENT]
        assert next(units, None) is None
    assert tiles.block_row[-1] == graph.num_nodes


@pytest.mark.parametrize("weights", ["ones", "random"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("types", "norm"), [(1, "joint"), (3, "joint"), (3, "per_type")])
@pytest.mark.parametrize("masked", [False, True])
def test_queries_get_the_same_bits_from_tiles(
    monkeypatch: pytest.MonkeyPatch,
    every_isa: list[str],
    directed: bool,
    types: int,
    norm: str,
    masked: bool,
    weights: str,
) -> None:
    graph = wide_graph(directed, types, weights)
    rng = np.random.default_rng(9)
    options: dict[str, Any] = {"edge_type_norm": norm, "damping": 0.85, "backend": "cpu"}
    if masked:
        options["allow"] = rng.random(graph.num_nodes) < 0.8
    if types > 1:
        options["edge_type_weights"] = rng.random(types) / types
    mask = np.tile(options["allow"], (MANY_LANES, 1)) if masked else None
    restart = random_restart(rng, graph.num_nodes, MANY_LANES, mask)
    together = hf.ppr(graph, restart, **options)
    assert np.median(together.iterations) > 4  # tiles are read from the third pass on
    for isa, (strip, block) in itertools.product(every_isa, [(500, 300), (2748, 2**16)]):
        use(isa)
        in_tiles(monkeypatch, strip, block)
        graph.derived.clear()
        for count, threads in ((1, 1), (1, 3), (3, 2), (8, 2)):
            few = hf.ppr(graph, restart[:count], threads=threads, **options)
            for name in NAMES:
                assert_bitwise(getattr(few, name), getattr(together, name)[:count], f"{name} ({isa}, {count} queries)")


def test_rows_with_more_units_than_a_block_are_stored_by_length(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = wide_graph(False, 1)
    together = hf.ppr(graph, [{3: 1.0}], backend="cpu")
    in_tiles(monkeypatch, 100, 60)
    assert Tiles.of(graph.indptr, graph.indices, {}) is None
    graph.derived.clear()
    alone = hf.ppr(graph, [{3: 1.0}], backend="cpu")
    for name in NAMES:
        assert_bitwise(getattr(alone, name), getattr(together, name), name)


@pytest.mark.parametrize("stop", ["proven", "tol"])
@pytest.mark.parametrize("directed", [False, True])
def test_few_queries_get_the_hits_that_they_get_among_many(every_isa: list[str], stop: str, directed: bool) -> None:
    graph = wide_graph(directed, 1)
    rng = np.random.default_rng(5)
    restart = random_restart(rng, graph.num_nodes, MANY_LANES)
    among = np.flatnonzero(rng.random(graph.num_nodes) < 0.4)
    use(every_isa[0])
    together = hf.ppr_topk(graph, restart, 20, candidates=among, stop=stop, threads=2)
    for turn, count in enumerate(FEW):
        rows = slice(turn, turn + count)
        few = hf.ppr_topk(graph, restart[rows], 20, candidates=among, stop=stop, threads=1 + turn % 3)
        for name in ("ids", "counts", "proven", "score_bounds", *NAMES):
            assert_bitwise(getattr(few, name), getattr(together, name)[rows], f"{name} ({count} queries)")


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 63, 64, 65, 1025])
@pytest.mark.parametrize("directed", [False, True])
def test_slices_and_tiles_of_every_fill(n: int, directed: bool) -> None:
    rng = np.random.default_rng(n)
    graph = random_graph(rng, n, 3 * n, directed=directed)
    masks = rng.random((MANY_LANES, n)) < 0.8
    masks[:, 0] = True
    restart = random_restart(rng, n, MANY_LANES, masks)
    together = hf.ppr_topk(graph, restart, n + 5, allow=masks)
    for count in (1, 3, 8):
        few = hf.ppr_topk(graph, restart[:count], n + 5, allow=masks[:count])
        for name in ("ids", "counts", "proven", "score_bounds", *NAMES):
            assert_bitwise(getattr(few, name), getattr(together, name)[:count], f"{name} ({count} queries)")


@pytest.mark.parametrize("weights", ["none", "random"])
def test_a_node_beyond_16_bits_is_read_as_it_is(every_isa: list[str], weights: str) -> None:
    n = NARROW_NODES + 3
    rng = np.random.default_rng(8)
    ends = rng.integers(n - 400, n, (2, 9000))  # rows of one segment and of several
    rows = rng.integers(0, n, (2, 3000))
    src, dst = np.concatenate([ends, rows], axis=1)
    weight = None if weights == "none" else rng.random(src.size) + 0.1
    graph = hf.Graph.from_edges(src, dst, weight, num_nodes=n)
    restart = [{n - 1: 1.0, 5: 0.5}, *({int(v): 1.0} for v in rng.integers(n - 300, n, 9))]
    together = hf.ppr(graph, restart, backend="cpu")
    for isa in every_isa:
        use(isa)
        alone = hf.ppr(graph, restart[:1], backend="cpu", threads=3)
        for name in NAMES:
            assert_bitwise(getattr(alone, name), getattr(together, name)[:1], f"{name} ({isa})")


@pytest.mark.parametrize(
    ("batch", "lanes"),
    [(1, [1]), (3, [4]), (8, [8]), (9, [16]), (16, [16]), (17, [16, 1]), (24, [16, 8]), (25, [16, 16]), (35, [32, 4])],
)
def test_layouts_are_made_for_the_blocks_that_walk_over_them(batch: int, lanes: list[int]) -> None:
    graph = wide_graph(False, 1)
    restart = random_restart(np.random.default_rng(6), graph.num_nodes, batch)
    together = hf.ppr(graph, restart, backend="cpu", threads=1)
    assert list(lane_blocks(batch)) == lanes
    assert ("cpu:joint:few" in graph.derived) == (min(lanes) <= _native.PPR_FEW_LANES)
    assert ("cpu:joint:many" in graph.derived) == (max(lanes) > _native.PPR_FEW_LANES)
    alone = hf.ppr(graph, restart[-1:], backend="cpu")
    for name in NAMES:
        assert_bitwise(getattr(alone, name), getattr(together, name)[-1:], name)


@pytest.mark.parametrize(
    ("batch", "threads", "lanes"),
    [
        (2, 2, [1, 1]),
        (4, 2, [4]),
        (5, 2, [4, 4]),
        (8, 8, [4, 4]),
        (32, 2, [32]),
        (40, 2, [16, 4, 16, 4]),
        (64, 2, [32, 32]),
        (65, 2, [32, 32, 1]),
        (70, 2, [32, 32, 4, 4]),
    ],
)
def test_threads_walk_with_blocks_of_their_own(batch: int, threads: int, lanes: list[int]) -> None:
    graph = random_graph(np.random.default_rng(9), 9000, 36000, directed=False, types=1, weights="random", hub=17)
    restart = random_restart(np.random.default_rng(10), graph.num_nodes, batch)
    at_once = _native.ppr_blocks_at_once(graph.num_nodes, graph.num_stored, batch, threads)
    assert (at_once > 1) == (len(lanes) > 1)
    assert list(lane_blocks(batch, at_once)) == lanes
    alone, together = (hf.ppr(graph, restart, backend="cpu", threads=count) for count in (1, threads))
    for name in NAMES:
        assert_bitwise(getattr(together, name), getattr(alone, name), name)
    lists, parted = (hf.ppr_topk(graph, restart, 20, backend="cpu", threads=count) for count in (1, threads))
    for name in ("ids", "scores", "score_bounds", "proven", "iterations", "residual", "bound"):
        assert_bitwise(getattr(parted, name), getattr(lists, name), name)
