"""The function fuse, with the steps that all fusion methods share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...types import Hits
from ..calibration import calibrate
from ..ranking import Ranking, best, check_k
from .method import FusionMethod, ScoredList
from .registry import METHODS


def fuse(
    lists: Sequence[Hits | Ranking],
    *,
    method: str = "boltzmann",
    weights: Any = None,
    calibration: str | None = None,
    ties: str | None = None,
    calibration_options: Mapping[str, Any] | None = None,
    pool: Any = None,
    consensus: float = 0.0,
    prior: Any = None,
    prior_weight: float = 0.3,
    k: int = 10,
    **options: Any,
) -> Ranking:
    """Fuse L ranked lists of each query into one.

    Each document in the union of a query's lists gets the method's score, plus `consensus` if it is in at least two of
    the lists (whatever their weights), all multiplied by (1 - prior_weight) + prior_weight * (its importance in
    `prior`). The k best are returned.

    Parameters
    ----------
    lists : sequence of L >= 1 Hits with B rows each
    method : str
        A name in ``hopfuse.reference.fusion.METHODS``.
    weights : array_like (L,) or (B, L), optional
        Finite, at least 0; they need not sum to 1. By default the method's own.
    calibration : str, optional
        Applied to each list first (see :func:`calibrate`). By default the method's own.
    ties : str, optional
        For calibration "pit".
    calibration_options : mapping, optional
        Further options of :func:`calibrate`; `lower` and `upper` are a number, or one per list.
    pool : int or sequence of int or None, optional
        The number of leading hits of each list to use; the others are dropped before calibration.
    consensus : float
        Finite, at least 0, on the scale of the method's scores.
    prior : array_like (N,), optional
        Importance of each document in [0, 1]. A document whose importance is NaN, or whose id is N or more, keeps its
        score.
    prior_weight : float in [0, 1]
    k : int
        At least 0; rows with fewer documents are padded.
    **options
        Options of the method.

    Returns
    -------
    Ranking, shape (B, min(k, total width of the lists))

    Raises
    ------
    InputError
        An unknown method, option or calibration, one that the method does not take, weights of another shape, lists
        with different numbers of queries.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.reference import fuse
    >>> dense, graph = hf.Hits([[1, 2]], [[0.9, 0.8]]), hf.Hits([[2, 3]], [[0.5, 0.1]])
    >>> fuse([dense, graph], method="rrf", rank_constant=1, k=2).row(0)
    [(2, 0.8333333333333333), (1, 0.5)]
    """
    rule = _method(method, options)
    batch = _batch(lists)
    settings = {**rule.options, **options}
    rule.check(len(lists), **settings)
    bonus = _consensus(consensus)
    w = _weights(rule, weights, batch, len(lists))
    factors = _prior_factors(prior, prior_weight)
    capped = _capped(lists, pool)
    size = min(check_k(k), sum(one.ids.shape[1] for one in capped))
    calibrated = _calibrated(rule, capped, calibration, ties, dict(calibration_options or {}))
    rows = []
    for b in range(batch):
        row = [ScoredList(one.ids[b, : one.counts[b]], one.scores[b, : one.counts[b]]) for one in calibrated]
        rows.append(_fused_row(rule, row, w[b], bonus, factors, size, settings))
    return Ranking.from_rows(rows, size)


def _fused_row(
    rule: FusionMethod,
    row: list[ScoredList],
    w: NDArray[np.float64],
    bonus: float,
    factors: NDArray[np.float64],
    k: int,
    settings: dict[str, Any],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    scores = rule.score(row, w, **settings)
    held_by = Counter(document for one in row for document in one.ids.tolist())
    total = [score + bonus if held_by[document] >= 2 else score for document, score in scores.items()]
    ids = np.array(list(scores), np.int64)
    known = ids < factors.size
    final = np.array(total, np.float64)
    final[known] *= factors[ids[known]]
    return best(ids, final, k)


def _method(name: str, options: dict[str, Any]) -> FusionMethod:
    if name not in METHODS:
        raise InputError(
            "choice", None, "fusion method is {given!r}; allowed: {allowed}", given=name, allowed=", ".join(METHODS)
        )
    for option in options:
        if option not in METHODS[name].options:
            allowed = ", ".join(METHODS[name].options) or "none"
            raise InputError(
                "choice",
                None,
                "fusion method {name!r} has no option {option!r}; allowed: {allowed}",
                name=name,
                option=option,
                allowed=allowed,
            )
    return METHODS[name]


def _batch(lists: Sequence[Hits | Ranking]) -> int:
    if not isinstance(lists, (list, tuple)) or not lists or not all(isinstance(x, (Hits, Ranking)) for x in lists):
        raise InputError("range", "lists", "{field} must be a sequence of at least one Hits; wrap a single one: [hits]")
    sizes = [len(one) for one in lists]
    if len(set(sizes)) != 1:
        raise InputError("length", None, "the lists have {sizes} rows; each must have one row per query", sizes=sizes)
    return sizes[0]


def _consensus(consensus: Any) -> float:
    number = isinstance(consensus, (int, float, np.integer, np.floating)) and not isinstance(consensus, bool)
    if not number or not 0 <= consensus < np.inf:
        raise InputError(
            "range", "consensus", "{field} is {given!r}; it must be a finite number, at least 0", given=consensus
        )
    return float(consensus)


def _weights(rule: FusionMethod, weights: Any, batch: int, num_lists: int) -> NDArray[np.float64]:
    if rule.default_weights is None:
        if weights is not None:
            raise InputError("UNSORTED", None, "fusion method {name!r} takes no weights; omit them", name=rule.name)
        return np.ones((batch, num_lists))
    w = np.asarray(rule.default_weights(num_lists) if weights is None else weights, np.float64)
    if w.shape not in ((num_lists,), (batch, num_lists)):
        raise InputError(
            "shape",
            "weights",
            "{field} have shape {shape}; they must be ({num_lists},) or ({batch}, {num_lists})",
            shape=w.shape,
            num_lists=num_lists,
            batch=batch,
        )
    if not (np.isfinite(w) & (w >= 0)).all():
        raise InputError(
            "range", "weights", "{field} are {weights}; each must be finite and at least 0", weights=weights
        )
    return np.broadcast_to(w, (batch, num_lists))


def _prior_factors(prior: Any, weight: float) -> NDArray[np.float64]:
    importance = np.zeros(0) if prior is None else np.asarray(prior, np.float64)
    if importance.ndim != 1 or not 0 <= weight <= 1:
        raise InputError(
            "shape",
            "prior",
            "{field} has shape {shape} and weight {weight}; they must be (N,) and in [0, 1]",
            shape=importance.shape,
            weight=weight,
        )
    if ((importance < 0) | (importance > 1)).any():
        raise InputError(
            "finite", None, "importance is {importance}; values must be in [0, 1], or NaN", importance=importance
        )
    return np.where(np.isnan(importance), 1.0, (1.0 - weight) + weight * importance)


def _capped(lists: Sequence[Hits | Ranking], pool: Any) -> list[Ranking]:
    pools = list(pool) if isinstance(pool, (list, tuple, np.ndarray)) else [pool] * len(lists)
    if len(pools) != len(lists) or not all(p is None or p >= 0 for p in pools):
        raise InputError(
            "length",
            "pool",
            "{field} is {given!r}; it must be a number, at least 0, or a number or None per list",
            given=pool,
        )
    return [
        Ranking(one.ids[:, :p], one.scores[:, :p].astype(np.float64), np.minimum(one.counts, one.ids[:, :p].shape[1]))
        for one, p in zip(lists, pools, strict=True)
    ]


def _calibrated(
    rule: FusionMethod, lists: Sequence[Ranking], calibration: str | None, ties: str | None, options: dict[str, Any]
) -> list[Ranking]:
    if not rule.calibrations:
        if calibration is not None or ties is not None or options:
            raise InputError(
                "UNSORTED", None, "fusion method {name!r} uses only ranks; omit calibration and ties", name=rule.name
            )
        return [calibrate(one, "none") for one in lists]
    name = rule.calibrations[0] if calibration is None else calibration
    if name not in rule.calibrations:
        raise InputError(
            "UNSORTED",
            "calibration",
            "{field} is {given!r}; fusion method {name!r} allows: {names}",
            given=name,
            name=rule.name,
            names=", ".join(rule.calibrations),
        )
    of_list = [dict(options) for _ in lists]
    for bound in ("lower", "upper"):
        if np.ndim(options.get(bound, 0.0)) == 1:
            for own, value in zip(of_list, options[bound], strict=True):
                own[bound] = value
    return [calibrate(one, name, ties=ties, **own) for one, own in zip(lists, of_list, strict=True)]
