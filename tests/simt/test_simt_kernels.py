"""Right kernels give the right answer in every order, in every build, and no build complains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hopfuse_simt import Counters, SimtModule
from tiers import FULL

FOLDER = Path(__file__).parent / "cuda"
CUDA = Path(__file__).parents[2] / "kernels" / "cuda"
NAMES = ["bitonic", "block_reduce", "grains", "grid_join", "histogram", "intrinsics", "saxpy", "transpose", "warp_scan"]
BUILDS = ["plain", "asan", "tsan"] if FULL else ["plain"]
ORDERS = [("forward", 0), ("reverse", 0), ("shuffle", 1), ("shuffle", 2)]
RUNS = [(build, *order) for build in BUILDS for order in ORDERS]

Launch = Callable[..., Counters]


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, SimtModule]]:
    sources, include = [FOLDER / f"{name}.cu" for name in NAMES], [CUDA]
    made = {build: SimtModule(sources, build, include=include) for build in BUILDS}
    yield made
    for module in made.values():
        module.close()


@pytest.fixture(params=RUNS, ids=[f"{build}-{order}-{seed}" for build, order, seed in RUNS])
def launch(modules: dict[str, SimtModule], request: pytest.FixtureRequest) -> Launch:
    build, order, seed = request.param
    return lambda name, grid, block, shared, *args: modules[build].launch(name, grid, block, shared, args, order, seed)


def normal(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n", [1, 63, 250, 256])
def test_saxpy(launch: Launch, n: int) -> None:
    x, y = np.arange(n, dtype=np.float32), np.ones(n, dtype=np.float32)
    launch("saxpy_f32", 4, 64, 0, x, y, 2.0, n)
    np.testing.assert_array_equal(y, 2 * np.arange(n, dtype=np.float32) + 1)


def test_saxpy_by_vectors(launch: Launch) -> None:
    x, y = np.arange(200, dtype=np.float32), np.ones(200, dtype=np.float32)
    launch("saxpy_f32x4", 2, 32, 0, x, y, 3.0, 50)
    np.testing.assert_array_equal(y, 3 * np.arange(200, dtype=np.float32) + 1)


def test_block_reduction_in_its_own_order_of_addition(launch: Launch) -> None:
    x, sums = normal(2, 256), np.zeros(2, dtype=np.float32)
    counters = launch("block_reduce_f32", 2, 256, 0, x, sums)
    partial = x.reshape(2, 8, 32)
    for _ in range(5):  # the tree of the kernel's shuffles: halves
        half = partial.shape[-1] // 2
        partial = partial[..., :half] + partial[..., half:]
    expected = partial[..., 0]
    for _ in range(3):
        half = expected.shape[-1] // 2
        expected = expected[..., :half] + expected[..., half:]
    np.testing.assert_array_equal(sums, expected[:, 0])
    assert (counters.blocks, counters.threads, counters.barriers) == (2, 512, 2)
    assert counters.warp_ops == 2 * (8 * 5 + 3)


@pytest.mark.parametrize("blocks", [1, 2, 64, 65, 200])
def test_sums_of_all_blocks(launch: Launch, blocks: int) -> None:
    """In a place for each block, and in 64 that blocks share; all is 0 again after it."""
    columns, arrived = np.zeros((64, 2, 4)), np.zeros(65, dtype=np.uint32)
    for seed in range(2):
        given, out = np.random.default_rng(seed).integers(0, 2**40, (blocks, 2, 4)).astype(float), np.zeros((2, 4))
        launch("grid_join_l4", blocks, 8, 0, given, columns, arrived, out)
        lanes = given.reshape(-1, 4)
        np.testing.assert_array_equal(out, [lanes.sum(axis=0), lanes.max(axis=0)])
        assert not columns.any()
        assert not arrived.any()


def test_transpose(launch: Launch) -> None:
    x, out = normal(40, 50), np.zeros((50, 40), dtype=np.float32)
    launch("transpose_f32", (2, 2), (32, 8), 0, x, out, 40, 50)
    np.testing.assert_array_equal(out, x.T)


@pytest.mark.parametrize(("n", "threads"), [(2, 32), (64, 64), (256, 32)])
def test_bitonic_sort_with_ties(launch: Launch, n: int, threads: int) -> None:
    given = np.random.default_rng(n).integers(0, max(2, n // 3), n).astype(np.float32)
    keys, values = given.copy(), np.arange(n, dtype=np.int32)
    launch("bitonic_sort_f32", 1, threads, 8 * n, keys, values, n)
    order = np.argsort(given, kind="stable")
    np.testing.assert_array_equal(keys, given[order])
    np.testing.assert_array_equal(values, order)


def test_histogram(launch: Launch) -> None:
    x = np.random.default_rng(5).integers(3, 250, 1000).astype(np.uint8)
    bins = np.zeros(64, dtype=np.uint32)
    least, most = np.array([999], dtype=np.int32), np.array([-1], dtype=np.int32)
    counters = launch("histogram_u8", 3, 64, 0, x, 1000, bins, least, most)
    np.testing.assert_array_equal(bins, np.bincount(x // 4, minlength=64))
    assert (least[0], most[0]) == (x.min(), x.max())
    assert counters.atomics == 3 * 1000 + 3 * 64


def test_warp_scan(launch: Launch) -> None:
    x = np.random.default_rng(6).integers(-(2**40), 2**40, 128)
    sums, place = np.zeros(128, dtype=np.int64), np.zeros(128, dtype=np.int32)
    launch("warp_scan_i64", 2, 64, 0, x, sums, place)
    rows = x.reshape(4, 32)
    np.testing.assert_array_equal(sums.reshape(4, 32), rows.cumsum(axis=1))
    expected = np.where(rows > 0, (rows > 0).cumsum(axis=1) - 1, -1)
    np.testing.assert_array_equal(place.reshape(4, 32), expected)


# ---- Built-in functions ----------------------------------------------------------------------------------


def test_bit_functions(launch: Launch) -> None:
    values = np.array([0, 1, 2, 0x80000000, 0xFFFFFFFF, 0x00F0F000, 12345678, 3], dtype=np.uint32)
    popc, clz, ffs = (np.zeros(8, dtype=np.int32) for _ in range(3))
    brev, high = np.zeros(8, dtype=np.uint32), np.zeros(8, dtype=np.uint32)
    launch("bits_u32", 1, 8, 0, values, popc, clz, ffs, brev, high)
    ints = [int(v) for v in values]
    assert popc.tolist() == [2 * v.bit_count() for v in ints]
    assert clz.tolist() == [32 - v.bit_length() + 100 * (64 - v.bit_length()) for v in ints]
    lowest = [(v & -v).bit_length() for v in ints]
    assert ffs.tolist() == [low + 100 * (low + 9 if low else 0) for low in lowest]
    assert brev.tolist() == [int(f"{v:032b}"[::-1], 2) for v in ints]
    assert high.tolist() == [v * v >> 32 for v in ints]


def test_byte_dot_products(launch: Launch) -> None:
    a = np.random.default_rng(8).integers(-128, 128, (16, 4)).astype(np.int8)
    b = np.random.default_rng(9).integers(-128, 128, (16, 4)).astype(np.int8)
    signed, unsigned = np.zeros(16, dtype=np.int32), np.zeros(16, dtype=np.uint32)
    launch("dot_bytes", 1, 16, 0, a.view(np.int32), b.view(np.int32), signed, unsigned)
    np.testing.assert_array_equal(signed, (a.astype(np.int32) * b).sum(axis=1) - 5)
    as_bytes = a.view(np.uint8).astype(np.uint32) * b.view(np.uint8)
    np.testing.assert_array_equal(unsigned, as_bytes.sum(axis=1) + 5)


def test_arithmetic_is_ieee(launch: Launch) -> None:
    a, b = normal(64), normal(2, 64)[1] + np.float32(3)
    product = a * b
    fused, quotient, root, least = (np.zeros(64, dtype=np.float32) for _ in range(4))
    nearest = np.zeros(64, dtype=np.int32)
    launch("arithmetic_f32", 2, 32, 0, a, b, -product, fused, quotient, root, least, nearest)
    # What the rounding of the product lost, exactly: only a fused operation gives it.
    np.testing.assert_array_equal(fused, (a.astype(np.float64) * b - product).astype(np.float32))
    assert np.count_nonzero(fused) > 32
    np.testing.assert_array_equal(quotient, a / b)
    np.testing.assert_array_equal(root, np.sqrt(np.abs(a)))
    np.testing.assert_array_equal(least, np.minimum(a, np.maximum(b, -product)))
    np.testing.assert_array_equal(nearest, np.rint(a).astype(np.int32))


def test_float_to_int_saturates(launch: Launch) -> None:
    a = np.array([3e9, -3e9, np.nan, 0.5, 1.5, -2.5, np.inf, -2147483648.0], dtype=np.float32)
    rest, nearest = np.ones(8, dtype=np.float32), np.zeros(8, dtype=np.int32)
    launch("arithmetic_f32", 1, 8, 0, a, rest, rest, *(np.zeros(8, dtype=np.float32) for _ in range(4)), nearest)
    assert nearest.tolist() == [2**31 - 1, -(2**31), 0, 0, 2, -2, 2**31 - 1, -(2**31)]


def test_exp_and_log_of_the_shared_header(launch: Launch) -> None:
    x = np.linspace(0.01, 80, 64, dtype=np.float32)
    exps, logs = np.zeros(64, dtype=np.float32), np.zeros(64, dtype=np.float32)
    launch("exp_log", 1, 64, 0, x, exps, logs)
    np.testing.assert_allclose(exps, np.exp(x.astype(np.float64)), rtol=3e-7)
    np.testing.assert_allclose(logs, np.log(x.astype(np.float64)), rtol=3e-7)


@pytest.mark.parametrize("width", [1, 2, 8, 32])
@pytest.mark.parametrize("argument", [0, 1, 5, 31])
def test_shuffles_by_their_definition(launch: Launch, width: int, argument: int) -> None:
    index, up = np.zeros(32, dtype=np.int32), np.zeros(32, dtype=np.float64)
    down, crossed = np.zeros(32, dtype=np.int64), np.zeros(32, dtype=np.float32)
    launch("shuffles", 1, 32, 0, width, argument, index, up, down, crossed)
    for lane in range(32):
        first = lane // width * width
        last = first + width - 1
        assert index[lane] - 100 == first + argument % width
        assert up[lane] - 100 == (lane - argument if lane - argument >= first else lane)
        assert down[lane] - 100 == (lane + argument if lane + argument <= last else lane)
        assert crossed[lane] - 100 == (lane ^ argument if lane ^ argument <= last else lane)


@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0x0000FFFF, 0x80000001, 0x00000100])
def test_votes(launch: Launch, mask: int) -> None:
    given = np.random.default_rng(mask).integers(0, 6, 32).astype(np.int32)
    ballot, same = np.zeros(32, dtype=np.uint32), np.zeros(32, dtype=np.uint32)
    every, some = np.full(32, -1, dtype=np.int32), np.full(32, -1, dtype=np.int32)
    launch("votes", 1, 32, 0, mask, given, ballot, every, some, same)
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    agreeing = sum(1 << lane for lane in lanes if given[lane] > 2)
    for lane in lanes:
        assert ballot[lane] == agreeing
        assert (every[lane], some[lane]) == (agreeing == mask, agreeing != 0)
        assert same[lane] == sum(1 << other for other in lanes if given[other] == given[lane])


@pytest.mark.parametrize("low", [0, 2, 3])
def test_block_votes(launch: Launch, low: int) -> None:
    given = np.random.default_rng(low).integers(low, low + 2, 96).astype(np.int32)
    count, every, some = (np.zeros(96, dtype=np.int32) for _ in range(3))
    launch("block_votes", 2, 48, 0, given, count, every, some)
    for block in (slice(0, 48), slice(48, 96)):
        agreeing = int((given[block] > 2).sum())
        assert set(count[block]) == {agreeing}
        assert set(every[block]) == {int(agreeing == 48)}
        assert set(some[block]) == {int(agreeing > 0)}


def test_atomics(launch: Launch) -> None:
    given = np.random.default_rng(10).integers(1, 1000, 64).astype(np.int32)
    sums = np.array([2**31 - 1, 0, -5, 5000], dtype=np.int32)
    words = np.array([0xFFFFFFFF, 0, 0, 1], dtype=np.uint32)
    wide, total, swapped = np.zeros(2, dtype=np.uint64), np.zeros(1), np.zeros(1, dtype=np.float32)
    launch("atomics", 2, 32, 0, given, sums, words, wide, total, swapped)
    all_of_them = int(given.sum())
    assert sums.tolist() == [2**31 - 1 + all_of_them - 2**32, -all_of_them, given.max(), given.min()]
    assert words.tolist() == [0, 0xFFFFFFFF, np.bitwise_xor.reduce(given), pow(3, 64, 2**32)]
    assert wide.tolist() == [64 << 33, int(given.max()) << 32]
    assert (total[0], swapped[0]) == (all_of_them, 7.0)


def test_places_in_three_dimensions_and_struct_arguments(launch: Launch) -> None:
    offsets = np.zeros(1, dtype=np.dtype([("scale", "i4"), ("shift", "f8")], align=True))
    offsets["scale"], offsets["shift"] = 2, 5.0
    out = np.zeros(2 * 3 * 2 * 4 * 2 * 3, dtype=np.int32)
    launch("places", (2, 3, 2), (4, 2, 3), 0, out, offsets[0], True, None)
    np.testing.assert_array_equal(out, -(2 * np.arange(out.size) + 5))


# ---- Not in every order: these do not depend on it --------------------------------------------------------


@pytest.mark.parametrize("build", BUILDS[:2])
def test_half_conversions_for_every_half(modules: dict[str, SimtModule], build: str) -> None:
    half = np.arange(2**16, dtype=np.uint16)
    wide = np.zeros(2**16, dtype=np.float32)
    bits = np.random.default_rng(11).integers(0, 2**32, 2**16, dtype=np.uint32)
    exact = half.view(np.float16).astype(np.float32)
    with np.errstate(over="ignore"):
        near = np.nextafter(exact[: 2**14], np.float32(1e9))  # just above a half, and halfway between two
        middle = (exact[: 2**14] + exact[1 : 2**14 + 1]) / 2
        given = np.concatenate([bits[: 2**15].view(np.float32), near, middle])
        expected = given.astype(np.float16)
    narrow = np.zeros(2**16, dtype=np.float16)
    modules[build].launch("halves", 256, 256, 0, [half, wide, given, narrow])
    np.testing.assert_array_equal(wide, exact)
    np.testing.assert_array_equal(narrow, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(narrow.view(np.uint16)[number], expected.view(np.uint16)[number])


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffle"])
def test_bytes_are_counted_in_their_own_build(order: str) -> None:
    x, y, sums = np.ones(250, dtype=np.float32), np.ones(250, dtype=np.float32), np.zeros(2, dtype=np.float32)
    words, lengths = [x, y, 2.0, 250], [normal(2, 256), sums]
    for build in ("plain", "count"):
        module = SimtModule([FOLDER / "saxpy.cu", FOLDER / "block_reduce.cu"], build)
        scaled = module.launch("saxpy_f32", 4, 64, 0, words, order)
        reduced = module.launch("block_reduce_f32", 2, 256, 0, lengths, order)
        counted = build == "count"
        assert (scaled.global_loaded, scaled.global_stored) == ((2000, 1000) if counted else (0, 0))
        assert (reduced.global_loaded, reduced.global_stored) == ((2048, 8) if counted else (0, 0))
        assert (reduced.shared_loaded, reduced.shared_stored) == ((64, 64) if counted else (0, 0))


@pytest.mark.parametrize("build", BUILDS)
def test_static_shared_memory_is_known(modules: dict[str, SimtModule], build: str) -> None:
    module = modules[build]
    assert module.static_shared("transpose_f32") == 32 * 33 * 4
    assert module.static_shared("block_reduce_f32") == 32
    assert module.static_shared("saxpy_f32") == 0


def awkward_doubles(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """4,096 numbers of every kind of float64: ties between float32 numbers and between grains, and their neighbours."""
    bits = rng.integers(0, 2**63, 1024, dtype=np.uint64).view(np.float64)
    ties = (rng.integers(2**23, 2**24, 512) + 0.5) * 2.0 ** rng.integers(-160, 100, 512)
    grains = (rng.integers(0, 2**20, 510) + 0.5) * 2.0**-50
    near = np.concatenate([ties, grains, [0.0, np.inf]])
    numbers = np.concatenate([bits, near, np.nextafter(near, np.inf), np.nextafter(near, 0.0)])
    return np.nan_to_num(numbers, nan=1.0, posinf=np.inf)


def test_float64_by_integers_is_float64(launch: Launch) -> None:
    rng = np.random.default_rng(5)
    wide = awkward_doubles(rng) * rng.choice([-1.0, 1.0], 4096)
    narrow = rng.integers(0, 2**32, wide.size, dtype=np.uint64).astype(np.uint32).view(np.float32)
    narrow[:8] = [0.0, -0.0, 1e-45, -1e-40, np.inf, 1.1754944e-38, 3.4028235e38, -1.0]
    narrow[np.isnan(narrow)] = 1.0
    widened, largest, narrowed = np.empty(wide.size), np.empty(wide.size), np.empty(wide.size, np.float32)
    for part in (slice(2048), slice(2048, 4096)):  # ThreadSanitizer's build runs at most 2048 threads
        numbers = (array[part] for array in (narrow, wide, widened, narrowed, largest))
        launch("convert_f64", 8, 256, 0, *numbers)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(narrowed.view(np.uint32), wide.astype(np.float32).view(np.uint32))
    np.testing.assert_array_equal(widened.view(np.uint64), narrow.astype(np.float64).view(np.uint64))
    pairs = np.abs(wide).reshape(-1, 2)
    np.testing.assert_array_equal(largest.reshape(-1, 2), np.repeat(pairs.max(axis=1)[:, None], 2, axis=1))


def test_sums_of_grains_are_those_of_float64(launch: Launch) -> None:
    """Sums below the anchor exactly; of others only that they are not below it."""
    rng = np.random.default_rng(6)
    wide = awkward_doubles(rng)
    small = np.where(wide < 4.0, wide, rng.random(wide.size) * 1e-3)
    small[::7] *= 0.06
    wide = np.where(np.arange(wide.size) < 1024, wide, np.minimum(small, 0.0625))
    anchor = 2.0 ** rng.integers(-88, 112, 64)
    share = 2.0 ** -rng.integers(5, 60, (64, 64)) * rng.choice([1.0, 1.5, 1.0 + 2.0**-23], (64, 64))
    narrow = (share * anchor[:, None]).astype(np.float32)
    narrow[:4] = np.float32(np.inf)
    sums, narrow_sums = np.empty(64), np.empty(64)
    launch("sum_grains", 1, 64, 0, wide, narrow.ravel(), anchor, sums, narrow_sums)
    exact = ((wide + 4.0) - 4.0).reshape(64, 64).sum(axis=1)
    terms = narrow.astype(np.float64)
    rounded = np.where(np.isinf(terms), terms, (terms + anchor[:, None]) - anchor[:, None]).sum(axis=1)
    assert (exact < 4.0).sum() > 40
    assert (rounded < anchor).sum() > 50
    for found, expected, limit in ((sums, exact, 4.0), (narrow_sums, rounded, anchor)):
        np.testing.assert_array_equal(np.where(expected < limit, found, 0.0), np.where(expected < limit, expected, 0.0))
        assert (found >= limit)[expected >= limit].all()
