"""How a device searches: what it multiplies, selects and scores, and that its products are within their bound.

The answers are the CPU's, which the fixture ``runtime`` checks in every call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
import variants
from cases import adversarial_rows, filters_of
from compare import assert_hits_equal
from emulated_device import OTHER, SimtRuntime
from hopfuse._native import DeviceCorpus
from kernels.moved_products import copy_kernels, move_products
from kernels.products import Bound
from kernels.test_dense_topk import SMALL, UNITS, normal
from numpy.typing import NDArray
from tiers import FULL
from variants import SIMT, use_sizes

#: All rows in one tile, and products for few queries too.
WHOLE = {"tile_scores": 1, "tile_rows": 300, "scored_at_once": 0}
#: Capability, storage and matrix unit; with capability 7.5, bfloat16 numbers are multiplied by no unit.
UNIT_CASES = [
    *((90, storage, mma) for storage in ("float16", "bfloat16") for mma in UNITS),
    *((75, "float16", mma) for mma in UNITS),
    (75, "bfloat16", UNITS[0]),
]
of_every_unit = pytest.mark.parametrize(("either", "storage", "mma"), UNIT_CASES, indirect=["either"])


@pytest.fixture
def either(request: pytest.FixtureRequest, runtime: Any) -> Iterator[Any]:
    """Compute capability 9.0, or 7.5: float16 numbers in products of depth 8, bfloat16 ones in float32 arithmetic."""
    if request.param == 90:
        yield runtime
        return
    with variants.registered(SIMT, ordinal=OTHER, capability=75) as old:
        yield old


def ran(runtime: SimtRuntime, kernel: str) -> int:
    return sum(name.startswith(kernel) for name, _, _ in runtime.launches)


def search(x: NDArray[Any], q: NDArray[np.float32], k: int, metric: Any = "ip", storage: Any = "float32") -> hf.Hits:
    return hf.dense_topk(q, hf.Corpus.from_array(x, metric=metric, storage=storage), k)


def rescored_rows() -> int:
    return int(hf.backend_info()["backends"][SIMT]["last_calls"]["dense_topk_f32"]["rescored_rows"])


@pytest.mark.parametrize("either", [90, 75], indirect=True)
@pytest.mark.parametrize("storage", ["float32", "float16", "bfloat16"])
def test_a_corpus_is_multiplied_as_it_is_stored(either: Any, storage: str) -> None:
    """Blocks of 128 rows, 32 queries and 32 dimensions, whole and not; up to four queries are scored canonically."""
    rng = np.random.default_rng(3)
    use_sizes(tile_scores=1, tile_rows=140, split_rows=7, split_blocks=9)
    for rows, dim, batch in ((230, 20, 5), (129, 33, 33), (128, 32, 32), (300, 72, 9), (40, 1, 6), (300, 70, 4)):
        either.launches.clear()
        search(normal(rng, rows, dim), normal(rng, batch, dim), 4, storage=storage)
        assert ran(either, "dense_product_") == (-(-rows // 140) if batch > 4 else 0)  # few are scored at once


def test_nothing_to_search_looks_at_queries_alone(runtime: Any) -> None:
    empty, full = np.zeros((0, 5), np.float32), np.ones((40, 5), np.float32)
    for x, batch, k, allow in ((empty, 2, 3, None), (full, 0, 3, None), (full, 2, 0, None), (full, 2, 3, [[], []])):
        hf.dense_topk(np.ones((batch, 5), np.float32), hf.Corpus.from_array(x), k, allow=allow)
        assert rescored_rows() == 0
    assert ran(runtime, "dense_queries_f32") == 3
    assert {name for name, _, _ in runtime.launches} == {"dense_queries_f32", "dense_norms_f32"}


def test_ordinary_rows_are_proven_without_scoring_them_all(runtime: Any) -> None:
    rng = np.random.default_rng(8)
    search(normal(rng, 500, 20), normal(rng, 5, 20), 5)
    assert rescored_rows() == 5 * (5 + 32)
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


@pytest.mark.parametrize("batch", [1, 4])
def test_few_queries_are_scored_at_once(runtime: Any, batch: int) -> None:
    """Rows are then read once, and a product would take as long."""
    rng = np.random.default_rng(16)
    search(normal(rng, 500, 20), normal(rng, batch, 20), 5)
    assert rescored_rows() == 500 * batch
    assert ran(runtime, "dense_product") == 0
    assert ran(runtime, "dense_score") == 1


@pytest.mark.parametrize(("multiprocessors", "blocks"), [(2, 16), (80, 640), (264, 1320)])
def test_a_tile_is_split_among_eight_blocks_for_each_multiprocessor(
    runtime: Any, multiprocessors: int, blocks: int
) -> None:
    """At most as many as the tile has parts of ``split_rows``, and ``most_splits`` for a query."""
    rng = np.random.default_rng(17)
    with variants.registered(SIMT, ordinal=OTHER, multiprocessors=multiprocessors):
        use_sizes(split_rows=2, scored_at_once=0)
        search(normal(rng, 600, 8), normal(rng, 5, 8), 5)
    (found,) = (grid for name, grid, _ in runtime.launches if name == "dense_select_f32")
    assert found == blocks // 5 * 5


def test_short_lists_are_scored_without_a_matrix_product(runtime: Any) -> None:
    rng = np.random.default_rng(14)
    hf.dense_topk(normal(rng, 5, 12), hf.Corpus.from_array(normal(rng, 400, 12)), 2, allow=np.arange(0, 400, 10))
    assert rescored_rows() == 5 * 40
    assert ran(runtime, "dense_select") == 0


@pytest.mark.parametrize("allow", ["mask", "ids", "masks", "lists"])
def test_filters_of_queries_that_the_bound_cannot_prove(runtime: Any, allow: str) -> None:
    use_sizes(**SMALL)
    rng = np.random.default_rng(13)
    x, q = adversarial_rows("all equal rows", rng, 220, 20), normal(rng, 5, 20)
    hf.dense_topk(q, hf.Corpus.from_array(x), 5, allow=filters_of(rng.random((5, x.shape[0])) < 0.7)[allow])
    assert ran(runtime, "dense_select") > 0
    if allow in ("mask", "masks"):
        assert ran(runtime, "dense_score") > 0
    else:  # more often than for the candidates of both batches
        assert ran(runtime, "dense_rescore") > 2


# ---- Products of float32 rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [pytest.param("ip", marks=pytest.mark.full), "cosine"])
def test_rows_nearer_to_each_other_than_the_bound_in_any_order_of_sums(
    runtime: Any, tmp_path: Path, metric: str
) -> None:
    """Products are off by as much as any order of sums could be: against the best rows, then by chance."""
    alone = "is_best ? -1.0 : 0.0"  # nothing rises to warn of those that fall
    choices = ["is_best ? -1.0 : 1.0", alone, "drawn < 0.0 ? -1.0 : 1.0", "drawn"]
    error = " : ".join(f"number % 4 == {at} ? ({choice})" for at, choice in enumerate(choices)) + " : 0.0"
    rng = np.random.default_rng(10)
    folder = move_products(tmp_path, error, cosine=metric == "cosine")
    with variants.registered(SIMT, ordinal=OTHER, folder=folder):
        use_sizes(**WHOLE)
        for spread in (1e-6, 1e-5, 1e-4, 1e-2):
            x = (normal(rng, 1, 64) + normal(rng, 300, 64) * np.float32(spread)).astype(np.float32)
            q = np.concatenate([x[:1], normal(rng, 2, 64)])
            search(x, np.repeat(q, 4, axis=0), 5, metric)
    assert ran(runtime, "dense_product_f32") == 4


def test_products_below_the_least_float32_are_in_the_bound(runtime: Any, tmp_path: Path) -> None:
    """In units of the least product: rows of three, then many of two, then five of four that round up to one."""
    x = np.zeros((300, 64), np.float32)
    x[:5, :3], x[5:, :2], x[-5:, :4] = 1.0, 1.0, 0.51
    q = np.stack([np.full(64, 2.0**-74), np.eye(64)[0]])
    with variants.registered(SIMT, ordinal=OTHER, folder=move_products(tmp_path, "0.0")):
        use_sizes(**WHOLE)
        search(x * np.float32(2.0**-75), q.astype(np.float32), 5)
    assert ran(runtime, "dense_product_f32") == 1


@pytest.mark.full
def test_a_product_beyond_the_bound_would_be_seen(runtime: Any, tmp_path: Path) -> None:
    """The test above can fail: errors of many times the bound lose rows."""
    rng = np.random.default_rng(11)
    folder = move_products(tmp_path, "is_best ? -1e6 : 0.0")
    with variants.registered(SIMT, ordinal=OTHER, folder=folder):
        use_sizes(**WHOLE)
        with pytest.raises(AssertionError, match="DenseCall on simt"):
            search(normal(rng, 300, 64), normal(rng, 1, 64), 5)


# ---- Products of 16-bit rows ----------------------------------------------------------------------------------------


@of_every_unit
def test_rows_nearer_to_each_other_than_units_tell_apart(either: Any, storage: str, mma: str) -> None:
    """Products of rows bring them out of order; the bound widens until the right ones are there."""
    use_sizes(**WHOLE)
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
        pytest.param(rows_that_steps_lose, "bfloat16", 2.0**-24, 2.0**-11, marks=pytest.mark.full),
        (rows_that_parts_lose, "bfloat16", 2.0**-24, 2.0**-12),
    ],
)
def test_what_steps_and_parts_lose_is_in_the_bound(
    runtime: Any, tmp_path: Path, make: Callable[[], Any], storage: Any, step: float, last_bit: float
) -> None:
    """The test sees a smaller bound: then the best row is lost, and seems proven to be no hit."""
    x, q = make()
    mma = "lower" if make is rows_that_steps_lose else "h100"
    runtime.mma = mma
    use_sizes(scored_at_once=0)
    assert search(x, q, 1, storage=storage).ids.tolist() == [[61]]
    parts = make is rows_that_parts_lose  # not in the steps' part of the bound
    smaller = Bound.of(x.shape[1], storage, step, None if parts else last_bit)
    with variants.registered(SIMT, ordinal=OTHER, folder=with_slack(tmp_path / "steps", smaller), mma=mma):
        use_sizes(scored_at_once=0)
        if parts:
            assert search(x, q, 1, storage=storage).ids.tolist() == [[61]]
        else:
            with pytest.raises(AssertionError, match="DenseCall on simt"):
                search(x, q, 1, storage=storage)
    if parts:
        smaller = Bound.of(x.shape[1], storage, step, last_bit)
        with variants.registered(SIMT, ordinal=OTHER, folder=with_slack(tmp_path / "parts", smaller), mma=mma):
            use_sizes(scored_at_once=0)
            with pytest.raises(AssertionError, match="DenseCall on simt"):
                search(x, q, 1, storage=storage)


def with_slack(folder: Path, bound: Bound) -> Path:
    """Copy the kernels to a folder, with the slack of another bound; return the folder."""
    copy_kernels(folder)
    source = folder / "topk.cu"
    text = source.read_text(encoding="utf-8")
    assert text.count("bound.slack *") == 1
    source.write_text(text.replace("bound.slack *", f"{bound.slack!r}f *"), encoding="utf-8")
    return folder


# ---- Residence ------------------------------------------------------------------------------------------------------


def test_a_corpus_is_uploaded_once_for_each_device(runtime: Any) -> None:
    rng = np.random.default_rng(15)
    corpus, q = hf.Corpus.from_array(normal(rng, 50, 8)), normal(rng, 1, 8)
    expected = hf.dense_topk(q, corpus, 3, backend="cpu")
    with variants.registered("other", ordinal=OTHER) as other:
        for backend in (SIMT, "other", SIMT, "other"):
            assert_hits_equal(hf.dense_topk(q, corpus, 3, backend=backend), expected)
        held = [key for key, entry in corpus.derived.items() if isinstance(entry, DeviceCorpus)]
        assert held == [runtime.key, other.key]
    assert ran(runtime, "dense_norms") == 2
