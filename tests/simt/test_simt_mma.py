"""Matrix units of the emulator: the layout is PTX's, sums round as stated, and lose no more than is assumed."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hopfuse._native import DENSE_STEP_ERROR
from hopfuse_simt import MATRIX_UNITS, SimtError, SimtModule
from numpy.typing import NDArray

SOURCE = Path(__file__).parent / "cuda" / "mma.cu"
Array = NDArray[Any]

#: Products that are added at once, bits beyond the 24 of float32, and how what is below them is cut off.
UNITS = {
    "v100": (4, 0, "zero"),
    "a100": (8, 1, "zero"),
    "h100": (16, 2, "zero"),
    "lower": (4, -1, "zero"),
    "uneven": (4, -1, "by row"),
    "narrow": (16, -10, "zero"),
}
KINDS = [(90, "f16"), (90, "bf16"), (75, "f16")]


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[int, SimtModule]]:
    made = {capability: SimtModule(SOURCE, capability=capability) for capability in (75, 90)}
    yield made
    for module in made.values():
        module.close()


def bits(values: Array, kind: str) -> NDArray[np.uint32]:
    """Return the 16 bits of numbers that have this type."""
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.uint32)
    return values.astype(np.float32).view(np.uint32) >> 16


def representable(values: Array, kind: str) -> Array:
    """Return the values cut off to the type, as float64."""
    if kind == "f16":
        return values.astype(np.float16).astype(np.float64)
    return (values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


def multiply(
    modules: dict[int, SimtModule], capability: int, kind: str, a: Array, b: Array, c: Array, unit: str
) -> NDArray[np.float32]:
    """Return c + a b for a (16, 16), b (16, 8) and c (16, 8), by the formulas of the PTX ISA for mma.m16n8k16."""
    sums, rows = np.zeros((32, 4), np.float32), np.zeros((32, 4), np.uint32)
    columns = np.zeros((32, 2), np.uint32)
    a_bits, b_bits = bits(a, kind), bits(b, kind)
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(8):
            row = group if i < 2 or 4 <= i < 6 else group + 8
            column = thread * 2 + (i & 1) + (8 if i >= 4 else 0)
            rows[lane, i // 2] |= a_bits[row, column] << np.uint32(16 * (i % 2))
        for i in range(4):
            row = thread * 2 + (i & 1) + (8 if i >= 2 else 0)
            columns[lane, i // 2] |= b_bits[row, group] << np.uint32(16 * (i % 2))
            sums[lane, i] = c[group + (8 if i >= 2 else 0), thread * 2 + (i & 1)]
    modules[capability].launch(f"mma_{kind}", 1, 32, 0, [sums, rows, columns], mma=unit)
    out = np.zeros((16, 8), np.float32)
    for lane in range(32):
        for i in range(4):
            out[(lane >> 2) + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)] = sums[lane, i]
    return out


def exponent(value: Fraction) -> int:
    """Return e with 2^e <= |value| < 2^(e + 1)."""
    size = abs(value)
    e = size.numerator.bit_length() - size.denominator.bit_length()
    return e if size >= Fraction(2) ** e else e - 1


def cut_off(value: Fraction, last: int, how: str) -> Fraction:
    units = value / Fraction(2) ** last
    whole = units.numerator // units.denominator
    if units.denominator > 1 and (how == "up" or (how == "zero" and value < 0)):
        whole += 1
    return whole * Fraction(2) ** last


def rounded(sum_: float, products: list[Fraction], unit: str, row: int) -> Fraction:
    group, extra, how = UNITS[unit]
    how = ("down" if row % 2 == 0 else "up") if how == "by row" else how
    total = Fraction(sum_)
    for first in range(0, len(products), group):
        terms = [total, *products[first : first + group]]
        largest = max(abs(term) for term in terms)
        if largest == 0:
            continue
        total = sum((cut_off(term, exponent(largest) - 23 - extra, how) for term in terms), Fraction(0))
        if total:
            total = cut_off(total, max(exponent(total) - 23 - min(extra, 0), -149), how)
    return total


def drawn(rng: np.random.Generator, kind: str, spread: float) -> tuple[Array, Array, Array]:
    """Numbers of both signs and of exponents that spread, some of them 0 or subnormal."""
    most = 14.0 if kind == "f16" else 30.0
    made = [
        rng.standard_normal(shape) * 2.0 ** np.clip(rng.uniform(-spread, spread, shape), -24, most)
        for shape in ((16, 16), (16, 8), (16, 8))
    ]
    for array in made:
        array[rng.random(array.shape) < 0.1] = 0.0
    return representable(made[0], kind), representable(made[1], kind), made[2].astype(np.float32)


@pytest.mark.parametrize(("capability", "kind"), KINDS)
@pytest.mark.parametrize("unit", MATRIX_UNITS)
def test_small_integers_are_multiplied_exactly(
    modules: dict[int, SimtModule], capability: int, kind: str, unit: str
) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((16, 16), (16, 8), (16, 8)))
    np.testing.assert_array_equal(multiply(modules, capability, kind, a, b, c, unit), c + a @ b)


@pytest.mark.parametrize(("capability", "kind"), KINDS)
@pytest.mark.parametrize("unit", MATRIX_UNITS)
@pytest.mark.parametrize("spread", [0.0, 8.0, 24.0])
def test_sums_are_cut_off_as_stated(
    modules: dict[int, SimtModule], capability: int, kind: str, unit: str, spread: float
) -> None:
    """And they never lose more than the assumption of dense_topk.h, but for the unit that is too narrow."""
    rng = np.random.default_rng(int(spread))
    a, b, c = drawn(rng, kind, spread)
    found = multiply(modules, capability, kind, a, b, c, unit)
    depth = 16 if capability >= 80 else 8  # one instruction, or two
    for row in range(16):
        for column in range(8):
            products = [Fraction(x) * Fraction(y) for x, y in zip(a[row], b[:, column], strict=True)]
            expected = Fraction(float(c[row, column]))
            for first in range(0, 16, depth):
                expected = rounded(float(expected), products[first : first + depth], unit, row)
            made = Fraction(float(found[row, column]))
            assert made == expected
            size = abs(Fraction(float(c[row, column]))) + sum(map(abs, products))
            lost = abs(made - Fraction(float(c[row, column])) - sum(products))
            assert unit == "narrow" or lost <= Fraction(DENSE_STEP_ERROR) * size


@pytest.mark.parametrize(("unit", "kept"), [("v100", 0), ("a100", 4), ("h100", 4), ("lower", 0)])
def test_what_is_below_the_largest_number(modules: dict[int, SimtModule], unit: str, kept: int) -> None:
    """Four products of half a unit in the last place of 1: measured to vanish on a V100, and not on later GPUs."""
    a, b, c = np.zeros((16, 16)), np.zeros((16, 8)), np.ones((16, 8), np.float32)
    a[:, :4], b[:4] = 2.0**-12, 2.0**-12
    found = multiply(modules, 90, "f16", a, b, c, unit)
    np.testing.assert_array_equal(found, 1.0 + kept * 2.0**-24)


@pytest.mark.parametrize("capability", [75, 90])
def test_bytes_are_multiplied_exactly(modules: dict[int, SimtModule], capability: int) -> None:
    """By the formulas of the PTX ISA for mma.m16n8k32; sums wrap."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(-128, 128, (16, 32)), rng.integers(-128, 128, (32, 8))
    a[0], b[:, 0] = -128, -128
    c = rng.integers(-(2**31), 2**31, (16, 8))
    sums, rows, columns = np.zeros((32, 4), np.int32), np.zeros((32, 4), np.uint32), np.zeros((32, 2), np.uint32)
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for i in range(16):
            row = group if i < 4 or 8 <= i < 12 else group + 8
            column = thread * 4 + (i & 3) + (16 if i >= 8 else 0)
            rows[lane, i // 4] |= np.uint32((int(a[row, column]) & 255) << 8 * (i % 4))
        for i in range(8):
            row = thread * 4 + (i & 3) + (16 if i >= 4 else 0)
            columns[lane, i // 4] |= np.uint32((int(b[row, group]) & 255) << 8 * (i % 4))
        for i in range(4):
            sums[lane, i] = c[group + (8 if i >= 2 else 0), thread * 2 + (i & 1)]
    modules[capability].launch("mma_bytes", 1, 32, 0, [sums, rows, columns])
    expected = (c + a @ b + 2**31) % 2**32 - 2**31
    for lane in range(32):
        for i in range(4):
            assert sums[lane, i] == expected[(lane >> 2) + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)]


def test_every_lane_of_the_warp_takes_part(modules: dict[int, SimtModule]) -> None:
    sums, rows, columns = np.zeros((32, 4), np.float32), np.zeros((32, 4), np.uint32), np.zeros((32, 2), np.uint32)
    with pytest.raises(SimtError, match=r"mma\.sync .*the block has no lane 16"):
        modules[90].launch("mma_f16", 1, 16, 0, [sums, rows, columns])


def test_units_have_names(modules: dict[int, SimtModule]) -> None:
    assert UNITS.keys() == MATRIX_UNITS.keys()
    with pytest.raises(ValueError, match="mma is 'none'; allowed: v100, a100, h100, lower, uneven, narrow"):
        modules[90].launch("mma_f16", 1, 32, 0, [], mma="none")
