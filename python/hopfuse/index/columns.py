"""Typed values from a table's columns; an error names the row that is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .tables import Table

_INTEGER = re.compile(r"-?[0-9]{1,18}")
_REAL = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def texts(table: Table, name: str, *, default: str | None = None) -> list[str]:
    """A column of str; ``default`` stands for values that are absent."""
    values = table.columns.get(name)
    if values is None:
        return [default or ""] * table.num_rows
    out = []
    for i, value in enumerate(values):
        found = default if value is None else value
        if not isinstance(found, str):
            _refuse(table, name, i, value, "a string")
        out.append(found)
    return out


def row_ids(table: Table) -> list[str]:
    """The column ``id`` as distinct strings; the row number where there is no such column."""
    values = table.columns.get("id")
    if values is None:
        return [str(i) for i in range(table.num_rows)]
    out = []
    first: dict[str, int] = {}
    for i, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, (str, int, np.integer)):
            _refuse(table, "id", i, value, "a string or an integer")
        text = str(value)
        if first.setdefault(text, i) != i:
            raise InputError(
                f"{table.where(i)}: id {text!r} is also that of {table.where(first[text])}; ids are distinct"
            )
        out.append(text)
    return out


def integers(table: Table, name: str, limit: int) -> NDArray[np.int64]:
    """A column of integers 0 .. limit-1."""
    allowed = f"an integer 0 .. {limit - 1}"
    values = _numbers(table, name, _as_integer, "iu", allowed)
    out = np.asarray(values, dtype=np.int64) if len(values) else np.zeros(0, np.int64)
    bad = (out < 0) | (out >= limit)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        _refuse(table, name, at, values[at], allowed)
    return out


def weights(table: Table, name: str) -> NDArray[np.float64] | None:
    """A column of finite numbers >= 0; None where there is no such column."""
    if name not in table.columns:
        return None
    allowed = "a finite number of at least 0"
    out = np.asarray(_numbers(table, name, _as_real, "iuf", allowed), dtype=np.float64)
    bad = ~(np.isfinite(out) & (out >= 0))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        _refuse(table, name, at, table.columns[name][at], allowed)
    return out


def categories(table: Table, name: str) -> tuple[NDArray[np.int64], list[str]] | None:
    """A column of strings as (number of each row's string, strings in order of first appearance)."""
    if name not in table.columns:
        return None
    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(text, len(numbers)) for text in texts(table, name)]
    return np.array(rows, np.int64), list(numbers)


def _numbers(
    table: Table, name: str, convert: Callable[[Any, bool], Any], kinds: str, allowed: str
) -> Sequence[Any] | NDArray[Any]:
    values = table.columns[name]
    if isinstance(values, np.ndarray) and values.dtype.kind in kinds:
        return values
    out = []
    for i, value in enumerate(values):
        number = convert(value, table.textual)
        if number is None:
            _refuse(table, name, i, value, allowed)
        out.append(number)
    return out


def _as_integer(value: Any, textual: bool) -> int | None:
    if textual:
        return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else None
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return int(value) if whole and abs(int(value)) < 2**62 else None


def _as_real(value: Any, textual: bool) -> float | None:
    if textual:
        return float(value) if isinstance(value, str) and _REAL.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _refuse(table: Table, name: str, row: int, value: Any, allowed: str) -> NoReturn:
    found = f"no {name!r}" if value is None else f"{name} = {str(value)[:80]!r}"
    raise InputError(f"{table.where(row)} has {found}; it must be {allowed}")
