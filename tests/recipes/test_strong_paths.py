"""The strongest paths of each seed against every simple path of small graphs."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.recipes.policy_rag import MAX_PATHS, MIN_EXTRA_VISITS, Transitions
from hypothesis import assume, given
from hypothesis import strategies as st

ETA = (0.5, 0.2, 0.3)
NAMES = ["relation", "synonym", "context"]


def dense_transitions(graph: hf.Graph, norm: str) -> np.ndarray:
    """P of the graph by its definition, a type at a time."""
    n = graph.num_nodes
    w = np.zeros((3, n, n))
    for s, d, weight, kind in zip(*graph.edges(), strict=True):
        w[kind, s, d] += weight
        if not graph.directed and s != d:
            w[kind, d, s] += weight
    if norm == "joint":
        total = np.tensordot(ETA, w, 1)
        return np.divide(
            total, total.sum(1, keepdims=True), out=np.zeros((n, n)), where=total.sum(1, keepdims=True) > 0
        )
    degree = w.sum(2, keepdims=True)
    return np.tensordot(ETA, np.divide(w, degree, out=np.zeros_like(w), where=degree > 0), 1)


def strongest(p: np.ndarray, starts: dict[int, float], target: int) -> float:
    """Over all simple paths."""
    best = 0.0
    for length in range(len(p)):
        for middle in itertools.permutations(range(len(p)), length):
            for start, mass in starts.items():
                nodes = (start, *middle, target) if start != target or middle else (target,)
                if len(set(nodes)) == len(nodes):
                    best = max(best, mass * np.prod([p[a, b] for a, b in itertools.pairwise(nodes)]))
    return best


@given(
    edges=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from([0.5, 1.0, 3.0]), st.integers(0, 2)), min_size=1
    ),
    directed=st.booleans(),
    norm=st.sampled_from(["joint", "per_type"]),
    starts=st.dictionaries(st.integers(0, 4), st.sampled_from([0.2, 0.5, 0.8]), min_size=1, max_size=4),
    few=st.integers(1, 4),
    faintest=st.sampled_from([1e-9, 0.03, 0.4]),
)
def test_each_path_is_as_strong_as_the_seeds_best_simple_path(edges, directed, norm, starts, few, faintest) -> None:
    src, dst, weight, kind = zip(*edges, strict=True)
    graph = hf.Graph.from_edges(src, dst, weight, num_nodes=5, directed=directed, edge_type=kind, edge_type_names=NAMES)
    p = 0.5 * dense_transitions(graph, norm)
    transitions = Transitions(graph, ETA, norm, 0.5)
    np.testing.assert_allclose(transitions.kept, 2 * p.sum(1), atol=1e-6)
    rows = {t: np.array([t]) for t in range(5)} | {7: np.array([1, 3]), 8: np.array([0, 2, 4])}
    paths = transitions.paths(starts, rows, few, faintest)
    for target, nodes in rows.items():
        each = {seed: max(strongest(p, {seed: mass}, int(t)) for t in nodes) for seed, mass in starts.items()}
        best = sorted((s for s in each.values() if s > 0), reverse=True)[:few]
        assume(not any(0.999 < s / (faintest * best[0]) < 1.001 for s in best))  # too near the limit for rounding
        best = [s for s in best if s >= faintest * best[0]]
        found = paths.get(target, [])
        assert [steps[-1].strength for steps in found] == pytest.approx(best, rel=1e-6)
        assert len({steps[0].node for steps in found}) == len(found), "a seed has one path"
        for steps in found:
            assert steps[-1].node in nodes
            assert steps[-1].strength == pytest.approx(each[steps[0].node], rel=1e-6)
            assert steps[0].edge is None
            assert steps[0].strength == pytest.approx(starts[steps[0].node])
            for before, after in itertools.pairwise(steps):
                kinds = {k for s, d, _, k in zip(*graph.edges(), strict=True) if {s, d} == {before.node, after.node}}
                assert after.edge in kinds
                assert after.strength == pytest.approx(before.strength * p[before.node, after.node], rel=1e-6)


@given(
    edges=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from([0.5, 1.0, 3.0]), st.integers(0, 2)), min_size=1
    ),
    directed=st.booleans(),
    weights=st.lists(st.sampled_from([0.0, 1e-4, 0.3, 1.0]), min_size=5, max_size=5),
)
def test_paths_follow_reweighted_transitions(edges, directed, weights) -> None:
    src, dst, weight, kind = zip(*edges, strict=True)
    graph = hf.Graph.from_edges(src, dst, weight, num_nodes=5, directed=directed, edge_type=kind, edge_type_names=NAMES)
    z = np.array(weights)
    p = dense_transitions(graph, "joint") * z
    total = p.sum(1, keepdims=True)
    p = np.divide(p, total, out=np.zeros_like(p), where=total > 0)
    transitions = Transitions(graph, ETA, "joint", 0.5).reweighted(z)
    np.testing.assert_array_equal(transitions.kept, total[:, 0] > 0)
    found = transitions.paths({0: 1.0}, {t: np.array([t]) for t in range(5)}, min_share=1e-12)
    for target in range(5):
        best = strongest(0.5 * p, {0: 1.0}, target)
        assert [steps[-1].strength for steps in found.get(target, [])] == pytest.approx([best] if best else [])


def test_a_strength_is_the_rounded_product_of_its_steps() -> None:
    """To the last bit: a sum of logarithms would depend on the processor."""
    graph = hf.Graph.from_edges([0, 0, 0, 1], [1, 2, 3, 4], edge_type=[0] * 4, edge_type_names=["relation"])
    ((steps,),) = Transitions(graph, (1.0,), "joint", 0.85).paths({0: 0.7}, {4: np.array([4])}).values()
    first = 0.7 * (0.85 * (1.0 / 3.0))
    assert [step.strength for step in steps] == [0.7, first, first * (0.85 * (1.0 / 2.0))]


@given(
    edges=st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), min_size=20, max_size=60),
    starts=st.sets(st.integers(0, 19), min_size=2, max_size=5),
    further=st.integers(0, 30),
)
def test_within_the_bound_is_found_what_comes_first_without_it(edges, starts, further) -> None:
    src, dst = zip(*edges, strict=True)
    graph = hf.Graph.from_edges(src, dst, num_nodes=20, edge_type=[0] * len(edges), edge_type_names=NAMES)
    transitions = Transitions(graph, ETA, "per_type", 0.5)
    mass, rows = {node: 1 / (2 + node) for node in starts}, {p: np.array([p, 19 - p]) for p in range(6)}
    whole, bounded = transitions.paths(mass, rows), transitions.paths(mass, rows, min_extra_visits=further)
    assert bounded.keys() == whole.keys(), "each passage has its strongest path"
    for passage, found in bounded.items():
        assert len(found) >= 1
        assert found == whole[passage][: len(found)]


@pytest.fixture(scope="module")
def large() -> tuple[Transitions, dict[int, float]]:
    """A graph of 100,000 nodes about three seeds."""
    n, rng = 100_000, np.random.default_rng(7)
    src, dst = rng.integers(0, n, (2, 300_000))
    kind, weight = rng.integers(0, 3, src.size), rng.random(src.size) + 0.1
    graph = hf.Graph.from_edges(src, dst, weight, num_nodes=n, edge_type=kind, edge_type_names=NAMES)
    return Transitions(graph, ETA, "per_type", 0.5), {0: 0.5, 1: 0.3, 2: 0.2}


@pytest.mark.parametrize("last", [100, 3000])
def test_paths_of_further_seeds_cost_about_as_much_as_the_first(large, monkeypatch, last) -> None:
    """A hundred passages at the nodes that are reached first, but for the last; by visits."""
    transitions, mass = large
    ends_of_paths = sys.modules[Transitions.__module__]._Ends
    visited, reach = list[int](), ends_of_paths.reach

    def counted(ends: Any, node: int, seed: int, cost: float) -> None:
        visited.append(node)
        reach(ends, node, seed, cost)

    monkeypatch.setattr(ends_of_paths, "reach", counted)
    transitions.paths(mass, {0: np.array([-1])}, max_paths=1, max_nodes=last)
    assert len(visited) == last
    rows = {p: np.array([node]) for p, node in enumerate([*visited[:99], visited[-1]])}
    visited.clear()
    alone = transitions.paths(mass, rows, max_paths=1)
    first = len(visited)
    assert first == last
    visited.clear()
    found = transitions.paths(mass, rows)
    assert first < len(visited) <= MAX_PATHS * first + max(MIN_EXTRA_VISITS, MAX_PATHS * first)
    assert {p: paths[:1] for p, paths in found.items()} == alone
    assert transitions.paths(mass, rows) == found


def test_the_limit_counts_nodes_that_are_reached() -> None:
    """A chain of six, the first three of them seeds."""
    graph = hf.Graph.from_edges(range(5), range(1, 6), num_nodes=6, edge_type=[0] * 5, edge_type_names=NAMES)
    transitions = Transitions(graph, ETA, "per_type", 0.5)
    mass, rows = {0: 0.5, 1: 0.3, 2: 0.2}, {9: np.array([5])}
    (path,) = transitions.paths(mass, rows, max_paths=1, max_nodes=6)[9]
    assert transitions.paths(mass, rows, max_nodes=6)[9][0] == path
    assert [step.node for step in path] == [2, 3, 4, 5]
    assert transitions.paths(mass, rows, max_nodes=5) == {}


def test_a_passage_without_a_node_is_not_waited_for() -> None:
    graph = hf.Graph.from_edges([0], [1], num_nodes=2, edge_type=[0], edge_type_names=NAMES)
    transitions = Transitions(graph, ETA, "per_type", 0.5)
    one = {7: np.array([1])}
    assert transitions.paths({0: 1.0}, one | {8: np.array([], np.int64)}) == transitions.paths({0: 1.0}, one)


def test_a_passage_ends_at_its_strongest_node_and_far_ones_are_left() -> None:
    graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3], num_nodes=5, edge_type=[0, 0, 0], edge_type_names=NAMES)
    transitions = Transitions(graph, ETA, "per_type", 0.5)
    paths = transitions.paths({0: 1.0}, {7: np.array([3, 2]), 8: np.array([4])})
    assert [[step.node for step in steps] for steps in paths[7]] == [[0, 1, 2]]
    assert 8 not in paths
    assert transitions.paths({0: 1.0}, {7: np.array([3])}, max_nodes=2) == {}
    assert transitions.paths({}, {7: np.array([3])}) == transitions.paths({0: 1.0}, {}) == {}


def test_equal_seeds_come_by_their_numbers() -> None:
    """Four seeds about one node, as strong as each other."""
    graph = hf.Graph.from_edges([1, 2, 3, 4], [0] * 4, num_nodes=5, edge_type=[0] * 4, edge_type_names=NAMES)
    paths = Transitions(graph, ETA, "per_type", 0.5).paths(dict.fromkeys([4, 2, 3, 1], 0.25), {9: np.array([0])})
    assert [[step.node for step in steps] for steps in paths[9]] == [[1, 0], [2, 0], [3, 0]]
    assert [steps[-1].strength for steps in paths[9]] == pytest.approx([0.25 * 0.5 * 0.5] * 3)
