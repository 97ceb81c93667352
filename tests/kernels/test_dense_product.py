"""Matrix products that find candidates, launched alone: exact where they can be, and always within their bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hopfuse import _native
from hopfuse_simt import MATRIX_UNITS, SimtModule
from hopfuse_simt.driver import CUDA
from kernels.products import BLOCK_QUERIES, DEPTH, STEP_ERROR, SUFFIXES, Bound, as_stored, multiply, product_error
from numpy.typing import NDArray
from variants import SANITIZED, missing

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.skipif(missing("simt") is not None, reason=str(missing("simt"))),
]

SOURCE = CUDA / "dense_topk.cu"
UNITS = [unit for unit in MATRIX_UNITS if unit != "narrow"]
#: Capability, storage and matrix unit. With 7.5 bfloat16 rows have no unit; float32 rows use those of some cards.
CASES = [
    *((90, storage, unit) for storage in SUFFIXES for unit in UNITS),
    *((75, "float16", unit) for unit in UNITS),
    (75, "bfloat16", UNITS[0]),
    (75, "float32", UNITS[0]),
]
ORDERS = {"forward": 0, "reverse": 0, "shuffle": 1}
Modules = Callable[..., SimtModule]


@pytest.fixture(scope="module")
def modules() -> Iterator[Modules]:
    """Return the product's module in a build for a capability, compiled once."""
    made: dict[tuple[str, int], SimtModule] = {}

    def get(build: str = "plain", capability: int = 90) -> SimtModule:
        if (build, capability) not in made:
            made[build, capability] = SimtModule(SOURCE, build, capability=capability)
        return made[build, capability]

    yield get
    for module in made.values():
        module.close()


def whole_numbers(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    """Return small whole numbers, whose products and sums are exact in any order."""
    return rng.integers(-9, 10, shape).astype(np.float32)


def check(
    module: SimtModule, storage: str, rows: int, dim: int, batch: int, of_queries: SimtModule | None = None, **how: Any
) -> None:
    rng = np.random.default_rng(rows + dim + batch)
    x, q = whole_numbers(rng, rows, dim), whole_numbers(rng, batch, dim)
    found, _ = multiply(module, as_stored(x, storage)[0], q, storage, of_queries=of_queries, **how)
    np.testing.assert_array_equal(found, q @ x.T, err_msg=f"{storage}, {rows} rows, {dim} dimensions, {batch} queries")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("capability", "storage"), [(90, "float32"), (75, "float32"), (75, "bfloat16"), (90, "float16"), (75, "float16")]
)
def test_blocks_that_are_whole_and_not(modules: Modules, capability: int, storage: str, order: str) -> None:
    """128 rows, 32 or 64 queries, 8 or 32 dimensions, and one less or more; read by four numbers and not."""
    module = modules("plain", capability)
    for rows, dim, batch in (
        (1, 1, 1), (2, 3, 2), (4, 4, 5), (127, 7, 31), (128, 8, 32), (129, 9, 33), (132, 12, 63), (130, 16, 64),
        (260, 31, 65), (256, 32, 97), (131, 33, 129), (5, 200, 3),
    ):  # fmt: skip
        check(module, storage, rows, dim, batch, order=order, seed=ORDERS[order])


@pytest.mark.parametrize("build", SANITIZED)
@pytest.mark.parametrize(
    ("capability", "storage"), [(90, "float32"), (75, "float32"), (75, "bfloat16"), (90, "float16"), (75, "float16")]
)
def test_blocks_in_the_sanitizers_builds(modules: Modules, capability: int, storage: str, build: str) -> None:
    """Few rows: the threads are those of whole blocks anyway. ThreadSanitizer runs those of eight queries at most."""
    module = modules(build, capability)
    for rows, dim, batch in ((9, 36, 2), (6, 33, 34), (132, 8, 65)):
        of_queries = module if batch <= 8 else modules("plain", capability)
        check(module, storage, rows, dim, batch, of_queries, order="shuffle", seed=1)


@pytest.mark.parametrize("build", ["plain", *SANITIZED])
@pytest.mark.parametrize("capability", [90, 75])
@pytest.mark.parametrize("offset", [1, 2, 3])
def test_queries_that_do_not_begin_at_a_multiple_of_four(
    modules: Modules, build: str, capability: int, offset: int
) -> None:
    """As a caller's array on the device may."""
    rng = np.random.default_rng(offset)
    held = whole_numbers(rng, 5 * 12 + 4)
    assert held.ctypes.data % 16 == 0
    q, x = held[offset : offset + 5 * 12].reshape(5, 12), whole_numbers(rng, 9, 12)
    found, _ = multiply(modules(build, capability), x, q)
    np.testing.assert_array_equal(found, q @ x.T)


@pytest.mark.parametrize(("rows", "dim", "batch"), [(256, 64, 64), (128, 64, 32), (256, 36, 130)])
def test_numbers_are_read_once_for_each_block(modules: Modules, rows: int, dim: int, batch: int) -> None:
    """Of float32 rows and queries, by float32 arithmetic."""
    rng = np.random.default_rng(1)
    _, counted = multiply(modules("count", 75), whole_numbers(rng, rows, dim), whole_numbers(rng, batch, dim))
    of_queries = -(-batch // BLOCK_QUERIES)
    # A query beyond the end is the last one again.
    read_queries = sum(32 if min(64, batch - first) <= 32 else 64 for first in range(0, batch, 64))
    assert counted.global_loaded == 4 * dim * (rows * of_queries + read_queries * rows // 128)
    assert counted.global_stored == 4 * rows * batch


@pytest.mark.parametrize("capability", [90, 75])
@pytest.mark.parametrize("storage", SUFFIXES)
def test_units_read_rows_and_parts_once_for_each_block(modules: Modules, storage: str, capability: int) -> None:
    """And the norms of queries, in the end, and of rows that they split; nothing beyond the last query or dimension."""
    if (capability, storage) in ((75, "float32"), (75, "bfloat16")):
        pytest.skip("no unit")
    rng, (rows, dim, batch) = np.random.default_rng(1), (256, 72, 70)
    x, q = whole_numbers(rng, rows, dim), whole_numbers(rng, batch, dim)
    _, counted = multiply(modules("count", capability), as_stored(x, storage)[0], q, storage)
    blocks, steps, each = 2, -(-dim // DEPTH), 4 if storage == "float32" else 2
    of_rows, of_parts = blocks * rows * dim * each, rows // 128 * batch * steps * 4 * DEPTH
    norms = 4 * (rows // 4 * batch + (blocks * 4 * rows if storage == "float32" else 0))
    assert counted.global_loaded == of_rows + of_parts + norms
    assert counted.global_stored == 4 * rows * batch


# ---- Bounds ---------------------------------------------------------------------------------------------------------


def kinds_of_rows(rng: np.random.Generator, kind: str, storage: str, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Return rows that lose much in products: by their exponents, by cancellation, by what is subnormal."""
    spread = 24.0 if storage == "float16" else 60.0
    x = rng.standard_normal(shape)
    if kind == "exponents":
        x *= 2.0 ** rng.uniform(-spread, 12.0, shape)
    if kind == "cancelling":
        x[:, 1::2] = -x[:, : shape[1] - 1 : 2] * (1 + 2.0**-9 * rng.integers(-2, 3, (shape[0], shape[1] // 2)))
    if kind == "subnormal":
        x = rng.integers(-512, 513, shape) * {"float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}[storage]
    return x.astype(np.float32)


@pytest.mark.parametrize(("capability", "storage", "mma"), CASES)
@pytest.mark.parametrize("kind", ["normal", "exponents", "cancelling", "subnormal"])
def test_products_are_within_their_bound(modules: Modules, capability: int, storage: str, mma: str, kind: str) -> None:
    """For queries of every size, and for rows, queries and dimensions that fill blocks and do not."""
    rng = np.random.default_rng(4)
    for rows, dim, batch in ((1, 2, 1), (127, 31, 5), (129, 64, 33), (130, 200, 9)):
        stored, exact_rows = as_stored(kinds_of_rows(rng, kind, storage, (rows, dim)), storage)
        q = rng.standard_normal((batch, dim)).astype(np.float32)
        q *= (10.0 ** rng.choice([-40, -30, -8, 0, 8, 17], (batch, 1))).astype(np.float32)
        q *= np.where(rng.random(q.shape) < 0.2, np.float32(2.0**-12), np.float32(1.0))
        found, _ = multiply(modules("plain", capability), stored, q, storage, mma=mma)
        wide = q.astype(np.float64)
        of_rows, error = np.linalg.norm(exact_rows, axis=1), product_error(dim, storage)
        floor = Bound.of(dim, storage).norm_floor
        of_rows = of_rows + (floor if storage == "float32" else 0.0)  # only these are split
        most = error * (np.linalg.norm(wide, axis=1) + floor)[:, None] * of_rows + 8 * dim * 2.0**-126
        assert (np.abs(found - wide @ exact_rows.T) <= most).all()


@pytest.mark.parametrize("storage", SUFFIXES)
def test_the_launcher_s_bound_is_that_of_the_contract(storage: str) -> None:
    for dim in (1, 2, 31, 32, 33, 768, 4096, 2**20):
        assert _native.device_dot_bound(dim, _native.dense_types()[storage]) == Bound.of(dim, storage)
    assert _native.DENSE_STEP_ERROR == STEP_ERROR
