"""Results are min(k, what exists) wide: k is any whole number of at least 0, and nothing of its size is made."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_hits_equal

CORPUS = hf.Corpus.from_array(np.eye(5, 3) + 1)
GRAPH = hf.Graph.from_edges([0, 1, 2], [1, 2, 3])
INCIDENCE = hf.Incidence.from_pairs([0, 1], [1, 0], num_rows=2, num_columns=2)
LISTS = [hf.Hits([[3, 1]], [[2.0, 1.0]]), hf.Hits([[1, 7, 9]], [[3.0, 2.0, 1.0]])]
OPS: dict[str, tuple[Callable[[int], hf.Hits], int]] = {
    "dense_topk": (lambda k: hf.dense_topk(np.ones((1, 3)), CORPUS, k), 5),
    "ppr_topk": (lambda k: hf.ppr_topk(GRAPH, [{0: 1.0}], k), 4),
    "ppr_topk of candidates": (lambda k: hf.ppr_topk(GRAPH, [{0: 1.0}], k, candidates=[1, 3]), 2),
    "project_topk": (lambda k: hf.project_topk([[1.0, 2.0]], INCIDENCE, k), 2),
    "fuse": (lambda k: hf.fuse(LISTS, method="rrf", k=k), 5),
    "fuse of pools": (lambda k: hf.fuse(LISTS, method="rrf", pool=(1, None), k=k), 4),
    "ising_rerank": (lambda k: hf.ising_rerank(LISTS[0], GRAPH, k=k), 2),
}


@pytest.mark.parametrize("name", OPS)
def test_a_result_is_as_wide_as_what_exists(name: str) -> None:
    call, width = OPS[name]
    whole = call(width)
    assert whole.shape == (1, width)
    for k in (0, 1, width - 1):
        assert call(k).shape == (1, k)
    tracemalloc.start()
    for k in (width + 1, 10**8, 2**40):
        assert_hits_equal(call(k), whole)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
