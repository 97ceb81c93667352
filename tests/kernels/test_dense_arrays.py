"""An array without codes is searched as its Corpus is, bit for bit, and refused for the same reasons."""

from __future__ import annotations

import hopfuse as hf
import numpy as np
import pytest
from cases import filters_of
from compare import assert_hits_equal
from hopfuse import reference
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from refusals import refused

#: Around a block of rows and of queries, 16 dimensions, a piece of 768, and pieces of unequal length.
DIMS = [1, 15, 16, 17, 384, 768, 769, 1600]
BATCHES = [1, 2, 3, 4, 5, 8, 9, 17]
#: Queries for which an array is coded, on every instruction set, if it has so many dimensions.
MANY, CODED_DIM = 33, 64


def normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("batch", BATCHES)
def test_every_block(variant: str, dim: int, batch: int) -> None:
    rng = np.random.default_rng([dim, batch])
    x, q = normal(rng, 101, dim), normal(rng, batch, dim)
    assert_hits_equal(hf.dense_topk(q, x, 7), reference.dense_topk_canonical(q, hf.Corpus.from_array(x), 7))


@pytest.mark.parametrize("allow", ["nothing", "mask", "masks", "ids", "lists"])
@pytest.mark.parametrize("count", [97, 1000, 4100])
def test_arrays_that_are_coded_block_by_block(variant: str, count: int, allow: str) -> None:
    """For many queries: 4,100 rows of 400 dimensions are more than one block of codes."""
    rng = np.random.default_rng([count, 5])
    x, q = normal(rng, count, 400 if count > 1000 else CODED_DIM), normal(rng, MANY, 400 if count > 1000 else CODED_DIM)
    x[count // 2 :] = x[: count - count // 2]  # ties
    masks = rng.random((MANY, count)) < 0.6
    filters = filters_of(masks)
    filters["lists"][::2] = [np.arange(b) for b in range(0, MANY, 2)]
    given = filters[allow]
    expected = reference.dense_topk_canonical(q, hf.Corpus.from_array(x), 5, allow=given)
    for threads in (1, 3):
        assert_hits_equal(hf.dense_topk(q, x, 5, allow=given, threads=threads), expected)


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.sampled_from([1, 2, 3, 47, 48, 49, 200]),
    dim=st.integers(1, 40),
    batch=st.integers(1, 20),
    k=st.sampled_from([1, 3, 30, 200]),
    grid=st.sampled_from([0, 2]),
    kind=st.sampled_from(["nothing", "mask", "masks", "ids", "lists"]),
    threads=st.integers(1, 3),
)
def test_drawn_arrays(
    variant: str, seed: int, count: int, dim: int, batch: int, k: int, grid: int, kind: str, threads: int
) -> None:
    rng = np.random.default_rng(seed)
    x, q = normal(rng, count, dim), normal(rng, batch, dim)
    x, q = (x, q) if grid == 0 else (x.round(0) / grid, q.round(0))  # ties
    masks = rng.random((batch, count)) < rng.choice([0.0, 0.1, 0.9], (batch, 1))
    allow = filters_of(masks)[kind]
    expected = reference.dense_topk_canonical(q, hf.Corpus.from_array(x), k, allow=allow)
    assert_hits_equal(hf.dense_topk(q, x, k, allow=allow, threads=threads), expected)


def test_other_numbers_are_searched_as_float32(variant: str) -> None:
    rng = np.random.default_rng(2)
    q = normal(rng, 3, 20)
    for x in (rng.standard_normal((60, 20)), normal(rng, 60, 20).astype(np.float16), normal(rng, 20, 60).T):
        assert_hits_equal(hf.dense_topk(q, x, 5), hf.dense_topk(q, hf.Corpus.from_array(x), 5))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2e19, 3e38])
@pytest.mark.parametrize("batch", [0, 1, 3, MANY])
@pytest.mark.parametrize("at", [(0, 0), (149, 63), (77, 16)])
def test_rows_that_cannot_be_scored_are_named(variant: str, value: float, batch: int, at: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    x, q = normal(rng, 150, CODED_DIM), np.zeros((batch, CODED_DIM), np.float32)
    x[at] = value
    with refused(InputError, "finite", f"X[{at[0]}]"):
        hf.Corpus.from_array(x)
    for k, allow in ((0, None), (3, None), (3, [1]), (3, np.ones(150, bool))):
        with refused(InputError, "finite", f"X[{at[0]}]"):
            hf.dense_topk(q, x, k, allow=allow)


def test_rows_beside_the_limit_are_scored(variant: str) -> None:
    """Their squares' sum is above a quarter of float32's largest number, where the kernel asks for a closer look."""
    rng = np.random.default_rng(4)
    x = normal(rng, 90, CODED_DIM)
    x[30] = 0.0
    x[30, 3] = 1.2e19
    for batch in (3, MANY):
        q = normal(rng, batch, CODED_DIM)
        for allow in (None, np.arange(20, 60)):
            expected = reference.dense_topk_canonical(q, hf.Corpus.from_array(x), 4, allow=allow)
            assert_hits_equal(hf.dense_topk(q, x, 4, allow=allow), expected)


@pytest.mark.parametrize("x", [np.zeros(3), np.zeros((2, 0)), np.zeros((2, 3), bool), np.zeros((1, 2, 3))])
def test_other_shapes_are_refused_as_by_a_corpus(variant: str, x: NDArray[np.float64]) -> None:
    with refused(InputError, "shape", "X"):
        hf.Corpus.from_array(x)
    with refused(InputError, "shape", "X"):
        hf.dense_topk(np.zeros((1, 3)), x, 1)
