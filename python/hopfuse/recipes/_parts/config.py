"""Configs of recipes: frozen dataclasses that check their own fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any, TypeVar

import numpy as np

from ..._validation import MAX_WHOLE, check_whole, is_real
from ...errors import InputError

C = TypeVar("C")


def option(
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    below: float | None = None,
    choices: tuple[str, ...] | None = None,
    optional: bool = False,
    own: bool = False,
) -> Any:
    """Return a dataclass field with a description and a range, which :func:`check_options` checks.

    Parameters
    ----------
    default : bool, int, float or str
        Its type is the type of the option.
    doc : str
        One line for the command line's help.
    low, high : float, optional
        The smallest and the largest value.
    below : float, optional
        An exclusive upper bound.
    choices : tuple of str, optional
    optional : bool
        The value may be None, and is None by default; ``default`` then only gives the type.
    own : bool
        The config checks the value itself.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from hopfuse.recipes._parts.config import check_options, make_config, option
    >>> @dataclass(frozen=True)
    ... class Config:
    ...     damping: float = option(0.5, "Probability of walking on.", low=0, below=1)
    ...     pool: int = option(100, "Length of the list.", low=1)
    ...     def __post_init__(self):
    ...         check_options(self)
    >>> make_config(Config, None, {"pool": 30})
    Config(damping=0.5, pool=30)
    """
    about = {"doc": doc, "low": low, "high": high, "below": below, "choices": choices, "optional": optional}
    return field(default=None if optional else default, metadata={**about, "type": type(default), "own": own})


def make_config(kind: type[C], config: C | None, options: Mapping[str, Any]) -> C:
    """Return a config of a class: the given one or the default, with fields replaced by the options.

    Raises
    ------
    InputError
        A config of another class, an option that the class does not have, or a value that it refuses.
    """
    names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    unknown = sorted(set(options) - set(names))
    if unknown:
        raise InputError(
            "choice",
            None,
            "{kind} has no option {unknown!r}; allowed: {allowed}",
            kind=kind.__name__,
            unknown=unknown[0],
            allowed=", ".join(names),
        )
    if config is None:
        return kind(**options)
    if not isinstance(config, kind):
        raise InputError(
            "type",
            "config",
            "{field} is a {kind}; give a {kind_2}, or its fields as keyword arguments",
            kind=type(config).__name__,
            kind_2=kind.__name__,
        )
    return replace(config, **options) if options else config  # type: ignore[type-var]


def check_options(config: Any, prefix: str = "") -> None:
    """Check the fields of a frozen config that :func:`option` declared, and convert them to their types.

    ``prefix`` precedes a field's name in errors: ``"walk."``.
    """
    for f in fields(config):
        value = getattr(config, f.name)
        if f.metadata.get("own", True) or (value is None and f.metadata["optional"]):
            continue
        name, kind, low, high = prefix + f.name, f.metadata["type"], f.metadata["low"], f.metadata["high"]
        if kind is bool:
            checked: Any = check_bool(value, name)
        elif kind is str and f.metadata["choices"] is None:
            checked = check_text(value, name)
        elif kind is str:
            checked = check_choice(value, name, f.metadata["choices"])
        elif kind is int:
            checked = check_whole(value, name, MAX_WHOLE if high is None else int(high))
        else:
            checked = check_number(value, name, low=low, high=high, below=f.metadata["below"])
        object.__setattr__(config, f.name, checked)


def check_number(
    value: Any, name: str, *, low: float | None = None, high: float | None = None, below: float | None = None
) -> float:
    """Return a finite number within its range as a float; ``below`` must hold in float32 too."""
    allowed = is_real(value) and bool(np.isfinite(float(value)))
    allowed = allowed and (low is None or value >= low) and (high is None or value <= high)
    with np.errstate(over="ignore"):  # float32 overflows to infinity
        allowed = allowed and (below is None or bool(np.float32(value) < below))
    if not allowed:
        raise InputError(
            "range",
            name,
            "{field} is {given!r}; it must be one finite number{range}",
            given=value,
            range=_range(low, high, below),
        )
    return float(value)


def check_edge_weights(weights: Any) -> dict[str, float] | None:
    """Return weights by names of edge types, each at least 0."""
    if weights is None:
        return None
    if not isinstance(weights, Mapping):
        raise InputError(
            "type",
            None,
            'edge_weights is {given!r}; it must map names of edge types to numbers: {{"synonym": 0.5}}',
            given=weights,
        )
    return {name: check_number(weight, f"edge_weights[{name!r}]", low=0) for name, weight in weights.items()}


def check_edge_types(weights: Mapping[str, float] | None, names: Sequence[str]) -> None:
    """Refuse weights of types that a graph does not have."""
    for name in weights or ():
        if name not in names:
            raise InputError(
                "UNSORTED",
                None,
                "edge_weights has the type {name!r}; the graph has {names}",
                name=name,
                names=", ".join(names),
            )


def check_choice(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(
            "choice", name, "{field} is {given!r}; allowed: {allowed}", given=value, allowed=", ".join(choices)
        )
    return value


def check_text(value: Any, name: str) -> str:
    """Return a string that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise InputError("type", name, "{field} is {given!r}; it must be a string that is not blank", given=value)
    return value


def check_bool(value: Any, name: str) -> bool:
    """Return True or False."""
    if not isinstance(value, bool):
        raise InputError("type", name, "{field} is {given!r}; it must be True or False", given=value)
    return value


def _range(low: float | None, high: float | None, below: float | None) -> str:
    if high is None and below is None:
        return "" if low is None else f", at least {low:g}"
    least = "(-inf" if low is None else f"[{low:g}"
    return f" in {least}, {below:g})" if below is not None else f" in {least}, {high:g}]"
