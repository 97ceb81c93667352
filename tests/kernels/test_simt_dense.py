"""Dense top-k by the device's kernels, on the SIMT emulator, is the CPU's bit for bit: whatever the matrix product's
order of sums, the sizes of tiles and lists, and the order of threads and blocks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import variants  # puts the emulator on the path
from cases import ADVERSARIAL_ROWS, adversarial_rows, bfloat16_extremes, drawn_vectors, filters_of
from compare import assert_hits_equal
from hopfuse.backends.calls import DenseCall
from hopfuse.backends.cuda import dense
from hopfuse.backends.cuda.arguments import QUERIES
from hopfuse.backends.cuda.dense import Bound, Sizes, dense_topk
from hopfuse.ops._filter import read_filter
from hopfuse_simt import MATRIX_UNITS
from hopfuse_simt.runtime import CUDA, SimtRuntime
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tiers import FULL

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(variants.missing("simt") is not None, reason=str(variants.missing("simt"))),
]

SMALL = Sizes(
    tile_scores=1, tile_rows=100, batch=3, split_rows=40, split_blocks=8, widest=96, sort_chunk=64, sort_keys=600
)


class Runtime(SimtRuntime):
    """The emulator with this op's files alone. ``error`` moves each matrix product by that part of its bound."""

    def __init__(self, build: str = "plain", order: str = "forward", seed: int = 0, capability: int = 90) -> None:
        super().__init__(build, order, seed, [CUDA / "topk.cu", CUDA / "dense_topk.cu"], capability)
        self.error: NDArray[np.float64] | float = 0.0

    def matmul(self, a: NDArray[np.float32], b: NDArray[np.float32], out: NDArray[np.float32]) -> None:
        assert a.dtype == b.dtype == out.dtype == np.float32
        out[...] = a @ b.T
        if not np.any(self.error):
            return
        wide, rows, unit = a.astype(np.float64), b.astype(np.float64), 2.0**-24
        norms = np.linalg.norm(wide, axis=1)[:, None] * np.linalg.norm(rows, axis=1)
        gamma = a.shape[1] * unit / (1 - a.shape[1] * unit)
        out[...] = wide @ rows.T + self.error * (gamma - unit) * norms  # a unit is left to the rounding here

    def ran(self, kernel: str) -> int:
        return sum(name.startswith(kernel) for name, _, _ in self.launches)


@pytest.fixture(scope="module")
def compiled() -> Iterator[Runtime]:
    runtime = Runtime()
    yield runtime
    runtime.module.close()


@pytest.fixture
def runtime(compiled: Runtime) -> Runtime:
    compiled.launches.clear()
    compiled.counters.clear()
    compiled.order, compiled.seed, compiled.mma, compiled.error = "forward", 0, "h100", 0.0
    return compiled


@pytest.fixture(scope="module")
def turing() -> Iterator[Runtime]:
    """Compute capability 7.5: float16 numbers in products of depth 8, bfloat16 numbers in float32 arithmetic."""
    runtime = Runtime(capability=75)
    yield runtime
    runtime.module.close()


@pytest.fixture(params=[90, 75])
def either(request: pytest.FixtureRequest, runtime: Runtime, turing: Runtime) -> Runtime:
    return runtime if request.param == 90 else turing


#: Matrix units that are as exact as is assumed.
UNITS = [unit for unit in MATRIX_UNITS if unit != "narrow"]
#: Capability, storage and matrix unit; with capability 7.5, bfloat16 numbers are multiplied by no unit.
UNIT_CASES = [
    *((90, storage, mma) for storage in ("float16", "bfloat16") for mma in UNITS),
    *((75, "float16", mma) for mma in UNITS),
    (75, "bfloat16", UNITS[0]),
]
of_every_unit = pytest.mark.parametrize(("either", "storage", "mma"), UNIT_CASES, indirect=["either"])
PRECISIONS = ["float32", "float16", "bfloat16"]


def normal(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    return rng.standard_normal(shape).astype(np.float32)


def search(
    runtime: Runtime, q: NDArray[np.float32], corpus: hf.Corpus, k: int, allow: Any = None, sizes: Sizes = SMALL
) -> tuple[hf.Hits, int]:
    allowed = read_filter(allow, q.shape[0], corpus.num_vectors, "allow")
    width = min(k, corpus.num_vectors)  # as the op has it
    call = DenseCall(runtime.upload(q), corpus, width, allowed, threads=1, on_device=True)
    hits, rescored, _ = dense_topk(runtime, call, sizes)
    assert (runtime.download(hits.status) == 1).all()
    return hf.Hits(hits.ids, hits.scores, hits.counts), rescored


def check(
    runtime: Runtime,
    x: NDArray[Any],
    q: NDArray[np.float32],
    k: int,
    metric: Any = "ip",
    allow: Any = None,
    sizes: Sizes = SMALL,
    storage: Any = "float32",
) -> hf.Hits:
    """The device's hits, which are the CPU's."""
    corpus = hf.Corpus.from_array(x, metric=metric, storage=storage)
    hits, _ = search(runtime, q, corpus, k, allow, sizes)
    assert_hits_equal(hits, hf.dense_topk(q, corpus, k, allow=allow, threads=1))
    return hits


# ---- Shapes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 15, 16, 17, 100])
@pytest.mark.parametrize("count", [1, 16, 99, 100, 101, 350])
def test_random_rows_of_every_shape(runtime: Runtime, dim: int, count: int) -> None:
    rng = np.random.default_rng([dim, count])
    q = normal(rng, 2, dim)
    for metric in ("ip", "cosine"):
        for storage in PRECISIONS:
            check(runtime, normal(rng, count, dim), q, 5, metric, storage=storage)


@pytest.mark.parametrize("k", [0, 1, 2, 54, 55, 56, 57, 95, 96, 97, 249, 250, 251, 1000])
def test_every_k_around_the_widths_of_lists(runtime: Runtime, k: int) -> None:
    rng = np.random.default_rng(1)
    x, q = normal(rng, 250, 12), normal(rng, 5, 12)
    check(runtime, x, q, k)
    check(runtime, x, q, k, "cosine", rng.random(250) < 0.5)


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 7])
def test_batches_and_splits_of_tiles(runtime: Runtime, batch: int) -> None:
    rng = np.random.default_rng(batch)
    x, q = normal(rng, 230, 20), normal(rng, batch, 20)
    for split_blocks in (1, 3, 50):
        check(runtime, x, q, 4, sizes=Sizes(tile_scores=1, tile_rows=90, split_rows=7, split_blocks=split_blocks))


@pytest.mark.parametrize("storage", ["float16", "bfloat16"])
def test_a_16_bit_corpus_is_multiplied_as_it_is_stored(either: Runtime, storage: str) -> None:
    """Blocks of 128 rows, 32 queries and 32 dimensions, whole and not; up to four queries are scored canonically."""
    rng = np.random.default_rng(3)
    sizes = Sizes(tile_scores=1, tile_rows=140, split_rows=7, split_blocks=9)
    for rows, dim, batch in ((230, 20, 5), (129, 33, 33), (128, 32, 32), (300, 72, 9), (40, 1, 6), (300, 70, 4)):
        x, q = normal(rng, rows, dim), normal(rng, batch, dim)
        either.launches.clear()
        check(either, x, q, 4, sizes=sizes, storage=storage)
        assert either.ran("dense_product_") == (-(-rows // 140) if batch > 4 else 0)  # few are scored at once


def test_lists_wider_than_a_block_takes_in_one_step(runtime: Runtime) -> None:
    rng = np.random.default_rng(2)
    x, q = normal(rng, 1500, 4).round(1), normal(rng, 2, 4)
    for k in (500, 1000, 1400):
        check(runtime, x, q, k, sizes=Sizes(tile_scores=1, tile_rows=700))


def test_nothing_to_search_looks_at_queries_alone(runtime: Runtime) -> None:
    empty = hf.Corpus.from_array(np.zeros((0, 5), np.float32))
    full = hf.Corpus.from_array(np.ones((40, 5), np.float32))
    for corpus, batch, k, allow in (
        (empty, 2, 3, None),
        (full, 0, 3, None),
        (full, 2, 0, None),
        (full, 2, 3, [[], []]),
    ):
        q = np.ones((batch, 5), np.float32)
        hits, rescored = search(runtime, q, corpus, k, allow)
        assert_hits_equal(hits, hf.dense_topk(q, corpus, k, allow=allow))
        assert rescored == 0
    assert runtime.ran("dense_queries_f32") == len(runtime.launches) == 3


# ---- Adversarial rows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ADVERSARIAL_ROWS)
@pytest.mark.parametrize("metric", ["ip", "cosine"])
def test_adversarial_rows(runtime: Runtime, name: str, metric: str) -> None:
    rng = np.random.default_rng(3)
    x = adversarial_rows(name, rng, 220, 20)
    q = np.concatenate([np.abs(normal(rng, 1, 20)), normal(rng, 2, 20), x[:1] / max(1.0, float(np.abs(x[:1]).max()))])
    if metric == "cosine":  # a row that vanishes has no cosine
        x = x[np.square(x, dtype=np.float64).sum(axis=1) > 1e-37]
        q = q[np.square(q, dtype=np.float64).sum(axis=1) > 1e-37]
    for k in (1, 6, 120):
        check(runtime, x, q, k, metric)


def test_zero_queries_and_scores_of_either_sign_of_zero(runtime: Runtime) -> None:
    """A product that underflows from below is -0, ranks as 0, and keeps its sign."""
    x = np.where(np.arange(200) % 3 == 1, -1e-30, 1e-30).astype(np.float32)[:, None] * np.ones(16, np.float32)
    q = np.stack([np.full(16, 1e-30, np.float32), np.zeros(16, np.float32)])
    for k in (3, 70, 150):
        hits = check(runtime, x, q, k)
        assert hits.ids[0].tolist() == list(range(k))
        assert np.signbit(hits.scores[0]).tolist() == [i % 3 == 1 for i in range(k)]


@pytest.mark.parametrize("scale", [1.1e-19, 1e-18])
def test_cosines_of_tiny_vectors_whose_dot_products_lose_bits(runtime: Runtime, scale: float) -> None:
    rng = np.random.default_rng(6)
    level = (scale / 4 * (1.0 + rng.random(200) * 0.5)).astype(np.float32)
    x, q = np.repeat(level[:, None], 16, axis=1), np.full((2, 16), scale * 1.05 / 4, np.float32)
    check(runtime, x, q, 7, "cosine")


def test_float16_extremes(runtime: Runtime) -> None:
    rng = np.random.default_rng(7)
    tiny, largest = float(np.finfo(np.float16).smallest_subnormal), float(np.finfo(np.float16).max)
    levels = np.array([0.0, -0.0, tiny, -tiny, 3 * tiny, 6.1e-5, 1.0, -1.0, largest, -largest, 0.333], np.float16)
    x = rng.choice(levels, (200, 20))
    x[:, 0] = 1.0
    q = normal(rng, 4, 20) * np.float32([[1], [1], [1e-15], [1e10]])
    for metric in ("ip", "cosine"):
        check(runtime, x, q, 5, metric, storage="float16")


def test_bfloat16_extremes(runtime: Runtime) -> None:
    rng = np.random.default_rng(27)
    x = bfloat16_extremes(rng, 200, 20)
    q = normal(rng, 4, 20) * np.float32([[1], [1], [1e-15], [1e10]])
    for metric in ("ip", "cosine"):
        check(runtime, x, q, 5, metric, storage="bfloat16")


@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_int8_corpus_is_its_originals_there(runtime: Runtime, precision: str) -> None:
    rng = np.random.default_rng(28)
    x, q = normal(rng, 200, 20), normal(rng, 3, 20)
    originals = hf.Corpus.from_array(x, storage=precision)  # type: ignore[arg-type]
    coded = hf.Corpus.from_stored(originals.vectors, storage="int8")
    hits, _ = search(runtime, q, coded, 5)
    assert_hits_equal(hits, hf.dense_topk(q, originals, 5))
    suffix = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}[precision]
    assert runtime.ran(f"dense_rescore_{suffix}") + runtime.ran(f"dense_score_{suffix}") > 0


# ---- What is proven, and what is not ------------------------------------------------------------------------------


def test_ordinary_rows_are_proven_without_scoring_them_all(runtime: Runtime) -> None:
    rng = np.random.default_rng(8)
    corpus = hf.Corpus.from_array(normal(rng, 500, 20))
    _, rescored = search(runtime, normal(rng, 4, 20), corpus, 5)
    assert rescored == 4 * (5 + 32)
    assert runtime.ran("dense_score") == 0


def test_a_list_that_the_bound_cannot_prove_is_widened_for_its_query_alone(runtime: Runtime) -> None:
    """More rows than a list holds tie at the cut of one query; the others' order is clear."""
    rng = np.random.default_rng(9)
    x = normal(rng, 300, 20)
    x[:, 0] = np.where(np.arange(300) % 3 == 0, 100.0, 0.0)
    q = normal(rng, 5, 20)
    q[2] = 0.0
    q[2, 0] = 1.0
    corpus = hf.Corpus.from_array(x)
    hits, rescored = search(runtime, q, corpus, 5, sizes=Sizes())
    assert_hits_equal(hits, hf.dense_topk(q, corpus, 5))
    assert hits.ids[2].tolist() == [0, 3, 6, 9, 12]
    assert runtime.ran("dense_score") == 1
    assert rescored == 5 * 37 + 300


@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("spread", [1e-6, 1e-5, 1e-4, 1e-2])
def test_rows_nearer_to_each_other_than_the_bound_in_any_order_of_sums(
    runtime: Runtime, metric: str, spread: float
) -> None:
    """The product is off by as much as any order of sums could be: against the best rows, then by chance."""
    rng = np.random.default_rng(10)
    x = (normal(rng, 1, 64) + normal(rng, 300, 64) * np.float32(spread)).astype(np.float32)
    q = np.concatenate([x[:1], normal(rng, 2, 64)])
    corpus = hf.Corpus.from_array(x, metric=metric)
    expected = hf.dense_topk(q, corpus, 5)
    everything = Sizes(tile_scores=1, tile_rows=300)
    worst = np.ones((3, 300))
    worst[np.arange(3)[:, None], expected.ids] = -1.0
    alone = np.minimum(worst, 0.0)  # the best rows fall, and nothing else rises to warn of it
    for error in (0.0, worst, alone, rng.choice([-1.0, 1.0], (3, 300)), rng.uniform(-1, 1, (3, 300))):
        runtime.error = error
        hits, _ = search(runtime, q, corpus, 5, sizes=everything)
        assert_hits_equal(hits, expected)


def test_a_product_beyond_the_bound_would_be_seen(runtime: Runtime) -> None:
    """The test above can fail: errors of many times the bound lose rows."""
    rng = np.random.default_rng(11)
    q, corpus = normal(rng, 1, 64), hf.Corpus.from_array(normal(rng, 300, 64))
    expected = hf.dense_topk(q, corpus, 5)
    runtime.error = np.zeros((1, 300))
    runtime.error[0, expected.ids[0]] = -1e6
    hits, _ = search(runtime, q, corpus, 5, sizes=Sizes(tile_scores=1, tile_rows=300))
    assert not np.isin(hits.ids, expected.ids).any()


# ---- Products of 16-bit rows ----------------------------------------------------------------------------------------


def kinds_of_rows(rng: np.random.Generator, kind: str, storage: str, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Return rows that lose much in products: by their exponents, by cancellation, by what is subnormal."""
    spread = 24.0 if storage == "float16" else 60.0
    x = rng.standard_normal(shape)
    if kind == "exponents":
        x *= 2.0 ** rng.uniform(-spread, 12.0, shape)
    if kind == "cancelling":
        x[:, 1::2] = -x[:, : shape[1] - 1 : 2] * (1 + 2.0**-9 * rng.integers(-2, 3, (shape[0], shape[1] // 2)))
    if kind == "subnormal":
        x = rng.integers(-512, 513, shape) * (2.0**-24 if storage == "float16" else 2.0**-133)
    return x.astype(np.float32)


def as_stored(x: NDArray[np.float32], storage: Any) -> tuple[NDArray[np.uint16], NDArray[np.float64]]:
    """Return the bits of rows and their values."""
    if storage == "float16":
        return x.astype(np.float16).view(np.uint16), x.astype(np.float16).astype(np.float64)
    bits = hf.Corpus.from_array(x, storage=storage).vectors.view(np.uint16)
    return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@of_every_unit
@pytest.mark.parametrize("kind", ["normal", "exponents", "cancelling", "subnormal"])
def test_products_are_within_their_bound(either: Runtime, storage: str, mma: str, kind: str) -> None:
    """For queries of every size, and for rows, queries and dimensions that fill blocks and do not."""
    rng = np.random.default_rng(4)
    either.mma = mma
    suffix = {"float16": "f16", "bfloat16": "bf16"}[storage]
    for rows, dim, batch in ((1, 2, 1), (127, 31, 5), (129, 64, 33), (130, 200, 9)):
        bits, exact_rows = as_stored(kinds_of_rows(rng, kind, storage, (rows, dim)), storage)
        q = normal(rng, batch, dim) * (10.0 ** rng.choice([-40, -30, -8, 0, 8, 17], (batch, 1))).astype(np.float32)
        q *= np.where(rng.random(q.shape) < 0.2, np.float32(2.0**-12), np.float32(1.0))
        norms = np.zeros(batch, np.float32)
        dense.check_queries(either, q, False, norms, np.zeros(batch, np.int32))
        out = np.full((batch, rows), np.nan, np.float32)
        bound = Bound.of(dim, suffix)
        queries = QUERIES(data=q, norm=norms, batch=batch, dim=dim, cosine=False)
        grid = -(-rows // 128) * -(-batch // 32)
        either.launch(f"dense_product_{suffix}", grid, 128, [bits, np.int64(rows), queries, bound.norm_floor, out])
        wide = q.astype(np.float64)
        sizes = np.linalg.norm(wide, axis=1)[:, None] * np.linalg.norm(exact_rows, axis=1)
        error, least = dense._units_error(dim, dense.LAST_BIT[suffix]), float(bound.norm_floor)
        most = error * sizes + least * error * np.linalg.norm(exact_rows, axis=1) + 8 * dim * 2.0**-126
        assert (np.abs(out - wide @ exact_rows.T) <= most).all()


def near_rows(rng: np.random.Generator, storage: str, dim: int) -> NDArray[np.float32]:
    """Return 300 rows that differ in a few of the last bits that they have."""
    ulp = 2.0**-11 if storage == "float16" else 2.0**-8
    x = np.repeat(rng.standard_normal((1, dim)), 300, axis=0)
    chosen = rng.random(x.shape) < 0.05
    return np.where(chosen, x * (1 + ulp * rng.integers(-2, 3, x.shape)), x).astype(np.float32)


@of_every_unit
def test_rows_nearer_to_each_other_than_units_tell_apart(either: Runtime, storage: str, mma: str) -> None:
    """Products of rows bring them out of order; the bound widens until the right ones are there."""
    rng = np.random.default_rng(21)
    either.mma = mma
    for dim, metric in itertools.product((64, 200), ("ip", "cosine")) if FULL else ((64, "ip"), (200, "cosine")):
        x = near_rows(rng, storage, dim)
        q = np.concatenate([x[:1], x[1:2] * np.float32(1e-15), normal(rng, 3, dim)])
        check(either, x, q, 5, metric, sizes=Sizes(tile_scores=1, tile_rows=300), storage=storage)
    assert either.ran("dense_product_") > 0


@pytest.fixture
def fresh_bounds() -> Iterator[None]:
    """Bounds are computed anew in the test, and after it."""
    dense.dot_bound.cache_clear()
    yield
    dense.dot_bound.cache_clear()


def rows_that_steps_lose() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return 62 rows and a query. 31 products of the last row are cut off beside that of 1, in the worst unit."""
    q = np.full((1, 32), 2.0**-5, np.float32)
    q[0, 0] = 1.0
    x = np.zeros((62, 32), np.float32)
    x[:, 0] = 1.0
    x[:61, 1] = 2.0**-17  # a product that the unit keeps
    x[0, 1] = 20 * 2.0**-17
    x[61, 1:] = 0.75 * 2.0**-17
    return x, q


def rows_that_parts_lose() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return 62 rows and a query. Two bfloat16 parts lose some of its first number, which the last row has alone."""
    q = np.array([[1 + 2.0**-9 + 0.98 * 2.0**-17, 1, 1, 1]], np.float32)
    x = np.zeros((62, 4), np.float32)
    x[:61, 1:3] = 1.0, 2.0**-9
    x[:61, 3] = 2.0**-21
    x[0, 3] = 0.875 * 2.0**-17
    x[61, 0] = 1.0
    return x, q


@pytest.mark.usefixtures("fresh_bounds")
@pytest.mark.parametrize("storage", ["float16", "bfloat16"])
def test_what_steps_lose_is_in_the_bound(runtime: Runtime, monkeypatch: pytest.MonkeyPatch, storage: Any) -> None:
    """The test sees a smaller bound: then the best row is lost, and seems proven to be no hit."""
    x, q = rows_that_steps_lose()
    runtime.mma = "lower"
    sizes = Sizes(scored_at_once=0)
    assert check(runtime, x, q, 1, sizes=sizes, storage=storage).ids.tolist() == [[61]]
    monkeypatch.setattr(dense, "STEP_ERROR", 2.0**-24)
    monkeypatch.setattr(dense, "LAST_BIT", {"f16": 2.0**-11, "bf16": 2.0**-11})
    dense.dot_bound.cache_clear()
    hits, _ = search(runtime, q, hf.Corpus.from_array(x, storage=storage), 1, sizes=sizes)
    assert hits.ids.tolist() == [[0]]


@pytest.mark.usefixtures("fresh_bounds")
def test_what_parts_lose_is_in_the_bound(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    x, q = rows_that_parts_lose()
    sizes = Sizes(scored_at_once=0)
    assert check(runtime, x, q, 1, sizes=sizes, storage="bfloat16").ids.tolist() == [[61]]
    monkeypatch.setattr(dense, "STEP_ERROR", 2.0**-24)
    dense.dot_bound.cache_clear()
    check(runtime, x, q, 1, sizes=sizes, storage="bfloat16")
    monkeypatch.setattr(dense, "LAST_BIT", {"bf16": 2.0**-12})
    dense.dot_bound.cache_clear()
    hits, _ = search(runtime, q, hf.Corpus.from_array(x, storage="bfloat16"), 1, sizes=sizes)
    assert hits.ids.tolist() == [[0]]


# ---- Filters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("k", [1, 5, 60, 150])
def test_allow_as_masks_and_ids_shared_and_per_query(runtime: Runtime, metric: str, k: int) -> None:
    rng = np.random.default_rng(12)
    x, q = normal(rng, 250, 12), normal(rng, 7, 12)
    masks = rng.random((7, 250)) < np.array([0.0, 0.01, 0.03, 0.1, 0.5, 0.9, 1.0])[:, None]
    check(runtime, x, q, k, metric, masks)
    check(runtime, x, q, k, metric, [np.flatnonzero(m) for m in masks])
    for shared in (masks[3], masks[4], masks[0]):
        check(runtime, x, q, k, metric, shared)
        check(runtime, x, q, k, metric, np.flatnonzero(shared))


def test_a_batch_of_queries_that_may_hit_nothing(runtime: Runtime) -> None:
    rng = np.random.default_rng(18)
    x, q = normal(rng, 120, 6), normal(rng, 5, 6)
    hits = check(runtime, x, q, 4, allow=[[], [], [], [7, 3], range(120)])
    assert hits.counts.tolist() == [0, 0, 0, 2, 4]


@pytest.mark.parametrize("allow", ["mask", "ids", "masks", "lists"])
def test_filters_of_queries_that_the_bound_cannot_prove(runtime: Runtime, allow: str) -> None:
    rng = np.random.default_rng(13)
    x, q = adversarial_rows("all equal rows", rng, 220, 20), normal(rng, 5, 20)
    masks = rng.random((5, x.shape[0])) < 0.7
    check(runtime, x, q, 5, allow=filters_of(masks)[allow])
    assert runtime.ran("dense_select") > 0
    if allow in ("mask", "masks"):
        assert runtime.ran("dense_score") > 0
    else:  # more often than for the candidates of both batches
        assert runtime.ran("dense_rescore") > 2


def test_short_lists_are_scored_without_a_matrix_product(runtime: Runtime) -> None:
    rng = np.random.default_rng(14)
    corpus, q = hf.Corpus.from_array(normal(rng, 400, 12)), normal(rng, 3, 12)
    _, rescored = search(runtime, q, corpus, 2, np.arange(0, 400, 10))
    assert rescored == 3 * 40
    assert runtime.ran("dense_select") == 0


# ---- Residence ------------------------------------------------------------------------------------------------------


def test_a_corpus_is_uploaded_once_for_each_runtime(runtime: Runtime) -> None:
    rng = np.random.default_rng(15)
    corpus, q = hf.Corpus.from_array(normal(rng, 50, 8)), normal(rng, 1, 8)
    other = Runtime()
    for _ in range(2):
        for each in (runtime, other):
            hits, _ = search(each, q, corpus, 3)
            assert_hits_equal(hits, hf.dense_topk(q, corpus, 3))
    held = [entry for entry in corpus.derived.values() if hasattr(entry, "runtime")]
    assert [entry.runtime for entry in held] == [runtime, other]
    assert runtime.ran("dense_norms") == other.ran("dense_norms") == 1


# ---- Orders of threads and blocks, and sanitizers -------------------------------------------------------------------

ORDERS = [("forward", 0), ("reverse", 0), ("shuffle", 1), ("shuffle", 2)]


@pytest.mark.parametrize(("order", "seed"), ORDERS)
def test_any_order_of_threads_and_blocks(runtime: Runtime, order: str, seed: int) -> None:
    runtime.order, runtime.seed = order, seed
    rng = np.random.default_rng(16)
    x, q = normal(rng, 230, 18).round(1), normal(rng, 3, 18).round(1)
    check(runtime, x, q, 5, "cosine", rng.random((3, 230)) < 0.8, storage="float16")
    check(runtime, x, q, 5, "cosine", rng.random((3, 230)) < 0.8, storage="bfloat16")
    check(runtime, x, q, 5, allow=np.arange(0, 230, 2))
    check(runtime, adversarial_rows("many duplicates", rng, 220, 20), normal(rng, 3, 20), 5)
    check(runtime, x, q, 130)


TINY = Sizes(tile_scores=1, tile_rows=32, split_rows=12, split_blocks=2, scored_at_once=0)


@pytest.fixture(scope="module", params=variants.SANITIZERS)
def sanitized(request: pytest.FixtureRequest) -> Iterator[Runtime]:
    runtime = Runtime(request.param, "shuffle", 3)
    yield runtime
    runtime.module.close()


def test_sanitizers_find_nothing(sanitized: Runtime) -> None:
    rng = np.random.default_rng(17)
    x, q = normal(rng, 38, 33), normal(rng, 1, 33)  # two steps of a product
    for storage in ("float16", "bfloat16"):
        check(sanitized, x, q, 1, "cosine", np.arange(1, 38), TINY, storage)  # by the bound
    check(sanitized, x[:, :24], q[:, :24], 1, sizes=TINY, storage="float16")  # eight numbers of a row at once
    check(sanitized, x[:30], q, 2, sizes=TINY)  # every row, past lists
    check(
        sanitized,
        x[:10],
        q,
        5,
        allow=rng.random(10) < 0.8,
        sizes=Sizes(tile_scores=1, tile_rows=4, widest=4, sort_chunk=8),
    )  # sorted
    alike = {"dense_norms_f16", "dense_norms_bf16", "dense_score_f16", "dense_score_bf16", "dense_rescore_f32"}
    kernels = set(sanitized.module.kernels) - alike
    assert kernels <= {name for name, _, _ in sanitized.launches}


# ---- Drawn inputs ---------------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.sampled_from([1, 17, 64, 150]),
    dim=st.integers(1, 40),
    batch=st.integers(1, 5),
    k=st.sampled_from([1, 2, 5, 24, 60, 100, 400]),
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
    compiled: Runtime,
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
    masks = rng.random((batch, count)) < share
    compiled.error, compiled.order, compiled.seed, compiled.mma = 0.0, "shuffle", seed, mma
    sizes = Sizes(
        tile_rows=max(tile_rows, count // 8), batch=3, split_rows=16, split_blocks=8, widest=64, sort_chunk=64,
        scored_at_once=at_once,
    )  # fmt: skip
    check(compiled, x, q.astype(np.float32), k, metric, filters_of(masks)[allow], sizes, storage)
