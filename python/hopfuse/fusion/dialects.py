"""What other systems mean by a fusion method, in terms of this library's options. docs/dialects.md has the sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from . import scales
from .base import FusionMethod, is_finite_float32
from .borda import Borda
from .calibration import Calibration
from .comb import WMNZ, CombANZ, CombMax, CombMed, CombMin, CombMNZ, CombSum
from .isr import ISR, LogISR
from .linear import Linear
from .rbc import RBC
from .rrf import RRF

_NONE = MappingProxyType({"none": Calibration("none")})


@dataclass(frozen=True)
class Convention:
    """One method of one system.

    Examples
    --------
    >>> from hopfuse.fusion.dialects import DIALECTS
    >>> DIALECTS["qdrant"]["rrf"].constant, DIALECTS["qdrant"]["rrf"].first_rank
    (2.0, 0)
    """

    method: type[FusionMethod]
    #: Scales by the name that calibration= takes; the first is the system's default. None where ranks count.
    scales: Mapping[str, Calibration | scales.Scale] = field(default_factory=dict)
    #: Options at values of the system's, and which options its user sets.
    options: Mapping[str, Any] = field(default_factory=dict)
    settable: tuple[str, ...] = ()
    #: RRF's k and first rank, by the system's count.
    constant: float = 60.0
    first_rank: int = 1
    #: Whether weights can be given, and whether the system divides them by their sum.
    weights: Literal["none", "as given", "divided"] = "none"
    #: Weights where the call gives none: 1 each, 1/L each, or an error.
    default: Literal["one", "mean", "required"] = "one"
    #: Every score is multiplied by it.
    factor: float = 1.0

    def weights_for(self, given: NDArray[np.float32] | None, num_lists: int) -> NDArray[np.float32]:
        """(L,) or (B, L), as the kernels take them.

        Examples
        --------
        >>> from hopfuse.fusion.dialects import DIALECTS
        >>> DIALECTS["langchain"]["rrf"].weights_for(None, 2)
        array([0.5, 0.5], dtype=float32)
        """
        if given is None:
            given = np.full(num_lists, 1.0 / num_lists if self.default == "mean" else 1.0, np.float32)
        w = given.astype(np.float64)
        if self.weights == "divided":
            total = w.sum(axis=-1, keepdims=True)
            if not (total > 0).all():
                raise InputError(f"weights are {given}; this dialect divides them by their sum, which must be above 0")
            w = w / total
        return (w * self.factor).astype(np.float32)


@dataclass(frozen=True)
class Spoken:
    """A call in a dialect, read: the method, and the calibration or the scale of the scores."""

    convention: Convention
    method: FusionMethod
    calibration: Calibration
    scale: scales.Scale | None


def _ranx() -> dict[str, Convention]:
    norms: dict[str, Calibration | scales.Scale] = {
        "min_max": Calibration("min_max", single=0.0, equal=0.0),
        "max": scales.by_largest,
        "sum": Calibration("sum", single=0.0, equal=0.0),
        "z_score": Calibration("z_score"),
        "rank": Calibration("rank"),
        "none": Calibration("none"),
    }
    plain = {method.name: Convention(method, norms) for method in (CombSum, CombANZ, CombMin, CombMax, CombMed)}
    return {
        **plain,
        "comb_mnz": Convention(CombMNZ, norms, settable=("gamma",)),
        "linear": Convention(Linear, norms, weights="as given", default="required"),
        "mixed": Convention(CombMNZ, norms, {"gamma": 0.5}, weights="as given", default="required"),
        "wmnz": Convention(WMNZ, norms, weights="as given", default="required"),
        "isr": Convention(ISR),
        "log_isr": Convention(LogISR, settable=("sigma",)),
        "borda": Convention(Borda, options={"missing": "mean"}, weights="as given"),
        "rbc": Convention(RBC, settable=("phi",)),
        "rrf": Convention(RRF, settable=("rank_constant",)),
    }


def _llamaindex() -> dict[str, Convention]:
    relative, sigma = scales.min_max(flat="sign"), scales.three_sigma(ddof=0, flat="sign")
    return {
        "rrf": Convention(RRF, first_rank=0),
        "relative_score": Convention(Linear, {"min_max": relative}, weights="divided"),
        "dbsf": Convention(Linear, {"three_sigma": sigma}, weights="divided"),
        "comb_max": Convention(CombMax, _NONE),
    }


def _haystack() -> dict[str, Convention]:
    return {
        "rrf": Convention(RRF, constant=61.0, first_rank=0, weights="divided", factor=61.0),
        "dbsf": Convention(CombMax, {"three_sigma": scales.three_sigma(ddof=0, flat="kept")}),
        "linear": Convention(Linear, _NONE, weights="divided"),
        "comb_max": Convention(CombMax, _NONE),
    }


_K = ("rank_constant",)
DIALECTS: Mapping[str, Mapping[str, Convention]] = MappingProxyType(
    {
        "ranx": _ranx(),
        "qdrant": {
            "rrf": Convention(RRF, settable=_K, constant=2.0, first_rank=0),
            "dbsf": Convention(Linear, {"three_sigma": scales.three_sigma(ddof=1, flat=0.5)}),
        },
        "lancedb": {"rrf": Convention(RRF, settable=_K)},
        "langchain": {"rrf": Convention(RRF, settable=_K, weights="as given", default="mean")},
        "llamaindex": _llamaindex(),
        "haystack": _haystack(),
        "weaviate": {
            "rrf": Convention(RRF, first_rank=0, weights="as given", default="required"),
            "relative_score": Convention(
                Linear, {"min_max": Calibration("min_max")}, weights="as given", default="required"
            ),
        },
        "elasticsearch": {
            "rrf": Convention(RRF, settable=_K, weights="as given"),
            "linear": Convention(
                Linear,
                {"none": Calibration("none"), "min_max": Calibration("min_max"), "l2": Calibration("l2")},
                weights="as given",
            ),
        },
        "opensearch": {
            "rrf": Convention(RRF, settable=_K, weights="as given"),
            "linear": Convention(
                Linear,
                {"min_max": scales.min_max(flat=1.0, floor=0.001), "l2": Calibration("l2")},
                weights="divided",
            ),
        },
        "milvus": {
            "rrf": Convention(RRF, settable=_K),
            "linear": Convention(Linear, _NONE, weights="as given", default="required"),
        },
    }
)


def translate(
    dialect: str,
    method: str | FusionMethod,
    *,
    calibration: str | Calibration | None,
    weights_given: bool,
    fixed: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Spoken:
    """The call in this library's terms.

    Parameters
    ----------
    dialect, method, calibration, options
        As :func:`hopfuse.fuse` takes them; `rank_constant` is the system's own k.
    weights_given : bool
        Whether the call gives weights.
    fixed : mapping of str to value or None
        What the call gives for options that a dialect fixes: ties, single, equal.

    Raises
    ------
    InputError
        An unknown dialect, a method that the system lacks, an option that its convention fixes.

    Examples
    --------
    >>> from hopfuse.fusion.dialects import translate
    >>> translate("qdrant", "rrf", calibration=None, weights_given=False, fixed={}, options={}).method
    RRF(rank_constant=1.0)
    """
    convention = _convention(dialect, method)
    name = f"{method!r} of dialect {dialect!r}"
    for option in (option for option, value in fixed.items() if value is not None):
        raise InputError(
            f"{option}={fixed[option]!r} with {name}; a dialect fixes it: leave {option} or the dialect out"
        )
    if weights_given and convention.weights == "none":
        raise InputError(f"{name} has no weights; leave them out, or use no dialect")
    if not weights_given and convention.default == "required":
        raise InputError(f"{name} has no default weights; give weights=, one a list")
    chosen = convention.method(**_options(convention, name, options))
    if not convention.scales:
        if calibration is not None:
            raise InputError(f"{name} reads ranks, not scores: a calibration has no effect; leave it out")
        return Spoken(convention, chosen, Calibration("none"), None)
    wanted = next(iter(convention.scales)) if calibration is None else calibration
    if not isinstance(wanted, str) or wanted not in convention.scales:
        raise InputError(f"calibration is {wanted!r}; {name} has: {', '.join(convention.scales)}")
    scale = convention.scales[wanted]
    if isinstance(scale, Calibration):
        return Spoken(convention, chosen, scale, None)
    return Spoken(convention, chosen, Calibration("none"), scale)


def _convention(dialect: str, method: str | FusionMethod) -> Convention:
    if not isinstance(dialect, str) or dialect not in DIALECTS:
        raise InputError(f"dialect is {dialect!r}; allowed: {', '.join(DIALECTS)}")
    has = ", ".join(DIALECTS[dialect])
    if isinstance(method, FusionMethod):
        raise InputError(f"method is {method!r} with dialect {dialect!r}, which sets its options; give a name: {has}")
    if not isinstance(method, str) or method not in DIALECTS[dialect]:
        raise InputError(f"dialect {dialect!r} has no fusion method {method!r}; it has: {has}")
    return DIALECTS[dialect][method]


def _options(convention: Convention, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    known = {f.name for f in fields(convention.method)}  # type: ignore[arg-type]
    for option in (option for option in given if option not in convention.settable):
        fixes = f"{name} fixes {option}" if option in known else f"{name} has no option {option!r}"
        raise InputError(f"{fixes}; options that can be given: {', '.join(convention.settable) or 'none'}")
    options = {**convention.options, **given}
    if convention.method is RRF:
        k = options.get("rank_constant", convention.constant)
        least = 1 - convention.first_rank
        if not is_finite_float32(k) or k < least:
            raise InputError(
                f"rank_constant is {k!r}; {name} counts ranks from {convention.first_rank}, so that it must be a "
                f"finite float32 number, at least {least}"
            )
        options["rank_constant"] = float(k) - (1 - convention.first_rank)
    return options
