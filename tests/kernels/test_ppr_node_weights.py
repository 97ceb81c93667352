"""node_weights: each query's own odds of stepping to a node, against the oracle and against walks that are the same."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import PprCase, grid_graph, ppr_cases, random_graph, random_restart
from compare import assert_bitwise, assert_ppr, assert_ppr_hits
from hopfuse import reference
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused
from variants import SIMT

EVIDENCE = ("scores", "iterations", "residual", "bound", "converged")
Weights = NDArray[np.float64]


def assert_same(actual: Any, expected: Any) -> None:
    for name in vars(expected):
        assert_bitwise(getattr(actual, name), getattr(expected, name), name)


def check(graph: hf.Graph, restart: Any, k: int = 5, **options: Any) -> hf.PprResult:
    """All scores and the best k against the oracle: errors within their bounds, proven lists exact."""
    exact = reference.ppr(graph, restart, **options)
    result = hf.ppr(graph, restart, **options)
    residual = reference.ppr_residual(graph, result.scores, restart, **options)
    assert_ppr(result, exact, residual=residual, tol=1e-6)
    for prove in ("order", "set"):
        hits = hf.ppr_topk(graph, restart, k, prove=prove, **options)
        assert_ppr_hits(hits, exact) if prove == "order" else assert_holds_best(hits, exact)
    return result


def assert_holds_best(hits: hf.PprHits, exact: Weights) -> None:
    """Scores within their bounds, and proven sets the exact ones."""
    for b, count in enumerate(hits.counts):
        own = exact[b, hits.ids[b, :count]]
        assert (np.abs(hits.scores[b, :count] - own) <= hits.score_bounds[b, :count] + 1e-13).all()
        if hits.proven[b] and count < exact.shape[1]:
            rest = np.delete(exact[b], hits.ids[b, :count])
            assert own.min(initial=np.inf) >= rest.max(initial=0.0) - 1e-13


def spread(rng: np.random.Generator, batch: int, n: int, decades: float) -> Weights:
    return 10.0 ** rng.uniform(-decades, 0.0, (batch, n))


@st.composite
def weighted_cases(draw: st.DrawFn) -> PprCase:
    """Every kind of graph, filter and edge-type weights with weights of every spread, zeros and columns among them."""
    case = draw(ppr_cases(batches=(1, 2, 4, 5, 9, 17)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    batch, n = len(case.restart), case.graph.num_nodes
    z = spread(rng, batch, n, draw(st.sampled_from([0.0, 1.0, 4.0, 12.0, 30.0])))
    z[rng.random((batch, n)) < draw(st.sampled_from([0.0, 0.0, 0.3]))] = 0.0
    for b, row in enumerate(case.restart):
        z[b, list(row)] = 1.0
    z = z.astype(draw(st.sampled_from([np.float32, np.float64])))
    if draw(st.booleans()):
        case.options["weighted_nodes"] = rng.permutation(n)[: max(1, n // 2)]
        z = np.maximum(z[:, case.options["weighted_nodes"]], z.dtype.type(1e-3))
    case.options["node_weights"] = z * z.dtype.type(draw(st.sampled_from([1.0, 3.0, 2.0**-20])))
    return case


@pytest.mark.emulator_full
@given(case=weighted_cases())
def test_drawn_graphs_and_weights_meet_the_oracle(variant: str, case: PprCase) -> None:
    check(case.graph, case.restart, **case.options)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("norm", ["joint", "per_type"])
def test_weights_that_are_all_1_or_another_power_of_two_give_the_bits_of_none(
    variant: str, directed: bool, norm: str
) -> None:
    rng = np.random.default_rng(1)
    for weights, types in (("none", 1), ("random", 2)):
        graph = random_graph(rng, 150, 600, directed=directed, types=types, weights=weights, hub=3)
        for batch in (6,) if variant == SIMT else (1, 6, 33):
            restart = random_restart(rng, 150, batch)
            options: dict[str, Any] = {"edge_type_norm": norm, "damping": 0.7}
            for value in (1.0, 2.0**-900):
                z = np.full((batch, 150), value)
                assert_same(hf.ppr(graph, restart, node_weights=z, **options), hf.ppr(graph, restart, **options))
            ones = {**options, "node_weights": np.ones((batch, 40), np.float32), "weighted_nodes": np.arange(40)}
            assert_same(hf.ppr_topk(graph, restart, 7, **ones), hf.ppr_topk(graph, restart, 7, **options))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("norm", ["joint", "per_type"])
def test_weights_of_0_and_1_give_the_bits_of_allow(variant: str, directed: bool, norm: str) -> None:
    rng = np.random.default_rng(2)
    graph = random_graph(rng, 150, 600, directed=directed, types=2, hub=3)
    for batch in (6,) if variant == SIMT else (1, 6, 17):
        allowed = rng.random((batch, 150)) < 0.7
        restart = random_restart(rng, 150, batch, allowed)
        options: dict[str, Any] = {"edge_type_norm": norm, "damping": 0.7}
        z = allowed.astype(np.float32)
        masked = {**options, "allow": allowed}
        assert_same(hf.ppr(graph, restart, node_weights=z, **options), hf.ppr(graph, restart, **masked))
        weighted = hf.ppr_topk(graph, restart, 7, node_weights=z, **options)
        assert_same(weighted, hf.ppr_topk(graph, restart, 7, **masked))
        some = spread(rng, batch, 150, 2.0)
        assert_same(
            hf.ppr(graph, restart, node_weights=some * z, **options),
            hf.ppr(graph, restart, node_weights=some, **masked),
        )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("norm", ["joint", "per_type"])
def test_an_answer_depends_on_its_query_alone(directed: bool, norm: str) -> None:
    """Not on the batch, the threads, or weights of other queries that exclude nodes or spread over 30 decades."""
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 400, 2400, directed=directed, types=2, hub=3)
    restart = random_restart(rng, 400, 37)
    z = np.stack([spread(rng, 1, 400, decades)[0] for decades in np.linspace(0.0, 30.0, 37)])
    z[5::7] *= rng.random(400) < 0.8
    for b, row in enumerate(restart):
        z[b, list(row)] = 1.0
    options: dict[str, Any] = {"edge_type_norm": norm, "damping": 0.8}
    together = hf.ppr_topk(graph, restart, 9, node_weights=z, **options)
    assert_same(hf.ppr_topk(graph, restart, 9, node_weights=z, threads=3, **options), together)
    for size in (1, 4, 7, 11):
        for first in range(0, 37, size):
            part = slice(first, first + size)
            alone = hf.ppr_topk(graph, restart[part], 9, node_weights=z[part], **options)
            for name, array in vars(alone).items():
                assert_bitwise(array, getattr(together, name)[part], name)
    scores = hf.ppr(graph, restart, node_weights=z, **options).scores
    for part in (slice(0, 1), slice(5, 12), slice(20, 37)):
        assert_bitwise(hf.ppr(graph, restart[part], node_weights=z[part], **options).scores, scores[part], "all scores")


@pytest.mark.parametrize("decades", [4.0, 30.0])
@pytest.mark.parametrize("shape", ["hub", "chain", "grid", "apart", "directed"])
def test_weights_over_many_decades_keep_every_bound_true(variant: str, shape: str, decades: float) -> None:
    """At random, along the nodes, and one heavy node among light ones; on a chain, hubs, ties and two components."""
    rng = np.random.default_rng(4)
    n = 144
    graph = {
        "hub": lambda: random_graph(rng, n, 500, hub=3),
        "chain": lambda: hf.Graph.from_edges(np.arange(n - 1), np.arange(1, n)),
        "grid": lambda: grid_graph(12),
        "apart": lambda: hf.Graph.from_edges(np.arange(n - 2), np.arange(2, n)),
        "directed": lambda: random_graph(rng, n, 500, directed=True, hub=3),
    }[shape]()
    restart = random_restart(rng, n, 3) * 3
    slope = np.tile(10.0 ** -np.linspace(0.0, decades, n), (3, 1))
    heavy = np.full((3, n), 10.0**-decades)
    heavy[np.arange(3), [3, 70, 143]] = 1.0
    z = np.concatenate([spread(rng, 3, n, decades), slope, heavy])
    for damping in (0.5, 0.85):
        result = check(graph, restart, damping=damping, node_weights=z)
        assert (result.bound < 1e-4).all()


def test_factors_that_float32_rounds_as_subnormal_numbers(variant: str) -> None:
    """Light nodes between heavy edges: a / D is below float32's normal range, so that there are no local bounds."""
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, 60, (2, 200))
    graph = hf.Graph.from_edges(src, dst, np.full(200, 1e12), num_nodes=60)
    restart = random_restart(rng, 60, 6)
    z = spread(rng, 6, 60, 30.0)
    for row, seeds in zip(z, restart, strict=True):
        row[list(seeds)] = 1.0
    assert_ppr_hits(hf.ppr_topk(graph, restart, 20, node_weights=z), reference.ppr(graph, restart, node_weights=z))


def test_bounds_around_light_nodes(variant: str) -> None:
    """Sets that local bounds prove: what underflows is divided by a node's weight."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, 140, 560, hub=7)
        restart = random_restart(rng, 140, 12)
        z = spread(rng, 12, 140, 0.5 + seed)
        for row, seeds in zip(z, restart, strict=True):
            row[list(seeds)] = 1.0
        exact = reference.ppr(graph, restart, node_weights=z)
        for k in (60, 80, 100):
            assert_holds_best(hf.ppr_topk(graph, restart, k, prove="set", tol=1e-4, node_weights=z), exact)


def test_edges_to_absent_nodes_leave_a_dangling_node(variant: str) -> None:
    """0 - 1 - 2, and 0 - 3: without 1 and 3 the seed 0 keeps its mass; 3 alone takes what 1 had."""
    for directed in (False, True):
        graph = hf.Graph.from_edges([0, 1, 0], [1, 2, 3], directed=directed)
        z = np.array([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 1e-30]])
        result = check(graph, [{0: 1.0}] * 2, node_weights=z)
        assert_bitwise(result.scores[0], np.float32([1, 0, 0, 0]))
        assert result.scores[1, 3] > 0.3


@pytest.mark.parametrize("directed", [False, True])
def test_empty_places_and_their_weights_cannot_be_felt(variant: str, directed: bool) -> None:
    """Free places weigh anything, excluded ones too: the bits are those of the graph without them."""
    rng = np.random.default_rng(5)
    n, room = 90, 150
    place = np.sort(rng.permutation(room)[:n])
    edges = rng.integers(0, n - 10, (2, 300))
    rebuilt = hf.Graph.from_edges(*edges, rng.random(300) + 0.1, num_nodes=n, directed=directed)
    src, dst, weight, _ = rebuilt.edges()
    dead = np.setdiff1d(np.arange(room), place)[:20]
    to = rng.choice(place, 20)
    roomy = hf.Graph.from_edges(
        np.concatenate([place[src], dead]),
        np.concatenate([place[dst], to]),
        np.concatenate([weight, np.ones(20)]),
        num_nodes=room,
        directed=directed,
    )
    restart = random_restart(rng, n, 6)
    moved = [{int(place[v]): w for v, w in row.items()} for row in restart]
    allow = ~np.isin(np.arange(room), dead)
    z = spread(rng, 6, n, 3.0)
    wide = rng.choice([1e-9, 1.0, 1e200], (6, room))
    wide[:, place] = z
    for damping in (0.5, 0.9):
        expected = hf.ppr_topk(rebuilt, restart, 8, node_weights=z, damping=damping)
        found = hf.ppr_topk(roomy, moved, 8, node_weights=wide, allow=allow, damping=damping)
        assert_bitwise(np.where(found.ids >= 0, place.searchsorted(found.ids), -1), expected.ids)
        for name in ("scores", "score_bounds", "proven", "iterations", "residual", "bound"):
            assert_bitwise(getattr(found, name), getattr(expected, name), name)
        scores = hf.ppr(roomy, moved, node_weights=wide, allow=allow, damping=damping).scores
        assert_bitwise(scores[:, place], hf.ppr(rebuilt, restart, node_weights=z, damping=damping).scores)
        assert (scores[:, ~np.isin(np.arange(room), place)] == 0).all()


def test_equal_nodes_tie_exactly_only_where_their_weights_are_equal() -> None:
    """Leaves of a star: those of one weight are proven in the order of their ids."""
    graph = hf.Graph.from_edges(np.zeros(8, int), np.arange(1, 9))
    z = np.array([[1.0, 0.5, 0.25, 0.5, 0.5, 0.25, 0.125, 0.125, 0.125]])
    hits = hf.ppr_topk(graph, [{0: 1.0}], 9, node_weights=z)
    assert hits.ids[0].tolist() == [0, 1, 3, 4, 2, 5, 6, 7, 8]
    assert hits.proven.all()


@pytest.mark.emulator_full
def test_edge_type_weights_and_filters_beside_weights_of_some_nodes(variant: str) -> None:
    rng = np.random.default_rng(6)
    for directed in (False, True):
        graph = random_graph(rng, 130, 600, directed=directed, types=3, hub=5)
        allowed = rng.random((8, 130)) < 0.85
        restart = random_restart(rng, 130, 8, allowed)
        nodes = rng.permutation(130)[:60]
        z = spread(rng, 8, 60, 4.0)
        for norm in ("joint", "per_type"):
            eta = rng.random((8, 3)) / 3
            check(
                graph,
                restart,
                node_weights=z,
                weighted_nodes=nodes,
                allow=allowed,
                edge_type_weights=eta,
                edge_type_norm=norm,
                damping=rng.choice([0.3, 0.5, 0.85], 8),
            )


@pytest.mark.parametrize(("n", "norm"), [(70_000, "joint"), (270_000, "joint"), (270_000, "per_type")])
def test_few_queries_on_a_large_graph_get_the_bits_of_many(n: int, norm: str) -> None:
    """One is walked in slices whose sources 16 bits do not hold, or up to four in tiles; five row by row."""
    rng = np.random.default_rng(7)
    graph = random_graph(rng, n, n, types=2, hub=11, weights="none")
    restart = random_restart(rng, n, 5)
    z = spread(rng, 5, n // 2, 4.0).astype(np.float32)
    options: dict[str, Any] = {"weighted_nodes": np.arange(n // 2), "edge_type_norm": norm, "tol": 1e-3, "stop": "tol"}
    many = hf.ppr_topk(graph, restart, 5, node_weights=z, **options)
    for rows in (slice(0, 1), slice(1, 5)):
        few = hf.ppr_topk(graph, restart[rows], 5, node_weights=z[rows], **options)
        for name, array in vars(few).items():
            assert_bitwise(array, getattr(many, name)[rows], name)


def test_a_captured_core_takes_weights_of_its_batch() -> None:
    rng = np.random.default_rng(8)
    graph = random_graph(rng, 90, 400, hub=3)

    def core(nodes: Any, weights: Any, z: Any) -> hf.PprHits:
        options: dict[str, Any] = {"weighted_nodes": np.arange(50), "stop": "tol", "backend": "cpu"}
        return hf.ppr_topk(graph, hf.Seeds(nodes, weights), 5, node_weights=z, **options)

    captured = hf.capture(core, [((2,), "int64"), ((2,), "float64"), ((50,), "float32")], backend="cpu")
    for batch in (1, 3):
        nodes = np.stack([rng.permutation(90)[:2] for _ in range(batch)])
        given = nodes, rng.random((batch, 2)) + 0.1, (rng.random((batch, 50)) + 0.01).astype(np.float32)
        assert_same(captured(*given), core(*given))


STAR = hf.Graph.from_edges([0, 0, 0], [1, 2, 3])


@pytest.mark.parametrize(
    ("weights", "nodes", "refusal"),
    [
        ([[1.0, np.nan, 1.0, 1.0]], None, ("range", "node_weights[0, 1]")),
        ([[1.0, 1.0, np.inf, 1.0]], None, ("range", "node_weights[0, 2]")),
        (np.float32([[1.0, 1.0, 1.0, -0.5]]), None, ("range", "node_weights[0, 3]")),
        ([[0.0, 0.0]], [1, 2], ("zero", "node_weights[0]")),
        ([[0.0, 1.0, 1.0, 1.0]], None, ("conflict", "restart[0]")),
        ([[1e-40, 1.0, 1.0, 1.0]], None, ("conflict", "restart[0]")),
        ([[1e40]], [2], ("conflict", "restart[0]")),
        ([[1.0, 1.0]], None, ("shape", "node_weights")),
        ([1.0, 1.0, 1.0, 1.0], None, ("shape", "node_weights")),
        ([[1.0, 1.0]], [1], ("shape", "node_weights")),
        ([["a", "b"]], [1, 2], ("dtype", "node_weights")),
        ([[1.0, 1.0]], [1, 4], ("unknown", "weighted_nodes")),
        ([[1.0, 1.0]], [1, -1], ("unknown", "weighted_nodes")),
        ([[1.0, 1.0]], [2, 2], ("duplicate", "weighted_nodes")),
        ([[1.0, 1.0]], [[1, 2]], ("shape", "weighted_nodes")),
        ([[1.0, 1.0]], [0.5, 1.0], ("dtype", "weighted_nodes")),
        (None, [1], ("unused", "weighted_nodes")),
    ],
)
def test_weights_that_no_walk_has_are_refused(weights: Any, nodes: Any, refusal: tuple[str, str | None]) -> None:
    for walk in (hf.ppr, lambda *given, **options: hf.ppr_topk(*given, 2, **options)):
        with refused(InputError, *refusal):
            walk(STAR, [{0: 1.0}], node_weights=weights, weighted_nodes=nodes)


def test_weights_belong_to_the_nodes_of_their_own_call() -> None:
    """A graph keeps the last nodes; the caller may change the array."""
    nodes = np.array([1, 3])
    expected = hf.ppr(STAR, [{0: 1.0}], node_weights=[[1.0, 0.1, 1.0, 0.5]]).scores
    assert_bitwise(hf.ppr(STAR, [{0: 1.0}], node_weights=[[0.1, 0.5]], weighted_nodes=nodes).scores, expected, "first")
    nodes[:] = [3, 1]
    assert_bitwise(hf.ppr(STAR, [{0: 1.0}], node_weights=[[0.5, 0.1]], weighted_nodes=nodes).scores, expected, "next")


def test_a_range_of_nodes_is_read_as_its_numbers() -> None:
    """A graph keeps the last range, and what it keeps is that of this range alone."""
    rng = np.random.default_rng(4)
    graph, other = random_graph(rng, 30, 90), random_graph(rng, 30, 60)
    restart, ranges = [{3: 1.0}, {7: 2.0, 20: 1.0}], (range(30), range(5, 25), range(0, 30, 3), range(5, 25), range(0))
    for walked in (graph, other, graph):
        for nodes in ranges:
            listed = np.array(nodes, np.int64)
            options: dict[str, Any] = {"node_weights": spread(rng, 2, len(nodes), 3.0)}
            for candidates in (nodes, range(2, 12)):
                found = hf.ppr_topk(walked, restart, 6, candidates=candidates, weighted_nodes=nodes, **options)
                among = np.array(candidates, np.int64)
                assert_same(found, hf.ppr_topk(walked, restart, 6, candidates=among, weighted_nodes=listed, **options))


@pytest.mark.parametrize("nodes", [range(3, 6), range(-1, 2), range(9, 12)])
def test_a_range_beyond_the_graph_is_refused_as_its_numbers_are(nodes: range) -> None:
    for form in (nodes, np.array(nodes)):
        with refused(InputError, "unknown", "candidates"):
            hf.ppr_topk(STAR, [{0: 1.0}], 2, candidates=form)
        with refused(InputError, "unknown", "weighted_nodes"):
            hf.ppr(STAR, [{0: 1.0}], node_weights=[[1.0, 1.0, 1.0]], weighted_nodes=form)


def test_the_largest_weight_may_be_of_a_node_that_a_query_cannot_reach() -> None:
    """Weights are scaled by the largest of a node that is allowed and has edges."""
    graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3], num_nodes=6)
    for tiny in (2.0**-96, 2.0**-17):
        weights = np.array([[tiny, tiny / 2, tiny, tiny / 4, 1.0, 8.0], [tiny, tiny, tiny, 8.0, 0.0, 8.0]])
        allow = np.array([[True] * 4 + [False] * 2, [True] * 3 + [False] * 3])
        scaled = np.where(allow, weights / tiny, 0.0)
        expected = hf.ppr(graph, [{0: 1.0}] * 2, node_weights=scaled, allow=allow)
        assert_same(hf.ppr(graph, [{0: 1.0}] * 2, node_weights=weights, allow=allow), expected)


def test_products_that_float32_cannot_hold_are_refused() -> None:
    graph = hf.Graph.from_edges([0, 0], [1, 2], [1e-20, 1.0])
    hf.ppr(graph, [{0: 1.0}], node_weights=[[1.0, 1e-17, 1.0]])
    with refused(InputError, "range", "node_weights[0]"):
        hf.ppr(graph, [{0: 1.0}], node_weights=[[1.0, 1e-20, 1.0]])
    typed = hf.Graph.from_edges([0, 0], [1, 2], edge_type=[0, 1])
    with refused(InputError, "range", "node_weights[0]"):
        hf.ppr(typed, [{0: 1.0}], node_weights=[[1.0, 1e-20, 1.0]], edge_type_weights=[1.0, 1e-20])


def test_a_query_without_seeds_is_skipped_with_its_weights() -> None:
    z = np.array([[1.0, 0.5, 0.25, 0.125]] * 3)
    hits = hf.ppr_topk(STAR, [{0: 1.0}, {}, {1: 1.0}], 4, node_weights=z, empty="skip")
    assert hits.counts.tolist() == [4, 0, 4]
    assert_bitwise(hits.ids[[0, 2]], hf.ppr_topk(STAR, [{0: 1.0}, {1: 1.0}], 4, node_weights=z[:2]).ids)


@pytest.mark.parametrize("norm", ["joint", "per_type"])
@pytest.mark.parametrize("directed", [False, True])
def test_degrees_of_more_types_than_are_summed_at_once_meet_the_oracle(variant: str, directed: bool, norm: str) -> None:
    rng = np.random.default_rng(11)
    graph = random_graph(rng, 120, 900, directed=directed, types=11, weights="random", hub=3)
    eta = rng.uniform(0.1, 1.0, 11) / 11
    for batch in (1, 5):
        z = np.maximum(spread(rng, batch, 120, 3.0), 1e-3)
        restart = random_restart(rng, 120, batch)
        check(graph, restart, node_weights=z, edge_type_norm=norm, damping=0.7)
        check(graph, restart, node_weights=z, edge_type_norm=norm, damping=0.7, edge_type_weights=eta)


@pytest.mark.parametrize("max_iter", [1, 2, 3, None])
def test_a_pass_that_skips_rows_gives_the_bits_of_one_that_reads_all(variant: str, max_iter: int | None) -> None:
    n = 600 if variant == SIMT else 4000
    path = hf.Graph.from_edges(np.arange(n - 1), np.arange(1, n), np.random.default_rng(3).random(n - 1) + 0.1)
    few, many = {n // 2: 1.0}, dict.fromkeys(range(0, n, 7), 1.0)
    z = np.full((2, n), 0.5)
    z[:, ::3] = 1.0
    for weights in (None, z):
        options: dict[str, Any] = {"damping": 0.6, "max_iter": max_iter}
        alone = hf.ppr(path, [few], node_weights=None if weights is None else weights[:1], **options)
        both = hf.ppr(path, [few, many], node_weights=weights, **options)
        for name in EVIDENCE:
            assert_bitwise(getattr(alone, name), getattr(both, name)[:1], name)
