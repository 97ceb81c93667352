"""Fusion methods, calibrations and priors, as frozen objects with their options.

``hf.fuse(lists, method="rrf", rank_constant=10)`` and ``hf.fuse(lists, method=hf.fusion.RRF(rank_constant=10))`` are
the same call. May import ``errors``, the checks and ``_arrays``.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

from ..errors import InputError
from .base import FusionMethod
from .boltzmann import Boltzmann
from .borda import Borda
from .calibration import Calibration
from .comb import WMNZ, CombANZ, CombMax, CombMed, CombMin, CombMNZ, CombSum
from .condorcet import Condorcet
from .gumbel import Gumbel
from .isr import ISR, LogISR
from .linear import Linear
from .log_linear import LogLinear
from .max import Max
from .plackett_luce import PlackettLuce
from .power_mean import PowerMean
from .prior import Prior
from .quantum import Quantum
from .rbc import RBC
from .rrf import RRF
from .tsallis import Tsallis

__all__ = [
    "ISR",
    "METHODS",
    "RBC",
    "RRF",
    "WMNZ",
    "Boltzmann",
    "Borda",
    "Calibration",
    "CombANZ",
    "CombMNZ",
    "CombMax",
    "CombMed",
    "CombMin",
    "CombSum",
    "Condorcet",
    "FusionMethod",
    "Gumbel",
    "Linear",
    "LogISR",
    "LogLinear",
    "Max",
    "PlackettLuce",
    "PowerMean",
    "Prior",
    "Quantum",
    "Tsallis",
    "resolve",
]

_MANY: tuple[type[FusionMethod], ...] = (
    Boltzmann,
    Linear,
    Max,
    RRF,
    CombSum,
    CombMNZ,
    CombANZ,
    CombMin,
    CombMax,
    CombMed,
    ISR,
    LogISR,
    Borda,
    RBC,
    LogLinear,
    PowerMean,
    Tsallis,
    Quantum,
    PlackettLuce,
    Gumbel,
    Condorcet,
    WMNZ,
)
METHODS: dict[str, type[FusionMethod]] = {method.name: method for method in _MANY}


def resolve(method: str | FusionMethod, options: dict[str, Any]) -> FusionMethod:
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
        if options:
            raise InputError(
                "UNSORTED",
                "options",
                "{field} {options} are given with {method!r}; set them on that object instead",
                options=sorted(options),
                method=method,
            )
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(
            "choice",
            None,
            "fusion method is {given!r}; allowed: {allowed}",
            given=method,
            allowed=", ".join(sorted(METHODS)),
        )
    if not options:
        return _by_default(method)
    allowed = {f.name for f in fields(METHODS[method])}  # type: ignore[arg-type]
    unknown = sorted(set(options) - allowed)
    if unknown:
        has = ", ".join(sorted(allowed)) or "none"
        raise InputError(
            "unknown",
            None,
            "fusion method {method!r} has no option {names}; its options: {has}",
            method=method,
            names=", ".join(map(repr, unknown)),
            has=has,
        )
    return METHODS[method](**options)


@cache
def _by_default(method: str) -> FusionMethod:
    return METHODS[method]()
