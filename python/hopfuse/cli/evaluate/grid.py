"""Parse the options of ``hopfuse sweep``: methods, and lists of values of their options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._validation import check_names, check_number
from ...errors import InputError
from ..config_options import assigned, plain_value


def option_grid(
    simple: Mapping[str, str | None], pools: Sequence[str], further: Sequence[str], legs: Sequence[str]
) -> dict[str, list[Any]]:
    """Return the values to try of each option; those of repeated options are concatenated.

    ``pools`` and ``further`` are the values of ``--pool`` and ``--option``, ``simple`` the other options by name.

    Examples
    --------
    >>> option_grid({"alpha": "0.3,0.7", "consensus": None}, ["3", "graph=5", "9"], ["p=2"], ["dense", "graph"])
    {'alpha': [0.3, 0.7], 'pool': [3, 9], 'pool graph': [5], 'p': [2]}
    """
    grid: dict[str, list[Any]] = {}
    given = [(name, values(written, name)) for name, written in simple.items() if written is not None]
    named = [(name, values(written, name)) for name, written in assigned(further, example="rank_constant=10,60")]
    for name, found in (*given, *_pools(pools, legs), *named):
        grid.setdefault(name, []).extend(found)
    for value in grid.get("alpha", []):
        check_number(value, "alpha", low=0, high=1)
    return grid


def words(given: str, name: str) -> list[str]:
    """Return the comma-separated words of an option.

    Examples
    --------
    >>> words("rrf, linear", "method")
    ['rrf', 'linear']
    """
    parts = [part.strip() for part in given.split(",")]
    if not all(parts):
        raise InputError("syntax", name, "{field} is {given!r}; give values separated by commas", given=given)
    return parts


def _pools(given: Sequence[str], legs: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
    for one in given:
        name, equals, written = one.rpartition("=")
        if equals:
            check_names((name,), "pool", legs)
        yield (f"pool {name}" if equals else "pool"), values(written, "pool")


def values(given: str, name: str) -> list[Any]:
    """Return the comma-separated values of an option, as numbers where possible.

    Examples
    --------
    >>> values("10, 0.5,auto", "pool")
    [10, 0.5, 'auto']
    """
    return [plain_value(word) for word in words(given, name)]
