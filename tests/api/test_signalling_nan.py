"""A signalling NaN is refused like any NaN, where there are warnings too: converting one sets a floating-point flag."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from hopfuse.errors import InputError

GRAPH = hf.Graph.from_edges([0, 1], [1, 2])
CORPUS = hf.Corpus.from_array(np.eye(3, dtype=np.float32))
HITS = hf.Hits([[1, 2]], [[2.0, 1.0]])


def ones(*shape: int, dtype: type = np.float32) -> Any:
    """Ones, and a signalling NaN first."""
    array = np.ones(shape, dtype)
    bits, pattern = {np.float32: (np.uint32, 0x7F800001), np.float16: (np.uint16, 0x7C01)}[dtype]
    array.reshape(-1).view(bits)[0] = pattern
    assert np.isnan(array.reshape(-1)[0])
    return array


CALLS: dict[str, Callable[[], Any]] = {
    "vectors, inner product": lambda: hf.Corpus.from_array(ones(2, 3)),
    "vectors, cosine": lambda: hf.Corpus.from_array(ones(2, 3), metric="cosine"),
    "vectors for float16": lambda: hf.Corpus.from_array(ones(2, 3), storage="float16"),
    "vectors in float16": lambda: hf.Corpus.from_array(ones(2, 3, dtype=np.float16)),
    "vectors, 8-bit codes": lambda: hf.Corpus.from_array(ones(2, 3), storage="int8"),
    "queries": lambda: hf.dense_topk(ones(2, 3), CORPUS, k=1),
    "queries in float16": lambda: hf.dense_topk(ones(2, 3, dtype=np.float16), CORPUS, k=1),
    "edge weights": lambda: hf.Graph.from_edges([0, 1], [1, 2], ones(2)),
    "a dense restart": lambda: hf.ppr(GRAPH, ones(1, 3)),
    "a restart by node": lambda: hf.ppr(GRAPH, [{0: ones(1)[0]}]),
    "seeds": lambda: hf.Seeds([[0]], ones(1, 1)),
    "damping": lambda: hf.ppr(GRAPH, [{0: 1.0}], damping=ones(1)),
    "edge-type weights": lambda: hf.ppr(GRAPH, [{0: 1.0}], edge_type_weights=ones(1)),
    "scores": lambda: hf.Hits([[1, 2]], ones(1, 2)),
    "weights of lists": lambda: hf.fuse([HITS, HITS], k=1, weights=ones(2)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_it_is_refused_without_a_warning(call: Callable[[], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=r"(?i)nan|finite|damping is"):
            call()


def test_an_importance_that_is_one_is_unknown() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet, signalling = (hf.fuse([HITS], k=2, prior=[0.5, *known, 0.5]) for known in ([np.nan], ones(1)))
    assert np.array_equal(quiet.scores, signalling.scores)
