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
def test_long_lists_are_proven_though_their_gaps_are_below_float32s_errors(isa: str, damping: float) -> None:
    rng = np.random.default_rng(1)
    graph, among = passages_graph(rng), np.arange(300)
    restart = entity_restarts(rng, 24)
    exact = np.where(np.arange(500) < 300, reference.ppr(graph, restart, damping=damping), -np.inf)
    hits = hf.ppr_topk(graph, restart, 60, among=among, damping=damping)
    by_tol = hf.ppr_topk(graph, restart, 60, among=among, damping=damping, stop="tol")
    assert_ppr_hits(hits, exact)
    assert hits.proven.mean() > 0.85
    assert hits.proven.sum() > by_tol.proven.sum()
    refined = hits.iterations > by_tol.iterations
    assert refined.any()
    assert (hits.bound[refined] < 1.3e-7).all()
    assert hits.converged[refined].all()


def test_a_refined_list_is_the_same_in_any_batch(isa: str) -> None:
    """In blocks of 1 to 32 lanes, where few or most of the others are refined too."""
    rng = np.random.default_rng(2)
    graph, among = passages_graph(rng), np.arange(300)
    restart = entity_restarts(rng, 33)
    options: dict[str, Any] = {"among": among, "damping": 0.5}
    long = hf.ppr_topk(graph, restart, 60, **options)
    short = hf.ppr_topk(graph, restart, 8, **options)
    for hits, k in ((long, 60), (short, 8)):
        for batch in (1, 3, 7, 13, 33):
            some = hf.ppr_topk(graph, restart[:batch], k, **options)
            for name in NAMES:
                assert_bitwise(getattr(some, name), getattr(hits, name)[:batch], f"{name} of {batch}, k = {k}")
    assert_bitwise(short.ids, long.ids[:, :8], "ids of a smaller k")


@pytest.mark.parametrize("k", [5, 7, 10, 12])
def test_nodes_with_equal_rows_are_proven_to_tie(isa: str, k: int) -> None:
    """Inside the list, and where its end cuts through them."""
    rng = np.random.default_rng(3)
    graph = passages_graph(rng, twins=6)
    restart = [{303: 1.0, 350: 0.5, 420: 1.0}, {303: 1.0, 350: 1.0, 420: 1.0}]
    exact = np.where(np.arange(500) < 300, reference.ppr(graph, restart), -np.inf)
    hits = hf.ppr_topk(graph, restart, k, among=np.arange(300))
    assert (hits.ids < 6).sum(axis=1).tolist() == [min(6, k - 4), min(6, k - 3)]
    assert hits.proven.all()
    assert_proven_order(hits, exact)


def test_a_tie_of_rows_that_differ_is_not_proven(isa: str) -> None:
    """Two entities that mirror each other: the passages' scores are equal, which no row says."""
    graph = hf.Graph.from_edges([0, 1, 0, 1, 2], [3, 4, 2, 2, 5], num_nodes=6)
    hits = hf.ppr_topk(graph, [{2: 1.0}], 2, among=[0, 1])
    assert hits.ids.tolist() == [[0, 1]]
    assert not hits.proven.any()


@pytest.mark.parametrize("seeds", [{0: 1.0, 300: 1.0}, {0: 1.0, 1: 1.0, 300: 1.0}])
def test_nodes_that_restart_are_no_twins(isa: str, seeds: dict[int, float]) -> None:
    graph = passages_graph(np.random.default_rng(4), twins=2)
    exact = np.where(np.arange(500) < 2, reference.ppr(graph, [seeds]), -np.inf)
    hits = hf.ppr_topk(graph, [seeds], 2, among=[0, 1])
    assert_ppr_hits(hits, exact)
    assert hits.ids.tolist() == [[0, 1]]
    assert bool(hits.proven[0]) == (1 not in seeds)


def test_a_weight_that_differs_in_its_last_bit_makes_no_twin(isa: str) -> None:
    rng = np.random.default_rng(5)
    src, dst = np.repeat([0, 1], 2), np.array([3, 4, 3, 4])
    others = rng.integers(5, 40, (2, 60))
    weight = np.ones(64, np.float32)
    weight[3] = np.nextafter(np.float32(1), np.float32(2))
    graph = hf.Graph.from_edges(np.append(src, others[0]), np.append(dst, others[1]), weight, num_nodes=40)
    restart = [{3: 1.0}, {4: 1.0}]
    exact = np.where(np.arange(40) < 2, reference.ppr(graph, restart), -np.inf)
    hits = hf.ppr_topk(graph, restart, 2, among=[0, 1])
    assert_ppr_hits(hits, exact)
    for b in np.flatnonzero(hits.proven):
        assert hits.ids[b, 0] == np.argmax(exact[b])


def test_a_pass_limit_leaves_a_list_unrefined(isa: str) -> None:
    rng = np.random.default_rng(6)
    graph, restart = passages_graph(rng), entity_restarts(rng, 4)
    among = np.arange(300)
    free = hf.ppr_topk(graph, restart, 60, among=among)
    held = hf.ppr_topk(graph, restart, 60, among=among, max_iter=int(free.iterations.max()) - 1)
    exactly = hf.ppr_topk(graph, restart, 60, among=among, max_iter=int(free.iterations.max()))
    by_tol = hf.ppr_topk(graph, restart, 60, among=among, stop="tol")
    for name in NAMES:
        assert_bitwise(getattr(exactly, name), getattr(free, name), name)
    last = int(np.argmax(free.iterations))
    assert_bitwise(held.scores[last], by_tol.scores[last], "scores")
    assert (held.iterations < free.iterations.max()).all()


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-9])
def test_bounds_of_refined_scores_hold_at_any_tol(isa: str, tol: float) -> None:
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
            options["allowed_nodes"] = allowed
        exact = reference.ppr(graph, restart, **{name: value for name, value in options.items() if name != "tol"})
        hits = hf.ppr_topk(graph, restart, 40, **options)
        assert_ppr_hits(hits, exact)
        for b, n in enumerate(hits.counts):
            assert np.abs(hits.scores[b, :n] - exact[b, hits.ids[b, :n]]).sum() <= hits.bound[b] + 1e-13
        assert_bitwise(hits.converged, hits.bound <= tol, "converged")
