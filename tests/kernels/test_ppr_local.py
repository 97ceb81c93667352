"""Bounds that look around a node (hopfuse/ppr.h, LOCAL BOUNDS) against float64, and what they prove."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_restart
from compare import assert_ppr_hits
from hopfuse import reference
from numpy.typing import NDArray

LONG_LIST = 90


def passages_graph(rng: np.random.Generator) -> hf.Graph:
    """300 passages of 1 to 8 of 200 entities, with weights in few steps: many small gaps."""
    src = np.repeat(np.arange(300), rng.integers(1, 9, 300))
    return hf.Graph.from_edges(src, 300 + rng.integers(0, 200, src.size), rng.integers(1, 4, src.size), num_nodes=500)


def entity_restarts(rng: np.random.Generator, batch: int) -> list[dict[int, float]]:
    return [{300 + int(e): float(rng.random() + 0.1) for e in rng.choice(200, 4, False)} for _ in range(batch)]


def walks_of(graph: hf.Graph) -> NDArray[np.float64]:
    """P of an undirected graph, dense."""
    n = graph.num_nodes
    src, dst, weight, _ = graph.edges()
    walks = np.zeros((n, n))
    np.add.at(walks, (src, dst), weight)
    apart = src != dst
    np.add.at(walks, (dst[apart], src[apart]), weight[apart])
    return walks


@pytest.mark.parametrize("damping", [0.2, 0.5, 0.85])
def test_a_local_bound_is_that_of_float64(damping: float) -> None:
    """After one pass of refinement: no less than the formulas, and hardly more."""
    rng = np.random.default_rng(1)
    graph, restart = passages_graph(rng), entity_restarts(rng, 64)
    scored = hf.ppr(graph, restart, damping=damping)
    walks = walks_of(graph)
    degree = walks.sum(axis=1)
    p = np.divide(walks, degree[:, None], out=np.zeros_like(walks), where=degree[:, None] > 0)
    s = np.zeros((64, 500))
    for b, row in enumerate(restart):
        s[b, list(row)] = np.array(list(row.values())) / sum(row.values())
    x = scored.scores.astype(np.float64)
    per = np.where(degree > 0, degree, 1.0)
    rho = (damping * x @ p + (1 - damping) * s - x) / per
    gap = np.abs(damping * rho @ p.T)  # rho after one pass of refinement
    refined, ends = x + per * rho, damping / (1 - damping)
    bounds = {
        1: np.broadcast_to(gap.max(axis=1, keepdims=True) / (1 - damping), gap.shape),
        2: gap + ends * (gap @ p.T).max(axis=1, keepdims=True),
    }
    tried = {1: 0, 2: 0}
    for k in (5, 20, 35, 50):
        hits = hf.ppr_topk(graph, restart, k, candidates=np.arange(300), damping=damping)
        for passes, bound in bounds.items():
            # Of other passes than x^ stands after this is not the bound.
            for b in np.flatnonzero(hits.proven & (hits.iterations == scored.iterations + passes)):
                ids = hits.ids[b, : hits.counts[b]]
                scores = hits.scores[b, : hits.counts[b]].astype(np.float64)
                if not (np.abs(scores - refined[b, ids]) <= 2.0**-24 * scores).all():
                    continue
                local = bound[b, ids] * degree[ids] + 2.0**-24 * scores
                told = hits.score_bounds[b, : hits.counts[b]].astype(np.float64)
                assert (told >= np.minimum(local, hits.bound[b]) * (1 - 1e-6)).all()  # the L1 bound where it is less
                assert (told <= local * (1 + 1e-3) + 1e-12 * degree[ids]).all()
                tried[passes] += 1
    assert all(tried.values()), tried


def chain() -> hf.Graph:
    """60 nodes in a row, weights that fall by a thousandth each."""
    return hf.Graph.from_edges(np.arange(59), np.arange(1, 60), 1.0 - 1e-3 * np.arange(59))


def star() -> hf.Graph:
    """A hub with 3,000 leaves, in pairs of nearly equal weight, and a chain of them."""
    leaves = np.arange(1, 3001)
    weight = 1.0 + (leaves // 2) * 2.0**-12 + (leaves % 2) * 2.0**-22
    return hf.Graph.from_edges(
        np.append(np.zeros(3000, np.int64), leaves[:-1:50]),
        np.append(leaves, leaves[1::50]),
        np.append(weight, np.ones(60)),
    )


def heavy() -> hf.Graph:
    """Degrees from 1e-30 to 1e30."""
    rng = np.random.default_rng(2)
    return hf.Graph.from_edges(rng.integers(0, 60, 150), rng.integers(0, 60, 150), 10.0 ** rng.integers(-30, 30, 150))


@pytest.mark.parametrize("make", [chain, star, heavy])
@pytest.mark.parametrize("damping", [0.0, 0.3, 0.5, 0.9])
def test_proofs_on_awkward_graphs_are_exact(variant: str, make: Any, damping: float) -> None:
    graph = make()
    linked = np.flatnonzero(graph.degree[graph.internal_of].sum(axis=1) > 0)
    restart = [{int(linked[0]): 1.0}, {int(linked[5]): 1.0, int(linked[-1]): 2.0}, {int(v): 1.0 for v in linked[3:30]}]
    exact = reference.ppr(graph, restart, damping=damping)
    for k in (1, 7, 40, 90):
        assert_ppr_hits(hf.ppr_topk(graph, restart, k, damping=damping), exact)


@pytest.mark.parametrize("masked", [False, True])
def test_proofs_with_types_and_masks_are_exact(variant: str, masked: bool) -> None:
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 120, 700, types=3, hub=5)
    restart = random_restart(rng, 120, 24)
    options: dict[str, Any] = {"edge_type_weights": rng.random((24, 3)) + 0.05, "damping": rng.random(24) * 0.9}
    if masked:
        options["allow"] = rng.random((24, 120)) < 0.8
        for b, row in enumerate(restart):
            options["allow"][b, list(row)] = True
    exact = reference.ppr(graph, restart, **options)
    by_tol = hf.ppr_topk(graph, restart, LONG_LIST, stop="tol", **options)
    hits = hf.ppr_topk(graph, restart, LONG_LIST, **options)
    assert_ppr_hits(hits, exact)
    assert (hits.iterations > by_tol.iterations).any()
