"""From 1,024 dimensions on the CPU's scan has a second code of each query: the same hits, of fewer rows rescored."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import ADVERSARIAL_ROWS, adversarial_rows
from compare import assert_hits_equal
from hopfuse import reference
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from variants import use

FINE = 1024


def check_all(every_isa: list[str], x: NDArray[Any], q: NDArray[np.float32], k: int, metric: Any, storage: Any) -> None:
    corpus = hf.Corpus.from_array(x, metric=metric, storage=storage)
    exact = reference.dense_topk_canonical(q, corpus, k)
    for name in every_isa:
        use(name)
        assert_hits_equal(hf.dense_topk(q, hf.Corpus.from_array(x, metric=metric, storage=storage), k), exact)


def normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dim", [FINE - 1, FINE, FINE + 1, 1500, 4096])
@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("storage", ["float32", "float16", "bfloat16", "int8"])
def test_hits_are_those_of_an_exhaustive_scan(every_isa: list[str], dim: int, metric: str, storage: str) -> None:
    rng = np.random.default_rng(dim)
    check_all(every_isa, normal(rng, 300, dim), normal(rng, 3, dim), 5, metric, storage)


@pytest.mark.parametrize("batch", [*range(1, 14), 20, 23])
def test_every_grouping_of_queries(every_isa: list[str], batch: int) -> None:
    rng = np.random.default_rng(batch)
    check_all(every_isa, normal(rng, 250, FINE), normal(rng, batch, FINE), 3, "ip", "float32")


@pytest.mark.parametrize("name", ADVERSARIAL_ROWS)
def test_adversarial_rows(every_isa: list[str], name: str) -> None:
    rng = np.random.default_rng(3)
    x = adversarial_rows(name, rng, 250, FINE + 4)
    q = np.concatenate([np.abs(normal(rng, 1, FINE + 4)), x[:2] / max(1.0, float(np.abs(x[:2]).max()))])
    for metric in ("ip", "cosine"):
        rows, queries = x, q
        if metric == "cosine":  # a row that vanishes has no cosine
            rows = x[np.square(x, dtype=np.float64).sum(axis=1) > 1e-37]
            queries = q[np.square(q, dtype=np.float64).sum(axis=1) > 1e-37]
        check_all(every_isa, rows, queries, 4, metric, "float32")


@given(
    seed=st.integers(0, 2**32 - 1),
    spread=st.sampled_from([0.0, 1e-7, 1e-4, 1e-2, 1.0]),
    scale=st.sampled_from([1e-30, 1e-18, 1e-3, 1.0, 1e3, 1e17]),
    k=st.integers(1, 25),
)
def test_rows_that_hardly_differ(every_isa: list[str], seed: int, spread: float, scale: float, k: int) -> None:
    rng = np.random.default_rng(seed)
    x = (normal(rng, 1, FINE) + np.float32(spread) * normal(rng, 220, FINE)) * np.float32(scale)
    fast = [name for name in every_isa if name != "baseline"] or every_isa
    check_all(fast, x, normal(rng, 2, FINE), k, "ip", "float32")


def test_the_second_code_leaves_fewer_rows_to_rescore(every_isa: list[str]) -> None:
    rng = np.random.default_rng(9)
    x, q = normal(rng, 4000, FINE), normal(rng, 8, FINE)
    rescored = []
    for dim in (FINE - 1, FINE):
        hf.dense_topk(q[:, :dim], hf.Corpus.from_array(x[:, :dim].copy(), metric="cosine"), 10, backend="cpu")
        rescored.append(hf.explain()["backends"]["cpu"]["last_calls"]["dense_topk_f32"]["rescored_rows"])
    assert rescored[1] < 0.5 * rescored[0]
