"""Fusion methods as small typed objects: a method's name, its options, and what it accepts.

``hf.fuse(lists, method="rrf", rank_constant=10)`` and
``hf.fuse(lists, method=hf.fusion.RRF(rank_constant=10))`` are the same call.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ..errors import InputError
from .base import FusionMethod
from .boltzmann import Boltzmann
from .linear import Linear
from .max import Max
from .rrf import RRF

__all__ = ["METHODS", "RRF", "Boltzmann", "FusionMethod", "Linear", "Max", "resolve"]

METHODS: dict[str, type[FusionMethod]] = {m.name: m for m in (Boltzmann, Linear, Max, RRF)}


def resolve(method: str | FusionMethod, options: dict[str, Any]) -> FusionMethod:
    """The method object for ``fuse``'s ``method=`` and its further keyword arguments.

    Raises
    ------
    InputError
        An unknown name, an option that the method does not have, options beside an object.

    Examples
    --------
    >>> from hopfuse import fusion
    >>> fusion.resolve("rrf", {"rank_constant": 10})
    RRF(rank_constant=10.0)
    """
    if isinstance(method, FusionMethod):
        if options:
            raise InputError(f"options {sorted(options)} beside {method!r}; give them to the object instead")
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"fusion method is {method!r}; allowed: {', '.join(sorted(METHODS))}")
    allowed = {f.name for f in fields(METHODS[method])}  # type: ignore[arg-type]
    unknown = sorted(set(options) - allowed)
    if unknown:
        has = ", ".join(sorted(allowed)) or "none"
        raise InputError(f"fusion method {method!r} has no option {', '.join(map(repr, unknown))}; its options: {has}")
    return METHODS[method](**options)
