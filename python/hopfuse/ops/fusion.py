"""Fuse ranked lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import is_on_device, to_numpy
from .._validation import (
    FLOAT32_MAX,
    check_k,
    check_length,
    check_number,
    check_real,
    check_shape,
    check_type,
    check_weights,
)
from ..backends.calls.fusion import FuseCall
from ..backends.engine import engine_for
from ..errors import InputError
from ..fusion import FusionMethod, Prior, ScoredList, fused_by_formula, resolve
from ..fusion.base import refuse_options
from ..fusion.calibration import Calibration, CalibrationName, Ties, by_name
from ..types import Hits
from ..types.hits import pad_rows
from ._arguments import check_hits, refuse_per_query
from .calibration import calibrate

#: Calibrations that keep the sign of a score.
KEEPS_SIGN = ("max", "l2", "none")
_NO_PRIOR = np.zeros(0, np.float32)


def fuse(
    lists: Sequence[Hits],
    *,
    method: str | FusionMethod | Callable[..., Any] = "boltzmann",
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
    chosen = resolve(method, options)
    _check_lists(lists)
    rule = calibration_for(chosen, calibration, ties=ties, single=single, equal=equal)
    consensus = check_number(consensus, "consensus", low=0, float32=True)
    pools = _read_pools(pool, lists)
    prior, w = _read_prior(prior), _read_weights(weights, chosen, len(lists[0]), len(lists))
    k = min(k, int(pools.sum()))
    if chosen.kernel is None:
        return _by_formula(chosen, _calibrated(lists, rule, pools, threads), w, consensus, prior, k)
    with engine_for(backend, lists[0], "lists[0]") as engine:
        call = FuseCall(
            [engine.hits(hits, f"lists[{at}]") for at, hits in enumerate(lists)],
            chosen.kernel,
            rule.method,
            rule.tie_rule,
            rule.kernel_options_once(len(lists)),
            pools,
            chosen.kernel_options_once(len(lists)),
            w,
            consensus,
            prior,
            k,
            engine.threads(threads),
            engine.on_device,
        )
        if chosen.needs_nonnegative and rule.method in KEEPS_SIGN:
            engine.needs_host("calibration", "lists", "use calibration='pit', which takes negative scores")
            _check_nonnegative(call, chosen.name)
        return engine.give_hits(engine.ops.run(call))


def _calibrated(lists: Sequence[Hits], rule: Calibration, pools: NDArray[np.int64], threads: int | None) -> list[Hits]:
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
    method: FusionMethod,
    lists: Sequence[Hits],
    weights: NDArray[np.float32],
    consensus: float,
    factors: NDArray[np.float32],
    k: int,
) -> Hits:
    """Fuse by a method's formula, one query after another."""
    rows = []
    for query, w in enumerate(np.broadcast_to(weights, (len(lists[0]), len(lists))).astype(np.float64)):
        held = [slice(0, int(hits.counts[query])) for hits in lists]
        row = [
            ScoredList(hits.ids[query, own], hits.scores[query, own].astype(np.float64))
            for hits, own in zip(lists, held, strict=True)
        ]
        documents, scores = fused_by_formula(method, row, w, consensus, factors, query)
        single = scores.astype(np.float32)
        order = np.lexsort((documents, -single))[:k]
        rows.append((documents[order], single[order]))
    return pad_rows(rows, k)


def _check_lists(lists: Sequence[Hits]) -> None:
    """Raise unless there are lists, of as many queries each."""
    check_type(lists, "lists", (list, Sequence), "a sequence of Hits: hf.fuse([dense, graph])")
    if not lists:
        raise InputError("empty", "lists", "{field} is empty; pass at least one Hits, as in hf.fuse([dense, graph])")
    batch = -1
    for at, hits in enumerate(lists):
        own = len(check_hits(hits, f"lists[{at}]"))
        batch = own if at == 0 else batch
        if own != batch:
            check_length(own, f"lists[{at}]", batch, "query")


def calibration_for(method: FusionMethod, calibration: str | Calibration | None, **options: Any) -> Calibration:
    """Return the calibration to use with a fusion method: the given one, or the method's default.

    Raises
    ------
    InputError
        A calibration or an option that the method cannot use.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if calibration is None and not given:
        return by_name(method.default_calibration, given)
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
    return (prior if isinstance(prior, Prior) else Prior(prior)).factors


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


@lru_cache(maxsize=64)
def _as_weights(weights: tuple[float, ...]) -> NDArray[np.float32]:
    made = np.array(weights, np.float32)
    made.flags.writeable = False
    return made


def _read_weights(weights: Any, method: FusionMethod, batch: int, lists: int) -> NDArray[np.float32]:
    if weights is None:
        return _as_weights(tuple(method.default_weights(lists)))
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
