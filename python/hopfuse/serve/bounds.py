"""What a request may contain: limits of numbers, counted before any work that grows with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._validation import counted
from ..errors import InputError
from .config import Limits

#: Numbers or texts that take as long to decode as a list, or as a member of an object.
HEAVY = 4
#: Bytes of JSON of options, or of the settings of an Arrow stream.
SETTINGS_BYTES = 2**16


def check_most(number: int, field: str | None, limits: Limits, name: str, noun: str = "entry") -> None:
    """Refuse more entries, characters or rows than a limit of the server allows.

    Parameters
    ----------
    number : int
    field : str or None
        None for a number of the whole request.
    limits : Limits
    name : str
        Name of the limit, a field of ``limits``.
    noun : str
        What is counted.
    """
    most = getattr(limits, name)
    if number <= most:
        return
    values = {"given": counted(number, noun), "allowed": most, "limit": f"limits.{name}"}
    if field is None:
        raise InputError(
            "limit",
            None,
            "the request has {given}; at most {allowed} are allowed ({limit} of the server); send less at a time",
            **values,
        )
    raise InputError(
        "limit", field, "{field} has {given}; at most {allowed} are allowed ({limit} of the server)", **values
    )


def check_values(body: bytes, limits: Limits) -> None:
    """Refuse a JSON body of more values than are allowed, by its punctuation, before it is decoded.

    A comma stands before each value but the first of a list or an object. A list and a member of an object, which has a
    colon, take longer than other values, and count as ``HEAVY`` of them. Punctuation in texts also counts.
    """
    if HEAVY * len(body) > limits.values:
        text = np.frombuffer(body, np.uint8)
        commas, colons, lists = (int(np.count_nonzero(text == ord(one))) for one in ",:[")
        check_most(commas + (HEAVY - 1) * (colons + lists), None, limits, "values", "value")


def check_settings(nbytes: int, field: str) -> None:
    """Refuse options, or settings of a stream, that are longer than any use of them."""
    if nbytes > SETTINGS_BYTES:
        raise InputError(
            "limit",
            field,
            "{field} has {given} bytes; at most {allowed} are allowed",
            given=nbytes,
            allowed=SETTINGS_BYTES,
        )


def check_depth(value: Any, field: str, limits: Limits) -> None:
    """Refuse lists and objects that are nested more deeply than is allowed."""
    level = [value]
    for _ in range(limits.depth + 1):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, Mapping):
                inner += one.values()
            elif isinstance(one, list | tuple):
                inner += one
        level = inner
        if not level:
            return
    raise InputError(
        "limit",
        field,
        "{field} is nested more deeply than {allowed} levels ({limit} of the server)",
        allowed=limits.depth,
        limit="limits.depth",
    )


def check_conditions(conditions: Mapping[str, Any], field: str, limits: Limits) -> int:
    """Refuse a filter of too many conditions, or with a list of too many values; return its number of values."""
    check_most(len(conditions), field, limits, "conditions", "condition")
    total = 0
    for name, value in conditions.items():
        if isinstance(value, Sequence) and not isinstance(value, str):
            check_most(len(value), f"{field}.{name}", limits, "condition_values", "value")
            total += len(value)
        else:
            total += 1
    return total
