"""PPR against igraph's PRPACK and networkx: two other implementations of the same walk."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_restart
from numpy.typing import NDArray

pytestmark = pytest.mark.full

TOLERANCE = 1e-5  # L1
N = 120


def edges(directed: bool, *, loops: bool, seed: int = 1) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Distinct pairs with weights; isolated and (where directed) dangling nodes."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, N - 10, (2, 500))
    # directed: every seventh node dangles
    pairs = pairs[:, pairs[0] % 7 != 0] if directed else np.sort(pairs, axis=0)
    if not loops:
        pairs = pairs[:, pairs[0] != pairs[1]]
    pairs = np.unique(pairs, axis=1)
    return pairs, rng.random(pairs.shape[1]) + 0.1


def graph_of(pairs: NDArray[np.int64], weight: NDArray[np.float64] | None, directed: bool) -> hf.Graph:
    return hf.Graph.from_edges(*pairs, weight, num_nodes=N, directed=directed)


def reset_vector(row: dict[int, float]) -> list[float]:
    vector = np.zeros(N)
    vector[list(row)] = list(row.values())
    return vector.tolist()


def by_igraph(
    igraph: Any, pairs: NDArray[np.int64], weight: Any, directed: bool, row: dict[int, float], damping: float
) -> NDArray[np.float64]:
    peer = igraph.Graph(n=N, edges=pairs.T.tolist(), directed=directed)
    return np.array(
        peer.personalized_pagerank(
            damping=damping,
            reset=reset_vector(row),
            weights=None if weight is None else weight.tolist(),
            directed=directed,
            implementation="prpack",
        )
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("damping", [0.3, 0.5, 0.85])
def test_igraph_agrees(directed: bool, weighted: bool, damping: float) -> None:
    igraph = pytest.importorskip("igraph")
    pairs, weight = edges(directed, loops=directed)  # igraph counts undirected self-loops twice
    given = weight if weighted else None
    restart = random_restart(np.random.default_rng(2), N, 8)
    result = hf.ppr(graph_of(pairs, given, directed), restart, damping=damping)
    assert result.converged.all()
    for b, row in enumerate(restart):
        peer = by_igraph(igraph, pairs, given, directed, row, damping)
        assert np.abs(result.scores[b] - peer).sum() <= TOLERANCE


def test_an_undirected_self_loop_is_half_of_igraphs() -> None:
    igraph = pytest.importorskip("igraph")
    pairs, weight = edges(False, loops=True)
    halved = np.where(pairs[0] == pairs[1], weight / 2, weight)
    row = {3: 1.0, 50: 2.0}
    scores = hf.ppr(graph_of(pairs, weight, False), [row]).scores[0]
    assert np.abs(scores - by_igraph(igraph, pairs, halved, False, row, 0.5)).sum() <= TOLERANCE
    assert np.abs(scores - by_igraph(igraph, pairs, weight, False, row, 0.5)).sum() > TOLERANCE


@pytest.mark.parametrize("directed", [False, True])
def test_a_mask_is_igraph_on_the_extracted_subgraph(directed: bool) -> None:
    igraph = pytest.importorskip("igraph")
    pairs, weight = edges(directed, loops=directed)
    rng = np.random.default_rng(3)
    allowed = rng.random(N) < 0.6
    nodes = np.flatnonzero(allowed)
    restart = random_restart(rng, N, 6, allowed)
    result = hf.ppr(graph_of(pairs, weight, directed), restart, damping=0.85, allow=allowed)
    peer = igraph.Graph(n=N, edges=pairs.T.tolist(), directed=directed, edge_attrs={"weight": weight.tolist()})
    inside = peer.induced_subgraph(nodes.tolist())
    for b, row in enumerate(restart):
        reset = np.array(reset_vector(row))[nodes].tolist()
        scores = np.zeros(N)
        scores[nodes] = inside.personalized_pagerank(
            damping=0.85, reset=reset, weights="weight", directed=directed, implementation="prpack"
        )
        assert np.abs(result.scores[b] - scores).sum() <= TOLERANCE


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_networkx_agrees(directed: bool, weighted: bool) -> None:
    networkx = pytest.importorskip("networkx")
    pairs, weight = edges(directed, loops=True)
    peer = networkx.DiGraph() if directed else networkx.Graph()
    peer.add_nodes_from(range(N))
    for (a, b), w in zip(pairs.T.tolist(), weight.tolist(), strict=True):
        peer.add_edge(a, b, weight=w)
    restart = random_restart(np.random.default_rng(4), N, 5)
    result = hf.ppr(graph_of(pairs, weight if weighted else None, directed), restart, damping=0.85)
    for b, row in enumerate(restart):
        scores = networkx.pagerank(
            peer,
            alpha=0.85,
            personalization=row,
            dangling=row,  # as here: what a dangling node holds returns to the seeds
            weight="weight" if weighted else None,
            tol=1e-10,
            max_iter=1000,
        )
        assert np.abs(result.scores[b] - np.array([scores[v] for v in range(N)])).sum() <= TOLERANCE


def test_the_ranking_of_topk_is_igraphs() -> None:
    igraph = pytest.importorskip("igraph")
    pairs, weight = edges(False, loops=False)
    restart = random_restart(np.random.default_rng(5), N, 8)
    hits = hf.ppr_topk(graph_of(pairs, weight, False), restart, 5)
    for b in np.flatnonzero(hits.proven):
        peer = by_igraph(igraph, pairs, weight, False, restart[b], 0.5)
        assert hits.ids[b].tolist() == np.argsort(-peer, kind="stable")[:5].tolist()
    assert hits.proven.any()
