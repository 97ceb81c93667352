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


BITS = {np.float16: (np.uint16, 0x7C01), np.float32: (np.uint32, 0x7F800001), np.float64: (np.uint64, 0x7FF << 52 | 1)}


def ones(*shape: int, dtype: Any) -> Any:
    """Ones, and a signalling NaN first."""
    array = np.ones(shape, dtype)
    bits, pattern = BITS[dtype]
    array.reshape(-1).view(bits)[0] = pattern
    assert np.isnan(array.reshape(-1)[0])
    return array


def twice(dtype: Any) -> Any:
    """A sparse restart that has one of its entries twice."""
    sparse = pytest.importorskip("scipy.sparse")
    if dtype == np.float16:
        pytest.skip("SciPy has no sparse arrays of float16")
    return sparse.coo_array((ones(2, dtype=dtype), ([0, 0], [1, 1])), shape=(1, 3))


CALLS: dict[str, Callable[[Any], Any]] = {
    "vectors, inner product": lambda dtype: hf.Corpus.from_array(ones(2, 3, dtype=dtype)),
    "vectors, cosine": lambda dtype: hf.Corpus.from_array(ones(2, 3, dtype=dtype), metric="cosine"),
    "vectors for float16": lambda dtype: hf.Corpus.from_array(ones(2, 3, dtype=dtype), storage="float16"),
    "vectors, 8-bit codes": lambda dtype: hf.Corpus.from_array(ones(2, 3, dtype=dtype), storage="int8"),
    "queries": lambda dtype: hf.dense_topk(ones(2, 3, dtype=dtype), CORPUS, k=1),
    "edge weights": lambda dtype: hf.Graph.from_edges([0, 1], [1, 2], ones(2, dtype=dtype)),
    "a dense restart": lambda dtype: hf.ppr(GRAPH, ones(1, 3, dtype=dtype)),
    "a sparse restart": lambda dtype: hf.ppr(GRAPH, twice(dtype)),
    "a restart by node": lambda dtype: hf.ppr(GRAPH, [{0: ones(1, dtype=dtype)[0]}]),
    "seeds": lambda dtype: hf.Seeds([[0]], ones(1, 1, dtype=dtype)),
    "seeds by node": lambda dtype: hf.Seeds.from_rows([{0: ones(1, dtype=dtype)[0]}]),
    "damping": lambda dtype: hf.ppr(GRAPH, [{0: 1.0}], damping=ones(1, dtype=dtype)),
    "damping of all": lambda dtype: hf.ppr(GRAPH, [{0: 1.0}], damping=ones(1, dtype=dtype)[0]),
    "edge-type weights": lambda dtype: hf.ppr(GRAPH, [{0: 1.0}], edge_type_weights=ones(1, dtype=dtype)),
    "scores": lambda dtype: hf.Hits([[1, 2]], ones(1, 2, dtype=dtype)),
    "weights of lists": lambda dtype: hf.fuse([HITS, HITS], k=1, weights=ones(2, dtype=dtype)),
}


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_it_is_refused_without_a_warning(call: Callable[[Any], Any], dtype: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError) as caught:
            call(dtype)
    assert caught.value.code in ("finite", "range")


@pytest.mark.parametrize("dtype", BITS)
def test_an_importance_that_is_one_is_unknown(dtype: Any) -> None:
    known = np.full(3, 0.5, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known[1] = np.nan
        quiet = hf.fuse([HITS], k=2, prior=known)
        known[1:2] = ones(1, dtype=dtype)
        assert np.isnan(known[1])
        signalling = hf.fuse([HITS], k=2, prior=known)
    assert np.array_equal(quiet.scores, signalling.scores)
