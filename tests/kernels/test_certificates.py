"""``proven`` and ``score_bounds`` against dense solves in float64, on many small graphs: no certificate may be false.

48,000 queries, 240,000 with ``HOPFUSE_TESTS=full``, on the instruction set in use: the others give the same bits
(test_one_answer.py). Among them are weights that differ in their last bits, hubs, ties, dangling nodes and dampings
near 1. Then 48,000 walks with node weights, 240,000 more in the full tier: absent nodes, equal weights, and up to 30
decades of them.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph
from numpy.typing import NDArray
from tiers import FULL

QUERIES = 240_000 if FULL else 48_000
BATCH = 1_000
#: What a dense solve of so few unknowns leaves, of scores that sum to 1.
SOLVED = 1e-13


def draw_graph(rng: np.random.Generator, turn: int) -> hf.Graph:
    """In turn: any weights, weights in few steps (ties), and weights equal but for their last bits; some directed."""
    n, edges = int(rng.integers(8, 90)), int(rng.integers(10, 300))
    directed = turn % 5 == 4
    if turn % 3 == 0:
        return random_graph(rng, n, edges, directed=directed, hub=int(rng.integers(n)) if turn % 2 else None)
    src, dst = rng.integers(0, n, edges), rng.integers(0, n, edges)
    steps = rng.integers(1, 3, edges).astype(np.float64)
    weight = steps if turn % 3 == 1 else 1.0 + 1e-6 * rng.random(edges)
    return hf.Graph.from_edges(src, dst, weight, num_nodes=n, directed=directed)


def draw_restarts(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    restart = np.where(rng.random((BATCH, n)) < 2.5 / n, rng.random((BATCH, n)), 0.0)
    restart[np.arange(BATCH), rng.integers(0, n, BATCH)] += 0.1
    return restart


def adjacency(graph: hf.Graph) -> NDArray[np.float64]:
    src, dst, weight, _ = graph.edges()
    walks = np.zeros((graph.num_nodes, graph.num_nodes))
    np.add.at(walks, (src, dst), weight)
    apart = (src != dst) & (not graph.directed)
    np.add.at(walks, (dst[apart], src[apart]), weight[apart])
    return walks


def solve_walks(walks: NDArray[np.float64], restart: NDArray[np.float64], damping: float) -> NDArray[np.float64]:
    """x (I - d P) = (1 - d) s, (..., B, n), and what dangling nodes lose given back in proportion."""
    degree = walks.sum(axis=-1, keepdims=True)
    p = np.divide(walks, degree, out=np.zeros_like(walks), where=degree > 0)
    unknown = np.eye(walks.shape[-1]) - damping * np.swapaxes(p, -1, -2)
    x: NDArray[np.float64] = np.swapaxes(np.linalg.solve(unknown, np.swapaxes(restart, -1, -2)), -1, -2)
    return x / x.sum(axis=-1, keepdims=True)


def solve(graph: hf.Graph, restart: NDArray[np.float64], damping: float) -> NDArray[np.float64]:
    return solve_walks(adjacency(graph), restart, damping)


def false_certificates(
    hits: Any, exact: NDArray[np.float64], prove: str = "order", tie: float = 1.0
) -> tuple[int, int]:
    """Proven queries that have another set or order than the exact scores, and scores that leave their bounds.

    Exact scores are equal that differ by no more than a solve leaves, and by no more than ``tie`` times the larger.
    """
    k = hits.ids.shape[1]
    best = -np.sort(-exact, axis=1)[:, :k]
    is_hit = np.arange(k) < hits.counts[:, None]
    missing = hits.counts < np.minimum(k, (exact > SOLVED).sum(axis=1))
    found = np.take_along_axis(exact, np.where(is_hit, hits.ids, 0), axis=1)
    placed = found if prove == "order" else -np.sort(-np.where(is_hit, found, -np.inf), axis=1)
    misplaced = is_hit & (np.abs(placed - best) > SOLVED)
    apart = np.abs(found[:, 1:] - found[:, :-1])
    tied = is_hit[:, 1:] & (apart <= SOLVED) & (apart <= tie * found[:, :-1])
    out_of_order = tied & (hits.ids[:, 1:] < hits.ids[:, :-1])
    out_of_order &= prove == "order"
    wrong = hits.proven & (missing | misplaced.any(axis=1) | out_of_order.any(axis=1))
    error = np.abs(np.where(is_hit, hits.scores - found, 0.0))
    return int(wrong.sum()), int((error > hits.score_bounds + SOLVED).sum())


@pytest.mark.parametrize(("stop", "prove"), [("proven", "order"), ("proven", "set"), ("tol", "order")])
def test_no_certificate_is_false(stop: str, prove: str) -> None:
    rng = np.random.default_rng(7)
    proven = early = 0
    for turn in range(QUERIES // BATCH):
        graph = draw_graph(rng, turn)
        restart = draw_restarts(rng, graph.num_nodes)
        damping, tol = (0.1, 0.5, 0.85, 0.98)[turn % 4], (1e-3, 1e-5, 1e-7)[turn // 4 % 3]
        k = min(graph.num_nodes, (1, 3, 10)[turn // 12 % 3])
        options: dict[str, Any] = {"damping": damping, "tol": tol, "stop": stop, "prove": prove}
        hits = hf.ppr_topk(graph, restart, k, **options)
        exact = solve(graph, restart, damping)
        few = np.arange(graph.num_nodes) % 3 != turn % 3
        among = np.flatnonzero(few)
        some = hf.ppr_topk(graph, restart, min(k, among.size), candidates=among, **options)
        assert false_certificates(hits, exact, prove) == (0, 0), f"turn {turn}"
        assert false_certificates(some, np.where(few, exact, 0.0), prove) == (0, 0), f"turn {turn}, among some"
        proven += int(hits.proven.sum())
        early += int((hits.proven & ~hits.converged).sum())
    assert proven > 0.3 * QUERIES
    assert stop == "tol" or early > 0.1 * QUERIES


def test_no_bound_of_all_scores_is_false() -> None:
    rng = np.random.default_rng(9)
    converged = 0
    for turn in range(QUERIES // BATCH // 4):
        graph = draw_graph(rng, turn)
        restart = draw_restarts(rng, graph.num_nodes)
        damping, tol = (0.1, 0.5, 0.85, 0.98)[turn % 4], (1e-3, 1e-5, 1e-7)[turn // 4 % 3]
        result = hf.ppr(graph, restart, damping=damping, tol=tol)
        error = np.abs(result.scores - solve(graph, restart, damping)).sum(axis=1)
        assert (error <= result.bound + SOLVED).all(), f"turn {turn}"
        assert (result.converged == (result.bound <= tol)).all()
        converged += int(result.converged.sum())
    assert converged > 0.1 * QUERIES


#: So many queries in turn have the same node weights.
ALIKE = 25
#: Between scores of light nodes, which a solve gives to so many digits, however small they are.
TIE = 1e-9


def draw_node_weights(
    rng: np.random.Generator, turn: int, restart: NDArray[np.float64]
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Weights of each query, in turn over 0, 1, 8 and 30 decades, of few steps (ties), with absent nodes among them.

    And the restarts without those. The largest weight is 1, so that float32 numbers are what a walk reads.
    """
    groups, n = BATCH // ALIKE, restart.shape[1]
    steps = rng.integers(0, 4, (groups, n)) / 3 if turn % 3 == 1 else rng.random((groups, n))
    z = np.float32(10.0) ** np.float32(-steps * (0.0, 1.0, 8.0, 30.0)[turn % 4])
    z[rng.random((groups, n)) < (0.0, 0.3, 0.0)[turn % 3]] = 0.0
    z[np.arange(groups), rng.integers(0, n, groups)] = 1.0
    weights = np.repeat(z, ALIKE, axis=0).astype(np.float32)
    kept = np.where(weights > 0, restart, 0.0)
    kept[np.arange(BATCH), weights.argmax(axis=1)] += 0.1 * (kept.sum(axis=1) == 0)
    return weights, kept


def solve_weighted(
    graph: hf.Graph, restart: NDArray[np.float64], damping: float, weights: NDArray[np.float32]
) -> NDArray[np.float64]:
    """The same where every edge into a node counts by the node's weight; absent nodes have no edges."""
    z = weights[::ALIKE].astype(np.float64)
    walks = adjacency(graph) * z[:, None, :] * (z > 0)[:, :, None]
    grouped = restart.reshape(len(z), ALIKE, -1)
    return solve_walks(walks, grouped, damping).reshape(restart.shape)


def draw_weighted_walk(
    rng: np.random.Generator, turn: int
) -> tuple[hf.Graph, NDArray[np.float64], NDArray[np.float64], dict[str, Any]]:
    """A graph, restarts, their exact scores by node weights, and the options of these walks."""
    graph = draw_graph(rng, turn)
    weights, restart = draw_node_weights(rng, turn, draw_restarts(rng, graph.num_nodes))
    damping, tol = (0.5, 0.1, 0.98, 0.85)[turn % 4], (1e-3, 1e-5, 1e-7)[turn // 4 % 3]
    options: dict[str, Any] = {"damping": damping, "tol": tol, "node_weights": weights}
    return graph, restart, solve_weighted(graph, restart, damping, weights), options


#: Turns of tests with node weights: 60,000 walks each in the full tier.
WEIGHTED_TURNS = pytest.mark.parametrize(
    "turns", [range(12), pytest.param(range(12, 72), marks=pytest.mark.full)], ids=["few", "many"]
)


@WEIGHTED_TURNS
@pytest.mark.parametrize(("stop", "prove"), [("proven", "order"), ("proven", "set"), ("tol", "order")])
def test_no_certificate_of_weighted_walks_is_false(stop: str, prove: str, turns: range) -> None:
    rng = np.random.default_rng([11, turns.start])
    proven = refined = 0
    for turn in turns:
        graph, restart, exact, options = draw_weighted_walk(rng, turn)
        k = min(graph.num_nodes, (3, 10, 1)[turn // 2 % 3])
        options |= {"stop": stop, "prove": prove}
        hits = hf.ppr_topk(graph, restart, k, **options)
        assert false_certificates(hits, exact, prove, TIE) == (0, 0), f"turn {turn}"
        proven += int(hits.proven.sum())
        refined += int((hits.score_bounds[:, 0] < 1e-7).sum())
    assert proven > 0.3 * BATCH * len(turns)
    assert refined > 0.05 * BATCH * len(turns)


@WEIGHTED_TURNS
def test_no_bound_of_all_weighted_scores_is_false(turns: range) -> None:
    rng = np.random.default_rng([12, turns.start])
    converged = 0
    for turn in turns:
        graph, restart, exact, options = draw_weighted_walk(rng, turn)
        result = hf.ppr(graph, restart, **options)
        error = np.abs(result.scores - exact).sum(axis=1)
        assert (error <= result.bound + SOLVED).all(), f"turn {turn}"
        converged += int(result.converged.sum())
    assert converged > 0.1 * BATCH * len(turns)


def test_a_false_certificate_is_counted() -> None:
    rng = np.random.default_rng(8)
    graph = draw_graph(rng, 0)
    restart = draw_restarts(rng, graph.num_nodes)
    exact = solve(graph, restart, 0.5)
    hits = hf.ppr_topk(graph, restart, 3)
    swapped, moved = hits.ids.copy(), hits.scores.copy()
    swapped[:, :2] = hits.ids[:, 1::-1]
    moved[:, 0] += 2 * hits.score_bounds[:, 0] + 1e-6
    same = {name: getattr(hits, name) for name in ("ids", "scores", "counts", "score_bounds", "proven")}
    wrong = SimpleNamespace(**(same | {"ids": swapped, "proven": np.ones(BATCH, bool)}))
    short = SimpleNamespace(**(same | {"counts": hits.counts - 1, "proven": np.ones(BATCH, bool)}))
    off = SimpleNamespace(**(same | {"scores": moved}))
    assert false_certificates(short, exact)[0] > 0.9 * BATCH
    assert false_certificates(wrong, exact)[0] > 0.9 * BATCH
    assert false_certificates(off, exact)[1] > 0.9 * BATCH
