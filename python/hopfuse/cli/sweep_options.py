"""What the options of ``hopfuse sweep`` say: methods, and values of their options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import InputError
from ..evaluate.option_values import is_number


def option_grid(
    simple: Mapping[str, str | None], pools: Sequence[str], further: Sequence[str], legs: Sequence[str]
) -> dict[str, list[Any]]:
    """Values by option, those of options that are given several times one after another.

    Parameters
    ----------
    simple : mapping of str to str or None
        Values of the options that are called so.
    pools, further : sequence of str
        What ``--pool`` and ``--option`` are given.
    legs : sequence of str
        Names of the runs.

    Examples
    --------
    >>> option_grid({"alpha": "0.3,0.7", "consensus": None}, ["3", "graph=5", "9"], ["p=2"], ["dense", "graph"])
    {'alpha': [0.3, 0.7], 'pool': [3, 9], 'pool graph': [5], 'p': [2]}
    """
    grid: dict[str, list[Any]] = {}
    given = [(name, _values(written, name)) for name, written in simple.items() if written is not None]
    for name, values in (*given, *_pools(pools, legs), *_further(further)):
        grid.setdefault(name, []).extend(values)
    alphas = grid.get("alpha", [])
    if not all(is_number(value) and 0 <= value <= 1 for value in alphas):
        raise InputError(f"--alpha is {','.join(map(str, alphas))!r}; it must be numbers from 0 to 1")
    return grid


def words(given: str, name: str) -> list[str]:
    """What stands between the commas of an option.

    Examples
    --------
    >>> words("rrf, linear", "method")
    ['rrf', 'linear']
    """
    parts = [part.strip() for part in given.split(",")]
    if not all(parts):
        raise InputError(f"--{name} is {given!r}; give values with a comma between them")
    return parts


def _pools(given: Sequence[str], legs: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
    for one in given:
        name, equals, values = one.rpartition("=")
        if equals and name not in legs:
            raise InputError(f"--pool {one}: {name!r} is not a run; there are {', '.join(legs)}")
        yield (f"pool {name}" if equals else "pool"), _values(values, "pool")


def _further(given: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
    for one in given:
        name, equals, values = one.partition("=")
        if not (name and equals and values):
            raise InputError(f"--option is {one!r}; give a name and values, for instance --option rank_constant=10,60")
        yield name, _values(values, name)


def _values(given: str, name: str) -> list[Any]:
    """Numbers where they are written so, else words."""
    return [_value(word) for word in words(given, name)]


def _value(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
