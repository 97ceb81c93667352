"""Boost the weights of passages that are in a list of hits."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays.convert import same_library, to_numpy
from .._validation import check_number, check_real, check_shape
from ..backends import cpu
from ..backends.calls import BoostCall
from ..backends.placement import device_for
from ..types import Hits
from ._lists import check_device_dtype, check_hits, check_inside, device_list, host_list

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
    check_hits(hits)
    strength = check_number(strength, "strength", low=0, high=LARGEST_STRENGTH)
    device = device_for("auto", weights, "weights")
    if device is None:
        array = to_numpy(weights, "weights")
        check_real(array, "weights")
        _check_shape(tuple(array.shape), len(hits))
        call = BoostCall(np.asarray(array, np.float32), *host_list(hits), float(strength))
        check_inside(call.ids, call.counts, array.shape[1], "the columns of weights")
        return same_library(weights)(cpu.boost_weights(call))
    with device.runtime.on_stream_of(weights):
        given = device.adopt(weights, "weights")
        check_device_dtype(given, "weights")
        _check_shape(tuple(given.shape), len(hits))
        call = BoostCall(given, *device_list(device, hits, "hits"), float(strength), on_device=True)
        return device.runtime.export(device.boost_weights(call), weights)


def _check_shape(shape: tuple[int, ...], batch: int) -> None:
    check_shape(shape, "weights", (batch, "N"), reason="a row for each row of hits")
