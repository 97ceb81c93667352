"""The strongest paths against every simple path of small graphs."""

from __future__ import annotations

import itertools

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.recipes._strong_paths import Transitions
from hypothesis import given
from hypothesis import strategies as st

ETA = (0.5, 0.2, 0.3)


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
    starts=st.dictionaries(st.integers(0, 4), st.sampled_from([0.2, 0.5, 0.8]), min_size=1, max_size=3),
)
def test_as_strong_as_the_best_of_all_simple_paths(edges, directed, norm, starts) -> None:
    src, dst, weight, kind = zip(*edges, strict=True)
    names = ["relation", "synonym", "context"]
    graph = hf.Graph.from_edges(src, dst, weight, num_nodes=5, directed=directed, edge_type=kind, edge_type_names=names)
    p = 0.5 * dense_transitions(graph, norm)
    transitions = Transitions(graph, ETA, norm, 0.5)
    np.testing.assert_allclose(transitions.kept, 2 * p.sum(1), atol=1e-6)
    paths = transitions.paths(starts, {t: np.array([t]) for t in range(5)})
    for target in range(5):
        best = strongest(p, starts, target)
        if best == 0:
            assert target not in paths
            continue
        steps = paths[target]
        assert steps[-1].strength == pytest.approx(best, rel=1e-6)
        assert steps[0].edge is None
        assert steps[0].strength == pytest.approx(starts[steps[0].node])
        for before, after in itertools.pairwise(steps):
            kinds = {k for s, d, _, k in zip(*graph.edges(), strict=True) if {s, d} == {before.node, after.node}}
            assert after.edge in kinds


def test_a_passage_ends_at_its_strongest_node_and_far_ones_are_left() -> None:
    names = ["relation", "synonym", "context"]
    graph = hf.Graph.from_edges([0, 1, 2], [1, 2, 3], num_nodes=5, edge_type=[0, 0, 0], edge_type_names=names)
    transitions = Transitions(graph, ETA, "per_type", 0.5)
    paths = transitions.paths({0: 1.0}, {7: np.array([3, 2]), 8: np.array([4])})
    assert [step.node for step in paths[7]] == [0, 1, 2]
    assert 8 not in paths
    assert transitions.paths({0: 1.0}, {7: np.array([3])}, most=2) == {}
