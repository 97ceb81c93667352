"""Few queries walk over slices of rows by length, many over windows of rows by length: one answer."""

from __future__ import annotations

import contextlib
import gc
import itertools
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_restart
from compare import assert_bitwise
from hopfuse import _native
from hopfuse.backends.walks import prepare, prepared_graph
from hypothesis import given
from hypothesis import strategies as st
from variants import use

SEGMENT, SLICE, TILE, FEW_LANES, MANY_LANES, WINDOW = 64, 8, 64, 8, 32, 256
#: The most nodes that 16-bit numbers can address.
NARROW_NODES = 2**16
NAMES = ("scores", "iterations", "residual", "bound", "converged")
FEW = (1, 2, 3, 4, 5, 7, 8)


def wide_graph(directed: bool, types: int, weights: str = "random") -> hf.Graph:
    """Rows longer than a segment, one of them much, and rows without entries; the last tile is not full."""
    n = 2748
    return random_graph(np.random.default_rng(3), n, 4 * n, directed=directed, types=types, weights=weights, hub=17)


def degrees_by_hand(graph: hf.Graph, per_type: bool) -> dict[str, Any]:
    """The tables that hopfuse/ppr.h derives from degrees, in NumPy."""
    degree = graph.degree if per_type else graph.degree.sum(axis=1)
    with np.errstate(divide="ignore"):
        scale = np.where(degree > 0, 1 / degree, 0.0)
    if per_type:
        none = dict.fromkeys(("unscale64", "unscale32"))
        return {"scale64": scale, "scale32": scale.astype(np.float32), **none}
    unscale = np.where(degree > 0, degree, 1.0)
    scale32 = np.where(degree > 0, scale, 1.0).astype(np.float32)
    return {"scale64": scale, "scale32": scale32, "unscale64": unscale, "unscale32": unscale.astype(np.float32)}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("types", [1, 3])
@pytest.mark.parametrize("per_type", [False, True])
@pytest.mark.parametrize("layout", ["given", "by_length", "by_window"])
def test_a_layout_keeps_rows_and_the_order_of_entries(directed: bool, types: int, per_type: bool, layout: str) -> None:
    graph = wide_graph(directed, types)
    n = graph.num_nodes
    stored = prepare(graph).arrays(layout, per_type=per_type, with_out=directed, threads=2)
    internal = stored["internal"] if layout != "given" else np.arange(n)
    place = stored["place"] if layout != "given" else np.arange(n)
    assert (place[internal] == np.arange(n)).all()
    window = {"given": 1, "by_length": n, "by_window": WINDOW}[layout]
    for first in range(0, n, window):
        rows = slice(first, first + window)
        length = np.diff(stored["indptr"])[rows]
        assert (np.diff(length) <= 0).all()
        assert sorted(internal[rows]) == list(range(n)[rows])
        assert (np.diff(internal[rows])[np.diff(length) == 0] > 0).all()
    given_order = np.concatenate([np.arange(*graph.indptr[[v, v + 1]]) for v in internal])
    assert (internal[stored["indices"]] == graph.indices[given_order]).all()
    assert_bitwise(stored["weight"], graph.weight[given_order], "weight")
    kind = np.zeros(graph.num_stored, int) if types == 1 else graph.edge_type[given_order]
    assert types == 1 or (stored["edge_type"] == kind).all()
    assert_bitwise(stored["degree"], graph.degree[internal], "degree")
    assert (stored["node_of"] == graph.node_of[internal]).all()
    assert (stored["node_of"][stored["row_of"]] == np.arange(n)).all()
    tables = degrees_by_hand(graph, per_type)
    for name, table in tables.items():
        assert (stored[name] is None) == (table is None), name
        if table is not None:
            assert_bitwise(stored[name], table[internal], name)
    if per_type:
        share = tables["scale32"][graph.indices[given_order], kind]
        assert_bitwise(stored["share32"], share, "share32")
    else:
        assert stored["share32"] is None
        assert stored["volume"] == pytest.approx(graph.degree.sum(), rel=1e-12)
    if directed:
        assert_outgoing(graph, stored, internal)


def assert_outgoing(graph: hf.Graph, stored: dict[str, Any], internal: Any) -> None:
    """Rows of the entries out of each node, by ascending target."""
    target = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    for row in (0, 17, 1500, graph.num_nodes - 1):
        entries = np.flatnonzero(graph.indices == internal[row])
        laid = slice(*stored["out_indptr"][[row, row + 1]])
        assert (internal[stored["out_indices"][laid]] == target[entries]).all()
        assert_bitwise(stored["out_weight"][laid], graph.weight[entries], "weight")
        if graph.edge_type is not None:
            assert (stored["out_edge_type"][laid] == graph.edge_type[entries]).all()


def test_entries_of_nodes_are_counted_in_and_out_of_them() -> None:
    graph = wide_graph(True, 1)
    into, out = np.diff(graph.indptr), np.bincount(graph.indices, minlength=graph.num_nodes)
    most = np.maximum(into, out)
    assert prepare(graph).counts == (most.max(), np.count_nonzero(most))
    assert prepare(wide_graph(False, 1)).counts[0] == np.diff(wide_graph(False, 1).indptr).max()


def units_of(slices: dict[str, Any]) -> list[list[int]]:
    """The entries of each unit, read as the contract says; an entry's weight is its number."""
    units: list[list[int]] = []
    for first in range(0, slices["indptr"].size - 1, SLICE):
        size = np.diff(slices["indptr"][first : first + SLICE + 1])
        assert (np.diff(size) <= 0).all()
        at = iter(slices["weight"][slices["indptr"][first] : slices["indptr"][first + SLICE]].astype(int).tolist())
        found: list[list[int]] = [[] for _ in size]
        for _ in range(size[-1]):
            for unit in found:
                unit.append(next(at))
        for unit, length in zip(found, size, strict=True):
            unit.extend(next(at) for _ in range(length - size[-1]))
        units += found
    return units


@given(st.lists(st.one_of(st.integers(0, 9), st.integers(60, 70), st.integers(0, 700)), min_size=1, max_size=60))
def test_slices_hold_every_row_s_entries_in_their_order(lengths: list[int]) -> None:
    rng = np.random.default_rng(sum(lengths))
    rows, entries = len(lengths), sum(lengths)
    prepared = _native.PreparedGraph(
        directed=False,
        num_types=5,
        indptr=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
        indices=rng.integers(0, rows, entries, np.int32),
        weight=np.arange(entries, dtype=np.float32),
        edge_type=rng.integers(0, 5, entries, np.uint8),
        degree=rng.random((rows, 5)),
        node_of=np.arange(rows, dtype=np.int32),
        internal_of=np.arange(rows, dtype=np.int32),
    )
    stored, slices = prepared.arrays("by_length", per_type=True), prepared.slices(per_type=True)
    number = {int(entry): at for at, entry in enumerate(stored["weight"])}
    order = [number[int(entry)] for entry in slices["weight"]]
    assert sorted(order) == list(range(entries))
    assert slices["wide"] is None
    for name, table in (("narrow", "indices"), ("edge_type", "edge_type"), ("share32", "share32")):
        assert (slices[name] == stored[table][order]).all(), name
    long_rows, row_segments = slices["long_rows"], slices["row_segments"]
    length, indptr = np.diff(stored["indptr"]), stored["indptr"]
    assert long_rows % SLICE == 0 or long_rows == rows
    assert (length[long_rows:] <= SEGMENT).all()
    units = [[number[entry] for entry in unit] for unit in units_of(slices)]
    assert len(units) % SLICE == 0
    segment_units = slices["segment"].size
    segments = int(row_segments[-1])
    of_segment = dict(zip(slices["segment"].tolist(), units[:segment_units], strict=False))
    assert set(of_segment) - {segments} == set(range(segments))
    for row in range(rows):
        expected = list(range(indptr[row], indptr[row + 1]))
        if row < long_rows:
            mine = [of_segment[i] for i in range(*row_segments[row : row + 2].tolist())]
            assert mine == [expected[i : i + SEGMENT] for i in range(0, len(expected), SEGMENT)]
        else:
            assert units[segment_units + row - long_rows] == expected
    assert not any(units[segment_units + rows - long_rows :])


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


def in_tiles(graph: hf.Graph, strip: int, block: int) -> None:
    """Have a graph in tiles of so many nodes and units."""
    graph.derived["prepared"] = prepare(graph, cached_nodes=0, strip=strip, block_units=block)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("types", [1, 3])
@pytest.mark.parametrize(("strip", "block"), [(100, 200), (2748, 300), (7, 2**16), (2**16, 2**16)])
def test_tiles_hold_every_row_s_entries_in_their_order(directed: bool, types: int, strip: int, block: int) -> None:
    graph = wide_graph(directed, types)
    prepared = prepare(graph, strip=strip, block_units=block)
    tiles, again = prepared.tiles(per_type=types > 1, threads=3), prepared.arrays("given", per_type=types > 1)
    assert tiles is not None
    assert (tiles["share32"] is None) == (types == 1)
    assert tiles["strip"] == strip
    strips = -(-graph.num_nodes // strip)
    segments = -(-np.diff(graph.indptr) // SEGMENT)
    blocks = list(itertools.pairwise(tiles["block_row"].tolist()))
    assert tiles["most_units"] == max(segments[row:end].sum() for row, end in blocks) <= block
    tables = [name for name in ("weight", "edge_type", "share32") if tiles[name] is not None]
    for number, (row, end) in enumerate(blocks):
        assert row % TILE == 0
        found: list[list[tuple[float, ...]]] = [[] for _ in range(segments[row:end].sum())]
        for column in range(strips):
            first, stop = tiles["begin"][number * strips + column : number * strips + column + 2]
            assert (np.diff(tiles["source"][first:stop].astype(int)) >= 0).all()
            for e in range(first, stop):
                entry = column * strip + int(tiles["source"][e]), *(float(tiles[name][e]) for name in tables)
                found[tiles["unit"][e]].append(entry)
        units = iter(found)
        for v in range(row, end):
            mine = slice(graph.indptr[v], graph.indptr[v + 1])
            given_tables = [again[name][mine].astype(float).tolist() for name in tables]
            expected = list(zip(graph.indices[mine].tolist(), *given_tables, strict=True))
            for at in range(0, len(expected), SEGMENT):
                assert next(units) == expected[at : at + SEGMENT]
        assert next(units, None) is None
    assert tiles["block_row"][-1] == graph.num_nodes


@pytest.mark.parametrize("weights", ["ones", "random"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("types", "norm"), [(1, "joint"), (3, "joint"), (3, "per_type")])
@pytest.mark.parametrize("masked", [False, True])
def test_queries_get_the_same_bits_from_tiles(
    every_isa: list[str], directed: bool, types: int, norm: str, masked: bool, weights: str
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
        in_tiles(graph, strip, block)
        for count, threads in ((1, 1), (1, 3), (3, 2), (8, 2)):
            few = hf.ppr(graph, restart[:count], threads=threads, **options)
            for name in NAMES:
                assert_bitwise(getattr(few, name), getattr(together, name)[:count], f"{name} ({isa}, {count} queries)")


def test_rows_with_more_units_than_a_block_are_stored_by_length() -> None:
    graph = wide_graph(False, 1)
    together = hf.ppr(graph, [{3: 1.0}], backend="cpu")
    in_tiles(graph, 100, 60)
    assert prepared_graph(graph).tiles() is None
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
    assert _native.ppr_lanes(graph.num_nodes, graph.num_stored, batch, 1) == lanes
    restart = random_restart(np.random.default_rng(6), graph.num_nodes, batch)
    together = hf.ppr(graph, restart, backend="cpu", threads=1)
    # What the walk has made is that of the layouts which its blocks read, and nothing else.
    by_hand = prepare(graph)
    if max(lanes) > FEW_LANES:
        by_hand.arrays("by_window")
    if min(lanes) <= FEW_LANES:
        by_hand.slices()
    assert prepared_graph(graph).nbytes == by_hand.nbytes > 0
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
    assert _native.ppr_lanes(graph.num_nodes, graph.num_stored, batch, threads) == lanes
    alone, together = (hf.ppr(graph, restart, backend="cpu", threads=count) for count in (1, threads))
    for name in NAMES:
        assert_bitwise(getattr(together, name), getattr(alone, name), name)
    lists, parted = (hf.ppr_topk(graph, restart, 20, backend="cpu", threads=count) for count in (1, threads))
    for name in ("ids", "scores", "score_bounds", "proven", "iterations", "residual", "bound"):
        assert_bitwise(getattr(parted, name), getattr(lists, name), name)


# ---- What a prepared graph keeps --------------------------------------------------------------------------------


def test_a_layout_is_made_once_and_shared() -> None:
    """By batches, by both normalisations of edge types, and by the arrays that read it."""
    graph = wide_graph(True, 3)
    prepared = prepared_graph(graph)
    assert prepared.nbytes == 0
    hf.ppr(graph, [{3: 1.0}], backend="cpu")
    joint = prepared.nbytes
    hf.ppr(graph, [{4: 1.0}], damping=0.9, backend="cpu")
    assert prepared.nbytes == joint
    hf.ppr(graph, [{3: 1.0}], edge_type_norm="per_type", backend="cpu")
    n, entries = graph.num_nodes, graph.num_stored
    scales, shares = n * 3 * (8 + 4), entries * 4
    assert prepared.nbytes == joint + scales + 2 * shares  # of rows by length; the slices have shares too
    one, other = (prepared.arrays("by_length", per_type=per_type) for per_type in (False, True))
    assert one["indices"].ctypes.data == other["indices"].ctypes.data
    with pytest.raises(ValueError, match="read-only"):
        one["indices"][0] = 1


def test_views_outlive_the_graph() -> None:
    graph = wide_graph(False, 1)
    expected = prepare(graph).arrays("by_length")["weight"].copy()
    kept = prepared_graph(graph).arrays("by_length")["weight"]
    del graph
    gc.collect()
    assert_bitwise(kept, expected, "weight")


def test_threads_that_need_a_layout_at_the_same_time_share_one() -> None:
    graph = wide_graph(False, 1)
    restart = random_restart(np.random.default_rng(2), graph.num_nodes, 20)
    expected = hf.ppr(wide_graph(False, 1), restart, backend="cpu", threads=1)
    start = threading.Barrier(8)

    def walk(_: int) -> tuple[Any, int]:
        start.wait()
        return hf.ppr(graph, restart, backend="cpu", threads=2), prepared_graph(graph).nbytes

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(walk, range(8)))
    assert len({nbytes for _, nbytes in found}) == 1
    for result, _ in found:
        for name in NAMES:
            assert_bitwise(getattr(result, name), getattr(expected, name), name)


def test_a_call_that_is_cancelled_leaves_no_half_of_a_layout() -> None:
    """Whenever it is cancelled: the layouts made by it and by later calls are those of one call."""
    rng = np.random.default_rng(7)
    graph = random_graph(rng, 60_000, 250_000, directed=True, types=3, hub=17)
    options: dict[str, Any] = {"allow": np.arange(1, 60_000), "edge_type_norm": "per_type"}
    restart = [{17: 1.0, 20: 0.5}]
    expected = hf.ppr(replace(graph, derived={}), restart, backend="cpu", **options)
    for delay in (0.0, 0.002, 0.004, 0.006, 0.008):
        token = hf.CancelToken()
        timer = threading.Timer(delay, token.cancel)
        timer.start()
        with contextlib.suppress(hf.errors.CancelledError), hf.cancellation(token):
            hf.ppr(graph, restart, backend="cpu", **options)
        timer.join()
    found = hf.ppr(graph, restart, backend="cpu", **options)
    for name in NAMES:
        assert_bitwise(getattr(found, name), getattr(expected, name), name)
    whole = prepare(graph)
    whole.arrays("by_length", per_type=True, with_out=True)  # with their slices
    assert prepared_graph(graph).nbytes == whole.nbytes


FORKED = """
import os, sys, threading, time, warnings
import numpy as np
import hopfuse as hf
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
ends, seeds = rng.integers(0, 60_000, (2, 250_000)), [{17: 1.0}]
expected = hf.ppr(hf.Graph.from_edges(*ends), seeds, backend="cpu").scores.tobytes()
graphs = [hf.Graph.from_edges(*ends) for _ in range(5)]
for turn, graph in enumerate(graphs):
    walk = threading.Thread(target=hf.ppr, args=(graph, seeds), kwargs={"backend": "cpu"})
    walk.start()
    time.sleep(0.002 * turn)
    child = os.fork()
    if child == 0:
        os._exit(0 if hf.ppr(graph, seeds, backend="cpu").scores.tobytes() == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    walk.join()
"""


def test_a_forked_child_does_not_wait_for_a_thread_that_it_lacks() -> None:
    """Which was making a layout when the process forked."""
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=600)
