"""Vectors in JSON bodies: lists of numbers, or base64 of float32 values."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_excludes, float32_of
from ..errors import InputError
from .schema import EntityIn, PassageIn, QueryIn


def check_vector(vector: NDArray[Any], field: str) -> NDArray[np.float32]:
    """Return a vector as float32; refuse values that are not finite."""
    values = float32_of(vector)
    if not np.isfinite(values).all():
        raise not_finite(f"{field}[{int(np.argmin(np.isfinite(values)))}]")
    return values


def not_finite(field: str) -> InputError:
    """Return the refusal of a value."""
    return InputError("finite", field, "{field} is NaN, infinite or outside float32's range; give finite numbers")


def wrong_dim(field: str, vector: NDArray[Any], dim: int) -> InputError:
    """Return the refusal of a vector of another dimension than the index's."""
    return InputError(
        "shape",
        field,
        "{field} has {given} values; the vectors of the index have {allowed}",
        given=len(vector),
        allowed=dim,
    )


def vector_of(given: QueryIn | PassageIn | EntityIn, field: str) -> NDArray[np.float32] | None:
    """Return a vector given as a list or as base64; None if there is none."""
    check_excludes(f"{field}.vector_base64", given.vector_base64, "vector", given.vector)
    if given.vector is not None:
        return check_vector(np.array(given.vector, np.float64), f"{field}.vector")
    if given.vector_base64 is None:
        return None
    name = f"{field}.vector_base64"
    try:
        data = base64.b64decode(given.vector_base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InputError("syntax", name, "{field} is not valid base64: {error}", error=error) from None
    if len(data) % 4:
        raise InputError(
            "shape", name, "{field} has {given} bytes; little-endian float32 values have 4 each", given=len(data)
        )
    return check_vector(np.frombuffer(data, "<f4"), name)
