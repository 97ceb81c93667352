"""Vectors in JSON bodies: lists of numbers, or base64 of float32 values."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import RefusalError, invalid
from .schema import EntityIn, PassageIn, QueryIn


def check_vector(vector: NDArray[Any], field: str) -> NDArray[np.float32]:
    """Return a vector as float32; refuse values that are not finite."""
    values = float32_of(vector)
    if not np.isfinite(values).all():
        raise not_finite(f"{field}[{int(np.argmin(np.isfinite(values)))}]")
    return values


def float32_of(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return values as float32; those beyond its range become infinite."""
    if values.dtype == np.float32:
        return np.ascontiguousarray(values)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(values, np.float32)


def not_finite(field: str) -> RefusalError:
    """Return the refusal of a value."""
    return invalid(field, "is NaN, infinite or outside float32's range; give finite numbers")


def vector_of(given: QueryIn | PassageIn | EntityIn, field: str) -> NDArray[np.float32] | None:
    """Return a vector given as a list or as base64; None if there is none."""
    if given.vector is not None and given.vector_base64 is not None:
        raise invalid(f"{field}.vector_base64", "is given, and vector, too; give one of them")
    if given.vector is not None:
        return check_vector(np.array(given.vector, np.float64), f"{field}.vector")
    if given.vector_base64 is None:
        return None
    name = f"{field}.vector_base64"
    try:
        data = base64.b64decode(given.vector_base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid(name, f"is not valid base64: {error}") from None
    if len(data) % 4:
        raise invalid(name, f"has {len(data)} bytes; little-endian float32 values have 4 each")
    return check_vector(np.frombuffer(data, "<f4"), name)
