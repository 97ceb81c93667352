"""Lists that float32 alone cannot prove: equal rows, and one step of iterative refinement (hopfuse/ppr.h, PROOF and
REFINEMENT).
"""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_restart
from compare import assert_bitwise, assert_ppr_hits
from hopfuse import reference
from numpy.typing import NDArray

NAMES = ("ids", "scores", "counts", "score_bounds", "proven", "iterations", "residual", "bound", "converged")


def passages_graph(rng: np.random.Generator, twins: int = 0) -> hf.Graph:
    """300 passages of 1 to 8 of 200 entities, the first ``twins`` of them with the same three."""
    src, dst = [], []
    for passage in range(300):
        entities = rng.choice(200, int(rng.integers(1, 9)), replace=False)
        for entity in (3, 50, 120) if passage < twins else entities:
            src.append(passage)
            dst.append(300 + int(entity))
    values = rng.integers(1, 4, len(src)).astype(np.float64)
    values[: 3 * twins] = 1.0
    return hf.Graph.from_edges(src, dst, values, num_nodes=500)


def entity_restarts(rng: np.random.Generator, batch: int) -> list[dict[int, float]]:
    return [
        {300 + int(e): float(w) for e, w in zip(rng.choice(200, 4, False), rng.random(4) + 0.1, strict=True)}
        for _ in range(batch)
    ]


def assert_proven_order(hits: hf.Hits, exact: NDArray[np.float64]) -> None:
    """Row by row the exact order; equal exact scores by id."""
    k = hits.ids.shape[1]
    for b in np.flatnonzero(hits.proven):
        expected = np.lexsort((np.arange(exact.shape[1]), -exact[b].round(15)))[:k]
        assert hits.ids[b].tolist() == expected.tolist(), f"row {b}"


@pytest.mark.parametrize("damping", [0.3, 0.5, 0.85])
def test_long_lists_are_proven_though_their_gaps_are_below_float32s_errors(variant: str, damping: float) -> None:
    rng = np.random.default_rng(1)
    graph, among = passages_graph(rng), np.arange(300)
    restart = entity_restarts(rng, 24)
    exact = np.where(np.arange(500) < 300, reference.ppr(graph, restart, damping=damping), -np.inf)
    hits = hf.ppr_topk(graph, restart, 60, candidates=among, damping=damping)
    by_tol = hf.ppr_topk(graph, restart, 60, candidates=among, damping=damping, stop="tol")
    assert_ppr_hits(hits, exact)
    assert hits.proven.mean() > 0.85
    assert hits.proven.sum() > by_tol.proven.sum()
    refined = hits.iterations > by_tol.iterations + 2  # more than the local bounds take
    assert refined.any()
    assert (hits.bound[refined] < 0.5 * by_tol.bound[refined]).all()
    assert hits.converged[refined].all()


@pytest.mark.emulator_full
@pytest.mark.parametrize("prove", ["order", "set"])
def test_a_refined_list_is_the_same_in_any_batch(variant: str, prove: str) -> None:
    """In blocks of 1 to 32 lanes, where few or most of the others are refined too."""
    rng = np.random.default_rng(2)
    graph, among = passages_graph(rng), np.arange(300)
    restart = entity_restarts(rng, 33)
    options: dict[str, Any] = {"candidates": among, "damping": 0.5, "prove": prove}
    long = hf.ppr_topk(graph, restart, 60, backend="cpu", **options)
    short = hf.ppr_topk(graph, restart, 8, backend="cpu", **options)
    for hits, k in ((long, 60), (short, 8)):
        for batch in (1, 3, 7, 13, 33):
            some = hf.ppr_topk(graph, restart[:batch], k, **options)
            for name in NAMES:
                assert_bitwise(getattr(some, name), getattr(hits, name)[:batch], f"{name} of {batch}, k = {k}")
    assert prove == "set" or (short.ids == long.ids[:, :8]).all()


@pytest.mark.emulator_full
def test_shorter_lists_are_prefixes_of_longer_ones_and_of_lists_that_end_early(variant: str) -> None:
    """Near ties deep in a list, which lists of any k must rank alike, and candidates that no walk reaches."""
    rng = np.random.default_rng(1)
    graph, restart = passages_graph(rng), entity_restarts(rng, 12)
    allowed = np.arange(500) % 300 < 295
    allowed[300:] = True
    options: dict[str, Any] = {"candidates": np.arange(300), "allow": allowed}
    longest = hf.ppr_topk(graph, restart, 300, **options)
    assert (longest.counts < 300).all()
    for k in (1, 7, 60, 200, 231, 232, 233, 250, 290, 294, 295, 299):
        hits = hf.ppr_topk(graph, restart, k, **options)
        assert_bitwise(hits.ids, longest.ids[:, :k], f"ids of k = {k}")


@pytest.mark.parametrize("open_lanes", [1, 3, 6, 12, 20])
def test_few_lanes_are_refined_in_a_block_of_their_own(variant: str, open_lanes: int) -> None:
    """Among 32 queries, the others proven early: whatever block they come to, the answer is that of the query alone."""
    rng = np.random.default_rng(8)
    graph, among = passages_graph(rng), np.arange(300)
    pool = entity_restarts(rng, 400)
    alone = hf.ppr_topk(graph, pool, 40, candidates=among, backend="cpu")  # an emulator would take seconds
    by_tol = hf.ppr_topk(graph, pool, 40, candidates=among, stop="tol", backend="cpu")
    refined = np.flatnonzero(alone.iterations > by_tol.iterations)
    others = np.flatnonzero(alone.iterations <= by_tol.iterations)
    assert refined.size >= open_lanes
    assert others.size >= 32 - open_lanes
    chosen = np.sort(np.concatenate([refined[:open_lanes], others[: 32 - open_lanes]]))
    together = hf.ppr_topk(graph, [pool[b] for b in chosen], 40, candidates=among)
    for name in NAMES:
        assert_bitwise(getattr(together, name), getattr(alone, name)[chosen], name)


def test_an_error_too_small_for_float32_is_not_forgotten(variant: str) -> None:
    """Degrees near the largest that are allowed: the error for each unit of degree is below float32's least number."""
    src, dst = [2, 2, 1, 2, 0], [1, 3, 4, 0, 5]
    weight = [7.834e36, 1.332e38, 1.221e38, 7.845163e36, 3.065e36]
    graph = hf.Graph.from_edges(src, dst, weight)
    hits = hf.ppr_topk(graph, [{2: 1.0}], 1, candidates=[0, 1], damping=0.0466)
    exact = reference.ppr(graph, [{2: 1.0}], damping=0.0466)
    assert exact[0, 1] > exact[0, 0]
    assert hits.ids[0, 0] == 1 or not hits.proven[0]
    assert abs(hits.scores[0, 0] - exact[0, hits.ids[0, 0]]) <= hits.score_bounds[0, 0]


def test_a_restart_beside_a_far_larger_one_is_still_one(variant: str) -> None:
    graph = passages_graph(np.random.default_rng(4), twins=2)
    hits = hf.ppr_topk(graph, [{1: 5e-324, 303: 4.0}], 2, candidates=[0, 1])
    assert not hits.proven[0]


@pytest.mark.parametrize(("directed", "norm"), [(False, "joint"), (True, "joint"), (False, "per_type")])
def test_rows_are_equal_in_nodes_weights_and_types(variant: str, directed: bool, norm: str) -> None:
    """0 and 1 have the same rows; those of 2 differ from theirs in a type, but weigh as much."""
    src, dst, types = [4, 5, 4, 5, 4, 5, 4, 5], [0, 0, 1, 1, 2, 2, 3, 6], [0, 1, 0, 1, 1, 0, 0, 1]
    graph = hf.Graph.from_edges(src, dst, num_nodes=7, directed=directed, edge_type=types, edge_type_names=["a", "b"])
    options: dict[str, Any] = {"edge_type_weights": [0.5, 0.5], "edge_type_norm": norm}
    restart = [{4: 1.0, 5: 1.0}]
    twins = hf.ppr_topk(graph, restart, 2, candidates=[0, 1], **options)
    others = hf.ppr_topk(graph, restart, 2, candidates=[0, 2], **options)
    exact = reference.ppr(graph, restart, **options)[0]
    assert norm == "per_type" or exact[0] == pytest.approx(exact[2], rel=1e-12)
    assert twins.ids.tolist() == [[0, 1]]
    assert twins.proven.all()
    assert norm == "per_type" or not others.proven.any()


@pytest.mark.parametrize("k", [5, 7, 10, 12])
def test_nodes_with_equal_rows_are_proven_to_tie(variant: str, k: int) -> None:
    """Inside the list, and where its end cuts through them."""
    rng = np.random.default_rng(3)
    graph = passages_graph(rng, twins=6)
    restart = [{303: 1.0, 350: 0.5, 420: 1.0}, {303: 1.0, 350: 1.0, 420: 1.0}]
    exact = np.where(np.arange(500) < 300, reference.ppr(graph, restart), -np.inf)
    hits = hf.ppr_topk(graph, restart, k, candidates=np.arange(300))
    assert (hits.ids < 6).sum(axis=1).tolist() == [min(6, k - 4), min(6, k - 3)]
    assert hits.proven.all()
    assert_proven_order(hits, exact)


MIRRORS: dict[str, list[tuple[int, int]]] = {
    "own entities": [(0, 2), (1, 2), (0, 3), (1, 4), (2, 5)],
    "own entities, linked": [(0, 2), (1, 2), (0, 3), (1, 4), (3, 4), (3, 5), (4, 5), (2, 5)],
    "own entities, one below and one above the shared": [(0, 3), (1, 3), (0, 2), (1, 5), (3, 4)],
    "linked to each other": [(0, 1), (0, 2), (1, 2), (2, 5)],
    "linked to themselves": [(0, 0), (1, 1), (0, 2), (1, 2), (2, 5)],
}


def mirrored(edges: list[tuple[int, int]], weights: dict[tuple[int, int], float] | None = None) -> hf.Graph:
    src, dst = zip(*edges, strict=True)
    values = [(weights or {}).get(edge, 1.0) for edge in edges]
    return hf.Graph.from_edges(src, dst, values, num_nodes=8)


@pytest.mark.parametrize("name", MIRRORS)
def test_nodes_with_mirrored_rows_are_proven_to_tie(variant: str, name: str) -> None:
    """Inside the list, and where its end cuts through them; with a filter that leaves the mirror whole or breaks it."""
    graph, center = mirrored(MIRRORS[name]), 3 if "below" in name else 2
    restart = [{center: 1.0}]
    exact = reference.ppr(graph, restart)[0]
    assert exact[0] == exact[1]
    for k in (1, 2):
        hits = hf.ppr_topk(graph, restart, k, candidates=[0, 1])
        assert hits.ids[0].tolist() == [0, 1][:k]
        assert hits.scores[0, 0] == hits.scores[0, -1]
        assert hits.proven.all()
    seeded = hf.ppr_topk(graph, [{center: 1.0, 0: 0.1, 1: 0.1}], 2, candidates=[0, 1])
    assert not seeded.proven.any()


def test_mirrored_rows_may_be_filtered_and_weighted(variant: str) -> None:
    graph, restart = mirrored(MIRRORS["own entities"]), [{2: 1.0}]
    allow = np.ones(8, bool)
    allow[5] = False
    assert hf.ppr_topk(graph, restart, 2, candidates=[0, 1], allow=allow).proven.all()
    allow[[3, 4]] = False  # then the rows are equal
    assert hf.ppr_topk(graph, restart, 2, candidates=[0, 1], allow=allow).proven.all()
    heavy = np.ones(8)
    heavy[[3, 4]] = 3.0
    assert hf.ppr_topk(graph, restart, 2, candidates=[0, 1], node_weights=heavy[None]).proven.all()


NO_MIRRORS: dict[str, tuple[list[tuple[int, int]], dict[tuple[int, int], float]]] = {
    "the mirror is two steps away": ([(0, 2), (1, 2), (0, 3), (1, 4), (3, 5), (4, 6)], {}),
    "two own entities each": ([(0, 2), (1, 2), (0, 3), (0, 4), (1, 5), (1, 6)], {}),
    "nearly equal weights": (
        [(0, 2), (1, 2), (0, 3), (1, 4)],
        {(1, 4): float(np.nextafter(np.float32(1), np.float32(2)))},
    ),
    "one own entity has a link more": ([(0, 2), (1, 2), (0, 3), (1, 4), (4, 7), (2, 5)], {(0, 3): 1.0}),
}


@pytest.mark.parametrize("name", NO_MIRRORS)
def test_a_tie_of_other_rows_is_not_proven(variant: str, name: str) -> None:
    graph = mirrored(*NO_MIRRORS[name])
    hits = hf.ppr_topk(graph, [{2: 1.0}], 2, candidates=[0, 1])
    exact = reference.ppr(graph, [{2: 1.0}])[0]
    if exact[0] == pytest.approx(exact[1], rel=1e-7):
        assert not hits.proven.any()
    else:
        assert hits.ids[0].tolist() == np.lexsort(([0, 1], -exact[:2])).tolist()


def test_the_mirrored_nodes_must_not_restart(variant: str) -> None:
    """Equal restarts keep the tie, which is not proven; unequal ones do not."""
    graph = mirrored(MIRRORS["own entities"])
    for share in (1.0, 1.0 + 1e-9):
        assert not hf.ppr_topk(graph, [{2: 1.0, 3: 1.0, 4: share}], 2, candidates=[0, 1]).proven.any()


def test_a_directed_graph_has_no_mirrored_rows(variant: str) -> None:
    """The rows mirror each other, but an own entity has a link that leaves it, which no row of the four holds."""
    src, dst = [2, 2, 3, 4, 2, 2, 4], [0, 1, 0, 1, 3, 4, 6]
    graph = hf.Graph.from_edges(src, dst, num_nodes=8, directed=True)
    exact = reference.ppr(graph, [{2: 1.0}])[0]
    assert exact[0] > exact[1]
    hits = hf.ppr_topk(graph, [{2: 1.0}], 2, candidates=[0, 1])
    assert hits.ids.tolist() == [[0, 1]]


@pytest.mark.parametrize("seeds", [{0: 1.0, 300: 1.0}, {0: 1.0, 1: 1.0, 300: 1.0}])
def test_nodes_that_restart_are_not_twins(variant: str, seeds: dict[int, float]) -> None:
    graph = passages_graph(np.random.default_rng(4), twins=2)
    exact = np.where(np.arange(500) < 2, reference.ppr(graph, [seeds]), -np.inf)
    hits = hf.ppr_topk(graph, [seeds], 2, candidates=[0, 1])
    assert_ppr_hits(hits, exact)
    assert hits.ids.tolist() == [[0, 1]]
    assert bool(hits.proven[0]) == (1 not in seeds)


def test_a_weight_that_differs_in_its_last_bit_makes_no_twin(variant: str) -> None:
    rng = np.random.default_rng(5)
    src, dst = np.repeat([0, 1], 2), np.array([3, 4, 3, 4])
    others = rng.integers(5, 40, (2, 60))
    weight = np.ones(64, np.float32)
    weight[3] = np.nextafter(np.float32(1), np.float32(2))
    graph = hf.Graph.from_edges(np.append(src, others[0]), np.append(dst, others[1]), weight, num_nodes=40)
    restart = [{3: 1.0}, {4: 1.0}]
    exact = np.where(np.arange(40) < 2, reference.ppr(graph, restart), -np.inf)
    hits = hf.ppr_topk(graph, restart, 2, candidates=[0, 1])
    assert_ppr_hits(hits, exact)
    for b in np.flatnonzero(hits.proven):
        assert hits.ids[b, 0] == np.argmax(exact[b])


def test_a_pass_limit_leaves_a_list_unrefined(variant: str) -> None:
    rng = np.random.default_rng(6)
    graph, restart = passages_graph(rng), entity_restarts(rng, 4)
    among = np.arange(300)
    free = hf.ppr_topk(graph, restart, 60, candidates=among)
    exactly = hf.ppr_topk(graph, restart, 60, candidates=among, max_iter=int(free.iterations.max()))
    by_tol = hf.ppr_topk(graph, restart, 60, candidates=among, stop="tol")
    for name in NAMES:
        assert_bitwise(getattr(exactly, name), getattr(free, name), name)
    last = int(np.argmax(free.iterations))
    shorter = hf.ppr_topk(graph, restart, 60, candidates=among, max_iter=int(free.iterations.max()) - 1)
    assert (shorter.iterations < free.iterations.max()).all()
    held = hf.ppr_topk(graph, restart, 60, candidates=among, max_iter=int(by_tol.iterations[last]))
    assert_bitwise(held.scores[last], by_tol.scores[last], "scores")
    assert held.iterations[last] == by_tol.iterations[last]


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-9])
def test_bounds_of_refined_scores_hold_at_any_tol(variant: str, tol: float) -> None:
    rng = np.random.default_rng(7)
    for types, masked in ((1, False), (3, False), (1, True)):
        graph = random_graph(rng, 90, 500, types=types)
        restart = random_restart(rng, 90, 12)
        options: dict[str, Any] = {"damping": rng.choice([0.0, 0.2, 0.6, 0.95], 12), "tol": tol}
        if types > 1:
            options["edge_type_weights"] = rng.random((12, types)) + 0.1
        if masked:
            allowed = rng.random((12, 90)) < 0.8
            for b, row in enumerate(restart):
                allowed[b, list(row)] = True
            options["allow"] = allowed
        walk = {name: value for name, value in options.items() if name != "tol"}
        exact = reference.ppr(graph, restart, **walk)
        hits = hf.ppr_topk(graph, restart, 90, candidates=np.arange(90), **options)
        by_tol = hf.ppr_topk(graph, restart, 90, candidates=np.arange(90), stop="tol", **options)
        assert tol < 1e-6 or (hits.iterations > by_tol.iterations).any()
        assert_ppr_hits(hits, exact)
        for b, n in enumerate(hits.counts):
            assert np.abs(hits.scores[b, :n] - exact[b, hits.ids[b, :n]]).sum() <= hits.bound[b] + 1e-13
        assert_bitwise(hits.converged, hits.bound <= tol, "converged")
