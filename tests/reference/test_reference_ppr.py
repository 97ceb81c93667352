"""PPR against a dense linear solve that is built by hand from the edge list."""

from __future__ import annotations

from typing import Any, NamedTuple

import hopfuse as hf
import numpy as np
import pytest
from cases import AWKWARD
from hopfuse.reference import ppr, ppr_residual
from hypothesis import given, settings
from hypothesis import strategies as st


class Edges(NamedTuple):
    """A graph as a plain list of (source, target, weight, type)."""

    n: int
    directed: bool
    types: int
    rows: list[tuple[int, int, float, int]]

    def graph(self) -> hf.Graph:
        src, dst, weight, kind = (list(column) for column in zip(*self.rows, strict=True)) if self.rows else ([],) * 4
        names = [f"t{i}" for i in range(self.types)]
        return hf.Graph.from_edges(
            src,
            dst,
            weight,
            num_nodes=self.n,
            directed=self.directed,
            edge_type=np.array(kind, np.int64),
            edge_type_names=names,
        )


def matrix(e: Edges, eta: Any = None, norm: str = "joint", mask: Any = None) -> np.ndarray:
    """P, filled edge by edge."""
    w = np.zeros((e.types, e.n, e.n))
    for a, b, weight, kind in e.rows:
        w[kind, a, b] += weight
        if not e.directed and a != b:
            w[kind, b, a] += weight
    if mask is not None:
        for v in np.flatnonzero(~np.asarray(mask)):
            w[:, v, :] = w[:, :, v] = 0.0
    default = np.ones(e.types) if norm == "joint" else np.full(e.types, 1 / e.types)
    eta = default if eta is None else np.asarray(eta, float)
    if norm == "joint":
        return rownorm(np.tensordot(eta, w, axes=1))
    return sum(eta[t] * rownorm(w[t]) for t in range(e.types))


def by_hand(e: Edges, s: Any, d: float = 0.5, eta: Any = None, norm: str = "joint", mask: Any = None) -> np.ndarray:
    """Solve (I - d (P' + s loss')) x = (1 - d) s."""
    p = matrix(e, eta, norm, mask)
    s = np.asarray(s, float) / np.sum(s)
    return np.linalg.solve(np.eye(e.n) - d * (p.T + np.outer(s, 1 - p.sum(axis=1))), (1 - d) * s)


def rownorm(w: np.ndarray) -> np.ndarray:
    out = np.zeros_like(w)
    for v, row in enumerate(w):
        if row.sum() > 0:
            out[v] = row / row.sum()
    return out


SEEDS = [
    [1, 0, 0, 0, 0, 0, 0, 0],
    [0, 0, 0, 1, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 0, 2],
    [0.1, 0, 3, 0, 0, 0, 1, 0.5],
    [1, 1, 1, 1, 1, 1, 1, 1],
]
ETAS = [None, [1, 1, 1], [0.2, 0.5, 0.3], [0.5, 0, 0.25], [0, 0, 0]]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("norm", ["joint", "per_type"])
@pytest.mark.parametrize("d", [0.0, 0.3, 0.5, 0.85, 0.99])
@pytest.mark.parametrize("eta", ETAS)
def test_awkward_graph(directed: bool, norm: str, d: float, eta: list[float] | None) -> None:
    if norm == "per_type" and eta is not None:
        eta = [x / max(1, sum(eta)) for x in eta]
    e = Edges(8, directed, 3, AWKWARD)
    x = ppr(e.graph(), SEEDS, damping=d, edge_type_weights=eta, edge_type_norm=norm)
    want = [by_hand(e, s, d, eta, norm) for s in SEEDS]
    np.testing.assert_allclose(x, want, rtol=0, atol=1e-13)
    residual = ppr_residual(e.graph(), x, SEEDS, damping=d, edge_type_weights=eta, edge_type_norm=norm)
    assert (residual < 1e-14).all()


@st.composite
def walks(draw: st.DrawFn) -> tuple[Edges, np.ndarray, float, np.ndarray, np.ndarray]:
    n, types = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    node, kind = st.integers(0, n - 1), st.integers(0, types - 1)
    weight = st.sampled_from([0.0, 0.125, 1.0, 1.5, 1000.0])
    rows = draw(st.lists(st.tuples(node, node, weight, kind), max_size=25))
    mask = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    mask[draw(node)] = True
    s = np.array(draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.5]), min_size=n, max_size=n)))
    s[np.flatnonzero(mask)[0]] += 1.0
    eta = np.array(draw(st.lists(st.sampled_from([0.0, 0.1, 0.25, 1 / 3]), min_size=types, max_size=types)))
    return Edges(n, draw(st.booleans()), types, rows), s * mask, draw(st.sampled_from([0.3, 0.5, 0.9])), eta, mask


@settings(max_examples=150, deadline=None)
@given(walks(), st.sampled_from(["joint", "per_type"]))
def test_any_small_graph(walk: Any, norm: str) -> None:
    e, s, d, eta, mask = walk
    options: dict[str, Any] = {"damping": d, "edge_type_weights": eta, "edge_type_norm": norm}
    x = ppr(e.graph(), s, allow=mask, **options)
    np.testing.assert_allclose(x[0], by_hand(e, s, d, eta, norm, mask), rtol=0, atol=1e-13)
    assert abs(x.sum() - 1) < 1e-14
    assert (x[0, ~mask] == 0).all()
    open_x = ppr(e.graph(), s, **options)
    np.testing.assert_allclose(open_x[0], by_hand(e, s, d, eta, norm), rtol=0, atol=1e-13)
    assert ppr_residual(e.graph(), open_x, s, **options)[0] < 1e-14


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("norm", ["joint", "per_type"])
def test_a_mask_is_the_extracted_subgraph(directed: bool, norm: str) -> None:
    e = Edges(8, directed, 3, AWKWARD)
    kept = np.array([1, 2, 3, 5, 7])
    mask = np.isin(np.arange(8), kept)
    s = np.array([0, 2.0, 0, 1.0, 0, 0, 0, 0.5])
    position = {int(v): i for i, v in enumerate(kept)}
    rows = [(position[a], position[b], w, t) for a, b, w, t in AWKWARD if a in position and b in position]
    part = Edges(kept.size, directed, 3, rows)
    x = ppr(e.graph(), s, allow=mask, edge_type_norm=norm)
    np.testing.assert_allclose(x[0, kept], ppr(part.graph(), s[kept], edge_type_norm=norm)[0], rtol=0, atol=1e-15)
    assert (x[0, ~mask] == 0).all()


def test_edges_outside_a_mask_never_change_a_score() -> None:
    mask = np.array([True, True, True, True, False, False, False, False])
    s = [1.0, 0, 0, 1.0, 0, 0, 0, 0]
    inside = [row for row in AWKWARD if row[0] < 4]
    others = [(0, 5, 1e6, 0), (4, 1, 7.0, 1), (2, 6, 3.0, 2)]
    x = [
        ppr(Edges(8, True, 3, rows).graph(), s, allow=mask) for rows in (inside, inside + others, others[::-1] + inside)
    ]
    assert (x[0] == x[1]).all()
    assert (x[0] == x[2]).all()


def test_masks_weights_and_damping_per_query() -> None:
    e = Edges(8, True, 3, AWKWARD)
    masks = np.ones((5, 8), bool)
    masks[0, 3] = masks[3, 1] = masks[1, :3] = False
    etas, ds = np.array([[0.2, 0.5, 0.3], [1, 0, 0], [0, 0, 0], [0.1, 0.1, 0.1], [0, 1, 0]]), [0, 0.3, 0.5, 0.7, 0.9]
    for norm in ("joint", "per_type"):
        options: dict[str, Any] = {"edge_type_norm": norm}
        batch = ppr(e.graph(), SEEDS, damping=ds, edge_type_weights=etas, allow=masks, **options)
        for b, s in enumerate(SEEDS):
            alone = ppr(e.graph(), s, damping=ds[b], edge_type_weights=etas[b], allow=masks[b], **options)
            assert (batch[b] == alone[0]).all()
            np.testing.assert_allclose(batch[b], by_hand(e, s, ds[b], etas[b], norm, masks[b]), rtol=0, atol=1e-14)


def test_damping_is_the_probability_of_walking_on() -> None:
    """At 0.3 the two readings of "alpha" differ: on 0 -> 1, x = (1, d)/(1 + d)."""
    g = hf.Graph.from_edges([0], [1], directed=True)
    np.testing.assert_allclose(ppr(g, [1.0, 0.0], damping=0.3)[0], [1 / 1.3, 0.3 / 1.3], rtol=1e-15)
    ring = hf.Graph.from_edges([0, 1], [1, 0], directed=True)
    np.testing.assert_allclose(ppr(ring, [1.0, 0.0], damping=0.3)[0], [1 / 1.3, 0.3 / 1.3], rtol=1e-15)


def test_no_damping_returns_the_restart_vector_exactly() -> None:
    s = np.array([0.1, 0.7, 3.3, 0, 0, 1e-9, 2, 5])
    x = ppr(Edges(8, True, 3, AWKWARD).graph(), s, damping=0)
    assert (x[0] == s / s.sum()).all()


def test_only_ratios_of_joint_weights_matter() -> None:
    g = Edges(8, True, 3, AWKWARD).graph()
    for scale in (0.5, 4.0, 2.0**600, 2.0**-900):
        x = ppr(g, SEEDS, edge_type_weights=np.array([1.0, 0.5, 0.25]) * scale)
        assert (x == ppr(g, SEEDS, edge_type_weights=[1.0, 0.5, 0.25])).all()


def test_per_type_sum_of_one_up_to_rounding_is_one() -> None:
    g = Edges(8, True, 3, AWKWARD).graph()
    eta = np.float32([0.1, 0.2, 0.7]) * np.float32(1 + 2**-22)
    x = ppr(g, SEEDS, edge_type_weights=eta, edge_type_norm="per_type")
    exact = eta.astype(float) / eta.astype(float).sum()
    assert eta.astype(float).sum() > 1
    assert (x == ppr(g, SEEDS, edge_type_weights=exact, edge_type_norm="per_type")).all()


def test_residual_by_hand() -> None:
    """On 0 -> 1 with x = (0.6, 0.4), d = 0.5, s = (1, 0): m = 0.4, r = (0.5 + 0.2 - 0.6, 0.3 - 0.4)."""
    g = hf.Graph.from_edges([0], [1], directed=True)
    np.testing.assert_allclose(ppr_residual(g, [0.6, 0.4], [1.0, 0.0]), [0.2], rtol=1e-15)


@pytest.mark.parametrize("norm", ["joint", "per_type"])
def test_residual_of_any_scores(norm: str) -> None:
    """Also of scores that hold mass outside the mask: such nodes lose it all."""
    e = Edges(8, True, 3, AWKWARD)
    mask = np.array([True, True, False, True, True, False, True, True])
    s = np.array([0.5, 0, 0, 0.25, 0, 0, 0.25, 0])
    x = np.random.default_rng(2).random((1, 8))
    p = matrix(e, None, norm, mask)
    lost = x[0] @ (1 - p.sum(axis=1))
    r = 0.7 * p.T @ x[0] + (0.3 + 0.7 * lost) * s - x[0]
    got = ppr_residual(e.graph(), x, s, damping=0.7, edge_type_norm=norm, allow=mask)
    np.testing.assert_allclose(got, [np.abs(r).sum()], rtol=1e-14)


def test_residual_over_one_minus_damping_bounds_the_error() -> None:
    rng = np.random.default_rng(5)
    g = Edges(8, True, 3, AWKWARD).graph()
    for d in (0.3, 0.5, 0.9):
        x = ppr(g, SEEDS, damping=d)
        off = np.maximum(x + rng.normal(scale=1e-3, size=x.shape), 0)
        off /= off.sum(axis=1, keepdims=True)
        error = np.abs(off - x).sum(axis=1)
        assert (error <= ppr_residual(g, off, SEEDS, damping=d) / (1 - d) + 1e-15).all()


@pytest.mark.parametrize("d", [0.5, 0.99])
def test_a_larger_graph(d: float) -> None:
    rng = np.random.default_rng(11)
    n, m = 1200, 5000
    src, dst = rng.integers(0, n, m), rng.zipf(1.6, m) % n
    w = rng.random(m).astype(np.float32)
    e = Edges(n, True, 1, [(int(a), int(b), float(c), 0) for a, b, c in zip(src, dst, w, strict=True)])
    s = np.zeros(n)
    s[rng.integers(0, n, 5)] = rng.random(5)
    # the hand-made matrix sums parallel edges in float64, Graph then rounds them to float32
    np.testing.assert_allclose(ppr(e.graph(), s, damping=d)[0], by_hand(e, s, d), rtol=0, atol=1e-8)
    a, b, merged, _ = e.graph().edges()
    e = Edges(n, True, 1, [(int(i), int(j), float(c), 0) for i, j, c in zip(a, b, merged, strict=True)])
    np.testing.assert_allclose(ppr(e.graph(), s, damping=d)[0], by_hand(e, s, d), rtol=0, atol=1e-13)


def test_fifty_thousand_nodes() -> None:
    rng = np.random.default_rng(3)
    g = hf.Graph.from_edges(rng.integers(0, 50_000, 200_000), rng.integers(0, 50_000, 200_000), num_nodes=50_000)
    seeds = [{7: 1.0}, {49_999: 2.0, 0: 1.0}]
    x = ppr(g, seeds)
    assert (ppr_residual(g, x, seeds) < 1e-14).all()
    assert np.abs(x.sum(axis=1) - 1).max() < 1e-13


def test_networkx_agrees() -> None:
    nx = pytest.importorskip("networkx")
    for directed in (True, False):
        net = nx.DiGraph() if directed else nx.Graph()
        net.add_nodes_from(range(8))
        pairs = {(a, b) if directed else (min(a, b), max(a, b)): w for a, b, w, _ in AWKWARD}
        net.add_weighted_edges_from((a, b, w) for (a, b), w in pairs.items())
        g = Edges(8, directed, 1, [(a, b, w, 0) for (a, b), w in pairs.items()]).graph()
        for s in SEEDS:
            seeds = dict(enumerate(s))
            rank = nx.pagerank(net, alpha=0.3, personalization=seeds, dangling=seeds, tol=1e-15, max_iter=500)
            np.testing.assert_allclose(ppr(g, s, damping=0.3)[0], [rank[v] for v in range(8)], rtol=0, atol=1e-13)


def test_igraph_agrees() -> None:
    """igraph counts an undirected self-loop twice, so it is given half of each one's weight."""
    ig = pytest.importorskip("igraph")
    for directed in (True, False):
        w = [c / 2 if a == b and not directed else c for a, b, c, _ in AWKWARD]
        net = ig.Graph(8, [(a, b) for a, b, _, _ in AWKWARD], directed=directed)
        g = Edges(8, directed, 3, AWKWARD).graph()
        for s in SEEDS:
            rank = net.personalized_pagerank(damping=0.3, reset=s, weights=w, directed=directed)
            np.testing.assert_allclose(ppr(g, s, damping=0.3)[0], rank, rtol=0, atol=1e-9)
