"""Every argument of ising_rerank."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_hits_equal
from hopfuse import _native
from hopfuse.errors import InputError
from refusals import refused

GRAPH = hf.Graph.from_edges([0, 1, 2, 3], [4, 4, 5, 5])
HITS = hf.Hits([[3, 1, 2], [1, 0, -1]], [[9.0, 7.0, 1.0], [2.0, 1.0, 0.0]])

BAD: list[tuple[dict[str, Any], tuple[str, str | None]]] = [
    ({"hits": [[1, 2]]}, ("type", "hits")),
    ({"graph": None}, ("type", "graph")),
    ({"graph": hf.Graph.from_edges([0], [5], directed=True)}, ("unsupported", "graph")),
    ({"graph": hf.Graph.from_edges([0], [2])}, ("unknown", "hits[0]")),
    ({"hits": hf.Hits(np.arange(1025), np.zeros(1025))}, ("limit", "hits")),
    ({"coupling": -1.0}, ("range", "coupling")),
    ({"coupling": float("nan")}, ("range", "coupling")),
    ({"coupling": True}, ("range", "coupling")),
    ({"coupling": 1e39}, ("range", "coupling")),
    ({"temperature": 0.0}, ("range", "temperature")),
    ({"temperature": 1e-60}, ("range", "temperature")),
    ({"temperature": float("inf")}, ("range", "temperature")),
    ({"temperature": "auto"}, ("range", "temperature")),
    ({"relaxation": 0.0}, ("range", "relaxation")),
    ({"relaxation": 1.5}, ("range", "relaxation")),
    ({"relaxation": None}, ("range", "relaxation")),
    ({"steps": -1}, ("range", "steps")),
    ({"steps": 10_001}, ("range", "steps")),
    ({"steps": 2.0}, ("range", "steps")),
    ({"steps": True}, ("range", "steps")),
    ({"blend": -0.1}, ("range", "blend")),
    ({"blend": 1.1}, ("range", "blend")),
    ({"blend": float("nan")}, ("range", "blend")),
    ({"k": -1}, ("range", "k")),
    ({"k": 2.5}, ("range", "k")),
    ({"threads": 0}, ("range", "threads")),
    ({"backend": "tpu"}, ("choice", "backend")),
]


@pytest.mark.parametrize(("change", "refusal"), BAD, ids=[str(next(iter(change.items())))[:40] for change, _ in BAD])
def test_invalid_input_is_named(change: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    given: dict[str, Any] = {"hits": HITS, "graph": GRAPH} | change
    with refused(InputError, *refusal):
        hf.ising_rerank(given.pop("hits"), given.pop("graph"), **given)


def test_a_document_may_occur_once_in_a_list() -> None:
    with refused(InputError, "duplicate", "ids[0]"):
        hf.Hits([[1, 2, 1]], [[3.0, 2.0, 1.0]])


def test_padding_may_hold_anything_that_hits_allow() -> None:
    """What stands behind the counts is not read, be it a node or none."""
    padded = hf.Hits.unchecked(np.array([[1, 0, 99]]), np.array([[2.0, 1.0, np.nan]], np.float32), np.array([2]))
    plain = hf.Hits([[1, 0]], [[2.0, 1.0]])
    assert_hits_equal(hf.ising_rerank(padded, GRAPH, k=2), hf.ising_rerank(plain, GRAPH))


def test_the_limit_is_the_kernels() -> None:
    wide = np.arange(_native.ISING_CANDIDATES + 1)[None]
    graph = hf.Graph.from_edges([0], [1], num_nodes=wide.size)
    with refused(InputError, "limit", "hits", given=wide.size, allowed=_native.ISING_CANDIDATES):
        hf.ising_rerank(hf.Hits(wide, -wide.astype(np.float32)), graph)
    assert hf.ising_rerank(hf.Hits(wide[:, 1:], -wide[:, 1:].astype(np.float32)), graph, k=1).ids.tolist() == [[1]]


def test_inputs_are_left_alone_and_numpy_numbers_will_do() -> None:
    before = HITS.scores.copy()
    options = {"coupling": np.float32(1.0), "temperature": np.int64(2), "steps": np.int32(20), "k": np.int64(3)}
    assert_hits_equal(hf.ising_rerank(HITS, GRAPH, **options), hf.ising_rerank(HITS, GRAPH))
    np.testing.assert_array_equal(HITS.scores, before)


def test_the_graph_that_the_refusal_proposes_is_taken() -> None:
    graph = hf.Graph.from_edges([0, 1, 2, 3], [4, 4, 5, 5], directed=True)
    undirected = hf.Graph.from_edges(*graph.edges()[:3], num_nodes=graph.num_nodes)
    assert_hits_equal(hf.ising_rerank(HITS, undirected), hf.ising_rerank(HITS, GRAPH))
