"""Fusion methods, calibrations and priors, as frozen objects with their options.

``hf.fuse(lists, method="rrf", rank_constant=10)`` and ``hf.fuse(lists, method=hf.fusion.RRF(rank_constant=10))`` are
the same call. May import ``errors``, the checks and ``_arrays``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any

from .._validation import check_choice
from ..errors import InputError
from . import mixtures, ranks, scores
from .base import FusionMethod, ScoredList, Scores, held_by, refuse_options
from .calibration import Calibration
from .custom import Custom
from .mixtures import *  # noqa: F403
from .prior import Prior
from .ranks import *  # noqa: F403
from .scores import *  # noqa: F403

__all__ = [
    "METHODS",
    "Calibration",
    "Custom",
    "FusionMethod",
    "Prior",
    "ScoredList",
    "Scores",
    "held_by",
    "resolve",
]
__all__ += mixtures.__all__
__all__ += ranks.__all__
__all__ += scores.__all__

_METHODS = (vars(family)[name] for family in (mixtures, ranks, scores) for name in family.__all__)
METHODS: dict[str, type[FusionMethod]] = {kind.name: kind for kind in sorted(_METHODS, key=lambda kind: kind.name)}
"""All methods by their names; a class that its family names in ``__all__`` is one of them."""


def resolve(method: str | FusionMethod | Callable[..., Any], options: dict[str, Any]) -> FusionMethod:
    """Return the method object for the ``method=`` argument of ``fuse`` and its options.

    Raises
    ------
    InputError
        An unknown name, an option that the method does not have, or options in addition to an object.

    Examples
    --------
    >>> from hopfuse import fusion
    >>> fusion.resolve("rrf", {"rank_constant": 10})
    RRF(rank_constant=10.0)
    """
    if isinstance(method, FusionMethod):
        refuse_options(options, method)
        return method
    if callable(method) and not isinstance(method, type):
        return Custom(method, options)
    name: str = check_choice(method, "method", METHODS)
    if not options:
        return _by_default(name)
    allowed = {f.name for f in fields(METHODS[name])}  # type: ignore[arg-type]
    for option in options:
        if option not in allowed:
            raise InputError(
                "unknown",
                option,
                "{field} is not an option of fusion method {method!r}; allowed: {allowed}",
                method=name,
                allowed=", ".join(sorted(allowed)) or "none",
            )
    return METHODS[name](**options)


@cache
def _by_default(method: str) -> FusionMethod:
    return METHODS[method]()
