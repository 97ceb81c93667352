"""Every argument of dense_topk and Corpus."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_equal
from hopfuse import reference
from hopfuse.backends import resolve
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


@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("storage", ["float32", "int8"])
def test_a_least_score_cuts_the_exact_list(metric: Any, storage: Any) -> None:
    rng = np.random.default_rng(6)
    made = hf.Corpus.from_array(rng.standard_normal((400, 5)).astype(np.float32), metric=metric, storage=storage)
    q = rng.standard_normal((9, 5)).astype(np.float32)
    allow = rng.random((9, 400)) < 0.8
    every = hf.dense_topk(q, made, 400, allow=allow)
    for least in (-1e9, -0.3, 0.0, float(every.scores[2, 30]), 0.7, 1e9):
        rows = [[(i, s) for i, s in every.row(b) if s >= np.float32(least)] for b in range(9)]
        above = hf.dense_above(q, made, least, allow=allow)
        assert above.shape == (9, max(map(len, rows)))
        for k in (1, 10, 400):
            cut = hf.dense_topk(q, made, k, allow=allow, min_score=least)
            assert cut.shape == (9, k)
            assert [cut.row(b) for b in range(9)] == [row[:k] for row in rows]
            assert (cut.ids[np.arange(k) >= cut.counts[:, None]] == -1).all()
            assert np.isneginf(cut.scores[np.arange(k) >= cut.counts[:, None]]).all()
        assert [above.row(b) for b in range(9)] == rows


def test_the_cosine_of_a_vector_with_itself_is_1_up_to_rounding() -> None:
    x = np.random.default_rng(0).standard_normal((200, 33)).astype(np.float32)
    scores = hf.dense_topk(x, hf.Corpus.from_array(x, metric="cosine"), 1).scores
    assert 1.0 < scores.max() <= 1.0 + 2**-22
    assert scores.min() >= 1.0 - 2**-22


def test_a_score_equal_to_the_least_is_a_hit() -> None:
    x = np.array([[0.7], [0.5], [0.7]], np.float32)
    assert hf.dense_topk([1.0], x, 3, min_score=0.7).row(0) == [
        (0, float(np.float32(0.7))),
        (2, float(np.float32(0.7))),
    ]
    assert hf.dense_above([1.0], x, 0.5).counts.tolist() == [3]


def test_only_queries_with_a_full_list_are_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.concatenate([np.ones((300, 2)), np.zeros((700, 2))]).astype(np.float32)
    x[:10, 1] = 2.0
    calls = []

    def spied(call: Any) -> Any:
        calls.append((len(call.queries), call.k))
        return search(call)

    engine = resolve("cpu")
    search = engine.run
    monkeypatch.setattr(engine, "run", spied)
    found = hf.dense_above([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], x, 0.5, backend="cpu")
    assert found.counts.tolist() == [300, 300, 0]
    assert calls == [(3, 64), (2, 128), (2, 256), (2, 512)]
    assert hf.dense_above(np.zeros((0, 2)), x, 0.5).shape == (0, 0)
    assert hf.dense_above([[1.0, 1.0]], x, -1.0).shape == (1, 1000)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), 1e39, "0.5", True])
def test_a_least_score_is_a_number(score: Any) -> None:
    with refused(InputError, "range", "min_score"):
        hf.dense_topk(np.ones((1, 3)), corpus(), 2, min_score=score)
    with refused(InputError, "range", "min_score"):
        hf.dense_above(np.ones((1, 3)), corpus(), score)


def test_a_least_score_is_needed_and_lists_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(InputError, "type", "min_score", given="NoneType"):
        hf.dense_above(np.ones((1, 3)), corpus(), None)
    monkeypatch.setattr("hopfuse.ops.dense.HITS_BUDGET", 100)
    with refused(InputError, "limit"):
        hf.dense_above(np.ones((3, 3)), corpus(), 0.0)


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
