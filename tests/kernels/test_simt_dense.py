"""Dense top-k by the device's kernels, on the SIMT emulator, is the CPU's bit for bit: whatever the matrix product's
order of sums, the sizes of tiles and lists, and the order of threads and blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import variants  # puts the emulator on the path
from cases import ADVERSARIAL_ROWS, adversarial_rows, bfloat16_extremes, drawn_vectors
from compare import assert_hits_equal
from hopfuse.backends.calls import DenseCall
from hopfuse.backends.cuda.dense import Sizes, dense_topk
from hopfuse.ops._filter import read_filter
from hopfuse_simt.runtime import CUDA, SimtRuntime
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(variants.missing("simt") is not None, reason=str(variants.missing("simt"))),
]

SMALL = Sizes(
    tile_scores=1, tile_rows=100, batch=3, split_rows=40, split_blocks=8, widest=96, sort_chunk=64, sort_keys=600
)


class Runtime(SimtRuntime):
    """The emulator with this op's files alone. ``error`` moves each matrix product by that part of its bound."""

    def __init__(self, build: str = "plain", order: str = "forward", seed: int = 0) -> None:
        super().__init__(build, order, seed, sources=[CUDA / "topk.cu", CUDA / "dense_topk.cu"])
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
    compiled.order, compiled.seed, compiled.error = "forward", 0, 0.0
    return compiled


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
def test_a_16_bit_corpus_is_multiplied_as_it_is_stored(runtime: Runtime, storage: str) -> None:
    """Blocks of 128 rows, 32 queries and 32 dimensions, whole and not; up to four queries are scored canonically."""
    rng = np.random.default_rng(3)
    for rows, dim, batch in ((230, 20, 5), (129, 33, 33), (128, 32, 32), (300, 70, 9), (40, 1, 6), (300, 70, 4)):
        x, q = normal(rng, rows, dim), normal(rng, batch, dim)
        runtime.launches.clear()
        check(
            runtime, x, q, 4, sizes=Sizes(tile_scores=1, tile_rows=140, split_rows=7, split_blocks=9), storage=storage
        )
        assert runtime.ran("dense_product_") == (-(-rows // 140) if batch > 4 else 0)  # few are scored at once


@pytest.mark.parametrize("storage", ["float16", "bfloat16"])
def test_products_are_float32_sums(runtime: Runtime, storage: str) -> None:
    rng = np.random.default_rng(4)
    kernel = {"float16": "dense_product_f16", "bfloat16": "dense_product_bf16"}[storage]
    for rows, dim, batch in ((1, 1, 1), (127, 31, 5), (129, 33, 33), (256, 64, 64), (130, 200, 2)):
        stored = hf.Corpus.from_array(normal(rng, rows, dim), storage=storage).vectors
        bits, q = stored.view(np.uint16), normal(rng, batch, dim)
        x = stored if storage == "float16" else (bits.astype(np.uint32) << 16).view(np.float32)
        out = np.full((batch, rows), np.nan, np.float32)
        grid = -(-rows // 128) * -(-batch // 32)
        runtime.launch(kernel, grid, 128, [bits, np.int64(rows), q, np.int32(batch), np.int32(dim), out])
        wide, queries = x.astype(np.float64), q.astype(np.float64)
        gamma = dim * 2.0**-24 / (1 - dim * 2.0**-24)
        assert (np.abs(out - queries @ wide.T) <= gamma * (np.abs(queries) @ np.abs(wide).T)).all()


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
    given: Any = {
        "mask": masks[0],
        "ids": np.flatnonzero(masks[0]),
        "masks": masks,
        "lists": [np.flatnonzero(m) for m in masks],
    }[allow]
    check(runtime, x, q, 5, allow=given)
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


TINY = Sizes(tile_scores=1, tile_rows=32, split_rows=12, split_blocks=2)


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
    allow=st.sampled_from(["all", "mask", "masks", "ids", "lists"]),
    share=st.sampled_from([0.05, 0.5, 0.95]),
    tile_rows=st.sampled_from([1, 33, 64, 1000]),
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
) -> None:
    """Rows and queries on a grid (ties), with outliers, with norms that spread, with every kind of filter."""
    rng = np.random.default_rng(seed)
    x, q = drawn_vectors(rng, count, dim, batch, metric, storage, grid, spread)
    masks = rng.random((batch, count)) < share
    filters: dict[str, Any] = {
        "all": None,
        "mask": masks[0],
        "masks": masks,
        "ids": np.flatnonzero(masks[0]),
        "lists": [np.flatnonzero(m) for m in masks],
    }
    compiled.error, compiled.order, compiled.seed = 0.0, "shuffle", seed
    sizes = Sizes(
        tile_rows=max(tile_rows, count // 8), batch=3, split_rows=16, split_blocks=8, widest=64, sort_chunk=64
    )
    check(compiled, x, q.astype(np.float32), k, metric, filters[allow], sizes, storage)
