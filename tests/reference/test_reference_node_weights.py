"""PPR with node weights against a dense linear solve of the reweighted matrix, built by hand from the edge list."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError
from hopfuse.reference import ppr, ppr_residual, ppr_topk
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused

Matrix = NDArray[np.float64]
#: (source, target, weight, type): a duplicate, self-loops, a dangling node (3), two components, an isolated node (7).
AWKWARD = [
    (0, 1, 1.0, 0),
    (0, 1, 0.5, 0),
    (1, 2, 2.0, 1),
    (2, 0, 1.0, 0),
    (0, 2, 0.25, 1),
    (1, 1, 0.75, 0),
    (2, 3, 3.0, 0),
    (4, 5, 1.0, 1),
    (5, 4, 2.0, 1),
    (5, 5, 1.0, 0),
    (6, 4, 1.0, 1),
]


def graph_of(rows: list[Any], n: int, directed: bool) -> hf.Graph:
    src, dst, weight, kind = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 4
    return hf.Graph.from_edges(
        src, dst, weight, num_nodes=n, directed=directed, edge_type=np.array(kind, np.int64), edge_type_names=["a", "b"]
    )


def conductances(rows: list[Any], n: int, directed: bool, z: Matrix) -> Matrix:
    """(T, N, N): z_u w z_v of each edge, edge by edge."""
    w = np.zeros((2, n, n))
    for a, b, weight, kind in rows:
        w[kind, a, b] += weight * z[a] * z[b]
        if not directed and a != b:
            w[kind, b, a] += weight * z[b] * z[a]
    return w


def normalised(w: Matrix) -> Matrix:
    total = w.sum(axis=-1, keepdims=True)
    return np.divide(w, total, out=np.zeros_like(w), where=total > 0)


def solve(w: Matrix, s: Matrix, d: float, eta: Matrix, norm: str) -> Matrix:
    """x of (I - d (P' + s loss')) x = (1 - d) s."""
    p = normalised(np.tensordot(eta, w, 1)) if norm == "joint" else np.tensordot(eta, normalised(w), 1)
    s = s / s.sum()
    return np.linalg.solve(np.eye(s.size) - d * (p.T + np.outer(s, 1 - p.sum(axis=1))), (1 - d) * s)


@st.composite
def walks(draw: st.DrawFn) -> Any:
    n = draw(st.integers(1, 8))
    node = st.integers(0, n - 1)
    rows = draw(st.lists(st.tuples(node, node, st.sampled_from([0.125, 1.0, 3.0]), st.integers(0, 1)), max_size=20))
    z = np.array(draw(st.lists(st.sampled_from([0.0, 1e-4, 0.1, 0.5, 1.0, 7.0]), min_size=n, max_size=n)))
    seed = draw(node)
    z[seed] = z[seed] or 0.25
    s = np.where(z > 0, draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=n, max_size=n)), 0.0)
    s[seed] += 1.0
    eta = np.array(draw(st.lists(st.sampled_from([0.1, 0.25, 0.5]), min_size=2, max_size=2)))
    return rows, n, draw(st.booleans()), z, s, draw(st.sampled_from([0.3, 0.5, 0.9])), eta


@settings(max_examples=150, deadline=None)
@given(walks(), st.sampled_from(["joint", "per_type"]))
def test_any_small_graph_is_the_dense_solve_of_its_conductances(walk: Any, norm: str) -> None:
    rows, n, directed, z, s, d, eta = walk
    z = z.astype(np.float32).astype(np.float64)  # exactly what a walk reads
    graph = graph_of(rows, n, directed)
    options: dict[str, Any] = {"damping": d, "edge_type_weights": eta, "edge_type_norm": norm, "node_weights": z[None]}
    x = ppr(graph, s, **options)
    want = solve(conductances(rows, n, directed, z), s, d, eta, norm)
    np.testing.assert_allclose(x[0], want, rtol=0, atol=1e-12)
    assert (x[0, z == 0] == 0).all()
    assert ppr_residual(graph, x, s, **options)[0] < 1e-14


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("norm", ["joint", "per_type"])
def test_weights_of_0_and_1_are_a_mask_and_any_scale_of_1_is_none(directed: bool, norm: str) -> None:
    graph = graph_of(AWKWARD, 8, directed)
    s = np.array([0, 2.0, 0, 1.0, 0, 0, 0, 0.5])
    kept = np.isin(np.arange(8), [1, 2, 3, 5, 7])
    masked = ppr(graph, s, allow=kept, edge_type_norm=norm)
    for scale in (1.0, 2.0**-900, 2.0**900):
        weights = kept[None] * scale
        assert (ppr(graph, s, node_weights=weights, edge_type_norm=norm) == masked).all()
        plain = ppr(graph, s, edge_type_norm=norm)
        assert (ppr(graph, s, node_weights=np.full((1, 8), scale), edge_type_norm=norm) == plain).all()


def test_a_weighted_walk_by_hand() -> None:
    """From 0 to 1 or 2, one step each way: the steps' odds are those of the weights."""
    graph = hf.Graph.from_edges([0, 0], [1, 2], directed=True)
    x = ppr(graph, [{0: 1.0}], node_weights=[[3.0, 1.0]], weighted_nodes=[1, 2])[0]
    np.testing.assert_allclose(x[1] / x[2], 3.0)
    np.testing.assert_allclose(x[0], 2 / 3)


def test_columns_belong_to_the_named_nodes_and_the_others_weigh_1() -> None:
    graph = graph_of(AWKWARD, 8, False)
    rng = np.random.default_rng(0)
    part, nodes = rng.random((2, 3)) + 0.1, np.array([5, 0, 2])
    whole = np.ones((2, 8))
    whole[:, nodes] = part
    restart = [{1: 1.0}, {4: 1.0, 0: 0.5}]
    expected = ppr(graph, restart, node_weights=whole)
    assert (ppr(graph, restart, node_weights=part, weighted_nodes=nodes) == expected).all()
    ids, scores = ppr_topk(graph, restart, 3, node_weights=part, weighted_nodes=nodes)
    assert (expected[0, ids[0]] == scores[0]).all()
    assert (ppr(graph, restart, node_weights=np.ones((2, 0)), weighted_nodes=[]) == ppr(graph, restart)).all()


def test_weights_below_two_to_the_minus_100_of_the_largest_count_as_0() -> None:
    """The largest is that of allowed nodes with edges: 7 is isolated, 4 is not allowed."""
    graph = graph_of(AWKWARD, 8, False)
    s = [{0: 1.0}]
    allow = np.arange(8) != 4
    z = np.array([[3.0, 1.0, 3.0 * 2.0**-100, 3.0 * 2.0**-101, 1e300, 1.0, 1.0, 1e300]])
    x = ppr(graph, s, node_weights=z, allow=allow)[0]
    assert x[2] > 0
    assert x[3] == 0
    assert x[1] > 0


@pytest.mark.parametrize(
    ("given_weights", "refusal"),
    [
        ([[1.0, np.nan]], ("range", "node_weights[0, 1]")),
        ([[-1.0, 1.0]], ("range", "node_weights[0, 0]")),
        ([[0.0, 0.0]], ("zero", "node_weights[0]")),
        ([[1.0]], ("shape", "node_weights")),
        ([[0.0, 1.0]], ("conflict", "restart[0]")),
    ],
)
def test_weights_that_no_walk_has_are_refused(given_weights: Any, refusal: tuple[str, str | None]) -> None:
    graph = hf.Graph.from_edges([0], [1])
    with refused(InputError, *refusal):
        ppr(graph, [{0: 1.0}], node_weights=given_weights)
