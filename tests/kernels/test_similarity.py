"""similarity_weights on every kernel variant: the float64 oracle's answers, the contract's bits, recordings."""

from __future__ import annotations

import os
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from devices import on_device
from hopfuse import reference
from hopfuse._native import DeviceArray, DeviceCorpus
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from kernels.canonical_similarity import weights32
from numpy.typing import NDArray
from refusals import refused
from variants import SIMT, use, use_sizes

STORAGES = ["float32", "float16", "bfloat16", "int8"]


@pytest.fixture(autouse=True)
def small_parts(request: pytest.FixtureRequest) -> None:
    """On a device, several blocks share a query."""
    for fixture in {"runtime", "variant"} & {*request.fixturenames}:
        request.getfixturevalue(fixture)  # which makes sizes as usual
        use_sizes(part=50)


def normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


def masks_of(allow: Any, batch: int, n: int) -> NDArray[np.bool_]:
    """What a filter lets each query use, (B, N)."""
    if allow is None:
        return np.ones((batch, n), bool)
    if isinstance(allow, np.ndarray) and allow.dtype == bool:
        return np.broadcast_to(allow, (batch, n))
    masks = np.zeros((batch, n), bool)
    for b in range(batch):
        masks[b, allow[b] if isinstance(allow, list) else allow] = True
    return masks


def check(
    queries: NDArray[np.float32],
    corpus: hf.Corpus,
    *,
    tau: float = 1.0,
    floor: float = 1e-4,
    allow: Any = None,
    **how: Any,
) -> NDArray[np.float32]:
    """The weights: the contract's bits, and within its error of the oracle on the canonical cosines."""
    found = hf.similarity_weights(queries, corpus, tau=tau, floor=floor, allow=allow, **how)
    mask = masks_of(allow, queries.shape[0], corpus.num_vectors)
    assert_bitwise(found, weights32(queries, corpus, tau, floor, mask), "weights")
    exact = reference.similarity_weights(queries, corpus, tau=tau, floor=floor, allow=list(mask))
    error = relative_error(corpus, tau, floor, mask, queries)
    assert (np.abs(found - exact) <= error * exact + 1e-12).all()
    assert not found[~mask].any()
    return found


def relative_error(
    corpus: hf.Corpus, tau: float, floor: float, mask: NDArray[np.bool_], queries: NDArray[np.float32]
) -> NDArray[np.float64]:
    """The contract's ERROR, (B, 1), with that of the cosines."""
    cosines = reference.dense_scores(queries, corpus.as_float32(), metric="cosine")
    spreads = np.array([c[m].std() if m.any() else 1.0 for c, m in zip(cosines, mask, strict=True)])
    spreads = np.maximum(spreads, 2.0**-16)[:, None]
    cosine = 1.01 * (corpus.dim / 16 + 10) * 2.0**-24
    own = abs(np.log(floor)) * ((2.0**-28 + cosine) / spreads + 3 * 2.0**-24) + 2.0**-22
    return np.asarray(np.expm1(np.minimum(own + 2 * cosine / (tau * spreads), 100.0)) * 1.01)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("batch", [0, 1, 3, 8, 9, 17])
def test_every_batch_of_every_storage(variant: str, storage: Any, metric: Any, batch: int) -> None:
    rng = np.random.default_rng(batch)
    corpus = hf.Corpus.from_array(normal(rng, 75, 50), metric=metric, storage=storage)
    check(normal(rng, batch, 50), corpus)


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 70),
    dim=st.sampled_from([1, 2, 15, 16, 17, 48, 100]),
    batch=st.integers(0, 11),
    tau=st.sampled_from([1e-4, 0.05, 0.5, 1.0, 3.0, 1e4]),
    floor=st.sampled_from([1e-30, 1e-4, 0.5, 1.0]),
    storage=st.sampled_from(STORAGES),
    filtered=st.sampled_from(["all", "one", "each", "ids", "lists"]),
)
def test_drawn_calls(
    variant: str,
    seed: int,
    rows: int,
    dim: int,
    batch: int,
    tau: float,
    floor: float,
    storage: Any,
    filtered: str,
) -> None:
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-6, 6, (rows, 1)) if storage in ("float32", "bfloat16") else 1.0
    corpus = hf.Corpus.from_array(normal(rng, rows, dim) * scales, storage=storage)
    allow = {
        "all": lambda: None,
        "one": lambda: rng.random(rows) < 0.5,
        "each": lambda: rng.random((batch, rows)) < 0.5,
        "ids": lambda: np.flatnonzero(rng.random(rows) < 0.3),
        "lists": lambda: [np.flatnonzero(rng.random(rows) < 0.3) for _ in range(batch)] or None,
    }[filtered]()
    check(normal(rng, batch, dim), corpus, tau=tau, floor=floor, allow=allow)


@pytest.mark.every_order
def test_orders_of_threads(variant: str) -> None:
    """Few threads: a sanitizer takes a millisecond for each."""
    rng = np.random.default_rng(9)
    for storage in ("float32", "float16", "bfloat16"):
        check(normal(rng, 3, 20), hf.Corpus.from_array(normal(rng, 60, 20), storage=storage))
    corpus = hf.Corpus.from_array(normal(rng, 60, 20))
    check(normal(rng, 3, 20), corpus, allow=rng.random((3, 60)) < 0.5)
    check(normal(rng, 3, 20), corpus, allow=[np.arange(0, 60, 7)] * 3)


@pytest.mark.parametrize("part", [1, 7, 75, 1000])
def test_parts_of_a_device_change_nothing(runtime: Any, part: int) -> None:
    use_sizes(part=part)
    rng = np.random.default_rng(part)
    hf.similarity_weights(normal(rng, 3, 20), hf.Corpus.from_array(normal(rng, 75, 20)))
    assert {"similarity_sums_f32", "similarity_weights_f32"} <= {name for name, _, _ in runtime.launches}


# ---- Adversarial input ----------------------------------------------------------------------------------------------


def test_known_numbers(variant: str) -> None:
    """Cosines 1, 0 and -1: a maximum of 1 and a variance of 2/3."""
    corpus = hf.Corpus.from_array([[2.0, 0.0], [0.0, 0.5], [-8.0, 0.0]])
    found = check(np.float32([[3.0, 0.0]]), corpus, tau=2.0, floor=0.1)
    spread = np.sqrt(2 / 3)
    np.testing.assert_allclose(found[0], np.exp([0, -0.5 / spread, -1 / spread]), rtol=1e-6)
    np.testing.assert_allclose(check(np.float32([[3.0, 0.0]]), corpus, tau=0.1, floor=0.1)[0], [1, 0.1, 0.1], rtol=1e-6)


def test_equal_similarities_weigh_1(variant: str) -> None:
    rng = np.random.default_rng(1)
    same = np.repeat(normal(rng, 1, 33), 40, axis=0)
    assert (check(normal(rng, 9, 33), hf.Corpus.from_array(same)) == 1).all()
    one = hf.Corpus.from_array(normal(rng, 1, 33))
    assert (check(normal(rng, 9, 33), one, tau=1e-4) == 1).all()


def test_equal_cosines_have_no_spread_despite_rounding(variant: str) -> None:
    """Multiples of one vector: cosines differ by rounding alone."""
    rng = np.random.default_rng(2)
    direction, lengths = normal(rng, 1, 200), rng.uniform(0.1, 10, (500, 1)).astype(np.float32)
    found = check(normal(rng, 6, 200), hf.Corpus.from_array(direction * lengths))
    assert len(np.unique(found)) > 1
    assert found.min() > 0.9


def test_nothing_allowed_is_zeros_beside_other_queries(variant: str) -> None:
    rng = np.random.default_rng(3)
    corpus, queries = hf.Corpus.from_array(normal(rng, 60, 20)), normal(rng, 3, 20)
    lists = [np.arange(60), np.array([], np.int64), np.array([7])]
    found = check(queries, corpus, allow=lists)
    assert not found[1].any()
    assert found[2, 7] == 1
    assert not check(queries, corpus, allow=np.zeros(60, bool)).any()


def test_no_passages(variant: str) -> None:
    empty = hf.Corpus.from_array(np.zeros((0, 20), np.float32))
    assert hf.similarity_weights(np.ones((3, 20)), empty).shape == (3, 0)


def test_lengths_at_the_limits_of_float32_change_nothing(variant: str) -> None:
    rng = np.random.default_rng(4)
    x, q = normal(rng, 90, 30), normal(rng, 5, 30)
    expected = check(q, hf.Corpus.from_array(x))
    powers = 2.0 ** rng.choice([-58, -30, 0, 20, 58], (90, 1))
    assert_bitwise(check(q * np.float32(2.0**50), hf.Corpus.from_array(x * powers)), expected)


@pytest.mark.parametrize("dim", [700, 1500, 4099])
def test_long_vectors(variant: str, dim: int) -> None:
    rng = np.random.default_rng(dim)
    check(normal(rng, 5, dim), hf.Corpus.from_array(normal(rng, 60, dim)))


# ---- One answer -----------------------------------------------------------------------------------------------------


def test_every_variant_thread_count_and_batch_has_the_same_bits(every_isa: list[str]) -> None:
    rng = np.random.default_rng(5)
    corpus, queries = hf.Corpus.from_array(normal(rng, 20_000, 40), storage="float16"), normal(rng, 41, 40)
    allow = rng.random((41, 20_000)) < 0.7
    for filtered in (None, allow):
        use(every_isa[0])
        expected = hf.similarity_weights(queries, corpus, allow=filtered, threads=1)
        for name in every_isa:
            use(name)
            for threads in (1, 3, 64):
                found = hf.similarity_weights(queries, corpus, allow=filtered, threads=threads)
                assert_bitwise(found, expected, f"{name}, {threads} threads")
            for some in (slice(0, 1), slice(7, 9), slice(20, 34)):
                part = None if filtered is None else filtered[some]
                found = hf.similarity_weights(queries[some], corpus, allow=part, threads=2)
                assert_bitwise(found, expected[some], f"queries {some}")


def test_passages_that_are_not_allowed_change_no_bit(variant: str) -> None:
    """The corpus of the allowed passages alone, one filter for all and one for each."""
    rng = np.random.default_rng(6)
    x, queries = normal(rng, 300, 24), normal(rng, 7, 24)
    corpus = hf.Corpus.from_array(x)
    masks = rng.random((7, 300)) < 0.4
    each = hf.similarity_weights(queries, corpus, allow=masks)
    for b, mask in enumerate(masks):
        alone = hf.similarity_weights(queries[b], hf.Corpus.from_array(x[mask]))
        assert_bitwise(each[b, mask], alone[0])
        shared = hf.similarity_weights(queries[b : b + 1], corpus, allow=mask)
        assert_bitwise(shared, each[b : b + 1])
        assert_bitwise(hf.similarity_weights(queries[b], corpus, allow=np.flatnonzero(mask)), shared)


def test_cosines_are_those_of_dense_search(variant: str) -> None:
    """The best passage weighs 1, and weights fall as the ranking does."""
    rng = np.random.default_rng(7)
    x, queries = normal(rng, 200, 24), normal(rng, 5, 24)
    hits = hf.dense_topk(queries, hf.Corpus.from_array(x, metric="cosine"), 200)
    weights = np.take_along_axis(hf.similarity_weights(queries, hf.Corpus.from_array(x), floor=1e-30), hits.ids, 1)
    assert (weights[:, 0] == 1).all()
    assert (np.diff(weights, axis=1) <= 0).all()


def test_explain_says_what_ran() -> None:
    if os.environ.get("HOPFUSE_BACKEND", "cpu") != "cpu":
        pytest.skip("another backend was asked for")
    hf.similarity_weights([[1.0, 2.0]], [[1.0, 0.0], [0.5, 0.5], [3.0, 1.0]])
    call = hf.backend_info()["backends"]["cpu"]["last_calls"]["similarity_f32"]
    assert (call["queries"], call["passages"]) == (1, 3)
    assert call["kernel"].startswith("similarity_f32_")


# ---- Arrays on the device, and recordings ---------------------------------------------------------------------------

ROWS, DIM = 130, 20


def case(seed: int, batch: int) -> tuple[NDArray[np.float32], hf.Corpus]:
    rng = np.random.default_rng(seed)
    return normal(rng, batch, DIM), hf.Corpus.from_array(normal(rng, ROWS, DIM))


def test_device_arrays_give_device_arrays(runtime: Any) -> None:
    queries, corpus = case(10, 6)
    made = hf.similarity_weights(on_device(queries), corpus)
    assert isinstance(made, DeviceArray)
    assert_bitwise(made.to_numpy(), hf.similarity_weights(queries, corpus, backend="cpu"))


def test_an_invalid_query_is_named_by_its_row(runtime: Any) -> None:
    queries, corpus = case(11, 4)
    queries[2, 1] = np.nan
    with refused(InputError, "finite", "queries[2]"):
        hf.similarity_weights(on_device(queries), corpus)
    queries[2] = 0
    with refused(InputError, "zero", "queries[2]"):
        hf.similarity_weights(on_device(queries), corpus)


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        (np.ones((2, DIM)), ("dtype", "queries")),
        (np.ones((2, 3), np.float32), ("shape", "queries")),
        (np.ones(DIM, np.float32), ("shape", "queries")),
    ],
)
def test_other_device_arrays_are_refused(runtime: Any, values: Any, refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        hf.similarity_weights(on_device(values), case(12, 1)[1])


def test_dense_search_and_weights_share_the_corpus_on_a_device(runtime: Any) -> None:
    queries, corpus = case(13, 2)
    hf.dense_topk(queries, corpus, 3, backend=SIMT)
    kept = [value for value in corpus.derived.values() if isinstance(value, DeviceCorpus)]
    assert len(kept) == 1
    hf.similarity_weights(queries, corpus, backend=SIMT)
    assert [value for value in corpus.derived.values() if isinstance(value, DeviceCorpus)] == kept


def test_a_captured_core_has_the_plain_calls_answers(runtime: Any) -> None:
    _, corpus = case(14, 1)
    allow = np.arange(0, ROWS, 3)

    def core(vectors: Any) -> dict[str, Any]:
        return {
            "all": hf.similarity_weights(vectors, corpus),
            "some": hf.similarity_weights(vectors, corpus, tau=0.5, allow=allow),
        }

    captured = hf.capture(core, [((DIM,), "float32")], backend=SIMT)
    for batch in (1, 3, 3, 8):
        queries, _ = case(batch, batch)
        expected, made = core(queries), captured(queries)
        for name in expected:
            assert_bitwise(made[name], expected[name], name)
    queries[1] = 0
    with refused(InputError, "zero", "queries[1]"):
        captured(queries)
