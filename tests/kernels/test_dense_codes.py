"""Dense search by the codes of a corpus on a device: what it launches and keeps, and that no hit is lost.

The answers are the CPU's, which the fixture ``runtime`` checks in every call.
"""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import ADVERSARIAL_ROWS, drawn_vectors, filters_of
from hypothesis import given
from hypothesis import strategies as st
from kernels.test_dense_device import ran, rescored_rows, search
from kernels.test_dense_topk import PRECISIONS, adversarial_searches, normal
from variants import SIMT, use_sizes

#: Every corpus has codes; a list has room for 256 rows, so k is at most 16.
CODED = {"coded_bytes": 0, "scanned_rows": 256}
ROOM, MOST_K = 256, 16


@pytest.fixture(autouse=True)
def coded(runtime: Any) -> None:
    use_sizes(**CODED)


@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("storage", PRECISIONS)
@pytest.mark.parametrize("dim", [9, 33, 64, 100, 200])
def test_rows_of_every_type_and_dimension(runtime: Any, dim: int, storage: str, metric: str) -> None:
    """Blocks of 256 rows, 64 dimensions and 4, 16 or 32 queries, whole and not."""
    rng = np.random.default_rng(dim)
    for rows, batch in ((700, 1), (512, 5), (257, 33), (15, 4)):
        search(normal(rng, rows, dim), normal(rng, batch, dim), 5, metric, storage)
    assert ran(runtime, "dense_product") == ran(runtime, "dense_score") == 0
    assert [ran(runtime, f"dense_scan_q{count}") > 0 for count in (4, 16, 32)] == [True] * 3


@pytest.mark.parametrize("name", ADVERSARIAL_ROWS)
def test_adversarial_rows(runtime: Any, name: str) -> None:
    for metric, rows, queries in adversarial_searches(name, 600):
        for k in (1, 4, MOST_K):
            search(rows, queries, k, metric, "bfloat16" if k == 4 else "float32")
    assert ran(runtime, "dense_scan") > 0


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_sorted_rows_need_no_more_room_than_others(runtime: Any, order: str) -> None:
    """Every row is better than those before it: the sample is spread over the corpus."""
    rng = np.random.default_rng(4)
    x, q = normal(rng, 4000, 16), normal(rng, 1, 16)
    by_score = np.argsort(x @ q[0])
    use_sizes(**CODED | {"scanned_rows": 1024})
    search(x[by_score if order == "ascending" else by_score[::-1]], q, 16)
    assert 16 <= rescored_rows() < 100
    assert ran(runtime, "dense_score") == 0


def test_a_list_without_room_is_searched_by_every_row(runtime: Any) -> None:
    """More rows tie at the cut of one query than its list has room for."""
    rng = np.random.default_rng(5)
    x = normal(rng, 700, 16)
    x[:, 0] = np.where(np.arange(700) % 2 == 0, 100.0, 0.0)
    q = normal(rng, 3, 16)
    q[1] = np.eye(16)[0]
    assert search(x, q, 4).ids[1].tolist() == [0, 2, 4, 6]
    assert ran(runtime, "dense_score") == 1
    assert 700 + 2 * 4 <= rescored_rows() < 700 + 2 * ROOM


def test_ties_that_a_list_has_room_for(runtime: Any) -> None:
    """Whatever their order in the list."""
    rng = np.random.default_rng(6)
    x = normal(rng, 900, 16)
    tied = rng.permutation(900)[:100]
    x[tied] = 3.0
    assert search(x, np.ones((1, 16), np.float32), 7).ids[0].tolist() == np.sort(tied)[:7].tolist()
    assert rescored_rows() == 100
    assert ran(runtime, "dense_score") == 0


def test_few_rows_are_scored_on_ordinary_data(runtime: Any) -> None:
    rng = np.random.default_rng(7)
    search(normal(rng, 3000, 64), normal(rng, 5, 64), 10)
    assert 5 * 10 <= rescored_rows() <= 5 * 30


@pytest.mark.parametrize("k", [1, 2, 15, 16, 17, 30])
def test_more_hits_than_a_list_has_room_for_are_found_by_products(runtime: Any, k: int) -> None:
    rng = np.random.default_rng(k)
    search(normal(rng, 600, 8), normal(rng, 5, 8), k)
    assert (ran(runtime, "dense_scan") > 0) == (k <= MOST_K)
    assert (ran(runtime, "dense_product") > 0) == (k > MOST_K)


def test_the_sample_grows_as_fast_as_lists_have_room(runtime: Any) -> None:
    rng = np.random.default_rng(8)
    x, q = normal(rng, 2100, 8), normal(rng, 2, 8)  # 66 parts of 32 rows, eight in a block
    for k, grids in ((1, [1, 8]), (8, [1, 3, 5]), (16, [1, 1, 2, 4, 1])):
        runtime.launches.clear()
        search(x, q, k)
        assert [grid for name, grid, _ in runtime.launches if name == "dense_scan_q4"] == grids
        assert ran(runtime, "dense_raise") == len(grids)


@pytest.mark.parametrize("share", [0.0, 0.004, 0.02, 0.3, 0.9])
@pytest.mark.parametrize("allow", ["mask", "masks", "ids", "lists"])
def test_filters(runtime: Any, allow: str, share: float) -> None:
    """Fewer rows than hits, fewer than raise a threshold in the sample, and many."""
    rng = np.random.default_rng(9)
    x, q = normal(rng, 1100, 20), normal(rng, 5, 20)
    hf.dense_topk(q, hf.Corpus.from_array(x), 5, allow=filters_of(rng.random((5, 1100)) < share)[allow])
    assert (ran(runtime, "dense_scan") > 0) == (share >= 0.3 or "mask" in allow)  # short lists name their rows


def test_rows_of_a_mask_that_are_not_in_the_sample(runtime: Any) -> None:
    """The list of a query has no threshold until there are k rows in it, and then one that rules them out."""
    rng = np.random.default_rng(10)
    x, q = normal(rng, 1300, 16), normal(rng, 2, 16)
    for begin in range(0, 1300, 100):
        hf.dense_topk(q, hf.Corpus.from_array(x), 3, allow=np.arange(begin, begin + 100)[None].repeat(2, 0).tolist())
        mask = np.zeros(1300, bool)
        mask[begin : begin + 100] = True
        hf.dense_topk(q, hf.Corpus.from_array(x), 3, allow=mask)
    assert ran(runtime, "dense_scan") > 0


@pytest.mark.parametrize("metric", ["ip", "cosine"])
def test_queries_that_cannot_be_searched(runtime: Any, metric: Any) -> None:
    rng = np.random.default_rng(11)
    corpus = hf.Corpus.from_array(normal(rng, 300, 8), metric=metric)
    for wrong in (np.nan, np.inf, 1e30):
        q = normal(rng, 3, 8)
        q[1, 3] = wrong
        with pytest.raises(hf.errors.InputError, match=r"queries\[1\]"):
            hf.dense_topk(q, corpus, 2)


@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-22, 1e-18, 1e17])
def test_norms_at_the_ends_of_float32(runtime: Any, scale: float) -> None:
    rng = np.random.default_rng(12)
    for metric in ("ip", "cosine") if scale >= 1e-18 else ("ip",):
        x = (normal(rng, 500, 20) * np.float32(scale)).astype(np.float32)
        search(x, normal(rng, 2, 20), 6, metric)
        search(normal(rng, 500, 20), (normal(rng, 2, 20) * np.float32(scale)).astype(np.float32), 6, metric)
        search(x, (normal(rng, 2, 20) * np.float32(scale)).astype(np.float32), 6, metric)


def test_codes_without_error_order_rows_as_scores_do(runtime: Any) -> None:
    """Constant rows: the bounds of their scores are those of rounding alone."""
    rng = np.random.default_rng(13)
    level = (1.0 + rng.permutation(600) * 2.0**-22).astype(np.float32)
    for metric in ("ip", "cosine"):
        search(np.repeat(level[:, None], 20, axis=1), np.ones((1, 20), np.float32), 9, metric)


def test_a_corpus_has_codes_if_it_is_large_enough_and_there_is_room(
    runtime: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(14)
    x, q = normal(rng, 300, 16), normal(rng, 5, 16)
    for bytes_from, is_coded in ((300 * 64, True), (300 * 64 + 1, False)):
        use_sizes(coded_bytes=bytes_from)
        runtime.launches.clear()
        search(x, q, 3)
        assert (ran(runtime, "dense_encode_f32") > 0) == (ran(runtime, "dense_scan") > 0) == is_coded


def test_one_byte_a_dimension_and_sixteen_a_row(runtime: Any) -> None:
    """Besides the vectors; of which four are the norms. Rows are padded to tiles, dimensions to 64."""
    x = np.ones((512, 128), np.float32)
    sizes = []
    for bytes_from in (0, 1 << 40):
        use_sizes(coded_bytes=bytes_from)
        before = runtime.device.used_bytes()
        corpus = hf.Corpus.from_array(x)
        hf.dense_topk(x[:1], corpus, 1)
        sizes.append(runtime.device.used_bytes() - before)
        hf.free_device_memory(corpus)
    assert sizes[0] - sizes[1] == 512 * (128 + 12)


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.sampled_from([1, 16, 17, 255, 257, 600, 1025]),
    dim=st.integers(1, 140),
    batch=st.integers(1, 37),
    k=st.integers(1, MOST_K),
    metric=st.sampled_from(["ip", "cosine"]),
    storage=st.sampled_from(PRECISIONS),
    grid=st.sampled_from([0, 1, 3]),
    spread=st.sampled_from([0.0, 2.0, 12.0]),
    allow=st.sampled_from(["nothing", "mask", "masks", "ids", "lists"]),
    share=st.sampled_from([0.01, 0.5, 0.95]),
)
def test_drawn_corpora(
    runtime: Any,
    seed: int,
    count: int,
    dim: int,
    batch: int,
    k: int,
    metric: Any,
    storage: Any,
    grid: int,
    spread: float,
    allow: str,
    share: float,
) -> None:
    """Rows and queries on a grid (ties), with outliers, with norms that spread, with every kind of filter."""
    rng = np.random.default_rng(seed)
    x, q = drawn_vectors(rng, count, dim, batch, metric, storage, grid, spread)
    x[rng.random(x.shape) < 0.02] *= 50.0
    corpus = hf.Corpus.from_array(x, metric=metric, storage=storage)
    hf.dense_topk(q.astype(np.float32), corpus, k, allow=filters_of(rng.random((batch, count)) < share)[allow])


@pytest.mark.every_order
def test_orders_of_threads(runtime: Any) -> None:
    """Two parts of a sample, two steps of dimensions, whole and not, on the fewest threads."""
    use_sizes(coded_bytes=0, scanned_rows=64)
    rng = np.random.default_rng(15)
    for storage in PRECISIONS:
        search(normal(rng, 120, 70), normal(rng, 1, 70), 2, "cosine", storage)
    search(normal(rng, 40, 64), normal(rng, 5, 64), 1)
    assert [ran(runtime, f"dense_scan_q{count}") for count in (4, 16)] == [6, 1]


def test_a_recording_scans_too(runtime: Any) -> None:
    rng = np.random.default_rng(16)
    corpus = hf.Corpus.from_array(normal(rng, 600, 24))
    captured = hf.capture(lambda x: {"hits": hf.dense_topk(x, corpus, 5)}, [((24,), "float32")], backend=SIMT)
    for batch in (1, 6, 40):
        q = normal(rng, batch, 24)
        made, expected = captured(q)["hits"], hf.dense_topk(q, corpus, 5)
        np.testing.assert_array_equal(made.ids, expected.ids)
        np.testing.assert_array_equal(made.scores, expected.scores)
    assert ran(runtime, "dense_scan") > 0
