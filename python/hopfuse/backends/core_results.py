"""Flatten nested results of a captured core to a list of arrays, and rebuild them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from ..errors import InputError
from ..types.hits import Hits

Rebuild = Callable[[Iterator[Any]], Any]


def flatten(result: Any) -> tuple[list[Any], Rebuild]:
    """Return the arrays of nested Hits, tuples, lists and dicts, and a function that rebuilds the nesting."""
    leaves: list[Any] = []
    rebuild = _walk(result, leaves)
    return leaves, rebuild


def check_leaves(leaves: list[Any], batch: int) -> None:
    """Raise unless every array has one row per query."""
    for leaf in leaves:
        if tuple(leaf.shape[:1]) != (batch,):
            raise InputError(
                "shape",
                None,
                "the core returned an array of shape {shape} for {batch} queries; each array must have the "
                "batch as its first axis",
                shape=tuple(leaf.shape),
                batch=batch,
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
        "type",
        None,
        "the core must return Hits or arrays, or tuples, lists or dicts of them; got {kind}",
        kind=type(part).__name__,
    )
