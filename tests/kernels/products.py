"""Matrix products of dense search: launched alone on the emulator, and their bound by the formulas of the contract."""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

import hopfuse as hf
import numpy as np
from hopfuse_simt import SimtModule
from hopfuse_simt.arguments import Pointer, Struct
from numpy.typing import NDArray

#: Rows and queries of a block, and dimensions of a step.
BLOCK_ROWS, BLOCK_QUERIES, DEPTH = 128, 64, 32
SUFFIXES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
UNIT = 2.0**-24
#: The assumed error of a step of a matrix unit, and the largest relative error of rounding to a type of rows.
STEP_ERROR, LAST_BIT = 2.0**-17, {"float32": 2.0**-11, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def gamma(operations: int) -> float:
    """Return the bound of the relative error of this many float32 operations."""
    return operations * UNIT / (1 - operations * UNIT)


def units_error(dim: int, storage: str, step: float = STEP_ERROR, last_bit: float | None = None) -> float:
    """Return the error of a matrix unit's product over both norms: h of kernels/include/hopfuse/dense_topk.h."""
    bits = (LAST_BIT[storage] if last_bit is None else last_bit) ** 2
    lost = 2.0**-27 * math.sqrt(dim)
    split = 3 * bits + 2 * lost if storage == "float32" else bits + lost
    return 1.01 * (2.02 * step + split + gamma(-(-dim // DEPTH) + 1))


def product_error(dim: int, storage: str, step: float = STEP_ERROR, last_bit: float | None = None) -> float:
    """Return the error of a product over both norms, whichever arithmetic a device uses for it."""
    units = units_error(dim, storage, step, last_bit)
    return max(gamma(dim + 8), units) if storage == "float32" else units


class Bound(NamedTuple):
    """What dense_select_f32 adds to a product: kernels/cuda/topk.cu."""

    slack: float
    norm_floor: float
    underflow: float

    @classmethod
    def of(cls, dim: int, storage: str, step: float = STEP_ERROR, last_bit: float | None = None) -> Bound:
        own, product = gamma(dim + 8), product_error(dim, storage, step, last_bit)
        slack = 1.01 * (own + product + 8 * UNIT * (1 + own + product)) * (1 + own) ** 2
        values = (slack, math.sqrt(dim + 8) * 2.0**-74, 8 * (dim + 8) * 2.0**-126)
        return cls(*(float(np.nextafter(np.float32(value), np.float32(np.inf))) for value in values))


def as_stored(x: NDArray[np.float32], storage: Any) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return rows as a kernel reads them, and their values."""
    corpus = hf.Corpus.from_array(x, storage=storage)
    rows = corpus.vectors if storage == "float32" else corpus.vectors.view(np.uint16)
    return np.array(rows), corpus.as_float32().astype(np.float64)


def widened(rows: NDArray[Any], storage: Any) -> NDArray[np.float64]:
    """Return the values of rows as a kernel reads them."""
    if storage == "float16":
        return rows.view(np.float16).astype(np.float64)
    if storage == "bfloat16":
        return (rows.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return rows.astype(np.float64)


def multiply(
    module: SimtModule,
    rows: NDArray[Any],
    queries: NDArray[np.float32],
    storage: str = "float32",
    *,
    out: NDArray[np.float32] | None = None,
    of_queries: SimtModule | None = None,
    **how: Any,
) -> tuple[NDArray[np.float32], Any]:
    """Return the products (queries, rows) of one launch and what it counted; another module may prepare the queries."""
    (count, dim), batch = rows.shape, queries.shape[0]
    norms, status = np.full(batch, np.nan, np.float32), np.zeros(batch, np.int32)
    parts = np.full((batch, 2 * DEPTH * -(-dim // DEPTH)), 0xFFFF, np.uint16)
    floor = np.float32(Bound.of(dim, storage).norm_floor)
    made = Struct(struct.pack("<Qif", 0, storage == "bfloat16", floor), {0: Pointer(parts, True)})
    arguments = [queries, np.int32(dim), np.int32(0), norms, status, made]
    (of_queries or module).launch("dense_queries_f32", batch, 256, 0, arguments, **how)
    out = np.full((batch, count), np.nan, np.float32) if out is None else out
    with np.errstate(over="ignore"):
        row_norms = np.linalg.norm(widened(rows, storage), axis=1).astype(np.float32)
    given = Struct(struct.pack("<QQq", 0, 0, count), {0: Pointer(rows, False), 8: Pointer(row_norms, False)})
    batch_of = Struct(
        struct.pack("<QQiiixxxx", 0, 0, batch, dim, 0), {0: Pointer(queries, False), 8: Pointer(norms, False)}
    )
    grid = -(-count // BLOCK_ROWS) * -(-batch // BLOCK_QUERIES)
    arguments = [given, batch_of, parts, floor, out]
    return out, module.launch(f"dense_product_{SUFFIXES[storage]}", grid, 128, 0, arguments, **how)
