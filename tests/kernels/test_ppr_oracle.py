"""ppr on every kernel variant against the float64 oracle: the error is within the bound, the bound is honest."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import scipy.sparse as sp
from cases import PprCase, awkward_graph, grid_graph, ppr_cases, random_graph, random_restart, to_dense
from compare import assert_bitwise, assert_ppr
from hopfuse import reference
from hypothesis import given

FLOOR = 8e-6
BATCHES = [1, 3, 4, 5, 8, 9, 16, 17, 32, 33, 70]


def check(graph: hf.Graph, restart: Any, *, tol: float = 1e-6, max_iter: int | None = None, **options: Any) -> Any:
    """Run, compare with the oracle, check every claim of the evidence, return the result."""
    result = hf.ppr(graph, restart, tol=tol, max_iter=max_iter, threads=1, **options)
    exact = reference.ppr(graph, restart, **options)
    residual = reference.ppr_residual(graph, result.scores, restart, **options)
    assert_ppr(result, exact, residual=residual, tol=tol)
    return result


def assert_near_float32(result: hf.PprResult, damping: Any, tol: float = 1e-6) -> None:
    """Converged, or ended at what float32 sums in segments of 64 can hold (a hub beside large and small terms)."""
    allowed = np.maximum(tol, FLOOR / (1 - np.asarray(damping)))
    assert (result.bound <= allowed).all(), f"bounds {result.bound}, allowed {allowed}"


@given(case=ppr_cases())
def test_drawn_graphs_and_options_meet_the_oracle(variant: str, case: PprCase) -> None:
    result = check(case.graph, case.restart, **case.options)
    assert_near_float32(result, case.options["damping"])


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("directed", [False, True])
def test_every_batch_size_meets_the_oracle(variant: str, batch: int, directed: bool) -> None:
    rng = np.random.default_rng(batch)
    graph = random_graph(rng, 150, 500, directed=directed, hub=7)
    result = check(graph, random_restart(rng, 150, batch))
    assert result.scores.shape == (batch, 150)
    assert result.converged.all()


def test_an_empty_batch_gives_empty_results(variant: str) -> None:
    result = hf.ppr(awkward_graph(False), [])
    assert result.scores.shape == (0, 8)
    assert all(getattr(result, name).shape == (0,) for name in ("iterations", "residual", "bound", "converged"))


@pytest.mark.parametrize("n", [1, 2, 62, 63, 64, 65, 127, 128, 129, 257])
@pytest.mark.parametrize("weights", ["none", "random"])
def test_sizes_around_a_tile_meet_the_oracle(variant: str, n: int, weights: str) -> None:
    rng = np.random.default_rng(n)
    for directed in (False, True):
        graph = random_graph(rng, n, 3 * n, directed=directed, weights=weights)
        assert check(graph, [*random_restart(rng, n, 5), {n - 1: 1.0}]).converged.all()


@pytest.mark.parametrize("spokes", [1, 63, 64, 65, 127, 128, 129, 192, 200, 321])
@pytest.mark.parametrize("weighted", [False, True])
def test_hubs_around_whole_segments_meet_the_oracle(variant: str, spokes: int, weighted: bool) -> None:
    rng = np.random.default_rng(spokes)
    hub, leaves = spokes, np.arange(spokes)
    weight = rng.random(spokes) + 0.1 if weighted else None
    restart = [{0: 1.0}, {spokes - 1: 2.0, hub: 1.0}, {hub: 1.0}, dict.fromkeys(range(spokes + 1), 1.0)]
    for directed in (False, True):
        graph = hf.Graph.from_edges(leaves, np.full(spokes, hub), weight, directed=directed)
        for damping in (0.5, 0.85):
            assert_near_float32(check(graph, restart, damping=damping), damping)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("norm", ["joint", "per_type"])
@pytest.mark.parametrize("damping", [0.0, 0.3, 0.5, 0.85, 0.99])
def test_damping_dangling_isolated_and_self_loops(variant: str, directed: bool, norm: str, damping: float) -> None:
    graph = awkward_graph(directed)
    restart = [{v: 1.0} for v in range(8)] + [{0: 0.1, 2: 3.0, 6: 1.0, 7: 0.5}, dict.fromkeys(range(8), 1.0)]
    result = check(graph, restart, damping=damping, edge_type_norm=norm)
    assert_near_float32(result, damping)
    if damping == 0.0:
        assert_bitwise(result.scores, (to_dense(restart, 8) / to_dense(restart, 8).sum(1)[:, None]).astype(np.float32))


def test_each_query_has_its_own_damping(variant: str) -> None:
    rng = np.random.default_rng(1)
    graph = random_graph(rng, 90, 300)
    damping = np.array([0.0, 0.3, 0.5, 0.85, 0.95, 0.1, 0.5])
    assert_near_float32(check(graph, random_restart(rng, 90, 7), damping=damping), damping)


def test_damping_is_the_probability_of_walking_on() -> None:
    graph = hf.Graph.from_edges([0], [1], directed=True)
    scores = hf.ppr(graph, [{0: 1.0}], damping=0.3).scores[0]
    # 1 dangles, so its mass returns: x0 = 1/(1 + 0.3)
    np.testing.assert_allclose(scores, [1 / 1.3, 0.3 / 1.3], rtol=1e-6)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("norm", ["joint", "per_type"])
def test_edge_type_weights_per_call_and_per_query(variant: str, directed: bool, norm: str) -> None:
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 100, 400, directed=directed, types=3, hub=5)
    restart = random_restart(rng, 100, 6)
    eta = rng.random((6, 3)) + np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [2.0]])
    eta[1], eta[2] = [1, 0, 0], [0, 0.5, 0.25]
    if norm == "per_type":
        eta /= np.maximum(1.0, eta.sum(axis=1, keepdims=True))
        eta[3] = [0.1, 0.2, 0.05]  # the rest of the mass returns to the seeds
        eta[4] = 0.0
    assert check(graph, restart, edge_type_weights=eta, edge_type_norm=norm).converged.all()
    for row in eta:
        assert check(graph, restart, edge_type_weights=row, edge_type_norm=norm).converged.all()


def test_with_no_type_that_walks_all_mass_stays_at_the_seeds(variant: str) -> None:
    graph = awkward_graph(False)
    for norm in ("joint", "per_type"):
        result = check(graph, [{1: 3.0, 4: 1.0}], edge_type_weights=[0.0, 0.0, 0.0], edge_type_norm=norm)
        assert_bitwise(result.scores[0], np.float32([0, 0.75, 0, 0, 0.25, 0, 0, 0]))


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize("directed", [False, True])
def test_converged_is_exactly_bound_at_most_tol(variant: str, tol: float, directed: bool) -> None:
    rng = np.random.default_rng(4)
    graph = random_graph(rng, 130, 600, directed=directed, hub=0)
    result = check(graph, random_restart(rng, 130, 6), tol=tol, damping=0.85)
    if tol >= 1e-6:
        assert result.converged.all()
    if tol <= 1e-10:
        assert not result.converged.any()
        assert (result.bound < 1e-5).all()


def test_what_is_not_proven_around_a_hub_may_still_be_near_enough(variant: str) -> None:
    star = hf.Graph.from_edges([0] * 1000, list(range(1, 1001)))
    result = check(star, [{0: 1.0}], damping=0.85)
    assert not result.converged[0]
    assert 1e-6 < result.bound[0] < 4e-6
    assert np.abs(result.scores - reference.ppr(star, [{0: 1.0}], damping=0.85)).sum() <= 3e-7


@pytest.mark.parametrize("tol", [1e-30, 1e-300, 5e-324])
@pytest.mark.parametrize("directed", [False, True])
def test_a_tol_far_below_float32_ends_at_a_pass_limit(variant: str, tol: float, directed: bool) -> None:
    graph = random_graph(np.random.default_rng(5), 30, 90, directed=directed)
    result = check(graph, [{0: 1.0}, {7: 1.0}], tol=tol)
    assert (result.iterations < 2000).all()
    assert (result.bound < 1e-5).all()


@pytest.mark.parametrize("max_iter", [1, 2, 3, 5])
def test_max_iter_limits_the_passes_and_the_bound_stays_honest(variant: str, max_iter: int) -> None:
    rng = np.random.default_rng(6)
    for directed in (False, True):
        graph = random_graph(rng, 100, 500, directed=directed)
        result = check(graph, random_restart(rng, 100, 9), max_iter=max_iter, damping=0.85)
        assert (result.iterations <= 2 * (max_iter + 1)).all()  # two attempts, each with its certifying pass
        assert not result.converged.any()


def test_a_max_iter_beyond_need_changes_nothing(variant: str) -> None:
    rng = np.random.default_rng(6)
    graph = random_graph(rng, 100, 500)
    restart = random_restart(rng, 100, 9)
    assert_same(hf.ppr(graph, restart, max_iter=10_000), hf.ppr(graph, restart))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("scale", [1e-30, 2e-37, 1e30, 1e35])
def test_the_scale_of_all_weights_does_not_matter(variant: str, scale: float, directed: bool) -> None:
    rng = np.random.default_rng(7)
    src, dst, weight = rng.integers(0, 80, 300), rng.integers(0, 80, 300), rng.random(300) + 0.1
    graph = hf.Graph.from_edges(src, dst, weight * scale, num_nodes=80, directed=directed)
    assert check(graph, random_restart(rng, 80, 5)).converged.all()


@pytest.mark.parametrize("directed", [False, True])
def test_weights_from_1e_minus_30_to_1e30_keep_the_bound_honest(variant: str, directed: bool) -> None:
    rng = np.random.default_rng(8)
    for _ in range(4):
        graph = random_graph(rng, 80, 200, directed=directed, weights="extreme")
        check(graph, random_restart(rng, 80, 9))


@pytest.mark.parametrize("eta", [[1e300, 1e300], [1e-300, 2e-300], [5e-324, 5e-324], [1e308, 1.5e308]])
def test_only_ratios_of_joint_type_weights_matter(variant: str, eta: list[float]) -> None:
    rng = np.random.default_rng(9)
    graph = random_graph(rng, 80, 200, types=2)
    assert check(graph, random_restart(rng, 80, 5), edge_type_weights=eta).converged.all()


def test_joint_type_weights_that_differ_by_a_power_of_two_give_the_same_bits(variant: str) -> None:
    rng = np.random.default_rng(9)
    graph = random_graph(rng, 80, 200, types=2)
    restart = random_restart(rng, 80, 5)
    one = hf.ppr(graph, restart, edge_type_weights=[0.3, 1.7])
    for power in (-40, -1, 1, 60):
        assert_same(hf.ppr(graph, restart, edge_type_weights=np.ldexp([0.3, 1.7], power)), one)


def test_symmetric_nodes_get_equal_scores(variant: str) -> None:
    result = check(grid_graph(9), [{40: 1.0}], damping=0.85)
    square = result.scores[0].reshape(9, 9)
    np.testing.assert_allclose(square, square.T, atol=1e-7)
    np.testing.assert_allclose(square, square[::-1, ::-1], atol=1e-7)


# ---- forms of one input: the same bits ------------------------------------------------------------------------------


def assert_same(actual: hf.PprResult, expected: hf.PprResult) -> None:
    for name in ("scores", "iterations", "residual", "bound", "converged"):
        assert_bitwise(getattr(actual, name), getattr(expected, name), name)


@pytest.mark.parametrize("directed", [False, True])
def test_dense_sparse_and_mapping_restarts_give_the_same_bits(variant: str, directed: bool) -> None:
    rng = np.random.default_rng(10)
    graph = random_graph(rng, 100, 300, directed=directed)
    rows = random_restart(rng, 100, 7)
    dense = to_dense(rows, 100)
    expected = hf.ppr(graph, rows)
    coo = sp.coo_array(dense)
    shuffled = rng.permutation(coo.data.size)
    forms = [
        dense,
        dense.tolist(),
        np.asfortranarray(dense),
        sp.csr_array(dense),
        sp.csc_matrix(dense),
        sp.coo_array((coo.data[shuffled], (coo.coords[0][shuffled], coo.coords[1][shuffled])), coo.shape),
        [dict(reversed(row.items())) for row in rows],
    ]
    for form in forms:
        assert_same(hf.ppr(graph, form), expected)
    assert_same(hf.ppr(graph, dense[3]), hf.ppr(graph, rows[3]))


def test_an_unweighted_graph_and_one_of_ones_give_the_same_bits(variant: str) -> None:
    rng = np.random.default_rng(11)
    src, dst = np.divmod(rng.choice(90 * 90, 400, replace=False), 90)
    rows = random_restart(rng, 90, 9)
    src, dst = src[src != dst], dst[src != dst]
    pairs = np.unique(np.sort(np.stack([src, dst]), axis=0), axis=1)
    for directed in (False, True):
        plain = hf.Graph.from_edges(*pairs, num_nodes=90, directed=directed)
        ones = hf.Graph.from_edges(*pairs, np.ones(pairs.shape[1]), num_nodes=90, directed=directed)
        assert_same(hf.ppr(ones, rows), hf.ppr(plain, rows))
        stored = stored_ones(plain)
        assert stored.weight is not None
        assert_same(hf.ppr(stored, rows), hf.ppr(plain, rows))
        assert_same(hf.ppr(stored, rows, edge_type_norm="per_type"), hf.ppr(plain, rows, edge_type_norm="per_type"))
        assert_same(hf.ppr(plain, rows, edge_type_weights=[1.0]), hf.ppr(plain, rows))
        mixed = np.ones((9, 1))
        mixed[4] = 0.5  # the others' weight is then an explicit 1
        kept = np.arange(9) != 4
        assert_bitwise(
            hf.ppr(plain, rows, edge_type_weights=mixed).scores[kept], hf.ppr(plain, rows).scores[kept], "explicit ones"
        )


def stored_ones(graph: hf.Graph) -> hf.Graph:
    """The same graph with its weights of 1 written out."""
    arrays = {**graph.to_arrays(), "weight": np.ones(graph.num_stored, np.float32)}
    return hf.Graph.from_arrays(arrays, directed=graph.directed, edge_type_names=graph.edge_type_names)


def test_out_receives_the_scores_and_is_what_is_returned(variant: str) -> None:
    rng = np.random.default_rng(12)
    graph = random_graph(rng, 70, 200)
    rows = random_restart(rng, 70, 5)
    out = np.full((5, 70), np.nan, np.float32)
    result = hf.ppr(graph, rows, out=out)
    assert np.shares_memory(result.scores, out)
    assert_same(result, hf.ppr(graph, rows))


def test_edge_order_and_direction_of_writing_do_not_change_unweighted_answers(variant: str) -> None:
    rng = np.random.default_rng(13)
    pairs = np.unique(np.sort(rng.integers(0, 90, (2, 300)), axis=0), axis=1)
    rows = random_restart(rng, 90, 5)
    shuffled = rng.permutation(pairs.shape[1])
    flipped = pairs[::-1][:, shuffled]
    expected = hf.ppr(hf.Graph.from_edges(*pairs, num_nodes=90), rows)
    assert_same(hf.ppr(hf.Graph.from_edges(*flipped, num_nodes=90), rows), expected)
