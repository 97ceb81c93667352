"""What the storages of a corpus share and do not: rounding to bfloat16, originals that stay where they are, and hits
that depend on the originals' precision alone.
"""

from __future__ import annotations

import mmap
import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import variants
from cases import filters_of
from compare import assert_bitwise, assert_hits_close, assert_hits_equal
from hopfuse import reference
from hopfuse._arrays.bfloat16 import bfloat16_to_float32, round_to_bfloat16
from hopfuse._arrays.mapped import mapping_of, release_pages
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

PRECISIONS = ["float32", "float16", "bfloat16"]
STORAGES = [*PRECISIONS, "int8"]


def normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


def originals(x: NDArray[Any], precision: str) -> NDArray[Any]:
    """As a corpus of that precision holds them."""
    return hf.Corpus.from_array(x, storage=precision).vectors  # type: ignore[arg-type]


def calls() -> dict[str, Any]:
    return hf.backend_info()["backends"]["cpu"]["last_calls"]  # type: ignore[no-any-return]


# ---- Rounding to bfloat16 -------------------------------------------------------------------------------------------


def nearest_bfloat16(value: float) -> int:
    """The bits by exact arithmetic: of the two neighbours the nearer, of equals the even."""
    below = int(np.float32(abs(value)).view(np.uint32)) >> 16
    candidates = [bits for bits in (below - 1, below, below + 1) if 0 <= bits < 0x7F80]
    distance = {
        b: abs(Fraction(float(bfloat16_to_float32(np.uint16([b]))[0])) - Fraction(abs(value))) for b in candidates
    }
    best = min(candidates, key=lambda b: (distance[b], b & 1))
    return best | (0x8000 if np.signbit(value) else 0)


def test_every_float32_of_some_millions_rounds_as_ml_dtypes_does() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.random.default_rng(1).integers(0, 2**32, (2000, 500), np.uint64).astype(np.uint32).view(np.float32)
    is_nan = np.isnan(values)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = values.astype(ml_dtypes.bfloat16).view(np.uint16)
    assert_bitwise(round_to_bfloat16(values)[~is_nan], expected[~is_nan])
    assert np.isnan(bfloat16_to_float32(round_to_bfloat16(values)[is_nan])).all()


@given(st.floats(min_value=-3e38, max_value=3e38, allow_subnormal=True), st.integers(-3, 3))
def test_a_float64_is_rounded_once(value: float, ulps: int) -> None:
    """Also beside the middle of two bfloat16 numbers, where rounding to float32 first would lose the side."""
    middle = (int(np.float32(value).view(np.uint32)) & 0x7FFF0000) | 0x8000
    near_middle = float(np.uint32(middle).view(np.float32)) if middle < 0x7F7F0000 else value
    for exact in (value, near_middle * (1 + ulps * 2.0**-50), -near_middle * (1 + ulps * 2.0**-50)):
        assert int(round_to_bfloat16(np.array([[exact]]))[0, 0]) == nearest_bfloat16(exact), exact


def test_rounding_twice_would_be_seen() -> None:
    exact = np.array([[1 + 2.0**-8 + 2.0**-40]])
    assert bfloat16_to_float32(round_to_bfloat16(exact))[0, 0] == 1 + 2.0**-7
    assert bfloat16_to_float32(round_to_bfloat16(exact.astype(np.float32)))[0, 0] == 1.0


def test_whole_numbers_beyond_float64_are_rounded_once() -> None:
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("this system has no number that holds every int64")
    exact = np.array([[2**60 + 2**52 + 1, 2**60 + 2**52, 2**60 - 1, -3]])
    assert bfloat16_to_float32(round_to_bfloat16(exact))[0].tolist() == [2.0**60 + 2.0**53, 2.0**60, 2.0**60, -3.0]


def test_scores_are_defined_on_the_rounded_values() -> None:
    rng = np.random.default_rng(2)
    x, q = rng.standard_normal((300, 20)), normal(rng, 4, 20)
    corpus = hf.Corpus.from_array(x, storage="bfloat16")
    rounded = corpus.as_float32()
    assert corpus.vectors.dtype == np.uint16
    assert 0 < np.abs(rounded - x).max() < 2.0**-7
    assert_hits_equal(hf.dense_topk(q, corpus, 7), hf.dense_topk(q, rounded, 7))
    assert_bitwise(reference.dense_scores(q, corpus), reference.dense_scores(q, rounded))
    assert_hits_close(hf.dense_topk(q, corpus, 7), reference.dense_scores(q, corpus), atol=2e-5)


# ---- int8: the originals decide --------------------------------------------------------------------------------------


@pytest.mark.emulator_full
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("metric", ["ip", "cosine"])
def test_int8_hits_are_those_of_the_originals_precision(variant: str, precision: str, metric: Any) -> None:
    rng = np.random.default_rng(3)
    shapes = [(1, 1), (17, 3), (120, 20)]
    if variant != variants.SIMT:
        shapes += [(400, 40), (700, 384)]
    for count, dim in shapes:
        x, q = originals(normal(rng, count, dim).round(1) + np.float32(0.01), precision), normal(rng, 9, dim)
        plain = hf.Corpus.from_stored(x, metric=metric, storage=precision)  # type: ignore[arg-type]
        coded = hf.Corpus.from_stored(x, metric=metric, storage="int8")
        assert coded.precision == precision
        masks = rng.random((9, count)) < 0.4
        few = np.arange(0, count, 11)
        for k in (1, 7, count // 8, count // 2, count + 3):  # by codes and exhaustively
            for allow in (None, masks, masks[0], few, [few] * 9, [np.flatnonzero(m) for m in masks]):
                expected = hf.dense_topk(q, plain, k, allow=allow)
                assert_hits_equal(hf.dense_topk(q, coded, k, allow=allow), expected)
        assert_hits_equal(hf.dense_topk(q, coded, 5), reference.dense_topk_canonical(q, coded, 5))


def test_originals_of_int8_are_referenced_in_their_own_precision(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    for dtype in (np.float32, np.float16, np.uint16):
        np.save(
            tmp_path / "x.npy",
            originals(normal(rng, 50, 6), "bfloat16" if dtype is np.uint16 else np.dtype(dtype).name),
        )
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
        corpus = hf.Corpus.from_stored(mapped, storage="int8")
        assert np.shares_memory(corpus.vectors, mapped)
        assert corpus.vectors.dtype == dtype
    whole = hf.Corpus.from_array(rng.integers(-5, 6, (40, 3)), storage="int8")
    assert (whole.precision, whole.storage) == ("float32", "int8")


def test_an_int8_corpus_is_read_in_parts(tmp_path: Path) -> None:
    """Nothing as large as the file is ever allocated, and hits are the same."""
    rng = np.random.default_rng(7)
    count, dim = 60_000, 512
    np.save(tmp_path / "x.npy", normal(rng, count, dim).astype(np.float16))
    mapped, q = np.load(tmp_path / "x.npy", mmap_mode="r"), normal(rng, 3, dim)
    tracemalloc.start()
    corpus = hf.Corpus.from_array(mapped, storage="int8")
    hits = hf.dense_topk(q, corpus, 10)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    codes = hf.estimate_device_memory(corpus=corpus).host_codes
    assert count * dim < codes < 1.05 * count * dim
    assert most < codes + (110 << 20)  # a part's squares in float64 beside it; the whole in float32 has 123 MB
    assert_hits_equal(hits, hf.dense_topk(q, hf.Corpus.from_array(mapped, storage="float16"), 10))


def test_pages_are_given_back_of_read_only_mappings_alone(tmp_path: Path) -> None:
    x = normal(np.random.default_rng(8), 4000, 8)
    np.save(tmp_path / "x.npy", x)
    read_only = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert isinstance(mapping_of(np.asarray(read_only)[5:]), mmap.mmap)
    release_pages(read_only[3:])
    assert_bitwise(np.array(read_only), x)
    private = np.load(tmp_path / "x.npy", mmap_mode="c")  # its changes are in memory only
    private[7] = 3.0
    corpus = hf.Corpus.from_array(private, storage="int8")
    hf.dense_topk(x[:2], corpus, 5)
    assert (private[7] == 3.0).all()
    assert mapping_of(x) is None
    release_pages(x)


def test_the_arrays_of_a_corpus_on_the_host(tmp_path: Path) -> None:
    x = np.ones((1000, 30), np.float32)
    np.save(tmp_path / "x.npy", x)
    for array in (x, np.load(tmp_path / "x.npy", mmap_mode="r")):
        for storage, size in (("float32", 4), ("float16", 2), ("bfloat16", 2), ("int8", 4)):
            corpus = hf.Corpus.from_array(array, storage=storage)  # type: ignore[arg-type]
            is_mapped = array is not x and storage in ("float32", "int8")
            estimate = hf.estimate_device_memory(corpus=corpus)
            assert estimate.host_vectors == (0 if is_mapped else size * x.size)
            assert estimate.host_codes == 1152 * (32 + 12) + 4 * 1000  # padded to 6 x 192 rows and 8 x 4 dimensions
            hf.dense_topk(x[:1], corpus, 3)
            assert sum(part.nbytes for part in corpus.derived["cpu"].values()) == estimate.host_codes
            assert size * x.size <= estimate.corpus <= size * x.size + 4 * 1000 + 1024
    graph = hf.estimate_device_memory(hf.Graph.from_edges([0], [1]))
    assert (graph.host_vectors, graph.host_codes) == (0, 0)


@pytest.mark.emulator
@pytest.mark.skipif(variants.missing("simt") is not None, reason=str(variants.missing("simt")))
def test_explain_says_what_a_device_has_of_an_int8_corpus() -> None:
    variants.simt_runtime()
    rng = np.random.default_rng(11)
    corpus, q = hf.Corpus.from_array(normal(rng, 60, 8).astype(np.float16), storage="int8"), normal(rng, 2, 8)
    assert_hits_equal(hf.dense_topk(q, corpus, 5, backend="simt"), hf.dense_topk(q, corpus, 5))
    said = hf.backend_info()["backends"]["simt"]["last_calls"]["dense_topk_f16"]
    assert (said["kernel"], said["storage"]) == ("dense_topk_f16_simt", "int8")
    assert said["resident"] == "the original vectors, in float16; the CPU has their 8-bit codes alone"
    hf.dense_topk(q, corpus, 5)
    said = calls()["dense_topk_f16"]
    assert (said["storage"], said["queries"]) == ("int8", 2)


# ---- Large k with filters --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many() -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
    rng = np.random.default_rng(9)
    x = normal(rng, 20_000, 24)
    x[10_000:] = x[:10_000].round(1)  # ties
    x[12_000:15_000] = x[:3000]
    return x, normal(rng, 3, 24), rng.random((3, 20_000)) < np.array([0.05, 0.5, 0.9])[:, None]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("k", [2049, 5000])
def test_more_hits_than_2048_by_cosine(many: Any, storage: Any, k: int) -> None:
    x, q, masks = many
    corpus = hf.Corpus.from_array(x, storage=storage).with_metric("cosine")
    expected = reference.dense_topk_canonical(q[:1], corpus, k, allow=masks[2])
    assert_hits_equal(hf.dense_topk(q[:1], corpus, k, allow=masks[2], threads=2), expected)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("k", [2049, 5000])
@pytest.mark.parametrize("kind", ["nothing", "mask", "masks", "ids", "lists", "few ids"])
def test_more_hits_than_2048_with_filters(many: Any, storage: Any, k: int, kind: str) -> None:
    x, q, masks = many
    few = {"few ids": np.flatnonzero(masks[0])}  # fewer than k
    allow = (filters_of(masks, shared=1) | few)[kind]
    corpus = hf.Corpus.from_array(x, storage=storage)
    assert_hits_equal(
        hf.dense_topk(q, corpus, k, allow=allow), reference.dense_topk_canonical(q, corpus, k, allow=allow)
    )


# ---- Long id lists ---------------------------------------------------------------------------------------------------


def test_long_id_lists_are_scanned_by_codes() -> None:
    rng = np.random.default_rng(10)
    corpus, q = hf.Corpus.from_array(normal(rng, 5000, 64)), normal(rng, 8, 64)
    half, few = np.arange(0, 5000, 2), np.arange(0, 5000, 10)

    def rescored(allow: Any) -> int:
        hf.dense_topk(q, corpus, 10, allow=allow)
        return int(calls()["dense_topk_f32"]["rescored_rows"])

    assert rescored(half) < 8 * 500
    assert rescored(few) == 8 * 500
    assert rescored(np.arange(625)) < 8 * 625  # an eighth of the rows
    assert rescored(np.arange(624)) == 8 * 624
    lists = [half, few] * 4  # each by its own rule
    assert 4 * 500 < rescored(lists) < 4 * 500 + 4 * 500
    masks = np.zeros((8, 5000), bool)
    for mask, ids in zip(masks, lists, strict=True):
        mask[ids] = True
    assert_hits_equal(hf.dense_topk(q, corpus, 10, allow=lists), hf.dense_topk(q, corpus, 10, allow=masks))


@given(
    seed=st.integers(0, 2**32 - 1),
    storage=st.sampled_from(STORAGES),
    count=st.sampled_from([40, 193, 400]),
    batch=st.integers(1, 14),
    k=st.sampled_from([1, 4, 24, 30]),
    threads=st.integers(1, 3),
)
def test_lists_of_every_length_in_one_batch(
    variant: str, seed: int, storage: Any, count: int, batch: int, k: int, threads: int
) -> None:
    rng = np.random.default_rng(seed)
    x, q = normal(rng, count, 12).round(1), normal(rng, batch, 12)
    corpus = hf.Corpus.from_array(x, storage=storage)
    masks = rng.random((batch, count)) < rng.choice([0.0, 0.05, 0.124, 0.126, 0.3, 1.0], (batch, 1))
    lists = [np.flatnonzero(m) for m in masks]
    hits = hf.dense_topk(q, corpus, k, allow=lists, threads=threads)
    assert_hits_equal(hits, reference.dense_topk_canonical(q, corpus, k, allow=masks))
    shared = hf.dense_topk(q, corpus, k, allow=lists[0], threads=threads)
    assert_hits_equal(shared, reference.dense_topk_canonical(q, corpus, k, allow=masks[0]))


def test_more_long_lists_than_there_is_room_for_masks() -> None:
    """2^20 rows: 64 MiB hold the masks of 64 queries, so the batch is searched in two groups."""
    rng = np.random.default_rng(12)
    n, batch = 1 << 20, 70
    corpus, q = hf.Corpus.from_array(normal(rng, n, 2)), normal(rng, batch, 2)
    lists = [np.arange(b % 8, n, 8) for b in range(batch)]
    hits = hf.dense_topk(q, corpus, 3, allow=lists)
    assert int(calls()["dense_topk_f32"]["rescored_rows"]) < batch * n // 16
    for b in (0, 1, 63, 64, 69):
        assert hits.row(b) == hf.dense_topk(q[b], corpus, 3, allow=lists[b]).row(0)
        assert (hits.ids[b] % 8 == b % 8).all()
