"""A graph that is continued after changes of nodes and edges, against one that is built of all its edges."""

from __future__ import annotations

from typing import Any, NamedTuple

import hopfuse as hf
import numpy as np
import pytest
from hopfuse import _native
from hopfuse._arrays.csr import Change
from hopfuse.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

SEEDS = st.integers(0, 2**32 - 1)


class Edges(NamedTuple):
    """Statements of edges."""

    src: np.ndarray
    dst: np.ndarray
    type: np.ndarray
    weight: np.ndarray

    @classmethod
    def drawn(cls, rng: np.random.Generator, count: int, nodes: int, types: int, weights: list[float]) -> Edges:
        count = count if nodes else 0
        ends = rng.integers(0, max(nodes, 1), (2, count))
        return cls(*ends, rng.integers(0, types, count).astype(np.uint8), rng.choice(weights, count))

    def take(self, chosen: np.ndarray) -> Edges:
        return Edges(*(column[chosen] for column in self))

    def moved(self, node: np.ndarray) -> Edges:
        return self._replace(src=node[self.src].astype(np.int64), dst=node[self.dst].astype(np.int64))

    def and_then(self, other: Edges) -> Edges:
        return Edges(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))

    def keys(self, directed: bool) -> list[tuple[int, int, int]]:
        found = zip(*(column.tolist() for column in self[:3]), strict=True)
        return [(a, b, t) if directed else (min(a, b), max(a, b), t) for a, b, t in found]

    def graph(self, nodes: int, types: int, directed: bool) -> hf.Graph:
        names = [f"type {t}" for t in range(types)]
        kind = self.type if types > 1 else None
        how: dict[str, Any] = {"directed": directed, "edge_type": kind, "edge_type_names": names}
        return hf.Graph.from_edges(self.src, self.dst, self.weight, num_nodes=nodes, **how)


def drawn_nodes(rng: np.random.Generator, count: int) -> tuple[np.ndarray, int]:
    """Return the new node of each node, and the number of new nodes: some are gone, others come between them."""
    stay = rng.random(count) < rng.choice([1.0, 0.7])
    places = sorted([(at + 0.5, at) for at in np.flatnonzero(stay)] + [(x, -1) for x in rng.integers(0, count + 1, 3)])
    places = places if rng.random() < 0.8 else [place for place in places if place[1] >= 0]
    node = np.full(count, -1, np.int32)
    for new, (_, old) in enumerate(places):
        if old >= 0:
            node[old] = new
    return node, len(places)


def changed(node: np.ndarray, nodes: int, edges: Edges, gone: Edges) -> Change:
    return Change(node, nodes, (edges.src, edges.dst), edges.weight, edges.type, (gone.src, gone.dst, gone.type))


def check_continued(seed: int) -> None:
    """Continue a drawn graph by a drawn change, twice, and compare each with the graph of all edges."""
    rng = np.random.default_rng(seed)
    nodes, types, directed = int(rng.integers(0, 14)), int(rng.integers(1, 4)), bool(rng.integers(2))
    weights = [[1.0], [1.0, 2.0], [1.0, 0.1, 0.7, 3.3]][rng.integers(3)]
    edges = Edges.drawn(rng, int(rng.integers(0, 50)), nodes, types, weights)
    graph = edges.graph(nodes, types, directed)
    for _ in range(2):
        node, after = drawn_nodes(rng, nodes)
        remain = edges.take((node[edges.src] >= 0) & (node[edges.dst] >= 0)).moved(node)
        deleted = rng.random(remain.src.size) < rng.choice([0.0, 0.2])
        gone, new = remain.take(deleted), Edges.drawn(rng, int(rng.integers(0, 10)), after, types, weights)
        edges = remain.take(~deleted).and_then(new)
        concerned = {*new.keys(directed), *gone.keys(directed)}
        again = edges.take(np.array([key in concerned for key in edges.keys(directed)], bool))
        graph, built = graph.continued(changed(node, after, again, gone)), edges.graph(after, types, directed)
        assert_same(graph, built)
        nodes = after


def assert_same(graph: hf.Graph, built: hf.Graph) -> None:
    ours, theirs = graph.to_arrays(), built.to_arrays()
    assert list(ours) == list(theirs)
    for name, array in theirs.items():
        assert (ours[name].dtype, ours[name].shape) == (array.dtype, array.shape), name
        assert ours[name].tobytes() == array.tobytes(), name
    assert graph.counts_of_types().tolist() == built.counts_of_types().tolist()
    assert (graph.directed, graph.edge_type_names) == (built.directed, built.edge_type_names)


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_a_continued_graph_equals_one_of_all_edges(seed: int) -> None:
    for more in range(20):
        check_continued((seed + more) % 2**32)


def test_a_continued_graph_is_searched_like_one_of_all_edges() -> None:
    rng = np.random.default_rng(3)
    edges = Edges.drawn(rng, 600, 200, 2, [1.0, 0.3])
    graph, node = edges.graph(200, 2, False), np.where(np.arange(200) < 90, np.arange(200), np.arange(200) + 2)
    new = Edges(np.array([90, 91, 91]), np.array([3, 5, 150]), np.zeros(3, np.uint8), np.array([1.0, 0.5, 2.0]))
    none = new.take(np.zeros(0, np.int64))
    hf.ppr(graph, [{1: 1.0}])  # whose tables are not those of the next graph
    continued = graph.continued(changed(node.astype(np.int32), 202, new, none))
    built = edges.moved(node).and_then(new).graph(202, 2, False)
    seeds = [{90: 1.0, 3: 0.5}, {150: 1.0}]
    assert np.array_equal(hf.ppr(continued, seeds).scores, hf.ppr(built, seeds).scores)


def test_what_from_edges_refuses_is_refused() -> None:
    graph = hf.Graph.from_edges([0, 1], [1, 2], [1.0, 1e38])
    node, none = np.arange(3, dtype=np.int32), Edges(*np.zeros((3, 0), np.int64), np.zeros(0))

    def change(weight: list[float], ends: tuple[list[int], list[int]]) -> Change:
        edges = Edges(*map(np.array, ends), np.zeros(len(weight), np.uint8), np.array(weight))
        return changed(node, 3, edges, none._replace(type=np.zeros(0, np.uint8)))

    with refused(InputError, "range", "weight", src=0, dst=2):
        graph.continued(change([1e-45], ([2], [0])))
    with refused(InputError, "limit", "weight", node=2):
        graph.continued(change([1e38], ([2], [0])))
    assert graph.continued(change([1e37], ([2], [0]))).num_stored == 6


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_statements_are_found(dtype: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lowest, size, directed = int(rng.integers(-4, 1)), 9, bool(rng.integers(2))
    ends = rng.integers(lowest, lowest + size, (int(rng.integers(0, 60)), 2)).astype(dtype)
    passages = rng.integers(-2, 5, len(ends)).astype(dtype)
    number = np.where(rng.random(size) < 0.6, rng.permutation(size), -1).astype(np.int32)
    pairs = np.unique(rng.integers(0, size * size, int(rng.integers(0, 12))))
    expected = []
    for at, (a, b) in enumerate(number[ends - lowest].tolist()):
        a, b = (a, b) if directed or a <= b else (b, a)
        expected += [at] if a >= 0 and b >= 0 and a * size + b in pairs.tolist() else []
    found = np.empty(len(ends), np.int64)
    how: dict[str, Any] = {"number": number, "size": size, "directed": directed, "pairs": pairs}
    count = _native.find_pairs(ends=ends, lowest=lowest, **how, out_found=found)
    assert found[:count].tolist() == expected
    end_gone, passage_gone = (rng.random(size) < 0.2).view(np.uint8), (rng.random(7) < 0.2).view(np.uint8)
    gone = end_gone[ends - lowest].any(axis=1) | (passage_gone[passages + 2] > 0)
    tables = {"end_gone": end_gone, "passage_gone": passage_gone}
    count = _native.find_gone(ends=ends, lowest=lowest, passages=passages, **tables, out_found=found)
    assert found[:count].tolist() == np.flatnonzero(gone).tolist()


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_the_later_nodes_of_the_first_rows_are_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, types = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    edges = Edges.drawn(rng, int(rng.integers(0, 50)), nodes, types, [1.0])
    rows = int(rng.integers(0, nodes + 1))
    found = hf.Incidence.from_graph(edges.graph(nodes, types, False), rows)
    pairs = {(a, b) for a, b, _ in edges.keys(False) if a < rows <= b}
    expected = hf.Incidence.from_pairs(
        *zip(*sorted(pairs), strict=True) if pairs else ([], []), num_rows=rows, num_columns=nodes
    )
    assert (found.indptr.tolist(), found.indices.tolist()) == (expected.indptr.tolist(), expected.indices.tolist())
    assert found.column_counts().tolist() == expected.column_counts().tolist()
    assert (found.num_columns, found.weights) == (expected.num_columns, None)
