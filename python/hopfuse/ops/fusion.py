"""Fuse ranked lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import fusion as methods
from .._arrays.convert import same_library, to_numpy
from .._threads import thread_count
from .._validation import WHOLE, check_k, check_real, counted
from ..backends import resolve
from ..backends.calls import FuseCall
from ..backends.placement import device_for
from ..errors import InputError
from ..fusion.base import FLOAT32_MAX, is_finite_float32
from ..fusion.calibration import Calibration, CalibrationName, Ties, by_name
from ..types import Hits
from ._captured import refuse_per_query
from ._lists import device_list, host_list

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps

#: Calibrations that keep the sign of a score.
KEEPS_SIGN = ("max", "l2", "none")
_NO_PRIOR = np.zeros(0, np.float32)


def fuse(
    lists: Sequence[Hits],
    *,
    method: str | methods.FusionMethod = "boltzmann",
    weights: Any = None,
    calibration: CalibrationName | Calibration | None = None,
    ties: Ties | None = None,
    single: float | None = None,
    equal: float | None = None,
    pool: int | Sequence[int | None] | None = None,
    consensus: float = 0.0,
    prior: Any = None,
    k: int = 10,
    backend: str = "auto",
    threads: int | None = None,
    **options: Any,
) -> Hits:
    """Fuse ranked lists of the same queries into one.

    Parameters
    ----------
    lists : sequence of Hits
        L lists of B queries each, over the same ids; their widths may differ.
    method : str or FusionMethod
        A name in ``hopfuse.fusion.METHODS``, such as "boltzmann", "linear", "rrf" or "comb_mnz", or an object of
        :mod:`hopfuse.fusion`, which documents how each method treats ties, missing documents and empty lists.
    weights : array_like (L,) or (B, L), optional
        Finite, at least 0; they need not sum to 1. By default the method's own.
    calibration : str or :class:`hopfuse.fusion.Calibration`, optional
        See :func:`calibrate`; by default the method's own (``pit`` for boltzmann and linear).
    ties : str, optional
        For ``calibration="pit"``.
    single, equal : float, optional
        The calibrated score of a list with one hit, and of a list with two or more equal scores.
    pool : int or sequence of int or None, one per list, optional
        The number of leading hits of each list to use. Default: all.
    consensus : float
        Added to the score of every document that is in at least two lists. Its scale differs from that of Boltzmann
        probabilities (PhaseGraph's paper uses 0.5 to 1.5).
    prior : :class:`hopfuse.fusion.Prior` or array_like (N,), optional
        The importance of each document in [0, 1], NaN if unknown. The fused score is multiplied by
        0.7 + 0.3 importance, or by 1 if the importance is unknown.
    k : int
        Hits to return per query; results have as many columns as that, or as all pools together if fewer.
    **options
        Options of the method, such as ``temperature=`` (boltzmann), ``rank_constant=`` (rrf) or ``bias=`` (max).

    Returns
    -------
    Hits
        ids int64 and scores float32 (B, width), counts (B,). Order: higher score, then lower id.

    Raises
    ------
    InputError
        Lists with different numbers of queries, an unknown method, an option or calibration that it does not have,
        weights of another shape, a pool or prior out of range.

    References
    ----------
    Boltzmann fusion of percentile ranks: PhaseGraph. Reciprocal rank fusion: Cormack, Clarke & Buettcher,
    SIGIR 2009.

    Examples
    --------
    >>> import hopfuse as hf
    >>> dense = hf.Hits([[0, 1, 2]], [[0.9, 0.8, 0.1]])
    >>> graph = hf.Hits([[2, 0]], [[0.5, 0.2]])
    >>> hf.fuse([dense, graph], method="rrf", k=2).ids
    array([[0, 2]])
    """
    k = check_k(k)
    chosen = methods.resolve(method, options)
    _check_lists(lists)
    rule = calibration_for(chosen, calibration, ties=ties, single=single, equal=equal)
    if not is_finite_float32(consensus) or consensus < 0:
        raise InputError(
            "range",
            "consensus",
            "{field} is {given!r}; it must be a finite float32 number, at least 0",
            given=consensus,
        )
    pools = _read_pools(pool, lists)
    device = device_for(backend, lists[0].ids, "the first list")
    call = FuseCall(
        [] if device is not None else [host_list(hits) for hits in lists],
        method=chosen.kernel,
        calibration=rule.method,
        ties=rule.tie_rule,
        calibration_option=rule.kernel_options_once(len(lists)),
        pools=pools,
        option=chosen.kernel_options_once(len(lists)),
        weights=_read_weights(weights, chosen, len(lists[0]), len(lists)),
        consensus=float(consensus),
        prior=_read_prior(prior),
        k=min(k, int(pools.sum())),
        threads=thread_count(threads),
        on_device=device is not None,
    )
    needs_nonnegative = chosen.needs_nonnegative and rule.method in KEEPS_SIGN
    if device is not None:
        return _fuse_on_device(device, lists, call, chosen.name if needs_nonnegative else None)
    if needs_nonnegative:
        _check_nonnegative(call, chosen.name)
    hits = resolve(backend).fuse(call)
    wrap = same_library(lists[0].ids)
    return Hits.unchecked(**{name: wrap(array) for name, array in hits.items()})


def _fuse_on_device(device: DeviceOps, lists: Sequence[Hits], call: FuseCall, needs_nonnegative: str | None) -> Hits:
    if needs_nonnegative is not None:
        raise InputError(
            "range",
            None,
            "{needs_nonnegative} with calibration {calibration!r} needs scores of at least 0, which are "
            "checked only on the host: move the lists there, or use another calibration (pit takes any "
            "scores)",
            needs_nonnegative=needs_nonnegative,
            calibration=call.calibration,
        )
    with device.runtime.on_stream_of(lists[0].ids):
        arrays = [device_list(device, hits, f"list {at}") for at, hits in enumerate(lists)]
        hits = device.fuse(call._replace(lists=arrays))
        return Hits.unchecked(**{name: device.runtime.export(array, lists[0].ids) for name, array in hits.items()})


def _check_lists(lists: Sequence[Hits]) -> None:
    if not isinstance(lists, Sequence) or not lists:
        raise InputError(
            "range", "lists", "{field} must be a sequence of at least one Hits, as in hf.fuse([dense, graph])"
        )
    for at, hits in enumerate(lists):
        if not isinstance(hits, Hits):
            raise InputError(
                "type",
                None,
                "list {at} must be Hits, got {kind}; wrap it: hf.Hits(ids, scores)",
                at=at,
                kind=type(hits).__name__,
            )
        if len(hits) != len(lists[0]):
            raise InputError(
                "UNSORTED",
                None,
                "list {at} has {count} and list 0 has {number}; they must match",
                at=at,
                count=counted(len(hits), "query"),
                number=len(lists[0]),
            )


def calibration_for(method: methods.FusionMethod, calibration: str | Calibration | None, **options: Any) -> Calibration:
    """Return the calibration to use with a fusion method: the given one, or the method's default.

    Raises
    ------
    InputError
        A calibration or an option that the method cannot use.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(calibration, Calibration) and given:
        raise InputError(
            "UNSORTED",
            "options",
            "{field} {given} are given with {calibration!r}; set them on that object instead",
            given=sorted(given),
            calibration=calibration,
        )
    if method.calibrations == () and (calibration is not None or given):
        named = "a calibration" if calibration is not None else ", ".join(f"{name}=" for name in given)
        raise InputError(
            "UNSORTED",
            None,
            "fusion method {name!r} uses ranks, not scores: {named} would have no effect; omit it",
            name=method.name,
            named=named,
        )
    if isinstance(calibration, Calibration):
        rule = calibration
    else:
        rule = by_name(method.default_calibration if calibration is None else calibration, given)
    if method.calibrations and rule.method not in method.calibrations:
        raise InputError(
            "choice",
            None,
            "fusion method {name!r} cannot use calibration {method!r}; allowed: {allowed}",
            name=method.name,
            method=rule.method,
            allowed=", ".join(method.calibrations),
        )
    for name in ("single", "equal"):
        value = getattr(rule, name)
        if method.needs_nonnegative and value is not None and value < 0:
            raise InputError(
                "range",
                name,
                "{field} is {given!r}; fusion method {name!r} needs calibrated scores of at least 0",
                given=value,
                name=method.name,
            )
    return rule


def _read_pools(pool: Any, lists: Sequence[Hits]) -> NDArray[np.int64]:
    """Return the largest number of hits to use of each list, (L,)."""
    pools = [int(hits.ids.shape[1]) for hits in lists]
    if pool is None:
        return np.array(pools, np.int64)
    many = list(pool) if isinstance(pool, Sequence | np.ndarray) and not isinstance(pool, str) else [pool] * len(lists)
    if len(many) != len(lists):
        raise InputError(
            "length",
            "pool",
            "{field} is {given!r}; it must be a whole number, or {number} of them, one per list",
            given=pool,
            number=len(lists),
        )
    for at, most in enumerate(many):
        if most is None:
            continue
        if not isinstance(most, WHOLE) or isinstance(most, bool) or most < 0:
            raise InputError(
                "range",
                "pool",
                "{field} of list {at} is {most!r}; it must be a whole number, at least 0, or None for all",
                at=at,
                most=most,
            )
        pools[at] = min(pools[at], int(most))
    return np.array(pools, np.int64)


def _read_prior(prior: Any) -> NDArray[np.float32]:
    if prior is None:
        return _NO_PRIOR
    return (prior if isinstance(prior, methods.Prior) else methods.Prior(prior)).factors


def _check_nonnegative(call: FuseCall, method: str) -> None:
    for at, (_, scores, counts) in enumerate(call.lists):
        taken = np.minimum(counts, call.pools[at])
        negative = (scores < 0) & (np.arange(scores.shape[1]) < taken[:, None])
        if negative.any():
            row = int(np.argwhere(negative)[0][0])
            raise InputError(
                "range",
                None,
                "list {at} has a negative score in row {row}; {method} with calibration {calibration!r} "
                "needs scores of at least 0 (calibration='pit' takes any)",
                at=at,
                row=row,
                method=method,
                calibration=call.calibration,
            )


def _read_weights(weights: Any, method: methods.FusionMethod, batch: int, lists: int) -> NDArray[np.float32]:
    if weights is None:
        return method.default_weights(lists)
    if not method.weighted:
        raise InputError("UNSORTED", None, "fusion method {name!r} takes no weights; omit them", name=method.name)
    w = to_numpy(weights, "weights")
    check_real(w, "weights")
    if w.ndim == 2:
        refuse_per_query("weights")
    if w.shape not in ((lists,), (batch, lists)):
        raise InputError(
            "shape",
            "weights",
            "{field} have shape {shape}; they must be ({lists},) or ({batch}, {lists})",
            shape=w.shape,
            lists=lists,
            batch=batch,
        )
    with np.errstate(over="ignore", invalid="ignore"):
        w32 = np.ascontiguousarray(w, np.float32)
        bad = ~((w32 >= 0) & (w32 <= FLOAT32_MAX))
        large = w32 > FLOAT32_MAX / lists  # only then can the sum overflow float32
    if np.count_nonzero(bad):
        raise InputError("range", "weights", "{field} are {w}; they must be finite and at least 0", w=w)
    if np.count_nonzero(large) and not (w32.sum(axis=-1, dtype=np.float64) <= FLOAT32_MAX).all():
        raise InputError("UNSORTED", "weights", "{field} are {w}; their sum overflows float32: scale them down", w=w)
    return w32
