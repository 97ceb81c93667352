"""project and project_topk on every kernel variant: the float64 oracle's answers, the contract's bits, recordings."""

from __future__ import annotations

import os
from typing import Any

import hopfuse as hf
import numpy as np
import pytest
from cases import random_graph, random_incidence
from compare import assert_bitwise, assert_hits_equal
from devices import on_device, on_host
from hopfuse import reference
from hopfuse._native import DeviceArray
from hopfuse.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from kernels.canonical_project import best32, project32
from numpy.typing import NDArray
from refusals import refused
from variants import SIMT, use, use_sizes

UNIT, LEAST = 2.0**-24, 2.0**-149
LARGEST = np.finfo(np.float32).max
#: On a device, several tiles, splits and batches where the usual sizes have one; lists of more than 16 are sorted.
SMALL = {
    "tile_scores": 1, "tile_rows": 64, "batch": 3, "split_rows": 16, "split_blocks": 8, "widest": 16, "sort_chunk": 64,
    "sort_keys": 512,
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_sizes(request: pytest.FixtureRequest) -> None:
    for fixture in {"runtime", "variant"} & {*request.fixturenames}:
        request.getfixturevalue(fixture)  # which makes sizes as usual
        use_sizes(**SMALL)


def drawn_scores(rng: np.random.Generator, batch: int, columns: int, *, grid: int = 0) -> NDArray[np.float32]:
    """Of both signs; on a grid they tie."""
    scores = rng.standard_normal((batch, columns))
    return (np.round(scores * grid) / grid if grid else scores).astype(np.float32)


def check(scores: Any, incidence: hf.Incidence, k: int = 5, *, scale: Any = None, **how: Any) -> NDArray[np.float32]:
    """All scores and the best of them: the contract's bits, and within its rounding of the oracle."""
    found = hf.project(scores, incidence, scale=scale, **how)
    values = np.atleast_2d(np.asarray(scores, np.float32))
    factors = None if scale is None else np.asarray(scale, np.float32)
    assert_bitwise(found, project32(values, incidence, factors), "project")
    exact = reference.project(values, incidence, scale=factors)
    terms = np.diff(incidence.indptr) + 2
    moved = reference.project(np.abs(values), incidence, scale=factors)
    lost = LEAST * terms * (1.0 if factors is None else 1.0 + factors.astype(np.float64))
    bound = 1.01 * terms * UNIT * moved + lost
    assert (np.abs(found.astype(np.float64) - exact) <= bound).all()
    hits = hf.project_topk(scores, incidence, k, scale=scale, **how)
    assert hits.shape == (values.shape[0], min(k, incidence.num_rows))
    assert_hits_equal(hits, best32(found, k))
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("batch", [0, 1, 3, 4, 7, 8, 15, 16, 17, 40])
def test_every_batch_of_every_kind(variant: str, weighted: bool, scaled: bool, batch: int) -> None:
    rng = np.random.default_rng(batch)
    incidence = random_incidence(rng, 75, 90, 400, weighted=weighted)
    scale = rng.random(75).astype(np.float32) if scaled else None
    scores = drawn_scores(rng, batch, 90)
    for k in (0, 1, 9, 80):
        check(scores, incidence, k, scale=scale)


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(0, 40),
    columns=st.integers(0, 40),
    entries=st.integers(0, 200),
    batch=st.integers(0, 20),
    weighted=st.booleans(),
    scaled=st.booleans(),
    grid=st.sampled_from([0, 1, 4]),
    k=st.integers(0, 45),
)
def test_drawn_calls(
    variant: str,
    seed: int,
    rows: int,
    columns: int,
    entries: int,
    batch: int,
    weighted: bool,
    scaled: bool,
    grid: int,
    k: int,
) -> None:
    rng = np.random.default_rng(seed)
    incidence = random_incidence(rng, rows, columns, entries, weighted=weighted)
    scale = rng.integers(0, 3, rows).astype(np.float32) if scaled else None
    check(drawn_scores(rng, batch, columns, grid=grid), incidence, k, scale=scale)


@pytest.mark.every_order
def test_orders_of_threads(variant: str) -> None:
    """Few threads: a sanitizer takes a millisecond for each."""
    rng = np.random.default_rng(9)
    incidence = random_incidence(rng, 70, 40, 200, weighted=True, hub=5)
    for k in (4, 70):
        check(drawn_scores(rng, 4, 40, grid=8), incidence, k, scale=np.linspace(0.5, 2, 70))


# ---- Adversarial input ----------------------------------------------------------------------------------------------


def test_known_numbers(variant: str) -> None:
    incidence = hf.Incidence.from_pairs([0, 0, 2, 2], [3, 1, 0, 3], [2.0, 0.5, 1.0, 0.25], num_rows=3, num_columns=4)
    found = check([1.0, 2.0, 4.0, 8.0], incidence, scale=[1.0, 7.0, 0.5])
    assert found.tolist() == [[17.0, 0.0, 1.5]]
    assert hf.project_topk([1.0, 2.0, 4.0, 8.0], incidence, 3, scale=[1, 7, 0.5]).row(0) == [(0, 17.0), (2, 1.5)]
    mean = incidence.normalised()
    assert check([1.0, 2.0, 4.0, 8.0], mean)[0, 0] == np.float32(0.8) * 8 + np.float32(0.2) * 2


def test_weights_of_one_equal_no_weights(variant: str) -> None:
    rng = np.random.default_rng(1)
    plain = random_incidence(rng, 60, 70, 300)
    ones = hf.Incidence(plain.indptr, plain.indices, np.ones(plain.indices.size, np.float32), num_columns=70)
    scores = drawn_scores(rng, 19, 70)
    scores[:, ::7] = -0.0
    assert_bitwise(check(scores, ones), check(scores, plain), "weights of 1")


@pytest.mark.parametrize(("rows", "columns"), [(0, 5), (5, 0), (0, 0), (40, 3)])
@pytest.mark.parametrize("batch", [0, 1, 17])
def test_nothing_to_add(variant: str, rows: int, columns: int, batch: int) -> None:
    empty = hf.Incidence.from_pairs([], [], num_rows=rows, num_columns=columns)
    found = check(np.ones((batch, columns), np.float32), empty, 3)
    assert found.shape == (batch, rows)
    assert not found.any()
    assert (hf.project_topk(np.ones((batch, columns)), empty, 3).counts == 0).all()


@pytest.mark.parametrize("batch", [1, 9, 18])
def test_rows_of_all_columns_beside_empty_ones(variant: str, batch: int) -> None:
    rng = np.random.default_rng(2)
    length = np.array([0, 500, 0, 1, 500, 0])
    indices = np.concatenate([np.arange(n, dtype=np.int32) for n in length])
    indptr = np.concatenate([[0], np.cumsum(length)])
    incidence = hf.Incidence(indptr, indices, rng.random(indices.size).astype(np.float32), num_columns=500)
    check(drawn_scores(rng, batch, 500), incidence, threads=3)


@pytest.mark.parametrize("batch", [1, 16])
def test_denormal_and_huge_numbers(variant: str, batch: int) -> None:
    rng = np.random.default_rng(3)
    levels = np.array([0.0, -0.0, LEAST, -LEAST, 3 * LEAST, 2.0**-126, -(2.0**-127), 1.0, -1.0], np.float32)
    incidence = random_incidence(rng, 50, 40, 300, weighted=True)
    scale = rng.choice(np.array([0.0, LEAST, 2.0**-126, 1.0, 2.0**100], np.float32), 50)
    check(rng.choice(levels, (batch, 40)), incidence, 50, scale=scale)
    large = hf.Incidence.from_pairs([0, 0, 0, 1], [0, 1, 2, 1], [1.0, 1.0, 1.0, 0.5], num_rows=2, num_columns=3)
    scores = np.tile(np.array([LARGEST, -LARGEST, LARGEST], np.float32), (batch, 1))
    assert check(scores, large).tolist() == [[float(LARGEST), -float(LARGEST) / 2]] * batch


@pytest.mark.parametrize("batch", [1, 16, 33])
def test_ties_go_to_the_lower_row(variant: str, batch: int) -> None:
    """More rows that tie than the buffers of a selection hold."""
    rows, columns = 900, 6
    pairs = np.arange(rows)
    incidence = hf.Incidence.from_pairs(pairs, pairs % columns, num_rows=rows, num_columns=columns)
    scores = np.tile(np.array([1.0, 2.0, 0.0, 2.0, -1.0, 1.0], np.float32), (batch, 1))
    for k in (1, 40, 300, 301, 700, 1000):
        found = hf.project_topk(scores, incidence, k)
        assert_hits_equal(found, best32(hf.project(scores, incidence), k))
    assert hf.project_topk(scores, incidence, 4).ids[0].tolist() == [1, 3, 7, 9]
    assert (found.counts == 600).all()


@pytest.mark.parametrize("batch", [1, 20])
def test_a_sum_beyond_float32_is_refused_by_its_query(variant: str, batch: int) -> None:
    incidence = hf.Incidence.from_pairs([3, 3, 5], [0, 1, 1], num_rows=9, num_columns=2)
    scores = np.ones((batch, 2), np.float32)
    hf.project(scores, incidence)
    scores[batch - 1] = LARGEST
    for call in (hf.project, lambda *given, **how: hf.project_topk(*given, 2, **how)):
        with refused(InputError, "range", f"scores[{batch - 1}]"):
            call(scores, incidence)
        with refused(InputError, "range", f"scores[{batch - 1}]"):
            call(-scores, incidence, scale=np.zeros(9))


# ---- One answer -----------------------------------------------------------------------------------------------------


def test_every_variant_thread_count_and_batch_has_the_same_bits(every_isa: list[str]) -> None:
    rng = np.random.default_rng(4)
    incidence = random_incidence(rng, 700, 900, 5000, weighted=True, hub=8)
    scores, scale = drawn_scores(rng, 41, 900), rng.random(700).astype(np.float32)
    use(every_isa[0])
    expected = hf.project(scores, incidence, scale=scale, threads=1)
    best = hf.project_topk(scores, incidence, 30, scale=scale, threads=1)
    for name in every_isa:
        use(name)
        for threads in (1, 2, 3, 64):
            found = hf.project(scores, incidence, scale=scale, threads=threads)
            assert_bitwise(found, expected, f"{name}, {threads} threads")
            assert_hits_equal(hf.project_topk(scores, incidence, 30, scale=scale, threads=threads), best)
        for some in (slice(0, 1), slice(7, 9), slice(20, 34), slice(40, 41)):
            assert_bitwise(hf.project(scores[some], incidence, scale=scale), expected[some], f"queries {some}")
            few = hf.project_topk(scores[some], incidence, 30, scale=scale)
            assert_hits_equal(few, hf.Hits(best.ids[some], best.scores[some], best.counts[some]))


def test_a_smaller_k_is_a_prefix(variant: str) -> None:
    rng = np.random.default_rng(5)
    incidence, scores = random_incidence(rng, 200, 80, 900), drawn_scores(rng, 18, 80, grid=2)
    whole = hf.project_topk(scores, incidence, 200)
    for k in (1, 13, 150):
        assert_bitwise(hf.project_topk(scores, incidence, k).ids, whole.ids[:, :k], f"k = {k}")


def test_explain_says_what_ran() -> None:
    if os.environ.get("HOPFUSE_BACKEND", "cpu") != "cpu":
        pytest.skip("another backend was asked for")
    hf.project([[1.0, 2.0]], hf.Incidence.from_pairs([0], [1], num_rows=4, num_columns=2))
    call = hf.backend_info()["backends"]["cpu"]["last_calls"]["project_f32"]
    assert (call["queries"], call["rows"]) == (1, 4)
    assert call["kernel"].startswith("project_f32_")


# ---- Arrays on the device -------------------------------------------------------------------------------------------

ROWS, COLUMNS = 300, 130


def case(seed: int, batch: int) -> tuple[NDArray[np.float32], hf.Incidence]:
    rng = np.random.default_rng(seed)
    return drawn_scores(rng, batch, COLUMNS, grid=8), random_incidence(rng, ROWS, COLUMNS, 900, weighted=True, hub=5)


def test_device_arrays_give_device_arrays(runtime: Any) -> None:
    scores, incidence = case(10, 6)
    made, best = hf.project(on_device(scores), incidence), hf.project_topk(on_device(scores), incidence, 9)
    assert isinstance(made, DeviceArray)
    assert_bitwise(made.to_numpy(), hf.project(scores, incidence, backend="cpu"))
    assert_hits_equal(on_host(best), hf.project_topk(scores, incidence, 9, backend="cpu"))


def test_an_invalid_query_is_named_by_its_row(runtime: Any) -> None:
    scores, incidence = case(11, 4)
    scores[2, 1] = np.nan
    for k in (None, 0, 3):
        with refused(InputError, "finite", "scores[2]"):
            hf.project(on_device(scores), incidence) if k is None else hf.project_topk(on_device(scores), incidence, k)
    scores[2] = np.finfo(np.float32).max
    with refused(InputError, "range", "scores[2]"):
        hf.project(on_device(scores), incidence)
    with refused(InputError, "range", "scores[2]"):
        hf.project_topk(on_device(scores), incidence, 3)


@pytest.mark.parametrize(
    ("values", "refusal"),
    [
        (np.ones((2, COLUMNS)), ("dtype", "scores")),
        (np.ones((2, 3), np.float32), ("shape", "scores")),
        (np.ones(COLUMNS, np.float32), ("shape", "scores")),
    ],
)
def test_other_device_arrays_are_refused(runtime: Any, values: Any, refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        hf.project(on_device(values), case(12, 1)[1])
    with refused(InputError, "conflict", "scores", backend="cpu", reads="reads arrays on the host"):
        hf.project(on_device(values), case(12, 1)[1], backend="cpu")


def test_an_incidence_stays_on_a_device_until_it_is_released(runtime: Any) -> None:
    scores, incidence = case(13, 2)
    hf.project(scores, incidence, backend=SIMT)
    assert [*incidence.derived] == [runtime.key]
    given = on_device(scores)
    runtime.driver.finish()
    runtime.driver.clear()
    hf.project(given, incidence, backend=SIMT)
    assert [event for event in runtime.events if event.kind == "upload"] == []
    hf.free_device_memory(incidence, backend=SIMT)
    assert not incidence.derived


# ---- Recordings -----------------------------------------------------------------------------------------------------


class System:
    """A walk, its projection on passages, and the best of them: the core of a recipe."""

    def __init__(self) -> None:
        rng = np.random.default_rng(14)
        self.graph = random_graph(rng, COLUMNS, 500, hub=3)
        self.incidence = random_incidence(rng, ROWS, COLUMNS, 900, weighted=True)
        self.scale = np.linspace(0.5, 1.0, ROWS)

    def core(self, nodes: Any, weights: Any) -> dict[str, Any]:
        walked = hf.ppr(self.graph, hf.Seeds(nodes, weights))
        best = hf.project_topk(walked.scores, self.incidence, 6, scale=self.scale)
        return {"scores": hf.project(walked.scores, self.incidence), "hits": best}


def questions(batch: int) -> list[NDArray[Any]]:
    rng = np.random.default_rng(batch)
    nodes = np.stack([rng.permutation(COLUMNS)[:4] for _ in range(batch)])
    return [nodes, rng.random(nodes.shape) + 0.1]


def test_a_captured_core_has_the_plain_calls_answers(runtime: Any) -> None:
    system = System()
    captured = hf.capture(system.core, [((4,), "int64"), ((4,), "float64")], backend=SIMT)
    for batch in (1, 3, 3, 8):
        given = questions(batch)
        expected = system.core(*given)
        made = captured(*given)
        assert_bitwise(made["scores"], expected["scores"])
        assert_hits_equal(made["hits"], expected["hits"])
        there = captured(*(on_device(array) for array in given))
        assert_hits_equal(on_host(there["hits"]), expected["hits"])


def test_a_captured_core_says_what_the_first_op_found_wrong(runtime: Any) -> None:
    """The walk's fault, not what its scores, which then mean nothing, are to the projection."""
    captured = hf.capture(System().core, [((4,), "int64"), ((4,), "float64")], backend=SIMT)
    nodes, weights = questions(3)
    nodes[1, 0] = COLUMNS
    with refused(InputError, "unknown", "restart[1]"):
        captured(nodes, weights)


def test_a_captured_core_says_which_scores_are_not_finite(runtime: Any) -> None:
    scores, incidence = case(15, 5)
    captured = hf.capture(lambda x: hf.project(x, incidence), [((COLUMNS,), "float32")], backend=SIMT)
    assert_bitwise(captured(scores), hf.project(scores, incidence, backend="cpu"))
    scores[4, 0] = np.inf
    with refused(InputError, "finite", "scores[4]"):
        captured(scores)
