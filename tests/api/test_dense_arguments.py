"""Every argument of dense_topk and Corpus."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from api.checks import refused
from compare import assert_bitwise, assert_hits_equal


def corpus(metric: Any = "ip") -> hf.Corpus:
    return hf.Corpus.from_array(np.eye(4, 3, dtype=np.float32) + 0.5, metric=metric)


BAD_CORPORA: list[tuple[Any, dict[str, Any], list[str]]] = [
    (np.ones(3), {}, ["(3,)", "(N, d)"]),
    (np.ones((2, 3, 4)), {}, ["(2, 3, 4)"]),
    (np.ones((2, 0)), {}, ["(2, 0)", "d >= 1"]),
    (np.array([["a"]]), {}, ["(N, d)"]),
    (np.ones((2, 2), complex), {}, ["complex"]),
    (np.ones((2, 2), bool), {}, ["bool"]),
    ([[1.0], [np.nan]], {}, ["row 1", "NaN"]),
    ([[1.0], [2.0], [-np.inf]], {}, ["row 2", "infinite"]),
    ([[1e20]], {}, ["row 0", "float32"]),
    ([[1e300]], {}, ["row 0"]),
    ([[1.0], [7e4]], {"storage": "float16"}, ["row 1"]),
    ([[1.0], [0.0]], {"metric": "cosine"}, ["row 1", "zero vector", "metric='ip'"]),
    ([[1.0], [1e-30]], {"metric": "cosine"}, ["row 1", "vanishes"]),
    ([[1.0], [1e-9]], {"metric": "cosine", "storage": "float16"}, ["row 1"]),
    ([[1.0]], {"metric": "l2"}, ["metric", "'l2'", "ip", "cosine"]),
    ([[1.0]], {"metric": None}, ["metric", "None"]),
    ([[1.0], [3.4e38]], {"storage": "bfloat16"}, ["row 1", "infinite"]),
    ([[1.0], [1e39]], {"storage": "bfloat16"}, ["row 1"]),
    ([[1.0], [np.nan]], {"storage": "bfloat16"}, ["row 1", "NaN"]),
    ([[1.0], [1e-42]], {"metric": "cosine", "storage": "bfloat16"}, ["row 1"]),
    ([[1.0], [np.nan]], {"storage": "int8"}, ["row 1", "NaN"]),
    (np.array([[1.0], [np.inf]], np.float16), {"storage": "int8"}, ["row 1", "infinite"]),
    (np.array([[1.0], [0.0]], np.float16), {"storage": "int8", "metric": "cosine"}, ["row 1", "zero vector"]),
    (np.ones((4, 6), np.float32)[:, ::2], {"storage": "int8"}, ["(4, 3)", "C-contiguous", "ascontiguousarray"]),
    (np.asfortranarray(np.ones((4, 6), np.float16)), {"storage": "int8"}, ["float16", "C-contiguous"]),
    ([[1.0]], {"storage": "int4"}, ["storage", "'int4'", "float32", "float16", "bfloat16", "int8"]),
    ([[1.0]], {"storage": np.float32}, ["storage"]),
]

BAD_QUERIES: list[tuple[Any, list[str]]] = [
    (np.ones(4), ["(4,)", "(B, 3)"]),
    (np.ones((2, 4)), ["(2, 4)", "(3,)"]),
    (np.ones((1, 2, 3)), ["(1, 2, 3)"]),
    (3.0, ["()"]),
    (["a", "b", "c"], ["queries", "dtype"]),
    (np.ones((1, 3), complex), ["complex"]),
    ([[1, 2, 3], [4, np.nan, 6]], ["query 1", "NaN"]),
    ([[np.inf, 0, 0]], ["query 0", "infinite"]),
    ([[1e39, 0, 0]], ["query 0"]),
    ([[1e25, 0, 0]], ["query 0", "too large"]),
    ([[1, 2], [3]], ["rectangular"]),
    (None, ["queries"]),
]

BAD_OPTIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"k": -1}, ["k", "-1"]),
    ({"k": 1.5}, ["k", "1.5"]),
    ({"k": "3"}, ["k", "'3'"]),
    ({"k": False}, ["k", "False"]),
    ({"k": 1, "allow": [4]}, ["allow", "4", "0 .. 3"]),
    ({"k": 1, "allow": [-1, 2]}, ["allow", "-1"]),
    ({"k": 1, "allow": [True, False]}, ["allow", "(2,)", "4"]),
    ({"k": 1, "allow": np.ones((3, 4), bool)}, ["allow", "(3, 4)", "(2, 4)"]),
    ({"k": 1, "allow": np.ones((2, 5), bool)}, ["allow", "(2, 5)"]),
    ({"k": 1, "allow": [[0], [1], [2]]}, ["allow", "3 lists", "2 queries"]),
    ({"k": 1, "allow": [[0], [9]]}, ["allow[1]", "9", "0 .. 3"]),
    ({"k": 1, "allow": [[0], ["x"]]}, ["allow[1]"]),
    ({"k": 1, "allow": [0.5]}, ["allow"]),
    ({"k": 1, "allow": "all"}, ["allow"]),
    ({"k": 1, "backend": "gpu"}, ["backend", "'gpu'"]),
    ({"k": 1, "threads": -2}, ["threads", "-2"]),
]


@pytest.mark.parametrize(("array", "options", "says"), BAD_CORPORA)
def test_a_bad_corpus_is_refused(array: Any, options: dict[str, Any], says: list[str]) -> None:
    refused(lambda: hf.Corpus.from_array(array, **options), says)


@pytest.mark.parametrize(("queries", "says"), BAD_QUERIES)
def test_bad_queries_are_refused(queries: Any, says: list[str]) -> None:
    refused(lambda: hf.dense_topk(queries, corpus(), 2), says)


@pytest.mark.parametrize(("options", "says"), BAD_OPTIONS)
def test_a_bad_option_is_refused(options: dict[str, Any], says: list[str]) -> None:
    refused(lambda: hf.dense_topk(np.ones((2, 3)), corpus(), **options), says)


@pytest.mark.parametrize("query", [[0.0, 0.0, 0.0], [1e-30, 0.0, 0.0]])
def test_a_query_without_direction_has_no_cosine(query: list[float]) -> None:
    refused(lambda: hf.dense_topk([[1.0, 0, 0], query], corpus("cosine"), 1), ["query 1", "zero vector"])
    assert hf.dense_topk([query], corpus("ip"), 1).counts.tolist() == [1]


def test_a_bad_raw_array_is_refused_as_a_corpus_is() -> None:
    refused(lambda: hf.dense_topk([[1.0]], [[np.nan]], 1), ["row 0"])


def test_a_raw_array_is_an_inner_product_corpus_in_float32() -> None:
    rng = np.random.default_rng(1)
    x, q = rng.standard_normal((50, 6)), rng.standard_normal((3, 6))
    assert_hits_equal(hf.dense_topk(q, x, 4), hf.dense_topk(q, hf.Corpus.from_array(x), 4))


def test_one_query_vector_is_a_batch_of_one() -> None:
    assert hf.dense_topk([1.0, 0.0, 0.0], corpus(), 2).shape == (1, 2)


def test_an_array_that_fits_is_referenced_and_not_copied() -> None:
    for storage in ("float32", "float16"):
        x = np.ones((5, 3), storage)
        made = hf.Corpus.from_array(x, storage=storage)  # type: ignore[arg-type]
        assert made.vectors is x or np.shares_memory(made.vectors, x)
    assert not np.shares_memory(hf.Corpus.from_array(np.asfortranarray(np.ones((5, 3), np.float32))).vectors, x)


def test_a_memory_mapped_read_only_array_is_searched_in_place(tmp_path: Any) -> None:
    x = np.random.default_rng(2).standard_normal((300, 8)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    made = hf.Corpus.from_array(mapped)
    assert np.shares_memory(made.vectors, mapped)
    assert_hits_equal(hf.dense_topk(x[:2], made, 5), hf.dense_topk(x[:2], x, 5))


def test_inputs_are_left_as_they_were() -> None:
    x, q, allow = np.ones((30, 3)), np.ones((2, 3), np.float32), np.array([9, 3, 3])
    copies = x.copy(), q.copy(), allow.copy()
    hf.dense_topk(q, x, 2, allow=allow)
    for now, then in zip((x, q, allow), copies, strict=True):
        assert_bitwise(now, then)


def test_queries_in_any_layout_and_dtype_are_read_the_same() -> None:
    q = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    expected = hf.dense_topk(q, corpus(), 3)
    read_only = q.copy()
    read_only.flags.writeable = False
    for form in (
        q.tolist(),
        np.asfortranarray(q),
        q[::1],
        q.astype(np.float16),
        np.repeat(q, 2, axis=1)[:, ::2],
        read_only,
    ):
        assert_hits_equal(hf.dense_topk(form, corpus(), 3), expected)
