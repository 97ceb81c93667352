"""Every argument of dense_topk and Corpus."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_equal
from hopfuse import reference
from hopfuse.errors import InputError
from refusals import refused


def corpus(metric: Any = "ip") -> hf.Corpus:
    return hf.Corpus.from_array(np.eye(4, 3, dtype=np.float32) + 0.5, metric=metric)


BAD_CORPORA: list[tuple[Any, dict[str, Any], tuple[str, str | None]]] = [
    (np.ones(3), {}, ("shape", "X")),
    (np.ones((2, 3, 4)), {}, ("shape", "X")),
    (np.ones((2, 0)), {}, ("shape", "X")),
    (np.array([["a"]]), {}, ("shape", "X")),
    (np.ones((2, 2), complex), {}, ("shape", "X")),
    (np.ones((2, 2), bool), {}, ("shape", "X")),
    ([[1.0], [np.nan]], {}, ("finite", "X[1]")),
    ([[1.0], [2.0], [-np.inf]], {}, ("finite", "X[2]")),
    ([[1e20]], {}, ("finite", "X[0]")),
    ([[1e300]], {}, ("finite", "X[0]")),
    ([[1.0], [7e4]], {"storage": "float16"}, ("finite", "X[1]")),
    ([[1.0], [0.0]], {"metric": "cosine"}, ("zero", "X[1]")),
    ([[1.0], [1e-30]], {"metric": "cosine"}, ("zero", "X[1]")),
    ([[1.0], [1e-9]], {"metric": "cosine", "storage": "float16"}, ("zero", "X[1]")),
    ([[1.0]], {"metric": "l2"}, ("choice", "metric")),
    ([[1.0]], {"metric": None}, ("choice", "metric")),
    ([[1.0], [3.4e38]], {"storage": "bfloat16"}, ("finite", "X[1]")),
    ([[1.0], [1e39]], {"storage": "bfloat16"}, ("finite", "X[1]")),
    ([[1.0], [np.nan]], {"storage": "bfloat16"}, ("finite", "X[1]")),
    ([[1.0], [1e-42]], {"metric": "cosine", "storage": "bfloat16"}, ("zero", "X[1]")),
    ([[1.0], [np.nan]], {"storage": "int8"}, ("finite", "X[1]")),
    (np.array([[1.0], [np.inf]], np.float16), {"storage": "int8"}, ("finite", "X[1]")),
    (np.array([[1.0], [0.0]], np.float16), {"storage": "int8", "metric": "cosine"}, ("zero", "X[1]")),
    (np.ones((4, 6), np.float32)[:, ::2], {"storage": "int8"}, ("shape", "X")),
    (np.asfortranarray(np.ones((4, 6), np.float16)), {"storage": "int8"}, ("shape", "X")),
    ([[1.0]], {"storage": "int4"}, ("choice", "storage")),
    ([[1.0]], {"storage": np.float32}, ("choice", "storage")),
]

BAD_QUERIES: list[tuple[Any, tuple[str, str | None]]] = [
    (np.ones(4), ("shape", "queries")),
    (np.ones((2, 4)), ("shape", "queries")),
    (np.ones((1, 2, 3)), ("shape", "queries")),
    (3.0, ("shape", "queries")),
    (["a", "b", "c"], ("dtype", "queries")),
    (np.ones((1, 3), complex), ("dtype", "queries")),
    ([[1, 2, 3], [4, np.nan, 6]], ("finite", "queries[1]")),
    ([[np.inf, 0, 0]], ("finite", "queries[0]")),
    ([[1e39, 0, 0]], ("finite", "queries[0]")),
    ([[1e25, 0, 0]], ("finite", "queries[0]")),
    ([[1, 2], [3]], ("shape", "queries")),
    (None, ("dtype", "queries")),
]

BAD_OPTIONS: list[tuple[dict[str, Any], tuple[str, str | None]]] = [
    ({"k": -1}, ("range", "k")),
    ({"k": 1.5}, ("range", "k")),
    ({"k": "3"}, ("range", "k")),
    ({"k": False}, ("range", "k")),
    ({"k": 1, "allow": [4]}, ("unknown", "allow")),
    ({"k": 1, "allow": [-1, 2]}, ("unknown", "allow")),
    ({"k": 1, "allow": [True, False]}, ("shape", "allow")),
    ({"k": 1, "allow": np.ones((3, 4), bool)}, ("shape", "allow")),
    ({"k": 1, "allow": np.ones((2, 5), bool)}, ("shape", "allow")),
    ({"k": 1, "allow": [[0], [1], [2]]}, ("length", "allow")),
    ({"k": 1, "allow": [[0], [9]]}, ("unknown", "allow[1]")),
    ({"k": 1, "allow": [[0], ["x"]]}, ("shape", "allow[1]")),
    ({"k": 1, "allow": [0.5]}, ("shape", "allow")),
    ({"k": 1, "allow": "all"}, ("shape", "allow")),
    ({"k": 1, "backend": "gpu"}, ("choice", "backend")),
    ({"k": 1, "threads": -2}, ("range", "threads")),
]


@pytest.mark.parametrize(("array", "options", "refusal"), BAD_CORPORA)
def test_a_bad_corpus_is_refused(array: Any, options: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        hf.Corpus.from_array(array, **options)


@pytest.mark.parametrize(("queries", "refusal"), BAD_QUERIES)
def test_bad_queries_are_refused(queries: Any, refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        hf.dense_topk(queries, corpus(), 2)


@pytest.mark.parametrize(("options", "refusal"), BAD_OPTIONS)
def test_a_bad_option_is_refused(options: dict[str, Any], refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        hf.dense_topk(np.ones((2, 3)), corpus(), **options)


@pytest.mark.parametrize("query", [[0.0, 0.0, 0.0], [1e-30, 0.0, 0.0]])
def test_a_query_without_direction_has_no_cosine(query: list[float]) -> None:
    with refused(InputError, "zero", "queries[1]"):
        hf.dense_topk([[1.0, 0, 0], query], corpus("cosine"), 1)
    assert hf.dense_topk([query], corpus("ip"), 1).counts.tolist() == [1]


def test_a_bad_raw_array_is_refused_as_a_corpus_is() -> None:
    with refused(InputError, "finite", "X[0]"):
        hf.dense_topk([[1.0]], [[np.nan]], 1)


def test_a_raw_array_is_an_inner_product_corpus_in_float32() -> None:
    rng = np.random.default_rng(1)
    x, q = rng.standard_normal((50, 6)), rng.standard_normal((3, 6))
    assert_hits_equal(hf.dense_topk(q, x, 4), hf.dense_topk(q, hf.Corpus.from_array(x), 4))


def test_ids_of_hits_are_a_filter_for_each_query() -> None:
    rng = np.random.default_rng(3)
    x, q = rng.standard_normal((60, 8)).astype(np.float32), rng.standard_normal((3, 8)).astype(np.float32)
    graph = hf.Graph.from_edges(rng.integers(0, 60, 200), rng.integers(0, 60, 200), num_nodes=60)
    first = hf.dense_topk(q, x, 5, allow=[range(20), [7, 8], []])
    assert first.counts.tolist() == [5, 2, 0]
    for again in (hf.dense_topk(-q, x, 5, allow=first.ids), reference.dense_topk(-q, x, 5, allow=first.ids)):
        assert [sorted(again.ids[b][: again.counts[b]]) for b in range(3)] == [
            sorted(first.ids[b][: first.counts[b]]) for b in range(3)
        ]
    seeds = [{int(first.ids[0, 0]): 1.0}, {7: 1.0}, {3: 1.0}]
    walked = hf.ppr_topk(graph, seeds, 60, candidates=first.ids)
    assert_hits_equal(walked, hf.ppr_topk(graph, seeds, 60, candidates=[row[row >= 0] for row in first.ids]))
    inside = np.where(first.ids < 0, [[7], [7], [3]], first.ids)
    np.testing.assert_array_equal(
        hf.ppr(graph, seeds, allow=inside).scores, hf.ppr(graph, seeds, allow=list(inside)).scores
    )
    with refused(InputError, "length", "allow", given=3):
        hf.dense_topk(q[:2], x, 5, allow=first.ids)
    with refused(InputError, "unknown", "allow[1]", given=60):
        hf.dense_topk(q[:2], x, 5, allow=np.array([[1, 2], [60, -1]]))
    with refused(InputError, "unknown", "allow[1]", given=-2):
        hf.dense_topk(q[:2], x, 5, allow=np.array([[1, 2], [5, -2]]))
    with refused(InputError, "unknown", "allow", given=-1):
        hf.dense_topk(q, x, 5, allow=[4, -1])


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
