"""Results of any nesting as a list of arrays, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from ..errors import InputError
from ..types.hits import Hits

Rebuild = Callable[[Iterator[Any]], Any]


def take_apart(result: Any) -> tuple[list[Any], Rebuild]:
    """Return the arrays of a result of Hits, arrays, tuples, lists and dicts, and what rebuilds it from others."""
    leaves: list[Any] = []
    rebuild = _walk(result, leaves)
    return leaves, rebuild


def check_leaves(leaves: list[Any], batch: int) -> None:
    """Refuse a core's result where an array has not a row for each query."""
    for leaf in leaves:
        if tuple(leaf.shape[:1]) != (batch,):
            raise InputError(
                f"a core returned an array of shape {tuple(leaf.shape)} for {batch} queries; each array must have the "
                "batch as its first axis"
            )


def _walk(part: Any, leaves: list[Any]) -> Rebuild:
    if isinstance(part, Hits):
        names = [field.name for field in fields(part)]
        leaves += [getattr(part, name) for name in names]
        kind = type(part)
        return lambda arrays: kind.unchecked(**{name: next(arrays) for name in names})
    if isinstance(part, tuple | list):
        rebuilds = [_walk(item, leaves) for item in part]
        make = getattr(type(part), "_make", type(part))
        return lambda arrays: make([rebuild(arrays) for rebuild in rebuilds])
    if isinstance(part, dict):
        named = {name: _walk(item, leaves) for name, item in part.items()}
        return lambda arrays: {name: rebuild(arrays) for name, rebuild in named.items()}
    if hasattr(part, "shape") and hasattr(part, "dtype"):
        leaves.append(part)
        return next
    raise InputError(
        f"a core returned a {type(part).__name__}; it must return Hits or arrays, or tuples or dicts of them"
    )
