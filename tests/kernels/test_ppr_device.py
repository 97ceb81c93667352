"""How a device walks: what it launches, in which blocks and lanes, and the bytes that a pass moves.

The answers are the CPU's, which the fixture ``runtime`` checks in every call.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import entities_graph, grid_graph, random_graph, random_restart, twins_and_likes
from compare import assert_bitwise
from devices import on_device, on_host
from hopfuse._native import device_most_lanes as most_lanes
from hopfuse.errors import BackendError
from refusals import refused
from variants import SIMT, missing, registered, use_sizes


def launched(runtime: Any) -> Counter[str]:
    return Counter(kernel.rsplit("_l", 1)[0] for kernel, _, _ in runtime.launches)


def lanes(runtime: Any) -> set[str]:
    return {kernel.rsplit("_l", 1)[1] for kernel, _, _ in runtime.launches if "ppr_pass" in kernel}


def waits(runtime: Any) -> int:
    return int(runtime.driver.calls("cuStreamSynchronize"))


def uploads(runtime: Any) -> int:
    return sum(event.kind == "upload" for event in runtime.events)


@pytest.mark.parametrize("norm", ["joint", "per_type"])
def test_long_rows_of_masked_lanes_go_by_segments(runtime: Any, norm: str) -> None:
    """Of hubs lanes may use all entries, most, few, one, as many as one segment or two have, and one more or less."""
    rng = np.random.default_rng(12)
    n = 300
    ends = [(hub, v) for hub, spokes in ((0, 299), (1, 129), (2, 128), (3, 65)) for v in range(4, 4 + spokes) if v < n]
    ends += rng.integers(4, n, (400, 2)).tolist()
    src, dst = np.array(ends).T
    kind, names = rng.integers(0, 2, src.size), ["a", "b"]
    weights = rng.random(src.size) + 0.01
    graph = hf.Graph.from_edges(src, dst, weights, num_nodes=n, edge_type=kind, edge_type_names=names)
    counts = [296, 250, 129, 128, 127, 65, 64, 63, 20, 1]
    allowed = np.zeros((len(counts), n), np.bool_)
    for row, count in zip(allowed, counts, strict=True):
        row[:4] = True
        row[4 + rng.permutation(296)[:count]] = True
    restart = random_restart(rng, n, len(counts), allowed)
    hf.ppr(graph, restart, allow=allowed, edge_type_norm=norm, damping=0.85, edge_type_weights=[0.4, 0.5])
    kernels = {kernel for kernel, _, _ in runtime.launches}
    assert {"ppr_allowed_l16", "ppr_before_l16", "ppr_residual_segments_l16"} <= kernels


def test_a_query_that_float32_cannot_meet_is_polished(runtime: Any) -> None:
    rng = np.random.default_rng(4)
    graph = random_graph(rng, 190, 600, hub=3)
    hf.ppr(graph, random_restart(rng, 190, 6), damping=0.95, tol=1e-7)  # the graph
    runtime.launches.clear()
    before = waits(runtime)
    hf.ppr(graph, random_restart(rng, 190, 6), damping=0.95, tol=1e-7)
    steps = launched(runtime)["ppr_keep"]
    assert steps > 0
    assert waits(runtime) - before <= 3 + (steps + 1).bit_length()  # after 1, 3, 7, ... steps


@pytest.mark.parametrize("stop", ["proven", "tol"])
@pytest.mark.parametrize(("most", "blocks"), [(1, [1, 1, 1, 1]), (2, [2, 2, 2, 2]), (1056, [5, 6, 3, 6])])
def test_candidates_in_groups(runtime: Any, most: int, blocks: list[int], stop: Any) -> None:
    """Of one tile and of many, the last not whole; lists that are not full; candidates in no order; k by rounds."""
    use_sizes(split_blocks=most)
    rng = np.random.default_rng(11)
    graph = random_graph(rng, 700, 1500, hub=3)
    restart = random_restart(rng, 700, 5)
    for (k, among), grid in zip(
        ((1, None), (31, None), (32, rng.permutation(700)[:300]), (600, None)), blocks, strict=True
    ):
        runtime.launches.clear()
        hf.ppr_topk(graph, restart, k, candidates=among, stop=stop)
        grids = {(kernel, blocks) for kernel, blocks, _ in runtime.launches if kernel in ("ppr_scan", "ppr_finish")}
        assert grids == {("ppr_scan", grid), ("ppr_finish", 8)}


@pytest.mark.parametrize("prove", ["order", "set"])
@pytest.mark.parametrize("most", [1, 1056])
def test_equal_scores_at_the_end_of_a_list(runtime: Any, most: int, prove: Any) -> None:
    """Of twins, which are in proven order, and of others, which are not; with places that no mass reaches."""
    use_sizes(split_blocks=most)
    graph, restart = twins_and_likes(np.random.default_rng(5))
    proven = np.stack([hf.ppr_topk(graph, restart, k, prove=prove).proven for k in (1, 2, 3, 30, 60, 180, 400)])
    assert 0 < proven.sum() < proven.size


@pytest.mark.full
def test_groups_change_no_answer(runtime: Any) -> None:
    """Nor with masks, node weights, local parts of errors and rounds of selection, in every width of lanes."""
    rng = np.random.default_rng(21)
    graph = random_graph(rng, 900, 2500, hub=3)
    allowed = rng.random((17, 900)) < 0.7
    restart = random_restart(rng, 900, 17, allowed)
    weights = 10.0 ** -(3 * rng.integers(0, 5, (17, 450)) / 4)
    weighted: dict[str, Any] = {"node_weights": weights, "weighted_nodes": np.arange(450)}
    among = np.sort(rng.permutation(900)[:700])
    for batch in (4, 8, 16, 17):
        masks, own = {"allow": allowed[:batch]}, weighted | {"node_weights": weights[:batch]}
        for k, options in ((20, masks), (70, masks | {"candidates": among}), (40, own), (520, masks), (600, {})):
            found = []
            for blocks in (1, 2, 3, 1056):
                use_sizes(split_blocks=blocks)
                found.append(hf.ppr_topk(graph, restart[:batch], k, **options))
            for name, array in vars(found[0]).items():
                for other in found[1:]:
                    assert_bitwise(getattr(other, name), array, name)


@pytest.mark.parametrize("decades", [None, 1.0, 9.0])
@pytest.mark.parametrize("prove", ["order", "set"])
def test_lists_that_need_more_passes(runtime: Any, prove: Any, decades: float | None) -> None:
    """Local bounds, one step and two, and refinements, of weighted nodes with Chebyshev's recurrence and without."""
    rng = np.random.default_rng(9)
    graph = entities_graph(rng)
    restart = [{300 + int(v): 1.0 for v in rng.choice(200, 4, False)} for _ in range(20)]
    options: dict[str, Any] = {}
    if decades is not None:
        options["node_weights"] = 10.0 ** -(decades * rng.integers(0, 5, (20, 300)) / 4)
        options["weighted_nodes"] = np.arange(300)
    for k in (10, 60):
        hf.ppr_topk(graph, restart, k, candidates=np.arange(300), prove=prove, **options)
    kinds = launched(runtime).keys()
    assert decades is not None or {"ppr_settle_around", "ppr_refine_around"} <= kinds
    assert prove == "set" or {"ppr_refine_measure", "ppr_refine_end", "ppr_refine_around"} <= kinds


@pytest.mark.parametrize(
    ("batch", "k", "damping"), [(1, 10, 0.5), pytest.param(16, 100, 0.85, marks=pytest.mark.full), (64, 60, 0.5)]
)
def test_the_host_waits_for_looks_not_for_lanes(runtime: Any, batch: int, k: int, damping: float) -> None:
    """Of a block: for its plan, tries of a proof, what is open after the certificate, and once for one look or two."""
    rng = np.random.default_rng(9)
    graph = entities_graph(rng)
    restart = [{300 + int(v): 1.0 for v in rng.choice(200, 4, False)} for _ in range(batch)]
    among = np.arange(300)
    hf.ppr_topk(graph, restart, k, candidates=among, damping=damping)  # the graph, its table of the recurrence
    runtime.launches.clear()
    runtime.events.clear()
    before = waits(runtime)
    hf.ppr_topk(graph, restart, k, candidates=among, damping=damping)
    kinds = launched(runtime)
    blocks, looks = kinds["ppr_restart"], kinds["ppr_settle_plan"]
    assert blocks == -(-batch // 32)
    assert kinds["ppr_settle_begin"] == kinds["ppr_polish"] == blocks
    assert (looks >= 2) == (batch > 1)
    assert waits(runtime) - before <= 2 * blocks + kinds["ppr_try"] + looks + 1
    assert uploads(runtime) <= 3 * blocks
    of_look = {"ppr_refine_measure": 1, "ppr_settle_around": 1, "ppr_refine_around": 1, "ppr_refine_end": 2}
    assert {name: kinds[name] for name in of_look} == {name: count * looks for name, count in of_look.items()}
    assert kinds["ppr_finish"] == blocks + 2 * looks


def test_calls_upload_what_differs_between_them(runtime: Any) -> None:
    """The lanes' restarts, and their places in the answers; not the coefficients of the recurrence."""
    rng = np.random.default_rng(15)
    graph = random_graph(rng, 190, 700, hub=3)
    hf.ppr(graph, random_restart(rng, 190, 4))
    runtime.events.clear()
    hf.ppr(graph, random_restart(rng, 190, 4))
    assert uploads(runtime) == 2


def test_scores_are_on_their_way_while_the_next_block_walks(runtime: Any) -> None:
    """The host waits for the plan and the certificate of each block, and for the last scores."""
    rng = np.random.default_rng(16)
    graph, restart = random_graph(rng, 190, 700, hub=3), random_restart(rng, 190, 70)
    hf.ppr(graph, restart)
    before = waits(runtime)
    hf.ppr(graph, restart)
    assert launched(runtime)["ppr_scores"] == 2 * 3
    assert waits(runtime) - before == 2 * 3 + 1


def test_scores_that_are_on_their_way_when_a_call_fails(runtime: Any) -> None:
    """The memory that they are copied to is not freed before they are there, which the emulated driver would find."""
    rng = np.random.default_rng(17)
    graph, restart = random_graph(rng, 190, 700, hub=3), random_restart(rng, 190, 40)
    expected = hf.ppr(graph, restart)
    of_block = len(runtime.launches) // 2
    runtime.driver.fail_next("cuLaunchKernel", 701, skip=of_block - 1)  # too many resources requested
    with refused(BackendError, "failed"):  # the next call succeeds
        hf.ppr(graph, restart)
    assert launched(runtime)["ppr_scores"] == 2 + 1
    runtime.release()
    assert_bitwise(hf.ppr(graph, restart).scores, expected.scores, "scores")


def test_a_graph_without_nodes(runtime: Any) -> None:
    graph, seeds = hf.Graph.from_edges([], [], num_nodes=0), hf.Seeds(np.full((2, 3), -1))
    expected = hf.ppr_topk(graph, seeds, 3, empty="skip")
    found = on_host(hf.ppr_topk(graph, on_device(seeds), 3, empty="skip"))
    for name, array in vars(expected).items():
        assert_bitwise(getattr(found, name), array, name)


def test_lanes_are_those_that_take_the_least_time_by_bytes() -> None:
    million, mib = (10**6, 10**7), 2**20
    assert [most_lanes(*million, l2 * mib, 5.0) for l2 in (0, 4, 36, 72)] == [32, 32, 4, 8]
    assert [most_lanes(72_000, 1_050_000, l2 * mib, 5.0) for l2 in (0, 4, 36, 72)] == [32] * 4
    assert most_lanes(10**7, 10**8, 72 * mib, 5.0) == most_lanes(5, 4, 72 * mib, 5.0) == 32
    assert most_lanes(*million, 60 * mib, 1.0) == 32  # as fast a memory as the cache: an H200


def test_lists_have_places_for_the_groups_of_every_block(runtime: Any) -> None:
    """Of two blocks of a batch, the last one has fewer lanes."""
    use_sizes(split_blocks=47)
    rng = np.random.default_rng(14)
    hf.ppr_topk(random_graph(rng, 1700, 3000, hub=3), random_restart(rng, 1700, 34), 5)
    assert {grid for kernel, grid, _ in runtime.launches if kernel == "ppr_scan"} == {13, 7}


def test_lanes_change_no_answer(runtime: Any) -> None:
    rng = np.random.default_rng(8)
    graph = random_graph(rng, 90, 400, hub=3)
    restart = random_restart(rng, 90, 11)
    hf.ppr_topk(graph, restart, 5)
    assert lanes(runtime) == {"16"}
    use_sizes(most_lanes=4)
    runtime.launches.clear()
    hf.ppr_topk(graph, restart, 5)
    assert lanes(runtime) == {"4"}


@pytest.mark.parametrize("masked", [False, True])
def test_a_walk_ends_in_one_launch(runtime: Any, masked: bool) -> None:
    rng = np.random.default_rng(6)
    graph, restart = random_graph(rng, 190, 700, hub=3), random_restart(rng, 190, 4)
    allowed = rng.random(190) < 0.9
    allowed[[node for row in restart for node in row]] = True
    hf.ppr(graph, restart, allow=allowed if masked else None)
    kinds = launched(runtime)
    assert (kinds["ppr_start"], kinds["ppr_walk" if masked else "ppr_walk_sliced"]) == (1, 1)
    assert not kinds.keys() & {"ppr_pass_weighted", "ppr_segments_weighted", "ppr_pass_sliced"}


@pytest.mark.full
def test_a_thread_of_a_walk_in_one_launch_sums_many_rows(runtime: Any) -> None:
    """So many that their grains do not fit in 32 bits.

    Cycles converge no faster than the theory says, so the residual decides when a walk ends: with the smaller tol a
    pass later than with the other, which differs from it by less than an error of a sum.
    """
    rng = np.random.default_rng(13)
    graph = hf.Graph.from_edges(np.arange(4000), rng.permutation(4000), num_nodes=4000, directed=True)
    restart = dict(enumerate(rng.random(4000)))

    def passes(tol: float) -> int:
        return int(hf.ppr(graph, [restart], tol=tol, damping=0.85, backend="cpu").iterations[0])

    below, above = 0.01, 0.02
    ends = passes(above)
    while above / below > 1.0 + 1e-7:
        middle = (below * above) ** 0.5
        below, above = (below, middle) if passes(middle) == ends else (middle, above)
    assert passes(below) == ends + 1
    with registered(SIMT, ordinal=4, blocks_at_once=1, multiprocessors=1):  # 8 rows at a time
        for tol in (below, above):
            hf.ppr(graph, [restart] * 17, tol=tol, damping=0.85)
    walks = [grid for kernel, grid, _ in runtime.launches if kernel == "ppr_walk_l32"]
    assert walks == [1, 1]


@pytest.mark.parametrize("why", ["proof", "types", "L2", "device"])
def test_a_walk_that_cannot_be_one_launch(runtime: Any, why: str) -> None:
    rng = np.random.default_rng(6)
    graph = random_graph(rng, 190, 700, hub=3, types=2)
    lacks = {"L2": {"l2_bytes": 2 * 4 * 4 * 190 - 1}, "device": {"cooperative": False}}
    eta = [1.0, 0.5] if why == "types" else None
    stop: Any = "proven" if why == "proof" else "tol"
    with registered(SIMT, ordinal=4, **lacks.get(why, {})):
        hf.ppr_topk(graph, random_restart(rng, 190, 4), 5, stop=stop, edge_type_weights=eta)
    kinds = launched(runtime)
    assert not kinds.keys() & {"ppr_walk", "ppr_walk_sliced"}
    assert kinds["ppr_start"] >= 1


def test_a_pass_takes_at_most_two_launches(runtime: Any) -> None:
    runtime.cooperative = False
    rng = np.random.default_rng(6)
    graph = random_graph(rng, 190, 700, hub=3)
    result = hf.ppr(graph, random_restart(rng, 190, 5))
    kinds = launched(runtime)
    walking = {kind: count for kind, count in kinds.items() if kind.startswith(("ppr_pass", "ppr_seg", "ppr_early"))}
    assert kinds["ppr_residual"] == kinds["ppr_residual_segments"] == 1
    assert set(walking) == {"ppr_pass_weighted", "ppr_segments_weighted", "ppr_early", "ppr_early_segments"}
    assert walking["ppr_early_segments"] == walking["ppr_early"] == 2
    assert walking["ppr_segments_weighted"] == walking["ppr_pass_weighted"] >= result.iterations.max() - 3
    assert sum(kinds.values()) - sum(walking.values()) <= 9


@pytest.mark.parametrize(
    ("directed", "seeds", "early"), [(False, 1, 4), (True, 20, 3), (False, 20, 2), (False, 900, 0)]
)
def test_first_passes_read_few_rows(runtime: Any, directed: bool, seeds: int, early: int) -> None:
    """As long as few can be nonzero, from rows that have 4 entries each or, with directions, 2."""
    runtime.cooperative = False
    grid, rng = grid_graph(40), np.random.default_rng(seeds)
    src, dst, *_ = grid.edges()
    graph = hf.Graph.from_edges(src, dst, num_nodes=grid.num_nodes, directed=True) if directed else grid
    hf.ppr(graph, [{int(v): 1.0 for v in rng.choice(1600, seeds, False)} for _ in range(3)], damping=[0.85, 0.3, 0.5])
    assert launched(runtime)["ppr_early"] == early


@pytest.mark.every_order
def test_orders_of_threads(runtime: Any) -> None:
    """Each kernel once, on the fewest threads: a sanitizer takes a millisecond for each."""
    rng = np.random.default_rng(7)
    graph, untyped = random_graph(rng, 100, 200, types=2, hub=3), random_graph(rng, 150, 300, hub=3)
    restart = random_restart(rng, 100, 2)
    options: dict[str, Any] = {"damping": 0.5, "max_iter": 3}
    hf.ppr(graph, restart, **options)
    hf.ppr(untyped, restart, **options)
    weights = 10.0 ** rng.uniform(-2, 0, (2, 100)) * (rng.random((2, 100)) > 0.2)
    for row, seeds in zip(weights, restart, strict=True):
        row[list(seeds)] = 1.0
    hf.ppr(graph, restart, node_weights=weights, **options)
    hf.ppr_topk(graph, restart, 40, tol=1e-3, node_weights=weights, damping=0.5)
    seeds = hf.Seeds([[9, -1, 4], [-1, 7, 3]], [[1.0, 0.0, 0.5], [0.0, 2.0, 1.0]])
    expected = hf.ppr_topk(graph, seeds, 5, backend="cpu", **options)
    found = on_host(hf.ppr_topk(graph, on_device(seeds), 5, **options))
    for name, array in vars(expected).items():
        assert_bitwise(getattr(found, name), array, name)
    options |= {"edge_type_weights": [0.5, 1.0], "allow": np.ones(100, np.bool_)}
    hf.ppr_topk(graph, restart, 5, **options)
    kernels = {kernel for kernel, _, _ in runtime.launches}
    assert {"ppr_walk_l4", "ppr_scan", "ppr_try", "ppr_finish", "ppr_degrees_l4"} <= kernels


@pytest.mark.parametrize("directed", [False, True])
def test_walks_pass_by_pass(runtime: Any, directed: bool) -> None:
    """In every width of lanes, by launches of their own."""
    runtime.cooperative = False
    for batch in (1, 5, 12, 33):
        rng = np.random.default_rng(batch)
        graph = random_graph(rng, 110, 300, directed=directed, hub=3)
        hf.ppr(graph, random_restart(rng, 110, batch), damping=rng.choice([0.0, 0.3, 0.5, 0.85], batch))
    assert not launched(runtime).keys() & {"ppr_walk", "ppr_walk_sliced"}


@pytest.mark.full
@pytest.mark.emulator
@pytest.mark.skipif(missing(SIMT) is not None, reason=str(missing(SIMT)))
def test_a_pass_moves_the_bytes_that_its_comment_states() -> None:
    """A pass of 32 lanes asks for at most 1.15 times nnz (4 + w) + 4 nnz B (gathers) + 4 n B a stream.

    There are two: the iterate before and the next one. Threads that share an address ask once, as on a device.
    """
    lanes = 32
    with registered("count", "count") as counting:
        graph = random_graph(np.random.default_rng(8), 700, 5000)
        linked = np.flatnonzero(np.diff(graph.indptr))
        counting.cooperative = False
        hf.ppr(graph, [{int(v): 1.0} for v in linked[:lanes]], backend="count")
    passes = [
        counters
        for (kernel, _, _), counters in zip(counting.launches, counting.counters, strict=True)
        if kernel == f"ppr_pass_weighted_l{lanes}"
    ]
    counters = passes[3]  # no residual is measured yet, and no lane has ended
    n, nnz = graph.num_nodes, graph.num_stored
    # A row's entries are read once, by threads of four lanes each; all its threads read its ends, its degree and the
    # restarts' word.
    alike = n * (16 + 4 + 8)
    asked = counters.global_loaded + counters.global_stored - (lanes // 4 - 1) * alike
    gathers = nnz * (4 + 4) + 4 * nnz * lanes
    assert gathers < asked <= 1.15 * (gathers + 2 * 4 * n * lanes)
