"""The oracle of ising_rerank against theory: linear response, self-consistency, the phase boundary, sums by hand."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph
from compare import assert_hits_wellformed
from hopfuse.errors import InputError
from hopfuse.reference import ising_rerank, mean_field, shared_neighbours
from numpy.typing import NDArray
from refusals import refused


def couplings(seed: int, nodes: int = 14) -> NDArray[np.float64]:
    """A of candidates that hang together, so that the largest eigenvalue is simple."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 60, 200, hub=3)
    return shared_neighbours(graph, rng.permutation(60)[:nodes])


def magnetisation(ratio: float) -> float:
    """The positive root of m = tanh(ratio m), by bisection."""
    low, high = 1e-9, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.tanh(ratio * middle) > middle else (low, middle)
    return low


@pytest.mark.parametrize("weights", ["none", "random", "integer"])
@pytest.mark.parametrize("types", [1, 3])
def test_shared_neighbours_are_the_product_of_the_incidence_matrix(weights: str, types: int) -> None:
    rng = np.random.default_rng(types)
    graph = random_graph(rng, 40, 150, weights=weights, types=types, hub=5)
    incidence = np.zeros((40, 40))
    for src, dst, weight, _ in zip(*graph.edges(), strict=True):
        incidence[src, dst] += weight
        if src != dst:
            incidence[dst, src] += weight
    nodes = rng.permutation(40)[:20]
    shared = (incidence @ incidence)[np.ix_(nodes, nodes)]
    np.fill_diagonal(shared, 0)
    total = shared.sum(axis=1)
    expected = shared / np.where(total > 0, total, 1)[:, None]
    np.testing.assert_allclose(shared_neighbours(graph, nodes), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_rows_sum_to_one_and_so_does_the_largest_eigenvalue(seed: int) -> None:
    a = couplings(seed)
    sums = a.sum(axis=1)
    assert (np.isclose(sums, 1) | (sums == 0)).all()
    assert (np.diagonal(a) == 0).all()
    values = np.linalg.eigvals(a)
    assert np.abs(values.imag).max() < 1e-9
    assert values.real.max() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("coupling", [0.5, 1.0, 3.0])
def test_above_the_critical_temperature_nothing_stays_without_a_field(seed: int, coupling: float) -> None:
    """h = 0: linear stability of m = 0 ends at T = J lambda_max(A), which is J."""
    a = couplings(seed)
    critical = coupling * float(np.linalg.eigvals(a).real.max())
    start = np.random.default_rng(seed).uniform(-1, 1, len(a))
    options: dict[str, Any] = {"coupling": coupling, "relaxation": 0.5, "steps": 4000, "start": start}
    gone = mean_field(np.zeros(len(a)), a, temperature=1.02 * critical, **options)
    assert np.abs(gone).max() < 1e-9
    held = mean_field(np.zeros(len(a)), a, temperature=0.9 * critical, **(options | {"start": np.abs(start)}))
    joined = a.sum(axis=1) > 0
    np.testing.assert_allclose(held[joined], magnetisation(1 / 0.9), rtol=1e-9)  # all alike, since rows sum to 1
    assert np.abs(held[~joined]).max(initial=0.0) < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_hot_spins_answer_linearly(seed: int) -> None:
    """tanh x is x: m = (T - J A)^-1 h."""
    a, rng = couplings(seed), np.random.default_rng(seed)
    h = rng.uniform(-1, 1, len(a))
    m = mean_field(h, a, coupling=5e3, temperature=1e4, relaxation=0.5, steps=200)
    expected = np.linalg.solve(1e4 * np.eye(len(a)) - 5e3 * a, h)
    np.testing.assert_allclose(m, expected, rtol=1e-6)


@pytest.mark.parametrize("relaxation", [0.2, 0.5, 1.0])
def test_the_fixed_point_is_self_consistent_and_reached_at_the_stated_rate(relaxation: float) -> None:
    a, h = couplings(7), np.random.default_rng(7).uniform(-1, 1, 14)
    options: dict[str, Any] = {"coupling": 1.0, "temperature": 2.0, "relaxation": relaxation}
    fixed = mean_field(h, a, steps=600, **options)
    np.testing.assert_allclose(fixed, np.tanh((h + a @ fixed) / 2.0), atol=1e-14)
    first = np.abs(np.tanh(h / 2.0) - fixed).max()
    for steps in (1, 5, 20):
        left = np.abs(mean_field(h, a, steps=steps, **options) - fixed).max()
        assert left <= first * (1 - relaxation * (1 - 1.0 / 2.0)) ** steps + 1e-14


def test_two_candidates_by_hand() -> None:
    """One shared entity: h = (1, -1), and each is the other's only neighbour, so that m_0 = -m_1."""
    graph = hf.Graph.from_edges([0, 1], [2, 2])
    ranked = ising_rerank(
        hf.Hits([[0, 1]], [[5.0, 3.0]]), graph, coupling=0.5, temperature=1.0, relaxation=0.25, steps=1, blend=0.4
    )
    m = np.tanh(1.0)
    m = 0.75 * m + 0.25 * np.tanh(1.0 - 0.5 * m)
    assert ranked.ids[0].tolist() == [0, 1]
    np.testing.assert_allclose(ranked.scores[0], [0.6 + 0.4 * m, -0.6 - 0.4 * m], rtol=1e-14)


def test_a_highly_ranked_neighbour_lifts_and_no_coupling_changes_nothing() -> None:
    graph = hf.Graph.from_edges([0, 3, 1], [4, 4, 5], num_nodes=6)
    hits = hf.Hits([[0, 1, 2, 3]], [[1.0, 0.3, 0.295, 0.29]])
    assert ising_rerank(hits, graph).ids[0].tolist() == [0, 3, 1, 2]
    assert ising_rerank(hits, graph, coupling=0.0).ids[0].tolist() == [0, 1, 2, 3]
    assert ising_rerank(hits, graph, blend=0.0).ids[0].tolist() == [0, 1, 2, 3]


def test_equal_scores_and_single_candidates_have_no_field() -> None:
    graph = hf.Graph.from_edges([0, 1, 2], [3, 3, 3])
    ranked = ising_rerank(hf.Hits.from_lists([[(2, 7.0), (0, 7.0), (1, 7.0)], [(1, 5.0)], []]), graph, k=2)
    assert_hits_wellformed(hf.Hits(ranked.ids, ranked.scores, ranked.counts))
    assert [ranked.row(query) for query in range(3)] == [[(0, 0.0), (1, 0.0)], [(1, 0.0)], []]


def test_a_directed_graph_is_refused() -> None:
    with refused(InputError, "unsupported", "graph"):
        ising_rerank(hf.Hits([[0, 1]], [[2.0, 1.0]]), hf.Graph.from_edges([0, 1], [2, 2], directed=True))
