"""Every argument of ising_rerank."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from api.checks import refused
from compare import assert_hits_equal
from hopfuse import _native
from hopfuse.ops.ising import MOST_CANDIDATES

GRAPH = hf.Graph.from_edges([0, 1, 2, 3], [4, 4, 5, 5])
HITS = hf.Hits([[3, 1, 2], [1, 0, -1]], [[9.0, 7.0, 1.0], [2.0, 1.0, 0.0]])

BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"hits": [[1, 2]]}, ["hits must be Hits, got list", "hf.Hits"]),
    ({"graph": None}, ["graph must be a Graph, got NoneType", "index.graph"]),
    ({"graph": hf.Graph.from_edges([0], [5], directed=True)}, ["directed", "an undirected one"]),
    ({"graph": hf.Graph.from_edges([0], [2])}, ["row 0", "document 3", "0 .. 2"]),
    ({"hits": hf.Hits(np.arange(1025), np.zeros(1025))}, ["1025 wide", "1024", "hits.head(1024)"]),
    ({"coupling": -1.0}, ["coupling", "-1.0", "at least 0"]),
    ({"coupling": float("nan")}, ["coupling", "nan"]),
    ({"coupling": True}, ["coupling", "True"]),
    ({"coupling": 1e39}, ["coupling", "1e+39"]),
    ({"temperature": 0.0}, ["temperature", "0.0", "above 0"]),
    ({"temperature": 1e-60}, ["temperature", "1e-60"]),
    ({"temperature": float("inf")}, ["temperature", "inf"]),
    ({"temperature": "auto"}, ["temperature", "'auto'"]),
    ({"relaxation": 0.0}, ["relaxation", "0.0", "at most 1"]),
    ({"relaxation": 1.5}, ["relaxation", "1.5"]),
    ({"relaxation": None}, ["relaxation", "None"]),
    ({"steps": -1}, ["steps", "-1", "10000"]),
    ({"steps": 10_001}, ["steps", "10001"]),
    ({"steps": 2.0}, ["steps", "2.0"]),
    ({"steps": True}, ["steps", "True"]),
    ({"blend": -0.1}, ["blend", "-0.1", "from 0 to 1"]),
    ({"blend": 1.1}, ["blend", "1.1"]),
    ({"blend": float("nan")}, ["blend", "nan"]),
    ({"k": -1}, ["k is -1"]),
    ({"k": 2.5}, ["k is 2.5"]),
    ({"threads": 0}, ["threads is 0"]),
    ({"backend": "tpu"}, ["backend is 'tpu'"]),
]


@pytest.mark.parametrize(("change", "says"), BAD, ids=[str(next(iter(change.items())))[:40] for change, _ in BAD])
def test_invalid_input_is_named(change: dict[str, Any], says: list[str]) -> None:
    given: dict[str, Any] = {"hits": HITS, "graph": GRAPH} | change
    refused(lambda: hf.ising_rerank(given.pop("hits"), given.pop("graph"), **given), says)


def test_a_document_may_occur_once_in_a_list() -> None:
    refused(lambda: hf.Hits([[1, 2, 1]], [[3.0, 2.0, 1.0]]), ["row 0", "id 1", "more than once"])


def test_padding_may_hold_anything_that_hits_allow() -> None:
    """What stands behind the counts is not read, be it a node or none."""
    padded = hf.Hits.unchecked(np.array([[1, 0, 99]]), np.array([[2.0, 1.0, np.nan]], np.float32), np.array([2]))
    plain = hf.Hits([[1, 0]], [[2.0, 1.0]])
    assert_hits_equal(hf.ising_rerank(padded, GRAPH, k=2), hf.ising_rerank(plain, GRAPH))


def test_the_limit_is_the_kernels() -> None:
    assert MOST_CANDIDATES == _native.ISING_CANDIDATES


def test_inputs_are_left_alone_and_numpy_numbers_will_do() -> None:
    before = HITS.scores.copy()
    options = {"coupling": np.float32(1.0), "temperature": np.int64(2), "steps": np.int32(20), "k": np.int64(3)}
    assert_hits_equal(hf.ising_rerank(HITS, GRAPH, **options), hf.ising_rerank(HITS, GRAPH))
    np.testing.assert_array_equal(HITS.scores, before)


def test_the_graph_that_the_refusal_proposes_is_taken() -> None:
    graph = hf.Graph.from_edges([0, 1, 2, 3], [4, 4, 5, 5], directed=True)
    undirected = hf.Graph.from_edges(*graph.edges()[:3], num_nodes=graph.num_nodes)
    assert_hits_equal(hf.ising_rerank(HITS, undirected), hf.ising_rerank(HITS, GRAPH))
