"""The emulated fused multiply-add against exact rationals and the C library; the dot against a plain loop."""

from __future__ import annotations

import ctypes
import ctypes.util
from fractions import Fraction

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise, assert_hits_close, assert_hits_equal
from hopfuse.errors import InputError
from hopfuse.reference import canonical_dot, canonical_scores, dense_scores, dense_topk_canonical, fma32
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

F = np.float32
U = 2.0**-23  # the last bit of 1


def rounded(value: Fraction) -> float:
    """The float32 nearest to an exact value, ties to even, from integers alone."""
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    quantum = Fraction(2) ** (max(exponent, -126) - 23)
    result = round(value / quantum) * quantum
    if abs(result) >= Fraction(2) ** 128:
        return float("inf") if value > 0 else float("-inf")
    return float(result)


def exact_fma(a: np.float32, b: np.float32, c: np.float32) -> float:
    return rounded(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


BELOW = (2.0**-12 * (1 + U), 2.0**-12 * (1 - U))  # product: half a bit of 1, less 2^-70
ABOVE = (2.0**-12 * (1 + 2.0**-12), 2.0**-12 * (1 - 2.0**-12 + 2.0**-24))  # half a bit of 1, plus 2^-60
LARGEST = float(np.finfo(F).max)

# (a, b, c, a b + c rounded once): a float64 sum rounded to float32 is wrong in every one
DOUBLE_ROUNDING = {
    "below a tie that would go up": (*BELOW, 1 + U, 1 + U),
    "its negative": (-BELOW[0], BELOW[1], -1 - U, -1 - U),
    "above a tie that would go down": (*ABOVE, 1.0, 1 + U),
    "its negative, subtracted": (ABOVE[0], -ABOVE[1], -1.0, -1 - U),
    "subtracted, less than the tie": (-BELOW[0], BELOW[1], 1 + 3 * U, 1 + 3 * U),
    "subtracted, more than the tie": (-ABOVE[0], ABOVE[1], 1 + 2 * U, 1 + U),
    "a subnormal result": (BELOW[0] * 2.0**-63, BELOW[1] * 2.0**-63, 2.0**-127 + 2.0**-149, 2.0**-127 + 2.0**-149),
    "just short of overflow": (BELOW[0] * 2.0**63, BELOW[1] * 2.0**64, LARGEST, LARGEST),
}


@pytest.mark.parametrize("name", DOUBLE_ROUNDING)
def test_double_rounding_is_avoided(name: str) -> None:
    a, b, c, want = (F(value) for value in DOUBLE_ROUNDING[name])
    with np.errstate(over="ignore"):
        twice = F(np.float64(a) * np.float64(b) + np.float64(c))
    assert twice != want
    assert fma32(a, b, c) == want == exact_fma(a, b, c)


@pytest.mark.parametrize(
    ("a", "b", "c", "want"),
    [
        (2.0**-12, 2.0**-12, 1.0, 1.0),
        (2.0**-12, 2.0**-12, 1 + U, 1 + 2 * U),
        (3.0, 5.0, -15.0, 0.0),
        (1 + U, 1 + U, -1 - 2 * U, U * U),
        (2.0**-75, 2.0**-75, 0.0, 0.0),
        (2.0**-75, 1.5 * 2.0**-75, 0.0, 2.0**-149),
        (-(2.0**-100), 2.0**-100, 0.0, -0.0),
        (-0.0, 1.0, 0.0, 0.0),
        (-0.0, 1.0, -0.0, -0.0),
        (2.0**64, 2.0**64, 0.0, np.inf),
        (2.0**64, 2.0**64, -LARGEST, 2.0**104),
        (1.0, 1.0, np.inf, np.inf),
    ],
)
def test_ties_zeros_and_range(a: float, b: float, c: float, want: float) -> None:
    assert_bitwise(fma32(a, b, c), np.asarray(want, F))


@settings(max_examples=300, deadline=None)
@given(st.tuples(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3))
def test_fma_is_the_rounded_rational(values: tuple[float, float, float]) -> None:
    a, b, c = map(F, values)
    assert float(fma32(a, b, c)) == exact_fma(a, b, c)


def near_ties(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Products within a hair of half the last bit of c."""
    c = (1 + rng.integers(0, 2**23, n) * U).astype(F)
    step = rng.integers(1, 200, n)
    a, b = (1 + step * U).astype(F), (1 - step * U).astype(F)
    shift = rng.integers(-13, -10, n)
    return a * np.exp2(shift).astype(F), b * rng.choice([-1, 1], n).astype(F) * F(2**-12), c


def test_near_ties_against_rationals() -> None:
    a, b, c = near_ties(np.random.default_rng(1), 3000)
    got = fma32(a, b, c)
    twice = (a.astype(float) * b.astype(float) + c.astype(float)).astype(F)
    assert (twice != got).sum() > 100
    assert [float(x) for x in got] == [exact_fma(*row) for row in zip(a, b, c, strict=True)]


def test_fma_of_the_c_library_agrees() -> None:
    name = ctypes.util.find_library("m")
    if name is None:
        pytest.skip("no C math library")
    fmaf = ctypes.CDLL(name).fmaf
    fmaf.argtypes, fmaf.restype = [ctypes.c_float] * 3, ctypes.c_float
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 2**32, (3, 30_000), np.uint32).view(F)
    a, b, c = bits[:, np.isfinite(bits).all(axis=0)]
    close = rng.normal(size=(3, 10_000)).astype(F)
    tied = near_ties(rng, 10_000)
    with np.errstate(over="ignore", invalid="ignore"):
        product = a * b
    cancelling = np.where(np.isfinite(product), -product, F(0))
    for x, y, z in ((a, b, c), (a, b, cancelling), tuple(close), tied):
        want = np.array([fmaf(*row) for row in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)], F)
        assert_bitwise(fma32(x, y, z), want)


def dot_by_hand(q: np.ndarray, x: np.ndarray) -> np.float32:
    """The definition, one number at a time, with exact rationals."""
    size = -(-len(q) // 16) * 16
    q, x = np.pad(q, (0, size - len(q))), np.pad(x, (0, size - len(x)))
    acc = [F(0)] * 16
    for i in range(size // 16):
        for j in range(16):
            acc[j] = F(exact_fma(q[16 * i + j], x[16 * i + j], acc[j]))
    for half in (8, 4, 2, 1):
        for j in range(half):
            acc[j] = acc[j] + acc[j + half]
    return acc[0]


@pytest.mark.parametrize("d", [1, 2, 15, 16, 17, 31, 32, 33, 100])
def test_dot_is_the_definition(d: int) -> None:
    rng = np.random.default_rng(d)
    q, x = rng.normal(size=d).astype(F), (rng.normal(size=(5, d)) * 10.0 ** rng.integers(-3, 3, (5, d))).astype(F)
    assert_bitwise(canonical_dot(q, x), np.array([dot_by_hand(q, row) for row in x]))


def test_dot_is_symmetric_and_blind_to_padding() -> None:
    rng = np.random.default_rng(4)
    q, x = rng.normal(size=(2, 3, 50)).astype(F)
    assert_bitwise(canonical_dot(q, x), canonical_dot(x, q))
    assert_bitwise(canonical_dot(q, x), canonical_dot(np.pad(q, ((0, 0), (0, 30))), np.pad(x, ((0, 0), (0, 30)))))


def test_dot_order_is_the_stated_one() -> None:
    """2^25 swallows a 1 added to it alone: the result tells which additions came first."""
    q = np.ones(32, F)
    x = np.zeros(32, F)
    x[0], x[16], x[8] = 2.0**25, 1.0, 1.0
    assert float(canonical_dot(q, x)) == 2.0**25
    x = np.zeros(32, F)
    x[0], x[1], x[17], x[9] = 2.0**25, 1.0, 1.0, 2.0
    assert float(canonical_dot(q, x)) == 2.0**25 + 4


def test_float16_vectors_are_exact_in_float32() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(7, 20)).astype(np.float16)
    x[0, 0] = 6e-8
    q = rng.normal(size=20).astype(F)
    assert_bitwise(canonical_dot(q, x), canonical_dot(q, x.astype(F)))


@pytest.mark.parametrize("metric", ["ip", "cosine"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_scores_are_close_to_exact_ones(metric: str, dtype: type) -> None:
    rng = np.random.default_rng(7)
    q, x = rng.normal(size=(4, 40)).astype(F), rng.normal(size=(300, 40)).astype(dtype)
    x[5] = x[9] = x[200]
    exact = dense_scores(q, x, metric=metric)
    np.testing.assert_allclose(canonical_scores(q, x, metric=metric), exact, rtol=0, atol=2e-6)
    assert_hits_close(dense_topk_canonical(q, x, 17, metric=metric), exact, atol=2e-6)


def test_cosine_is_its_formula() -> None:
    rng = np.random.default_rng(8)
    q, x = rng.normal(size=(2, 33)).astype(F), rng.normal(size=(5, 33)).astype(F)
    got = canonical_scores(q, x, metric="cosine")
    for b in range(2):
        for i in range(5):
            norms = np.sqrt(dot_by_hand(q[b], q[b])) * np.sqrt(dot_by_hand(x[i], x[i]))
            assert got[b, i] == dot_by_hand(q[b], x[i]) / norms


def test_topk_is_the_sorted_scores() -> None:
    rng = np.random.default_rng(9)
    q = rng.integers(-2, 3, (3, 18)).astype(F)
    x = rng.integers(-2, 3, (500, 18)).astype(np.float16)
    scores = canonical_scores(q, x)
    assert np.unique(scores).size < 100
    hits = dense_topk_canonical(q, x, 60)
    for b in range(3):
        order = sorted(range(500), key=lambda i: (-scores[b, i], i))[:60]
        assert hits.ids[b].tolist() == order
        assert (hits.scores[b] == scores[b, order]).all()
    corpus = hf.Corpus.from_array(x, storage="float16")
    assert_hits_equal(dense_topk_canonical(q, corpus, 60), hits)
    for b in range(3):
        assert_hits_equal(dense_topk_canonical(q[b], x, 60), hf.Hits(hits.ids[b], hits.scores[b]))
    assert_hits_equal(dense_topk_canonical(q, x, 7), hits.head(7))


def test_chunks_do_not_show() -> None:
    rng = np.random.default_rng(10)
    q, x = rng.normal(size=(1, 600)).astype(F), rng.normal(size=(2000, 600)).astype(F)
    assert_bitwise(canonical_scores(q, x)[0, -3:], canonical_dot(q[0], x[-3:]))


def test_topk_of_few_candidates_is_padded() -> None:
    hits = dense_topk_canonical(np.ones((2, 3), F), np.eye(3, dtype=F), 5, allow=[[2, 0], []])
    assert hits.ids.tolist() == [[0, 2, -1], [-1] * 3]
    assert hits.counts.tolist() == [2, 0]
    assert np.isneginf(hits.scores[:, 2:]).all()


@pytest.mark.parametrize(
    ("q", "x", "metric", "refusal"),
    [
        (np.ones((1, 2)), np.ones((1, 2), F), "ip", ("dtype", "queries")),
        (np.ones((1, 2), F), np.ones((1, 2)), "ip", ("dtype", "vectors")),
        (np.full((1, 2), 1e20, F), np.ones((1, 2), F), "ip", ("range", "queries[0]")),
        (np.ones((1, 2), F), np.full((1, 2), 1e-30, F), "cosine", ("range", "vectors[0]")),
        (np.zeros((1, 2), F), np.ones((1, 2), F), "cosine", ("zero", "queries[0]")),
    ],
)
def test_scores_refuse(q: np.ndarray, x: np.ndarray, metric: str, refusal: tuple[str, str | None]) -> None:
    with refused(InputError, *refusal):
        canonical_scores(q, x, metric=metric)
