"""Query vectors as backends take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.bfloat16 import bfloat16_bits, bfloat16_to_float32
from .._arrays.convert import to_numpy
from .._arrays.norms import first_unscorable
from .._validation import check_real
from ..errors import InputError

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps


def read_queries(queries: Any, dim: int, *, needs_length: bool) -> NDArray[np.float32]:
    """Return queries on the host as float32 (B, d); with ``needs_length`` a zero vector is refused."""
    bits = bfloat16_bits(queries, "queries")
    array = to_numpy(queries, "queries") if bits is None else bfloat16_to_float32(bits)
    check_real(array, "queries")
    if array.ndim not in (1, 2) or array.shape[-1] != dim:
        raise InputError(f"queries have shape {array.shape}; the corpus needs (B, {dim}) or ({dim},)")
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.ascontiguousarray(array if array.ndim == 2 else array[None], dtype=np.float32)
    wrong = first_unscorable(vectors, needs_length)
    if wrong is None:
        return vectors
    if wrong.is_zero:
        raise InputError(
            f"query {wrong.row} is the zero vector (or vanishes in float32), which has no cosine; leave it out"
        )
    raise InputError(f"query {wrong.row} has a NaN, an infinite entry, or values too large to score in float32")


def device_queries(device: DeviceOps, queries: Any, dim: int) -> Any:
    """Return queries on a device, float32 (B, d); their values are seen by the kernels."""
    vectors = device.runtime.adopt(queries)
    if vectors.dtype != np.float32 or len(vectors.shape) != 2 or vectors.shape[1] != dim:
        raise InputError(
            f"queries are {vectors.dtype}{tuple(vectors.shape)}; on a device they must be float32 of shape "
            f"(B, {dim}): convert them there"
        )
    return vectors
