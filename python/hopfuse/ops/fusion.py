"""Score calibration and fusion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from .. import fusion as methods
from ..backends import resolve
from ..backends.arguments import thread_count
from ..backends.placement import device_for
from ..errors import InputError
from ..fusion.base import is_finite_float32
from ..types import Hits
from ..types.arrays import to_numpy
from ._arrays import same_library
from ._captured import refuse_per_query
from ._checks import check_k, check_real

if TYPE_CHECKING:
    from ..backends.cuda import DeviceOps

CALIBRATIONS = ("pit", "min_max", "max", "z_score", "l2", "rank", "none")
TIES = ("strict", "weak", "mean", "rank")

Calibration = Literal["pit", "min_max", "max", "z_score", "l2", "rank", "none"]
Ties = Literal["strict", "weak", "mean", "rank"]


@overload
def calibrate(
    lists: Hits, method: Calibration = ..., *, ties: Ties | None = ..., backend: str = ..., threads: int | None = ...
) -> Hits: ...
@overload
def calibrate(
    lists: Sequence[Hits],
    method: Calibration = ...,
    *,
    ties: Ties | None = ...,
    backend: str = ...,
    threads: int | None = ...,
) -> list[Hits]: ...


def calibrate(
    lists: Hits | Sequence[Hits],
    method: Calibration = "pit",
    *,
    ties: Ties | None = None,
    backend: str = "auto",
    threads: int | None = None,
) -> Hits | list[Hits]:
    """Put the scores of each list on a common scale, query by query; the order stays.

    Parameters
    ----------
    lists : Hits, or sequence of Hits
    method : {"pit", "min_max", "max", "z_score", "l2", "rank", "none"}
        ``pit``: percentile rank in [0, 1]. ``min_max``: (s - min)/(max - min), 1 where all are equal.
        ``max``: s / max|s|. ``z_score``: (s - mean)/population deviation. ``l2``: s / sqrt(sum s^2).
        ``rank``: (n - r + 1)/n, r = 1 for the first. ``none``: s.
    ties : {"strict", "weak", "mean", "rank"}, optional
        For ``pit`` only, by SciPy's names (scipy.stats.percentileofscore); "strict" by default, as in
        PhaseGraph: the share of scores below, so that a list's minimum gets 0.

    Returns
    -------
    Hits, or list of Hits
        The same ids and counts with calibrated float32 scores.

    Raises
    ------
    InputError
        An unknown method, or ``ties`` with a method that has no tie rule.

    Examples
    --------
    >>> import hopfuse as hf
    >>> h = hf.Hits([[3, 1, 4, 5]], [[9.0, 7.0, 7.0, 1.0]])
    >>> hf.calibrate(h).scores
    array([[0.75, 0.25, 0.25, 0.  ]], dtype=float32)
    """
    rule = _check_calibration(method, ties)
    many = [lists] if isinstance(lists, Hits) else lists
    if not isinstance(many, Sequence) or not all(isinstance(hits, Hits) for hits in many):
        raise InputError(
            f"calibrate takes Hits or a sequence of Hits, not {type(lists).__name__}; wrap: hf.Hits(ids, scores)"
        )
    done = [_calibrate_one(hits, method, rule, backend, threads) for hits in many]
    return done[0] if isinstance(lists, Hits) else done


def _calibrate_one(hits: Hits, method: str, ties: str, backend: str, threads: int | None) -> Hits:
    device = device_for(backend, hits.scores, "scores")
    if device is None:
        _, scores, counts = _arrays(hits)
        out = resolve(backend).calibrate(scores, counts, method=method, ties=ties, threads=thread_count(threads))
        return Hits._trusted(hits.ids, same_library(hits.scores)(out), hits.counts)
    with device.runtime.on_stream_of(hits.scores):
        _, scores, counts = _device_list(device, hits, "hits")
        on_device = device.calibrate(scores, counts, method=method, ties=ties)
        return Hits._trusted(hits.ids, device.runtime.export(on_device, hits.scores), hits.counts)


def fuse(
    lists: Sequence[Hits],
    *,
    method: str | methods.FusionMethod = "boltzmann",
    weights: Any = None,
    calibration: Calibration | None = None,
    ties: Ties | None = None,
    consensus: float = 0.0,
    k: int = 10,
    backend: str = "auto",
    threads: int | None = None,
    **options: Any,
) -> Hits:
    """Fuse ranked lists of the same queries into one.

    Parameters
    ----------
    lists : sequence of Hits
        L lists of B queries each, over the same ids; k may differ.
    method : str or FusionMethod
        "boltzmann", "linear", "rrf", "max", or an object of :mod:`hopfuse.fusion`.
    weights : array_like (L,) or (B, L), optional
        Finite, at least 0; they need not sum to 1. By default the method's own.
    calibration : str, optional
        See :func:`calibrate`; by default the method's own (``pit`` for boltzmann and linear).
    ties : str, optional
        For ``calibration="pit"``.
    consensus : float
        Added to the score of every document that is in at least two lists. It is on another scale than
        Boltzmann probabilities (PhaseGraph's paper uses 0.5 to 1.5).
    k : int
        Hits to return for each query.
    **options
        The method's own options, e.g. ``temperature=`` (boltzmann), ``rank_constant=`` (rrf), ``bias=`` (max).

    Returns
    -------
    Hits
        ids int64 (B, k), scores float32 (B, k), counts (B,). Order: higher score, then lower id.

    Raises
    ------
    InputError
        Lists of different batches, an unknown method, an option or calibration that it does not have,
        weights of another shape.

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
    scale = _method_calibration(chosen, calibration)
    rule = _check_calibration(scale, ties)
    if not is_finite_float32(consensus) or consensus < 0:
        raise InputError(f"consensus is {consensus!r}; it must be a finite float32 number, at least 0")
    call: dict[str, Any] = {
        "method": chosen.name,
        "calibration": scale,
        "ties": rule,
        "option": chosen.packed(len(lists)),
        "weights": _read_weights(weights, chosen, len(lists[0]), len(lists)),
        "consensus": float(consensus),
        "k": k,
    }
    needs_nonnegative = chosen.needs_nonnegative and scale in ("max", "l2", "none")
    device = device_for(backend, lists[0].ids, "the first list")
    if device is not None:
        return _fuse_on_device(device, lists, call, needs_nonnegative)
    arrays = [_arrays(hits) for hits in lists]
    if needs_nonnegative:
        _check_nonnegative(arrays, chosen.name, scale)
    hits = resolve(backend).fuse(arrays, **call, threads=thread_count(threads))
    wrap = same_library(lists[0].ids)
    return Hits._trusted(**{name: wrap(array) for name, array in hits.items()})


def _fuse_on_device(device: DeviceOps, lists: Sequence[Hits], call: dict[str, Any], needs_nonnegative: bool) -> Hits:
    if needs_nonnegative:
        raise InputError(
            f"{call['method']} with calibration {call['calibration']!r} needs scores of at least 0, which are looked "
            "at on the host alone: pass lists there, or another calibration (pit takes any scores)"
        )
    with device.runtime.on_stream_of(lists[0].ids):
        arrays = [_device_list(device, hits, f"list {at}") for at, hits in enumerate(lists)]
        hits = device.fuse(arrays, **call)
        return Hits._trusted(**{name: device.runtime.export(array, lists[0].ids) for name, array in hits.items()})


def _device_list(device: DeviceOps, hits: Hits, name: str) -> tuple[Any, Any, Any]:
    wanted = {"ids": np.int64, "scores": np.float32, "counts": np.int64}
    arrays = []
    for part, dtype in wanted.items():
        arrays.append(device.adopt(getattr(hits, part), f"{part} of {name}"))
        if arrays[-1].dtype != dtype:
            raise InputError(f"{part} of {name} are {arrays[-1].dtype}; they must be {np.dtype(dtype)}")
    return arrays[0], arrays[1], arrays[2]


def _arrays(hits: Hits) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    return (
        np.ascontiguousarray(to_numpy(hits.ids, "ids")),
        np.ascontiguousarray(to_numpy(hits.scores, "scores")),
        np.ascontiguousarray(to_numpy(hits.counts, "counts")),
    )


def _check_lists(lists: Sequence[Hits]) -> None:
    if not isinstance(lists, Sequence) or not lists:
        raise InputError("fuse takes a sequence of at least one Hits, e.g. hf.fuse([dense, graph])")
    for at, hits in enumerate(lists):
        if not isinstance(hits, Hits):
            raise InputError(f"list {at} is a {type(hits).__name__}; wrap it: hf.Hits(ids, scores)")
        if len(hits) != len(lists[0]):
            raise InputError(f"list {at} has {len(hits)} queries and list 0 has {len(lists[0])}; they must match")


def _check_calibration(method: str, ties: str | None) -> str:
    if method not in CALIBRATIONS:
        raise InputError(f"calibration is {method!r}; allowed: {', '.join(CALIBRATIONS)}")
    if ties is None:
        return "strict"
    if method != "pit":
        raise InputError(f"ties={ties!r} with calibration {method!r}; only 'pit' has a tie rule")
    if ties not in TIES:
        raise InputError(f"ties is {ties!r}; allowed: {', '.join(TIES)}")
    return ties


def _method_calibration(method: methods.FusionMethod, calibration: str | None) -> str:
    if calibration is None:
        return method.default_calibration
    if method.calibrations == ():
        raise InputError(
            f"fusion method {method.name!r} reads ranks, not scores: a calibration has no effect; leave it out"
        )
    if method.calibrations is not None and calibration in CALIBRATIONS and calibration not in method.calibrations:
        raise InputError(
            f"fusion method {method.name!r} cannot use calibration {calibration!r}; "
            f"allowed: {', '.join(method.calibrations)}"
        )
    return calibration


def _check_nonnegative(arrays: list[Any], method: str, calibration: str) -> None:
    for at, (_, scores, counts) in enumerate(arrays):
        negative = (scores < 0) & (np.arange(scores.shape[1]) < counts[:, None])
        if negative.any():
            row = int(np.argwhere(negative)[0][0])
            raise InputError(
                f"list {at} has a negative score in row {row}; {method} with calibration {calibration!r} needs scores "
                "of at least 0 (calibration='pit' takes any)"
            )


def _read_weights(weights: Any, method: methods.FusionMethod, batch: int, lists: int) -> NDArray[np.float32]:
    if weights is None:
        return method.default_weights(lists)
    if not method.weighted:
        raise InputError(f"fusion method {method.name!r} reads no weights; leave them out")
    w = to_numpy(weights, "weights")
    check_real(w, "weights")
    if w.ndim == 2:
        refuse_per_query("weights")
    if w.shape not in ((lists,), (batch, lists)):
        raise InputError(f"weights have shape {w.shape}; they must be ({lists},) or ({batch}, {lists})")
    with np.errstate(over="ignore"):
        w32 = np.ascontiguousarray(w, np.float32)
    if not (np.isfinite(w32) & (w32 >= 0)).all():
        raise InputError(f"weights are {w}; they must be finite and at least 0")
    return w32
