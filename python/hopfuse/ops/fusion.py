"""Fuse ranked lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import fusion as methods
from .._arrays.convert import is_on_device, same_library, to_numpy
from .._threads import thread_count
from .._validation import (
    FLOAT32_MAX,
    check_k,
    check_length,
    check_number,
    check_real,
    check_shape,
    check_type,
    check_weights,
    is_real,
)
from ..backends import resolve
from ..backends.calls import FuseCall
from ..backends.placement import device_for
from ..errors import InputError
from ..fusion.base import refuse_options
from ..fusion.calibration import Calibration, CalibrationName, Ties, by_name
from ..types import Hits
from ._captured import refuse_per_query
from ._lists import check_hits, device_list, host_list
from .calibration import calibrate

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps

#: Calibrations that keep the sign of a score.
KEEPS_SIGN = ("max", "l2", "none")
_NO_PRIOR = np.zeros(0, np.float32)


def fuse(
    lists: Sequence[Hits],
    *,
    method: str | methods.FusionMethod | Callable[..., Any] = "boltzmann",
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
    method : str, FusionMethod or callable
        A name in ``hopfuse.fusion.METHODS``, such as "boltzmann", "linear", "rrf" or "comb_mnz", or an object of
        :mod:`hopfuse.fusion`, which documents how each method treats ties, missing documents and empty lists. A
        function is called once a query, on the host (:class:`hopfuse.fusion.Custom`).
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
    consensus = check_number(consensus, "consensus", low=0, float32=True)
    pools = _read_pools(pool, lists)
    if chosen.kernel is None:
        calibrated = _calibrated(lists, rule, pools, thread_count(threads))
        w = _read_weights(weights, chosen, len(lists[0]), len(lists)).astype(np.float64)
        return _by_formula(chosen, calibrated, w, float(consensus), _read_prior(prior), min(k, int(pools.sum())))
    device = device_for(backend, lists[0].ids, "lists[0]")
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


def _calibrated(lists: Sequence[Hits], rule: Calibration, pools: NDArray[np.int64], threads: int) -> list[Hits]:
    """Return the first hits of each list with calibrated scores."""
    for at, hits in enumerate(lists):
        if is_on_device(hits.ids):
            raise InputError(
                "unsupported",
                f"lists[{at}]",
                "{field} is on a device, and a fusion method in Python runs on the host; move the lists there",
            )
    taken = [hits.head(int(most)) for hits, most in zip(lists, pools, strict=True)]
    return calibrate(taken, rule, backend="cpu", threads=threads)


def _by_formula(
    method: methods.FusionMethod,
    lists: Sequence[Hits],
    weights: NDArray[np.float64],
    consensus: float,
    factors: NDArray[np.float32],
    k: int,
) -> Hits:
    """Fuse by a method's formula, one query after another."""
    batch = len(lists[0])
    ids, scores = np.full((batch, k), -1, np.int64), np.full((batch, k), -np.inf, np.float32)
    of_query = np.broadcast_to(weights, (batch, len(lists)))
    for b in range(batch):
        row = [
            methods.ScoredList(hits.ids[b, : hits.counts[b]], hits.scores[b, : hits.counts[b]].astype(np.float64))
            for hits in lists
        ]
        held = methods.held_by(row)
        found = method.formula(row, of_query[b])
        documents, final = _checked_scores(found, held, method.name, b)
        final += consensus * np.array([held[document] >= 2 for document in documents.tolist()], bool)
        known = documents < factors.size
        final[known] *= factors[documents[known]]
        single = final.astype(np.float32)
        order = np.lexsort((documents, -single))[:k]
        ids[b, : order.size], scores[b, : order.size] = documents[order], single[order]
    return Hits(ids, scores)


def _checked_scores(
    found: Any, held: Mapping[int, int], method: str, row: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the documents and scores that a formula has returned."""
    if not isinstance(found, Mapping):
        raise InputError(
            "type",
            "method",
            "{field} returned {given} for query {row}; it must be a mapping from ids to scores",
            given=type(found).__name__,
            row=row,
        )
    for document, score in found.items():
        if document not in held:
            raise InputError(
                "unknown",
                "method",
                "{field} gives {given!r} a score in query {row}, which is in none of its lists",
                given=document,
                row=row,
            )
        if not is_real(score) or not abs(score) <= FLOAT32_MAX:
            raise InputError(
                "finite",
                "method",
                "{field} gives document {document} of query {row} the score {given!r}; scores are finite float32",
                document=document,
                row=row,
                given=score,
            )
    return np.array(list(found), np.int64), np.array([float(score) for score in found.values()])


def _fuse_on_device(device: DeviceOps, lists: Sequence[Hits], call: FuseCall, needs_nonnegative: str | None) -> Hits:
    if needs_nonnegative is not None:
        raise InputError(
            "unsupported",
            "calibration",
            "fusion method {method!r} with {field} {given!r} needs scores of at least 0, which are checked only on the "
            "host: move the lists there, or use another calibration (pit takes any scores)",
            method=needs_nonnegative,
            given=call.calibration,
        )
    with device.runtime.on_stream_of(lists[0].ids):
        arrays = [device_list(device, hits, f"lists[{at}]") for at, hits in enumerate(lists)]
        hits = device.fuse(call._replace(lists=arrays))
        return Hits.unchecked(**{name: device.runtime.export(array, lists[0].ids) for name, array in hits.items()})


def _check_lists(lists: Sequence[Hits]) -> None:
    check_type(lists, "lists", Sequence, "a sequence of Hits: hf.fuse([dense, graph])")
    if not lists:
        raise InputError("empty", "lists", "{field} is empty; pass at least one Hits, as in hf.fuse([dense, graph])")
    for at, hits in enumerate(lists):
        check_hits(hits, f"lists[{at}]")
        check_length(len(hits), f"lists[{at}]", len(lists[0]), "query")


def calibration_for(method: methods.FusionMethod, calibration: str | Calibration | None, **options: Any) -> Calibration:
    """Return the calibration to use with a fusion method: the given one, or the method's default.

    Raises
    ------
    InputError
        A calibration or an option that the method cannot use.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(calibration, Calibration):
        refuse_options(given, calibration)
    if method.calibrations == () and (calibration is not None or given):
        raise InputError(
            "unused",
            "calibration" if calibration is not None else next(iter(given)),
            "{field} is given, but fusion method {name!r} uses ranks, not scores; leave it out",
            name=method.name,
        )
    if isinstance(calibration, Calibration):
        rule = calibration
    else:
        rule = by_name(method.default_calibration if calibration is None else calibration, given)
    if method.calibrations and rule.method not in method.calibrations:
        raise InputError(
            "choice",
            "calibration",
            "{field} is {given!r}, which fusion method {name!r} cannot use; allowed: {allowed}",
            given=rule.method,
            name=method.name,
            allowed=", ".join(method.calibrations),
        )
    for name in ("single", "equal"):
        value = getattr(rule, name)
        if method.needs_nonnegative and value is not None and value < 0:
            raise InputError(
                "range",
                name,
                "{field} is {given!r}; fusion method {method!r} needs calibrated scores of at least {allowed}",
                given=value,
                method=method.name,
                allowed=0,
            )
    return rule


def _read_pools(pool: Any, lists: Sequence[Hits]) -> NDArray[np.int64]:
    """Return the largest number of hits to use of each list, (L,)."""
    pools = [int(hits.ids.shape[1]) for hits in lists]
    if pool is None:
        return np.array(pools, np.int64)
    if isinstance(pool, str) or not isinstance(pool, Sequence | np.ndarray):
        return np.minimum(pools, check_k(pool, "pool"))
    check_length(len(pool), "pool", len(lists), "list")
    for at, most in enumerate(pool):
        if most is not None:
            pools[at] = min(pools[at], check_k(most, f"pool[{at}]"))
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
                f"lists[{at}]",
                "{field} has a negative score in row {row}; fusion method {method!r} with calibration {calibration!r} "
                "needs scores of at least 0 (calibration='pit' takes any)",
                row=row,
                method=method,
                calibration=call.calibration,
            )


def _read_weights(weights: Any, method: methods.FusionMethod, batch: int, lists: int) -> NDArray[np.float32]:
    if weights is None:
        return np.array(method.default_weights(lists), np.float32)
    if not method.weighted:
        raise InputError(
            "unused",
            "weights",
            "{field} is given, but fusion method {name!r} takes none; leave it out",
            name=method.name,
        )
    w = to_numpy(weights, "weights")
    check_real(w, "weights")
    if w.ndim == 2:
        refuse_per_query("weights")
    check_shape(w.shape, "weights", (lists,), (batch, lists))
    check_weights(w, "weights", float32=True)
    w32 = np.ascontiguousarray(w, np.float32)
    large = w32 > FLOAT32_MAX / lists  # only then can the sum overflow float32
    if np.count_nonzero(large) and not (w32.sum(axis=-1, dtype=np.float64) <= FLOAT32_MAX).all():
        raise InputError("finite", "weights", "{field} sum to more than float32 can hold; scale them down")
    return w32
