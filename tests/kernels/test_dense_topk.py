"""dense_topk equals the exhaustive canonical ranking bit for bit, whatever the codes could rule out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import ADVERSARIAL_ROWS, BFLOAT16_TINY, adversarial_rows, bfloat16_extremes, drawn_vectors, filters_of
from compare import assert_hits_close, assert_hits_equal
from hopfuse import reference
from hopfuse_simt import MATRIX_UNITS
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from variants import SIMT, simt_runtime, use, use_sizes

DIMS = [1, 3, 4, 15, 16, 17, 64, 384]
COUNTS = [1, 15, 16, 17, 191, 192, 193, 2000]  # around a tile of 16 rows and a step of 12 tiles
PRECISIONS = ["float32", "float16", "bfloat16"]
#: Of all numbers of 16 bits, the emulator reads every so many: it sorts them for seconds. tests/simt converts all.
STRIDE = {SIMT: 13}
#: On a device few rows fill several tiles, splits, batches and lists, and few queries are multiplied.
SMALL = {
    "tile_scores": 1, "tile_rows": 100, "batch": 3, "scored_at_once": 2, "split_rows": 40, "split_blocks": 8,
    "widest": 96, "sort_chunk": 64, "sort_keys": 600,
}  # fmt: skip
#: Matrix units that are as exact as is assumed.
UNITS = [unit for unit in MATRIX_UNITS if unit != "narrow"]


@pytest.fixture(autouse=True)
def small_sizes(request: pytest.FixtureRequest) -> None:
    if "variant" in request.fixturenames:
        request.getfixturevalue("variant")  # which makes sizes as usual
        use_sizes(**SMALL)


def check(
    x: NDArray[Any], q: NDArray[np.float32], k: int, metric: Any = "ip", storage: Any = "float32", **options: Any
) -> hf.Hits:
    corpus = hf.Corpus.from_array(x, metric=metric, storage=storage)
    hits = hf.dense_topk(q, corpus, k, **options)
    allow = options.get("allow")
    assert_hits_equal(hits, reference.dense_topk_canonical(q, corpus, k, allow=allow))
    return hits


def normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("count", COUNTS)
def test_random_rows_of_every_shape(variant: str, dim: int, count: int) -> None:
    if variant == SIMT:
        dim, count = min(dim, 100), min(count, 350)
    rng = np.random.default_rng([dim, count])
    q = normal(rng, 3, dim)
    for metric in ("ip", "cosine"):
        for storage in PRECISIONS:
            check(normal(rng, count, dim), q, 5, metric, storage)


@pytest.mark.parametrize("batch", [*range(1, 15), 20, 23, 32, 48, 70])
def test_every_grouping_of_queries(variant: str, batch: int) -> None:
    rng = np.random.default_rng(batch)
    check(normal(rng, 400, 20), normal(rng, batch, 20), 3)


@pytest.mark.parametrize(
    "ks", [[0, 1, 2], [49, 50, 51], [54, 55, 56, 57], [95, 96, 97], [199, 249, 250, 251], [399, 400, 401, 1000]]
)
def test_every_k_around_the_widths_of_lists_and_the_switch_to_an_exhaustive_scan(variant: str, ks: list[int]) -> None:
    rng = np.random.default_rng(1)
    x, q = normal(rng, 400, 12), normal(rng, 5, 12)
    for k in ks:
        check(x, q, k)
        check(x[:250], q, k, "cosine", allow=rng.random(250) < 0.5)


def adversarial_searches(name: str, count: int) -> Iterator[tuple[Any, NDArray[np.float32], NDArray[np.float32]]]:
    """Yield rows and queries for each metric; a row that vanishes has no cosine."""
    rng = np.random.default_rng(3)
    x = adversarial_rows(name, rng, count, 24)
    q = np.concatenate([np.abs(normal(rng, 2, 24)), normal(rng, 3, 24), x[:2] / max(1.0, float(np.abs(x[:2]).max()))])
    yield "ip", x, q
    rows, queries = (one[np.square(one, dtype=np.float64).sum(axis=1) > 1e-37] for one in (x, q))
    yield "cosine", rows, queries


@pytest.mark.parametrize("name", ADVERSARIAL_ROWS)
def test_adversarial_rows(variant: str, name: str) -> None:
    for metric, rows, queries in adversarial_searches(name, 400):
        for k in (1, 4, 30):
            for storage in ("float32", "bfloat16", "int8"):
                check(rows, queries, k, metric, storage)


def test_zero_rows_score_zero_under_inner_product(variant: str) -> None:
    rng = np.random.default_rng(4)
    x = -np.abs(normal(rng, 300, 8))
    x[[5, 250, 17]] = 0.0
    q = np.abs(normal(rng, 3, 8))
    assert check(x, q, 4).ids[:, :3].tolist() == [[5, 17, 250]] * 3
    assert check(np.zeros((300, 8), np.float32), q, 4).ids.tolist() == [[0, 1, 2, 3]] * 3


def test_a_zero_query_ranks_by_id_under_inner_product(variant: str) -> None:
    rng = np.random.default_rng(5)
    assert check(normal(rng, 300, 8), np.zeros((2, 8), np.float32), 3).ids.tolist() == [[0, 1, 2]] * 2


def test_scores_of_either_sign_of_zero(variant: str) -> None:
    """A product that underflows from below is -0, ranks as 0, and keeps its sign."""
    x = np.where(np.arange(200) % 3 == 1, -1e-30, 1e-30).astype(np.float32)[:, None] * np.ones(16, np.float32)
    for k in (3, 70, 150):
        hits = check(x, np.full((1, 16), 1e-30, np.float32), k)
        assert hits.ids[0].tolist() == list(range(k))
        assert np.signbit(hits.scores[0]).tolist() == [i % 3 == 1 for i in range(k)]


@pytest.mark.parametrize("dim", [16, 384])
@pytest.mark.parametrize("scale", [1.1e-19, 2e-19, 1e-18])
def test_cosines_of_tiny_vectors_whose_dot_products_lose_bits(variant: str, dim: int, scale: float) -> None:
    """Constant rows have codes without error, and canonical cosines that differ by subnormal rounding alone."""
    rng = np.random.default_rng(6)
    level = (scale / np.sqrt(dim) * (1.0 + rng.random(400) * 0.5)).astype(np.float32)
    x = np.repeat(level[:, None], dim, axis=1)
    q = np.full((2, dim), scale * 1.05 / np.sqrt(dim), np.float32)
    for k in (1, 10, 40):
        check(x, q, k, "cosine")


@pytest.mark.parametrize("dim", [66_400, 140_000])
def test_more_dimensions_than_code_dots_can_hold(variant: str, dim: int) -> None:
    x = np.ones((16, dim), np.float32)
    x[5] = -1.0
    hits = hf.dense_topk(np.ones((1, dim), np.float32), hf.Corpus.from_array(x), 1)
    assert hits.row(0) == [(0, float(dim))]


@pytest.mark.parametrize("dim", [257, 258, 4096, pytest.param(65_535, marks=pytest.mark.full), 65_536])
def test_sums_of_codes_at_the_ends_of_int32(variant: str, dim: int) -> None:
    """An overflow would lose the best rows: up to 257 dimensions queries have all levels, from there on fewer."""
    ones = np.ones(dim, np.float32)
    signs = np.where(np.arange(dim) % 2 == 0, ones, -ones)
    half = np.where(np.arange(dim) < dim // 2, ones, 0)
    few = np.where(np.arange(dim) < 300, ones, 1.5 / 27_000)  # codes that are rounded up in every dimension
    spike = np.where(np.arange(dim) == dim - 1, ones, 1.5 / 32_767)
    kinds = np.float32([ones, -ones, signs, -signs, half, few, spike])
    x = np.concatenate([kinds, kinds[::-1] * np.float32(0.75), kinds * np.float32(0.5)])
    for metric in ("ip", "cosine"):
        check(x, np.concatenate([kinds, np.float32(-3) * kinds]), 2, metric)


def test_float16_extremes(variant: str) -> None:
    rng = np.random.default_rng(7)
    tiny, largest = float(np.finfo(np.float16).smallest_subnormal), float(np.finfo(np.float16).max)
    levels = np.array([0.0, -0.0, tiny, -tiny, 3 * tiny, 6.1e-5, 1.0, -1.0, largest, -largest, 0.333], np.float16)
    x = rng.choice(levels, (400, 20))
    x[:, 0] = 1.0
    scale = np.float32([[1], [1], [1], [1e-15], [1e-15], [1e10], [1e10]])
    q = normal(rng, 7, 20) * scale
    for metric in ("ip", "cosine"):
        for k in (1, 10, 60):
            check(x, q, k, metric, "float16")


def test_bfloat16_extremes(variant: str) -> None:
    rng = np.random.default_rng(17)
    x = bfloat16_extremes(rng, 400, 20)
    q = normal(rng, 7, 20) * np.float32([[1], [1], [1], [1e-15], [1e-15], [1e10], [1e10]])
    for metric in ("ip", "cosine"):
        for k in (1, 10, 60):
            check(x, q, k, metric, "bfloat16")
    check(
        np.where(np.arange(400)[:, None] % 3 == 0, -BFLOAT16_TINY, BFLOAT16_TINY) * np.ones(20), q, 9, "ip", "bfloat16"
    )


def test_every_bfloat16_value_is_read_exactly(variant: str) -> None:
    bits = np.arange(0, 2**16, STRIDE.get(variant, 1), dtype=np.uint16)
    values = (bits.astype(np.uint32) << 16).view(np.float32)
    can_be_scored = np.abs(values) < 1e19  # False for NaN
    bits, values = bits[can_be_scored], values[can_be_scored]
    corpus = hf.Corpus.from_stored(bits[:, None], storage="bfloat16")
    hits = hf.dense_topk(np.ones((1, 1), np.float32), corpus, values.size)
    order = np.lexsort((np.arange(values.size), -values))
    assert hits.ids[0].tolist() == order.tolist()
    assert (hits.scores[0] == values[order]).all()


def test_every_float16_value_is_read_exactly(variant: str) -> None:
    values = np.arange(0, 2**16, STRIDE.get(variant, 1), dtype=np.uint16).view(np.float16)
    values = values[np.isfinite(values)]
    corpus = hf.Corpus.from_array(values[:, None], storage="float16")
    hits = hf.dense_topk(np.ones((1, 1), np.float32), corpus, values.size)
    order = np.lexsort((np.arange(values.size), -values.astype(np.float32)))
    assert hits.ids[0].tolist() == order.tolist()
    assert (hits.scores[0] == values[order].astype(np.float32)).all()


@pytest.mark.parametrize("metric", ["ip", "cosine"])
def test_allow_as_masks_and_ids_shared_and_per_query(variant: str, metric: str) -> None:
    rng = np.random.default_rng(8)
    x, q = normal(rng, 400, 12), normal(rng, 7, 12)
    masks = rng.random((7, 400)) < np.array([0.0, 0.001, 0.01, 0.1, 0.5, 0.9, 1.0])[:, None]
    for k in (1, 5, 49, 60, 500):
        check(x, q, k, metric, allow=masks)
        check(x, q, k, metric, allow=masks[4])
        check(x, q, k, metric, allow=np.flatnonzero(masks[4]))
        check(x, q, k, metric, allow=[np.flatnonzero(m) for m in masks])
        as_ids = hf.dense_topk(q, hf.Corpus.from_array(x), k, allow=[np.flatnonzero(m).tolist() for m in masks])
        assert_hits_equal(as_ids, hf.dense_topk(q, hf.Corpus.from_array(x), k, allow=masks))


def test_allow_ids_in_any_order_and_repeated(variant: str) -> None:
    rng = np.random.default_rng(9)
    corpus, q = hf.Corpus.from_array(normal(rng, 300, 6)), normal(rng, 2, 6)
    expected = hf.dense_topk(q, corpus, 5, allow=[3, 9, 200, 299])
    assert_hits_equal(hf.dense_topk(q, corpus, 5, allow=[299, 3, 200, 9, 3, 3]), expected)
    assert expected.counts.tolist() == [4, 4]


def test_allowing_nothing_gives_no_hits(variant: str) -> None:
    rng = np.random.default_rng(10)
    x, q = normal(rng, 300, 6), normal(rng, 2, 6)
    for allow in (np.zeros(300, bool), np.zeros((2, 300), bool), np.zeros(0, np.int64), [[], []]):
        hits = hf.dense_topk(q, hf.Corpus.from_array(x), 3, allow=allow)
        assert hits.counts.tolist() == [0, 0]
        assert (hits.ids == -1).all()
        assert np.isneginf(hits.scores).all()


def test_an_empty_corpus_and_an_empty_batch(variant: str) -> None:
    empty = hf.Corpus.from_array(np.zeros((0, 5), np.float32))
    assert hf.dense_topk(np.ones((2, 5)), empty, 3).counts.tolist() == [0, 0]
    full = hf.Corpus.from_array(np.ones((40, 5), np.float32))
    assert hf.dense_topk(np.zeros((0, 5)), full, 3).shape == (0, 3)


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.sampled_from([1, 16, 17, 40, 64, 200, 385]),
    dim=st.integers(1, 40),
    batch=st.integers(1, 8),
    k=st.sampled_from([1, 2, 5, 24, 25, 26, 60, 100, 400]),
    metric=st.sampled_from(["ip", "cosine"]),
    storage=st.sampled_from(PRECISIONS),
    grid=st.sampled_from([0, 1, 3]),
    spread=st.sampled_from([0.0, 2.0, 12.0]),
    allow=st.sampled_from(["nothing", "mask", "masks", "ids", "lists"]),
    share=st.sampled_from([0.05, 0.5, 0.95]),
    tile_rows=st.sampled_from([1, 33, 64, 1000]),
    mma=st.sampled_from(UNITS),
    at_once=st.sampled_from([0, 4]),
)
def test_drawn_corpora(
    variant: str,
    seed: int,
    count: int,
    dim: int,
    batch: int,
    k: int,
    metric: str,
    storage: str,
    grid: int,
    spread: float,
    allow: str,
    share: float,
    tile_rows: int,
    mma: str,
    at_once: int,
) -> None:
    """Rows and queries on a grid (ties), with outliers, with norms that spread, with every kind of filter."""
    rng = np.random.default_rng(seed)
    x, q = drawn_vectors(rng, count, dim, batch, metric, storage, grid, spread)
    x[rng.random(x.shape) < 0.02] *= 50.0
    masks = rng.random((batch, count)) < share
    use_sizes(
        tile_rows=max(tile_rows, count // 8), batch=3, split_rows=16, split_blocks=8, widest=64, sort_chunk=64,
        scored_at_once=at_once,
    )  # fmt: skip
    if variant == SIMT:
        simt_runtime().mma = mma
    check(x, q.astype(np.float32), k, metric, storage, allow=filters_of(masks)[allow])


@pytest.mark.every_order
def test_orders_of_threads(variant: str) -> None:
    """Each kernel once, on the fewest threads: a sanitizer takes a millisecond for each."""
    use_sizes(tile_scores=1, tile_rows=32, split_rows=12, split_blocks=2, scored_at_once=0)
    rng = np.random.default_rng(17)
    x, q = normal(rng, 38, 33), normal(rng, 1, 33)  # two steps of a product
    for storage in PRECISIONS:
        check(x, q, 1, "cosine", storage, allow=np.arange(1, 38))  # by the bound
    check(x[:, :24], q[:, :24], 1, storage="float16")  # eight numbers of a row at once
    check(x[:36, :20], q[:, :20], 1)  # four, and four products
    check(x[:30], q, 2)  # every row, past lists
    use_sizes(tile_scores=1, tile_rows=4, widest=4, sort_chunk=8)
    check(x[:10], q, 5, allow=rng.random(10) < 0.8)  # sorted


@pytest.mark.parametrize("metric", ["ip", "cosine"])
def test_scores_are_near_the_float64_definition(variant: str, metric: str) -> None:
    rng = np.random.default_rng(11)
    corpus, q = hf.Corpus.from_array(normal(rng, 500, 100), metric=metric), normal(rng, 6, 100)
    scores = reference.dense_scores(q, corpus)
    assert_hits_close(hf.dense_topk(q, corpus, 20), scores, atol=2e-5 if metric == "ip" else 1e-6)


def test_few_rows_are_rescored_on_ordinary_data() -> None:
    """The codes rule out most of a corpus: the scan is not a disguised exhaustive one."""
    rng = np.random.default_rng(12)
    corpus = hf.Corpus.from_array(normal(rng, 5000, 64))
    hf.dense_topk(normal(rng, 8, 64), corpus, 10)
    assert hf.backend_info()["backends"]["cpu"]["last_calls"]["dense_topk_f32"]["rescored_rows"] < 8 * 500


def rescored_rows(every_isa: list[str], dim: int) -> dict[str, int]:
    """Return how many rows each instruction set rescores of the same corpus."""
    rng = np.random.default_rng(13)
    corpus, q = hf.Corpus.from_array(normal(rng, 2000, dim)), normal(rng, 4, dim)
    counts = {}
    for isa in every_isa:
        use(isa)
        hf.dense_topk(q, corpus, 10)
        counts[isa] = hf.backend_info()["backends"]["cpu"]["last_calls"]["dense_topk_f32"]["rescored_rows"]
    return counts


def test_queries_of_two_bytes_leave_fewer_rows_to_rescore(every_isa: list[str]) -> None:
    """Of the bound, rounding to one byte is about half."""
    counts = rescored_rows(every_isa, 500)
    of_bytes = {counts[isa] for isa in every_isa if isa in ("amx", "avx512", "avxvnni")}
    wide = {counts[isa] for isa in every_isa if isa not in ("amx", "avx512", "avxvnni")}
    assert len(wide) == 1
    assert len(of_bytes) <= 1
    assert all(1.3 * max(wide) < count for count in of_bytes), (wide, of_bytes)


def test_queries_of_many_dimensions_have_two_bytes_everywhere(every_isa: list[str]) -> None:
    assert len(set(rescored_rows(every_isa, 4096).values())) == 1
