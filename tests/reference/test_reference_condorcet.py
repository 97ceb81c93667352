"""Condorcet fusion and the Wasserstein distance against what is known of them by other ways."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.fusion.mixtures import distance, distribution, mean_distance
from hopfuse.reference import fuse
from scipy import stats
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components


def lists_of(*orders: list[int]) -> list[hf.Hits]:
    return [hf.Hits.from_lists([[(document, -float(at)) for at, document in enumerate(order)]]) for order in orders]


def scores(*orders: list[int], **options: Any) -> dict[int, float]:
    return dict(fuse(lists_of(*orders), method="condorcet", k=40, **options).row(0))


def drawn(rng: np.random.Generator, lists: int, documents: int) -> list[list[int]]:
    return [rng.permutation(documents)[: rng.integers(0, documents + 1)].tolist() for _ in range(lists)]


def beats(orders: list[list[int]], weights: list[int], one: int, other: int) -> int:
    """Votes for one document less those for the other, list by list."""
    balance = 0
    for order, weight in zip(orders, weights, strict=True):
        if one in order and (other not in order or order.index(one) < order.index(other)):
            balance += weight
        elif other in order:
            balance -= weight
    return balance


def test_votes_of_a_small_election() -> None:
    # 1 wins against 2, 2 : 1; 2 against 3 likewise; 1 against 3.
    assert scores([1, 2, 3], [1, 2, 3], [3, 2, 1]) == {1: 2.0, 2: 1.0, 3: 0.0}
    # 4 is above what its list lacks; 1 and 4 tie.
    assert scores([1], [4]) == {1: 0.5, 4: 0.5}
    # A list of the weight of both others decides nothing alone, one of more decides all.
    assert scores([1, 2], [2, 1], weights=[1.0, 1.0]) == {1: 0.5, 2: 0.5}
    assert scores([1, 2], [2, 1], weights=[1.0, 2.0]) == {1: 0.0, 2: 1.0}


def test_a_cycle_goes_by_wins_and_then_by_id() -> None:
    cycle = lists_of([1, 2, 3, 9], [2, 3, 1, 9], [3, 1, 2, 9])
    assert fuse(cycle, method="condorcet", k=4).row(0) == [(1, 2.0), (2, 2.0), (3, 2.0), (9, 0.0)]


def test_one_list_and_empty_lists_keep_the_order() -> None:
    assert scores([7, 3, 5]) == {7: 2.0, 3: 1.0, 5: 0.0}
    assert scores([], [7, 3, 5], []) == {7: 2.0, 3: 1.0, 5: 0.0}
    assert scores([], []) == {}


@pytest.mark.parametrize("weight", [0.1, 0.3, 1e-3])
def test_equal_votes_tie_whatever_the_weight(weight: float) -> None:
    orders = [[1, 2], [1, 2], [1, 2], [2, 1], [2, 1], [2, 1]]
    assert scores(*orders, weights=[weight] * 6) == {1: 0.5, 2: 0.5}


def test_votes_counted_one_by_one() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        orders, weights = drawn(rng, 5, 9), rng.integers(0, 4, 5).tolist()
        found = scores(*orders, weights=weights)
        assert found.keys() == {document for order in orders for document in order}
        for one, score in found.items():
            balances = [beats(orders, weights, one, other) for other in found if other != one]
            assert score == sum(1.0 if b > 0 else 0.5 if b == 0 else 0.0 for b in balances)


def test_components_of_the_majorities_stand_in_the_order_of_condorcet_fusion() -> None:
    """Every Hamiltonian path of the graph, an edge where one is not beaten, takes its components in this order."""
    rng = np.random.default_rng(2)
    several = 0
    for _ in range(60):
        orders = drawn(rng, 3, 8)
        found = scores(*orders)
        names = sorted(found)
        graph = np.array(
            [[one != other and beats(orders, [1] * 3, one, other) >= 0 for other in names] for one in names]
        )
        if not names:
            continue
        count, component = connected_components(csr_array(graph), connection="strong")
        several += count > 1
        for i, one in enumerate(names):
            for j, other in enumerate(names):
                if component[i] != component[j] and graph[i, j]:
                    assert found[one] > found[other]
    assert several > 20


# ---- The Wasserstein distance ---------------------------------------------------------------------------------------


def test_the_distance_is_scipys() -> None:
    rng = np.random.default_rng(3)
    for grid in (None, 3):
        for _ in range(50):
            a, b = (rng.random(n) if grid is None else rng.integers(0, grid, n) / grid for n in rng.integers(1, 30, 2))
            a, b = -np.sort(-a), -np.sort(-b)
            assert distance(a, b) == pytest.approx(stats.wasserstein_distance(a, b), abs=1e-12)


def test_the_mean_distance_is_over_pairs_that_hold_something() -> None:
    a, b, c = np.array([1.0, 0.0]), np.array([0.5]), np.array([0.25, 0.25, 0.25])
    assert mean_distance([a, b, c]) == pytest.approx((0.5 + 0.5 + 0.25) / 3)
    assert mean_distance([a, np.zeros(0), c]) == 0.5
    assert mean_distance([a]) == mean_distance([np.zeros(0), a]) == mean_distance([]) == 0.0


@pytest.mark.parametrize("temperature", ["auto", 0.5])
def test_temperatures_are_modulated_by_the_distance(temperature: Any) -> None:
    one, two = hf.Hits([[1, 2, 3]], [[1.0, 0.75, 0.0]]), hf.Hits([[4, 5]], [[1.0, 0.5]])
    options: dict[str, Any] = {"method": "boltzmann", "calibration": "none", "weights": [1.0, 1.0]}
    got = dict(fuse([one, two], temperature=temperature, wasserstein=2.0, **options).row(0))
    apart = stats.wasserstein_distance([1.0, 0.75, 0.0], [1.0, 0.5])
    for hits in (one, two):
        energy = -np.log(hits.scores[0].astype(np.float64) + 1e-9)
        t = (energy.mean() * 2 / 3 if temperature == "auto" else temperature) * (1 + 2.0 * apart)
        mass = np.exp(-energy / t)
        assert [got[i] for i in hits.ids[0].tolist()] == pytest.approx(mass / mass.sum(), rel=1e-12)
    assert dict(fuse([one], wasserstein=2.0, **{**options, "weights": [1.0]}).row(0)) == dict(
        zip([1, 2, 3], distribution(np.array([1.0, 0.75, 0.0]), "auto").tolist(), strict=True)
    )
