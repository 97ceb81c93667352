"""How a device searches: what it multiplies, selects and scores, and that its products are within their bound.

The answers are the CPU's, which the fixture ``runtime`` checks in every call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import variants
from cases import adversarial_rows, filters_of
from compare import assert_hits_equal
from hopfuse.backends.cuda import dense
from hopfuse.backends.cuda.arguments import QUERIES
from hopfuse.backends.cuda.dense import Bound, Sizes
from hopfuse_simt.runtime import CUDA, SimtRuntime
from kernels.test_dense_topk import SMALL, UNITS, normal
from numpy.typing import NDArray
from tiers import FULL
from variants import SIMT

WHOLE = Sizes(tile_scores=1, tile_rows=300)
#: Capability, storage and matrix unit; with capability 7.5, bfloat16 numbers are multiplied by no unit.
UNIT_CASES = [
    *((90, storage, mma) for storage in ("float16", "bfloat16") for mma in UNITS),
    *((75, "float16", mma) for mma in UNITS),
    (75, "bfloat16", UNITS[0]),
]
of_every_unit = pytest.mark.parametrize(("either", "storage", "mma"), UNIT_CASES, indirect=["either"])


@pytest.fixture(autouse=True)
def fresh_bounds() -> Iterator[None]:
    """Bounds are computed anew in a test that changes what they assume, and after it."""
    yield
    dense.dot_bound.cache_clear()


@pytest.fixture
def use_sizes(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sizes], None]:
    return lambda sizes: monkeypatch.setattr(dense, "Sizes", lambda: sizes)


@pytest.fixture
def either(request: pytest.FixtureRequest, runtime: Any) -> Iterator[Any]:
    """Compute capability 9.0, or 7.5: float16 numbers in products of depth 8, bfloat16 ones in float32 arithmetic."""
    if request.param == 90:
        yield runtime
        return
    with variants.registered(SIMT, "plain", sources=[CUDA / "topk.cu", CUDA / "dense_topk.cu"], capability=75) as old:
        yield old


def ran(runtime: SimtRuntime, kernel: str) -> int:
    return sum(name.startswith(kernel) for name, _, _ in runtime.launches)


def search(x: NDArray[Any], q: NDArray[np.float32], k: int, metric: Any = "ip", storage: Any = "float32") -> hf.Hits:
    return hf.dense_topk(q, hf.Corpus.from_array(x, metric=metric, storage=storage), k)


def rescored_rows() -> int:
    return int(hf.backend_info()["backends"][SIMT]["last_calls"]["dense_topk_f32"]["rescored_rows"])


@pytest.mark.parametrize("either", [90, 75], indirect=True)
@pytest.mark.parametrize("storage", ["float16", "bfloat16"])
def test_a_16_bit_corpus_is_multiplied_as_it_is_stored(
    either: Any, use_sizes: Callable[[Sizes], None], storage: str
) -> None:
    """Blocks of 128 rows, 32 queries and 32 dimensions, whole and not; up to four queries are scored canonically."""
    rng = np.random.default_rng(3)
    use_sizes(Sizes(tile_scores=1, tile_rows=140, split_rows=7, split_blocks=9))
    for rows, dim, batch in ((230, 20, 5), (129, 33, 33), (128, 32, 32), (300, 72, 9), (40, 1, 6), (300, 70, 4)):
        either.launches.clear()
        search(normal(rng, rows, dim), normal(rng, batch, dim), 4, storage=storage)
        assert ran(either, "dense_product_") == (-(-rows // 140) if batch > 4 else 0)  # few are scored at once


def test_nothing_to_search_looks_at_queries_alone(runtime: Any) -> None:
    empty, full = np.zeros((0, 5), np.float32), np.ones((40, 5), np.float32)
    for x, batch, k, allow in ((empty, 2, 3, None), (full, 0, 3, None), (full, 2, 0, None), (full, 2, 3, [[], []])):
        hf.dense_topk(np.ones((batch, 5), np.float32), hf.Corpus.from_array(x), k, allow=allow)
        assert rescored_rows() == 0
    assert ran(runtime, "dense_queries_f32") == len(runtime.launches) == 3


def test_ordinary_rows_are_proven_without_scoring_them_all(runtime: Any) -> None:
    rng = np.random.default_rng(8)
    search(normal(rng, 500, 20), normal(rng, 4, 20), 5)
    assert rescored_rows() == 4 * (5 + 32)
    assert ran(runtime, "dense_score") == 0


def test_a_list_that_the_bound_cannot_prove_is_widened_for_its_query_alone(runtime: Any) -> None:
    """More rows than a list holds tie at the cut of one query; the others' order is clear."""
    rng = np.random.default_rng(9)
    x = normal(rng, 300, 20)
    x[:, 0] = np.where(np.arange(300) % 3 == 0, 100.0, 0.0)
    q = normal(rng, 5, 20)
    q[2] = 0.0
    q[2, 0] = 1.0
    assert search(x, q, 5).ids[2].tolist() == [0, 3, 6, 9, 12]
    assert ran(runtime, "dense_score") == 1
    assert rescored_rows() == 5 * 37 + 300


def test_short_lists_are_scored_without_a_matrix_product(runtime: Any) -> None:
    rng = np.random.default_rng(14)
    hf.dense_topk(normal(rng, 3, 12), hf.Corpus.from_array(normal(rng, 400, 12)), 2, allow=np.arange(0, 400, 10))
    assert rescored_rows() == 3 * 40
    assert ran(runtime, "dense_select") == 0


@pytest.mark.parametrize("allow", ["mask", "ids", "masks", "lists"])
def test_filters_of_queries_that_the_bound_cannot_prove(
    runtime: Any, use_sizes: Callable[[Sizes], None], allow: str
) -> None:
    use_sizes(SMALL)
    rng = np.random.default_rng(13)
    x, q = adversarial_rows("all equal rows", rng, 220, 20), normal(rng, 5, 20)
    hf.dense_topk(q, hf.Corpus.from_array(x), 5, allow=filters_of(rng.random((5, x.shape[0])) < 0.7)[allow])
    assert ran(runtime, "dense_select") > 0
    if allow in ("mask", "masks"):
        assert ran(runtime, "dense_score") > 0
    else:  # more often than for the candidates of both batches
        assert ran(runtime, "dense_rescore") > 2


# ---- Products of float32 --------------------------------------------------------------------------------------------


def move_products(runtime: Any, monkeypatch: pytest.MonkeyPatch, error: NDArray[np.float64] | float) -> None:
    """Make each matrix product wrong by ``error`` times its bound."""

    def multiply(a: NDArray[np.float32], b: NDArray[np.float32], out: NDArray[np.float32]) -> None:
        wide, rows, unit = a.astype(np.float64), b.astype(np.float64), 2.0**-24
        norms = np.linalg.norm(wide, axis=1)[:, None] * np.linalg.norm(rows, axis=1)
        gamma = a.shape[1] * unit / (1 - a.shape[1] * unit)
        out[...] = wide @ rows.T + error * (gamma - unit) * norms  # a unit is left to the rounding here

    monkeypatch.setattr(runtime, "_multiply", multiply)


@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("spread", [1e-6, 1e-5, 1e-4, 1e-2])
def test_rows_nearer_to_each_other_than_the_bound_in_any_order_of_sums(
    runtime: Any, monkeypatch: pytest.MonkeyPatch, use_sizes: Callable[[Sizes], None], metric: str, spread: float
) -> None:
    """The product is off by as much as any order of sums could be: against the best rows, then by chance."""
    use_sizes(WHOLE)
    rng = np.random.default_rng(10)
    x = (normal(rng, 1, 64) + normal(rng, 300, 64) * np.float32(spread)).astype(np.float32)
    q = np.concatenate([x[:1], normal(rng, 2, 64)])
    best = search(x, q, 5, metric).ids
    worst = np.ones((3, 300))
    worst[np.arange(3)[:, None], best] = -1.0
    alone = np.minimum(worst, 0.0)  # the best rows fall, and nothing else rises to warn of it
    for error in (worst, alone, rng.choice([-1.0, 1.0], (3, 300)), rng.uniform(-1, 1, (3, 300))):
        move_products(runtime, monkeypatch, error)
        search(x, q, 5, metric)


def test_products_below_the_least_float32_are_in_the_bound(
    runtime: Any, monkeypatch: pytest.MonkeyPatch, use_sizes: Callable[[Sizes], None]
) -> None:
    """In units of the least product: rows of three, then many of two, then five of four that round up to one."""
    use_sizes(WHOLE)
    move_products(runtime, monkeypatch, 0.0)
    x = np.zeros((300, 64), np.float32)
    x[:5, :3], x[5:, :2], x[-5:, :4] = 1.0, 1.0, 0.51
    q = np.stack([np.full(64, 2.0**-74), np.eye(64)[0]])
    search(x * np.float32(2.0**-75), q.astype(np.float32), 5)


def test_a_product_beyond_the_bound_would_be_seen(
    runtime: Any, monkeypatch: pytest.MonkeyPatch, use_sizes: Callable[[Sizes], None]
) -> None:
    """The test above can fail: errors of many times the bound lose rows."""
    use_sizes(WHOLE)
    rng = np.random.default_rng(11)
    q, x = normal(rng, 1, 64), normal(rng, 300, 64)
    error = np.zeros((1, 300))
    error[0, search(x, q, 5).ids[0]] = -1e6
    move_products(runtime, monkeypatch, error)
    with pytest.raises(AssertionError, match="dense_topk on simt"):
        search(x, q, 5)


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
def test_products_are_within_their_bound(either: Any, storage: str, mma: str, kind: str) -> None:
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


@of_every_unit
def test_rows_nearer_to_each_other_than_units_tell_apart(
    either: Any, use_sizes: Callable[[Sizes], None], storage: str, mma: str
) -> None:
    """Products of rows bring them out of order; the bound widens until the right ones are there."""
    use_sizes(WHOLE)
    rng = np.random.default_rng(21)
    either.mma = mma
    ulp = 2.0**-11 if storage == "float16" else 2.0**-8
    for dim, metric in itertools.product((64, 200), ("ip", "cosine")) if FULL else ((64, "ip"), (200, "cosine")):
        x = np.repeat(rng.standard_normal((1, dim)), 300, axis=0)  # rows that differ in a few of their last bits
        chosen = rng.random(x.shape) < 0.05
        x = np.where(chosen, x * (1 + ulp * rng.integers(-2, 3, x.shape)), x).astype(np.float32)
        q = np.concatenate([x[:1], x[1:2] * np.float32(1e-15), normal(rng, 3, dim)])
        search(x, q, 5, metric, storage)
    assert ran(either, "dense_product_") > 0


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


@pytest.mark.parametrize(
    ("make", "storage", "step", "last_bit"),
    [
        (rows_that_steps_lose, "float16", 2.0**-24, 2.0**-11),
        (rows_that_steps_lose, "bfloat16", 2.0**-24, 2.0**-11),
        (rows_that_parts_lose, "bfloat16", 2.0**-24, 2.0**-12),
    ],
)
def test_what_steps_and_parts_lose_is_in_the_bound(
    runtime: Any,
    monkeypatch: pytest.MonkeyPatch,
    use_sizes: Callable[[Sizes], None],
    make: Callable[[], Any],
    storage: Any,
    step: float,
    last_bit: float,
) -> None:
    """The test sees a smaller bound: then the best row is lost, and seems proven to be no hit."""
    (x, q), runtime.mma = make(), "lower" if make is rows_that_steps_lose else "h100"
    use_sizes(Sizes(scored_at_once=0))
    assert search(x, q, 1, storage=storage).ids.tolist() == [[61]]
    dense.dot_bound.cache_clear()
    monkeypatch.setattr(dense, "STEP_ERROR", step)
    if make is rows_that_parts_lose:  # not in the steps' part of the bound
        assert search(x, q, 1, storage=storage).ids.tolist() == [[61]]
        dense.dot_bound.cache_clear()
    monkeypatch.setattr(dense, "LAST_BIT", {"f16": last_bit, "bf16": last_bit})
    with pytest.raises(AssertionError, match="dense_topk on simt"):
        search(x, q, 1, storage=storage)


# ---- Residence ------------------------------------------------------------------------------------------------------


def test_a_corpus_is_uploaded_once_for_each_device(runtime: Any) -> None:
    rng = np.random.default_rng(15)
    corpus, q = hf.Corpus.from_array(normal(rng, 50, 8)), normal(rng, 1, 8)
    expected = hf.dense_topk(q, corpus, 3, backend="cpu")
    with variants.registered("other", "plain", sources=[CUDA / "topk.cu", CUDA / "dense_topk.cu"]) as other:
        for backend in (SIMT, "other", SIMT, "other"):
            assert_hits_equal(hf.dense_topk(q, corpus, 3, backend=backend), expected)
        held = [entry for entry in corpus.derived.values() if hasattr(entry, "runtime")]
        assert [entry.runtime for entry in held] == [runtime, other]
        assert ran(runtime, "dense_norms") == ran(other, "dense_norms") == 1
