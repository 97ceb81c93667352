"""Convert query vectors to the form that backends take, checked once even if several operations use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.bfloat16 import bfloat16_bits, bfloat16_to_float32
from .._arrays.convert import to_numpy
from .._arrays.norms import first_unscorable
from .._validation import check_real
from ..backends.placement import device_for
from ..errors import InputError

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps


@dataclass(frozen=True, eq=False, slots=True)
class CheckedQueries:
    """Query vectors on the host that :func:`check_queries` has checked; operations do not check them again."""

    vectors: NDArray[np.float32]
    has_length: bool


def check_queries(queries: Any, dim: int, *, needs_length: bool, backend: str = "auto") -> Any:
    """Return queries to pass to several operations: converted and checked on the host, unchanged on a device.

    Parameters
    ----------
    queries : array_like of float (B, d) or (d,)
    dim : int
        d of the corpus.
    needs_length : bool
        Refuse a zero vector, as an operation over cosines does.
    backend : str
        The backend of the operations.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.ops.vectors import check_queries
    >>> checked = check_queries([[3.0, 4.0]], 2, needs_length=True)
    >>> hf.dense_topk(checked, hf.Corpus.from_array([[1.0, 0.0]]), 1).scores
    array([[3.]], dtype=float32)
    """
    if device_for(backend, queries, "queries") is not None:
        return queries
    return CheckedQueries(read_queries(queries, dim, needs_length=needs_length), needs_length)


def read_queries(queries: Any, dim: int, *, needs_length: bool) -> NDArray[np.float32]:
    """Return queries on the host as float32 (B, d); ``needs_length`` refuses zero vectors."""
    if isinstance(queries, CheckedQueries):
        if queries.vectors.shape[1] == dim and (queries.has_length or not needs_length):
            return queries.vectors
        queries = queries.vectors
    bits = bfloat16_bits(queries, "queries")
    array = to_numpy(queries, "queries") if bits is None else bfloat16_to_float32(bits)
    check_real(array, "queries")
    if array.ndim not in (1, 2) or array.shape[-1] != dim:
        raise InputError(
            "shape",
            "queries",
            "{field} have shape {shape}; the corpus needs (B, {dim}) or ({dim},)",
            shape=array.shape,
            dim=dim,
        )
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.ascontiguousarray(array if array.ndim == 2 else array[None], dtype=np.float32)
    wrong = first_unscorable(vectors, needs_length)
    if wrong is None:
        return vectors
    if wrong.is_zero:
        raise InputError(
            "unused",
            None,
            "query {row} is the zero vector (or vanishes in float32), which has no cosine; leave it out",
            row=wrong.row,
        )
    raise InputError(
        "finite",
        None,
        "query {row} has a NaN, an infinite entry, or values too large to score in float32",
        row=wrong.row,
    )


def device_queries(device: DeviceOps, queries: Any, dim: int) -> Any:
    """Return queries on a device as float32 (B, d); the kernels check their values."""
    vectors = device.runtime.adopt(queries)
    if vectors.dtype != np.float32 or len(vectors.shape) != 2 or vectors.shape[1] != dim:
        raise InputError(
            "shape",
            "queries",
            "{field} are {dtype}{shape}; on a device they must be float32 of shape (B, {dim}): convert them there",
            dtype=vectors.dtype,
            shape=tuple(vectors.shape),
            dim=dim,
        )
    return vectors
