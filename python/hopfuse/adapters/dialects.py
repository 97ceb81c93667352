"""Fusion with the conventions of other systems, by this library's methods. docs/dialects.md has the sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import is_on_device, to_numpy
from .._validation import check_choice, check_number, is_whole
from ..errors import InputError
from ..fusion import (
    ISR,
    RBC,
    RRF,
    WMNZ,
    Borda,
    Calibration,
    CombANZ,
    CombMax,
    CombMed,
    CombMin,
    CombMNZ,
    CombSum,
    FusionMethod,
    Linear,
    LogISR,
)
from ..ops.fusion import fuse as fuse_lists
from ..types import Hits
from ..types.hits import PAD_SCORE

__all__ = ["DIALECTS", "Convention", "fuse"]

# ---- Scales other than hopfuse's calibrations, in float64 on the host -----------------------------------------------

#: (scores (B, k), whether each is a hit (B, k)) -> scaled scores (B, k), which are finite but meaningless if not hits.
Scale: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.bool_]], NDArray[np.float64]]
#: The result for equal scores, or a single one: a number, the scores themselves, or 1 if they are above 0, else 0.
Flat: TypeAlias = float | Literal["kept", "sign"]


def _three_sigma(*, ddof: int, flat: Flat) -> Scale:
    """Return (s - mean + 3 sigma)/(6 sigma), not clipped to [0, 1]; ``ddof`` is 0 for a population, 1 for a sample."""

    def scale(scores: NDArray[np.float64], held: NDArray[np.bool_]) -> NDArray[np.float64]:
        count = held.sum(axis=1, keepdims=True)
        mean = scores.sum(axis=1, keepdims=True, where=held) / np.maximum(count, 1)
        squares = np.square(scores - mean, where=held, out=np.zeros_like(scores)).sum(axis=1, keepdims=True)
        sigma = np.sqrt(squares / np.maximum(count - ddof, 1))
        return _spread(scores, held, mean - 3.0 * sigma, 6.0 * sigma, flat)

    return scale


def _min_max(*, flat: Flat, floor: float = 0.0) -> Scale:
    """Return (s - min)/(max - min), or ``floor`` where that is 0."""

    def scale(scores: NDArray[np.float64], held: NDArray[np.bool_]) -> NDArray[np.float64]:
        least, most = _ends(scores, held)
        scaled = _spread(scores, held, least, most - least, flat)
        return np.where((scores == least) & (most > least), floor, scaled)

    return scale


def _by_largest(scores: NDArray[np.float64], held: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return s / max(max s, 1e-9)."""
    return np.where(held, scores, 0.0) / np.maximum(_ends(scores, held)[1], 1e-9)


def _ends(scores: NDArray[np.float64], held: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest score of each list, (B, 1); 0 for an empty list."""
    some = held.any(axis=1, keepdims=True)
    least = scores.min(axis=1, keepdims=True, where=held, initial=np.inf)
    most = scores.max(axis=1, keepdims=True, where=held, initial=-np.inf)
    return np.where(some, least, 0.0), np.where(some, most, 0.0)


def _spread(
    scores: NDArray[np.float64],
    held: NDArray[np.bool_],
    low: NDArray[np.float64],
    width: NDArray[np.float64],
    flat: Flat,
) -> NDArray[np.float64]:
    """Return (s - low)/width, or ``flat`` for lists with equal scores."""
    least, most = _ends(scores, held)
    if flat == "kept":
        level = most
    elif flat == "sign":
        level = np.where(most > 0, 1.0, 0.0)
    else:
        level = np.full_like(most, flat)
    spread = (most > least) & (width > 0)
    inside = np.where(held, scores, low)
    return np.where(spread, (inside - low) / np.where(spread, width, 1.0), level)


# ---- Conventions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Convention:
    """A fusion method of a system, in terms of hopfuse's.

    Examples
    --------
    >>> from hopfuse.adapters.dialects import DIALECTS
    >>> DIALECTS["qdrant"]["rrf"].constant, DIALECTS["qdrant"]["rrf"].first_rank
    (2.0, 0)
    """

    method: type[FusionMethod]
    #: Scales by their names in ``calibration=``, the system's default first; empty if the method reads ranks.
    scales: Mapping[str, Calibration | Scale] = field(default_factory=dict)
    #: Options that the system fixes, and the names of those that its user sets.
    options: Mapping[str, Any] = field(default_factory=dict)
    settable: tuple[str, ...] = ()
    #: RRF's k and first rank, as the system counts them.
    constant: float = 60.0
    first_rank: int = 1
    #: Whether the method takes weights, and whether the system divides them by their sum.
    weights: Literal["none", "as given", "divided"] = "none"
    #: Default weights: 1 each, 1/L each, or none, so that they are required.
    default: Literal["one", "mean", "required"] = "one"
    #: Factor of every score.
    factor: float = 1.0

    def weights_for(self, given: Any, num_lists: int) -> NDArray[np.float32]:
        """Return weights, (L,) or (B, L), as ``hf.fuse`` takes them.

        Examples
        --------
        >>> from hopfuse.adapters.dialects import DIALECTS
        >>> DIALECTS["langchain"]["rrf"].weights_for(None, 2)
        array([0.5, 0.5], dtype=float32)
        """
        if given is None:
            given = np.full(num_lists, 1.0 / num_lists if self.default == "mean" else 1.0)
        w = np.asarray(given, np.float32).astype(np.float64)
        if self.weights == "divided":
            total = w.sum(axis=-1, keepdims=True)
            if not (total > 0).all():
                raise InputError(
                    "range",
                    "weights",
                    "{field} is {given!r}; this dialect divides by the sum, which must be above 0",
                    given=given,
                )
            w = w / total
        return (w * self.factor).astype(np.float32)


_NONE = MappingProxyType({"none": Calibration("none")})


def _ranx() -> dict[str, Convention]:
    norms: dict[str, Calibration | Scale] = {
        "min_max": Calibration("min_max", single=0.0, equal=0.0),
        "max": _by_largest,
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
    relative, sigma = _min_max(flat="sign"), _three_sigma(ddof=0, flat="sign")
    return {
        "rrf": Convention(RRF, first_rank=0),
        "relative_score": Convention(Linear, {"min_max": relative}, weights="divided"),
        "dbsf": Convention(Linear, {"three_sigma": sigma}, weights="divided"),
        "comb_max": Convention(CombMax, _NONE),
    }


def _haystack() -> dict[str, Convention]:
    return {
        "rrf": Convention(RRF, constant=61.0, first_rank=0, weights="divided", factor=61.0),
        "dbsf": Convention(CombMax, {"three_sigma": _three_sigma(ddof=0, flat="kept")}),
        "linear": Convention(Linear, _NONE, weights="divided"),
        "comb_max": Convention(CombMax, _NONE),
    }


_K = ("rank_constant",)
DIALECTS: Mapping[str, Mapping[str, Convention]] = MappingProxyType(
    {
        "ranx": _ranx(),
        "qdrant": {
            "rrf": Convention(RRF, settable=_K, constant=2.0, first_rank=0),
            "dbsf": Convention(Linear, {"three_sigma": _three_sigma(ddof=1, flat=0.5)}),
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
                {"min_max": _min_max(flat=1.0, floor=0.001), "l2": Calibration("l2")},
                weights="divided",
            ),
        },
        "milvus": {
            "rrf": Convention(RRF, settable=_K),
            "linear": Convention(Linear, _NONE, weights="as given", default="required"),
        },
    }
)


# ---- The call -------------------------------------------------------------------------------------------------------


def fuse(
    lists: Sequence[Hits],
    dialect: str,
    method: str,
    *,
    weights: Any = None,
    calibration: str | None = None,
    pool: int | Sequence[int | None] | None = None,
    consensus: float = 0.0,
    prior: Any = None,
    k: int = 10,
    backend: str = "auto",
    threads: int | None = None,
    **options: Any,
) -> Hits:
    """Fuse ranked lists of the same queries into one, with the conventions of another system.

    Parameters
    ----------
    lists : sequence of Hits
        L lists of B queries each, over the same ids; their k may differ.
    dialect : str
        "ranx", "qdrant", "lancedb", "langchain", "llamaindex", "haystack", "weaviate", "elasticsearch", "opensearch"
        or "milvus".
    method : str
        The system's method by its name in this library; docs/dialects.md lists them.
    weights : array_like (L,) or (B, L), optional
        Weights as in the system, if its method has weights.
    calibration : str, optional
        Scale of the scores, if the system offers a choice.
    pool : int or sequence of int or None, one a list, optional
        Number of first hits of each list that are scaled and fused.
    consensus, prior, k, backend, threads
        As in :func:`hopfuse.fuse`.
    **options
        Options of the method that the system exposes, e.g. ``rank_constant=``, the system's k.

    Returns
    -------
    Hits
        As from :func:`hopfuse.fuse`.

    Raises
    ------
    InputError
        The dialect is unknown, the system lacks the method or the option or fixes it, lists are on a device and the
        dialect has its own scale, or :func:`hopfuse.fuse` refuses an argument.

    References
    ----------
    docs/dialects.md names the version and the page of each system.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.adapters import dialects
    >>> dense = hf.Hits([[0, 1, 2]], [[0.9, 0.8, 0.1]])
    >>> graph = hf.Hits([[2, 0]], [[0.5, 0.2]])
    >>> dialects.fuse([dense, graph], "qdrant", "rrf", k=1).scores.round(4)  # 1/(2 + 0) + 1/(2 + 1)
    array([[0.8333]], dtype=float32)
    """
    convention = _convention(dialect, method)
    name = f"{method!r} of dialect {dialect!r}"
    if weights is not None and convention.weights == "none":
        raise _unused("weights", name, "has no weights")
    if weights is None and convention.default == "required":
        raise InputError(
            "missing",
            "weights",
            "{field} is missing, and {method} has no default; give one for each list",
            method=name,
        )
    chosen = convention.method(**_options(convention, name, options))
    scale = _scale(convention, name, calibration)
    rule = scale if scale is None or isinstance(scale, Calibration) else Calibration("none")
    known = isinstance(lists, Sequence) and all(isinstance(hits, Hits) for hits in lists)
    if known and scale is not None and not isinstance(scale, Calibration):
        pools = list(pool) if isinstance(pool, Sequence | np.ndarray) else [pool] * len(lists)
        if len(pools) == len(lists):  # otherwise hopfuse.fuse refuses the pools
            lists = [_rescaled(hits, scale, most, name) for hits, most in zip(lists, pools, strict=True)]
    if known and chosen.weighted and (weights is None or _is_plain(weights)):
        weights = convention.weights_for(weights, len(lists))
    return fuse_lists(
        lists,
        method=chosen,
        weights=weights,
        calibration=rule,
        pool=pool,
        consensus=consensus,
        prior=prior,
        k=k,
        backend=backend,
        threads=threads,
    )


def _rescaled(hits: Hits, scale: Scale, most: Any, name: str) -> Hits:
    """Return hits with the scores of the first ``most`` of each row scaled."""
    if is_on_device(hits.scores):
        raise InputError(
            "unsupported",
            "lists",
            "{field} are on a device, and {method} scales scores on the host; copy them to the host",
            method=name,
        )
    scores, counts = to_numpy(hits.scores, "scores"), to_numpy(hits.counts, "counts")
    if is_whole(most):  # hopfuse.fuse refuses other types
        counts = np.minimum(counts, max(int(most), 0))
    held = np.arange(scores.shape[1]) < counts[:, None]
    scaled = scale(np.where(held, scores, 0).astype(np.float64), held)
    return Hits.unchecked(hits.ids, np.where(held, scaled, PAD_SCORE).astype(np.float32), counts)


def _is_plain(weights: Any) -> bool:
    """Return whether hopfuse.fuse accepts the weights; others are passed on, so that its error shows them unchanged."""
    array = to_numpy(weights, "weights")
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 2):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = array.astype(np.float32)
    return bool((np.isfinite(numbers) & (numbers >= 0)).all())


def _scale(convention: Convention, name: str, wanted: Any) -> Calibration | Scale | None:
    if not convention.scales:
        if wanted is not None:
            raise _unused("calibration", name, "reads ranks, not scores")
        return None
    chosen = next(iter(convention.scales)) if wanted is None else wanted
    return convention.scales[check_choice(chosen, "calibration", convention.scales)]


def _convention(dialect: str, method: str) -> Convention:
    methods = DIALECTS[check_choice(dialect, "dialect", DIALECTS)]
    return methods[check_choice(method, "method", methods)]


def _options(convention: Convention, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    known = {f.name for f in fields(convention.method)}  # type: ignore[arg-type]
    for option in (option for option in given if option not in convention.settable):
        settable = ", ".join(convention.settable) or "none"
        raise _unused(option, name, "fixes it" if option in known else f"has no such option; it has: {settable}")
    options = {**convention.options, **given}
    if convention.method is RRF:
        k = options.get("rank_constant", convention.constant)
        least = 1 - convention.first_rank
        options["rank_constant"] = check_number(k, "rank_constant", low=least, float32=True) - least
    return options


def _unused(option: str, method: str, reason: str) -> InputError:
    return InputError(
        "unused", option, "{field} is given, and {method} {reason}; leave it out", method=method, reason=reason
    )
