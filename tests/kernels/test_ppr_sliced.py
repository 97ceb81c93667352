"""Walks of at most four queries on a device, over slices of rows by length (kernels/device/slices.h).

The answers are the CPU's, which the fixture ``runtime`` checks in every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import grid_graph, random_graph, random_restart
from compare import assert_bitwise
from devices import on_device, on_host
from tiers import FULL
from variants import SIMT, registered, use_sizes

PASS, WALK = "ppr_pass_sliced_l4", "ppr_walk_sliced_l4"


def kernels(runtime: Any) -> set[str]:
    return {kernel for kernel, _, _ in runtime.launches}


def graph_of_lengths(lengths: Sequence[int], weighted: bool = True, seed: int = 0) -> hf.Graph:
    """Row ``v`` has ``lengths[v]`` entries; sources are further nodes, which lead back so that mass goes around."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    most = max(max(lengths, default=0), 1)
    src = len(lengths) + np.concatenate([rng.permutation(most)[:length] for length in lengths] or [np.zeros(0, int)])
    back = len(lengths) + np.arange(most), rng.integers(0, max(1, len(lengths)), most)
    n = len(lengths) + most
    src, dst = np.concatenate([src, back[0]]), np.concatenate([rows, back[1]])
    weight = rng.random(src.size) + 0.01 if weighted else None
    return hf.Graph.from_edges(src.astype(int), dst.astype(int), weight, num_nodes=n, directed=True)


EDGES = [0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300, 512, 513, 2049]


@pytest.mark.parametrize(
    ("weighted", "at_once"),
    [
        (True, True),
        *(pytest.param(*other, marks=pytest.mark.full) for other in ((True, False), (False, True), (False, False))),
    ],
)
def test_rows_of_every_length(runtime: Any, weighted: bool, at_once: bool) -> None:
    """Around the ends of a thread's entries, of a row's threads, of segments, of slices and of 32 segments."""
    runtime.cooperative = at_once
    graph = graph_of_lengths(EDGES, weighted)
    rng = np.random.default_rng(1)
    damping = [0.85, 0.0, 0.99 if FULL else 0.6, 0.3]
    for batch in (1, 2, 3, 4) if FULL else (4,):
        hf.ppr(graph, random_restart(rng, graph.num_nodes, batch), damping=damping[:batch])
    assert {PASS, WALK} & kernels(runtime) == ({WALK} if at_once else {PASS})
    assert not any("segments" in name and "residual" not in name and "early" not in name for name in kernels(runtime))


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("directed", [True, False])
def test_many_windows_and_slices(runtime: Any, directed: bool, at_once: bool) -> None:
    """Rows beyond a window, of one block that takes many slices; a last slice that is not full; isolated nodes."""
    n = 4096 + 77
    rng = np.random.default_rng(2)
    graph = random_graph(rng, n, 3 * n, directed=directed, hub=5)
    with registered(SIMT, ordinal=4, blocks_at_once=3, multiprocessors=1, cooperative=at_once):
        hf.ppr(graph, random_restart(rng, n, 4), damping=0.85, max_iter=6)
    blocks = {grid for name, grid, _ in runtime.launches if name in (PASS, WALK)}
    assert blocks == {3} if at_once else max(blocks) <= -(-n // 64)


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 64, 65])
def test_few_nodes(runtime: Any, n: int) -> None:
    """One node without an edge, with a loop, and about as many as a slice has threads; scores with ties."""
    loops = hf.Graph.from_edges(np.arange(n), np.arange(n), num_nodes=n)
    for graph in (hf.Graph.from_edges([], [], num_nodes=n), loops):
        hf.ppr(graph, [{0: 1.0}, {n - 1: 2.0}], damping=0.85)
        hf.ppr_topk(graph, [{0: 1.0}, {n - 1: 2.0}], 3)
    assert {PASS, WALK} <= kernels(runtime)


def test_ties_and_slow_walks(runtime: Any) -> None:
    """A torus, whose rows are all alike; damping near 1, by the recurrence and without it."""
    for graph in (grid_graph(9), random_graph(np.random.default_rng(3), 150, 400, directed=True, hub=3)):
        restart = random_restart(np.random.default_rng(4), 81, 4)
        hf.ppr(graph, restart, damping=[0.9999, 0.99, 0.5, 0.0], tol=1e-3, max_iter=60)
        hf.ppr_topk(graph, restart, 7, damping=0.99, tol=1e-3)
    assert {PASS, WALK} <= kernels(runtime)


def test_lanes_that_end_early_keep_their_state(runtime: Any) -> None:
    """Passes after the end of some lanes are those of the others, also where they are measured."""
    rng = np.random.default_rng(5)
    graph = random_graph(rng, 260, 900, hub=3)
    restart = random_restart(rng, 260, 4)
    for damping in ([0.0, 0.2, 0.6, 0.95], [0.95, 0.6, 0.2, 0.0]):
        whole = hf.ppr(graph, restart, damping=damping)
        assert len(set(whole.iterations.tolist())) == 4
        for query in range(4):
            alone = hf.ppr(graph, restart[query : query + 1], damping=damping[query])
            assert_bitwise(alone.scores[0], whole.scores[query], "scores")


def test_refinement_and_local_bounds(runtime: Any) -> None:
    """Passes with a restart in every row, with none, and with lanes that wait."""
    use_sizes(most_lanes=4)
    rng = np.random.default_rng(9)
    src = np.repeat(np.arange(300), rng.integers(1, 9, 300))
    graph = hf.Graph.from_edges(src, 300 + rng.integers(0, 200, src.size), rng.integers(1, 4, src.size), num_nodes=500)
    restart = [{300 + int(v): 1.0 for v in rng.choice(200, 4, False)} for _ in range(8)]
    for k in (10, 60):
        hf.ppr_topk(graph, restart, k, candidates=np.arange(300))
    assert {"ppr_refine_measure_l4", "ppr_refine_around_l4", PASS} <= kernels(runtime)


@pytest.mark.parametrize("why", ["mask", "weights", "types", "lanes"])
def test_other_walks_read_rows(runtime: Any, why: str) -> None:
    rng = np.random.default_rng(6)
    graph = random_graph(rng, 120, 400, hub=3, types=2)
    batch = 5 if why == "lanes" else 4
    options: dict[str, Any] = {
        "mask": {"allow": np.ones(120, np.bool_)},
        "weights": {"node_weights": rng.random((4, 120)) + 0.5},
        "types": {"edge_type_weights": [1.0, 0.5]},
        "lanes": {},
    }[why]
    hf.ppr(graph, random_restart(rng, 120, batch), **options)
    assert not {PASS, WALK} & kernels(runtime)


@pytest.mark.parametrize("at_once", [True, False])
def test_recordings(runtime: Any, at_once: bool) -> None:
    runtime.cooperative = at_once
    rng = np.random.default_rng(7)
    graph = random_graph(rng, 190, 700, hub=3)

    def core(nodes: Any, weights: Any) -> hf.Hits:
        return hf.ppr_topk(graph, hf.Seeds(nodes, weights), 10, stop="tol", empty="skip")

    captured = hf.capture(core, [((4,), "int64"), ((4,), "float64")], backend=SIMT)
    for batch in (1, 4, 3):
        nodes = np.stack([rng.permutation(190)[:4] for _ in range(batch)])
        weights = rng.random(nodes.shape) + 0.01
        made = captured(nodes, weights)
        expected = hf.ppr_topk(graph, hf.Seeds(nodes, weights), 10, stop="tol", empty="skip", backend="cpu")
        for name, array in vars(expected).items():
            assert_bitwise(getattr(made, name), array, name)
    assert (WALK if at_once else PASS) in kernels(runtime)


@pytest.mark.parametrize("batch", [1, 8])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_recording_in_which_no_query_walks(runtime: Any, batch: int, at_once: bool) -> None:
    """Its passes do nothing, and its states have what the start of the walk has written alone."""
    runtime.cooperative = at_once
    graph = random_graph(np.random.default_rng(7), 300, 300)

    def core(nodes: Any, weights: Any) -> hf.Hits:
        return hf.ppr_topk(graph, hf.Seeds(nodes, weights), 5, stop="tol", empty="skip")

    captured = hf.capture(core, [((2,), "int64"), ((2,), "float64")], backend=SIMT)
    for nodes in (np.tile([3, 9], (batch, 1)), np.full((batch, 2), -1)):
        found = captured(nodes, np.ones((batch, 2)))
        expected = hf.ppr_topk(graph, hf.Seeds(nodes, np.ones((batch, 2))), 5, stop="tol", empty="skip", backend="cpu")
        for name, array in vars(expected).items():
            assert_bitwise(getattr(found, name), array, name)


def test_seeds_on_the_device(runtime: Any) -> None:
    rng = np.random.default_rng(8)
    graph = random_graph(rng, 300, 900, hub=3)
    seeds = hf.Seeds(rng.integers(0, 300, (3, 5)), rng.random((3, 5)))
    expected = hf.ppr_topk(graph, seeds, 9, backend="cpu")
    found = on_host(hf.ppr_topk(graph, on_device(seeds), 9))
    for name, array in vars(expected).items():
        assert_bitwise(getattr(found, name), array, name)


def test_no_pass_is_early_where_all_are_one_launch(runtime: Any) -> None:
    rng = np.random.default_rng(6)
    graph = random_graph(rng, 190, 700, hub=3)
    hf.ppr(graph, random_restart(rng, 190, 4))
    walking = [name for name, _, _ in runtime.launches if name.startswith(("ppr_walk", "ppr_pass", "ppr_early"))]
    assert walking == [WALK]


@pytest.mark.every_order
def test_orders_of_threads(runtime: Any) -> None:
    """Each kernel, with rows of several slices that blocks share, on the fewest threads."""
    graph = graph_of_lengths([300, 0, 40, 3, 70, 513, 17, 9])
    restart = [{0: 1.0, 5: 0.1}, {2: 1.0}]
    hf.ppr(graph, restart, damping=0.5, max_iter=3)
    runtime.cooperative = False
    hf.ppr(graph, restart, damping=0.5, max_iter=3)
    assert {PASS, WALK} <= kernels(runtime)
