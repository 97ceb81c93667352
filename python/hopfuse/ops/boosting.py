"""Boost the weights of passages that are in a list of hits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import same_library, to_numpy
from .._validation import check_real, is_real
from ..backends import cpu
from ..backends.calls import BoostCall
from ..backends.placement import device_for
from ..errors import InputError
from ..types import Hits
from ._lists import device_list, host_list

LARGEST_STRENGTH = 1e4


def boost_weights(weights: Any, hits: Hits, strength: float) -> Any:
    """Boost the weights of the passages in a list of hits, such as the hits of a lexical search.

    A hit's weight is multiplied by 1 + strength * score / (the largest score of its query). Hits with a score of 0 or
    below change nothing.

    Parameters
    ----------
    weights : array_like of float (B, N)
        As :func:`similarity_weights` returns them; converted to float32. On a GPU (CuPy, torch, DLPack) they must be
        float32.
    hits : Hits (B, k)
        Ids are columns of ``weights``. They must be on the same device as the weights.
    strength : float
        0 to 1e4. The best hit's weight is multiplied by 1 + ``strength``.

    Returns
    -------
    array of float32, shape (B, N)
        A new array of the library that ``weights`` came from. Each operation is rounded to float32, so a query's
        weights are the same bits in every batch and on every device.

    Raises
    ------
    InputError
        Shapes that do not agree, ids that are not columns, a strength out of range, arrays on different devices.

    Notes
    -----
    The values of ``weights`` are not checked here; the walk that uses them refuses invalid ones.

    Examples
    --------
    >>> import numpy as np, hopfuse as hf
    >>> hits = hf.Hits([[2, 0]], [[8.0, 4.0]])
    >>> hf.boost_weights(np.array([[0.5, 1.0, 0.25]], np.float32), hits, 2.0)
    array([[1.  , 1.  , 0.75]], dtype=float32)
    """
    if not isinstance(hits, Hits):
        raise InputError(
            "type",
            "hits",
            "{field} must be Hits, got {kind}; wrap them: hf.Hits(ids, scores)",
            kind=type(hits).__name__,
        )
    if not is_real(strength) or not 0 <= float(strength) <= LARGEST_STRENGTH:
        raise InputError(
            "range",
            "strength",
            "{field} is {given!r}; it must be a number from 0 to {largest_strength:g}",
            given=strength,
            largest_strength=LARGEST_STRENGTH,
        )
    device = device_for("auto", weights, "weights")
    if device is None:
        array = to_numpy(weights, "weights")
        check_real(array, "weights")
        _check_shape(tuple(array.shape), len(hits))
        call = BoostCall(np.asarray(array, np.float32), *host_list(hits), float(strength))
        _check_columns(call.ids, call.counts, array.shape[1])
        return same_library(weights)(cpu.boost_weights(call))
    with device.runtime.on_stream_of(weights):
        given = device.adopt(weights, "weights")
        if given.dtype != np.float32:
            raise InputError(
                "dtype",
                "weights",
                "{field} on a device have dtype {dtype}; it must be float32: convert them there",
                dtype=given.dtype,
            )
        _check_shape(tuple(given.shape), len(hits))
        call = BoostCall(given, *device_list(device, hits, "the hits"), float(strength), on_device=True)
        return device.runtime.export(device.boost_weights(call), weights)


def _check_shape(shape: tuple[int, ...], batch: int) -> None:
    if len(shape) != 2 or shape[0] != batch:
        raise InputError(
            "shape",
            "weights",
            "{field} have shape {shape}; they must be (B, N), with B = {batch} rows as in hits",
            shape=shape,
            batch=batch,
        )


def _check_columns(ids: NDArray[np.int64], counts: NDArray[np.int64], columns: int) -> None:
    outside = (ids >= columns) & (np.arange(ids.shape[1]) < counts[:, None])
    if outside.any():
        row, at = np.argwhere(outside)[0]
        raise InputError(
            "UNSORTED",
            None,
            "row {row} of the hits has id {ids}; weights have the columns 0 .. {columns}",
            row=row,
            ids=ids[row, at],
            columns=columns - 1,
        )
