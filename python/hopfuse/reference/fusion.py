"""Float64 oracle of fuse: the steps that all methods share. Their formulas are in :mod:`hopfuse.fusion`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_choice, check_k, check_length, check_number, check_shape, check_type, check_weights
from ..errors import InputError
from ..fusion import FusionMethod, ScoredList, fused_by_formula, resolve
from ..types import Hits
from .calibration import METHODS as CALIBRATIONS
from .calibration import calibrate
from .ranking import Ranking, best

__all__ = ["fuse"]


def fuse(
    lists: Sequence[Hits | Ranking],
    *,
    method: str | FusionMethod = "boltzmann",
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
    method : str or FusionMethod
        A name in ``hopfuse.fusion.METHODS``, or an object with a formula.
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
    rule = resolve(method, options)
    batch = _batch(lists)
    rule.kernel_options(len(lists))  # checks options that depend on the number of lists
    bonus = check_number(consensus, "consensus", low=0)
    w = _weights(rule, weights, batch, len(lists))
    factors = _prior_factors(prior, prior_weight)
    capped = _capped(lists, pool)
    size = min(check_k(k), sum(one.ids.shape[1] for one in capped))
    calibrated = _calibrated(rule, capped, calibration, ties, dict(calibration_options or {}))
    rows = []
    for b in range(batch):
        row = [ScoredList(one.ids[b, : one.counts[b]], one.scores[b, : one.counts[b]]) for one in calibrated]
        rows.append(best(*fused_by_formula(rule, row, w[b], bonus, factors, b), size))
    return Ranking.from_rows(rows, size)


def _batch(lists: Sequence[Hits | Ranking]) -> int:
    check_type(lists, "lists", (list, tuple), "a sequence of Hits; wrap a single one: [hits]")
    if not lists:
        raise InputError("empty", "lists", "{field} is empty; pass at least one Hits")
    for at, one in enumerate(lists):
        check_type(one, f"lists[{at}]", (Hits, Ranking), "Hits")
        check_length(len(one), f"lists[{at}]", len(lists[0]), "query")
    return len(lists[0])


def _weights(rule: FusionMethod, weights: Any, batch: int, num_lists: int) -> NDArray[np.float64]:
    if not rule.weighted:
        if weights is not None:
            raise InputError(
                "unused",
                "weights",
                "{field} is given, but fusion method {name!r} takes none; leave it out",
                name=rule.name,
            )
        return np.ones((batch, num_lists))
    w = np.asarray(rule.default_weights(num_lists) if weights is None else weights, np.float64)
    check_shape(w.shape, "weights", (num_lists,), (batch, num_lists))
    check_weights(w, "weights")
    return np.broadcast_to(w, (batch, num_lists))


def _prior_factors(prior: Any, weight: float) -> NDArray[np.float64]:
    importance = np.zeros(0) if prior is None else np.asarray(prior, np.float64)
    check_shape(importance.shape, "prior", ("N",))
    check_number(weight, "prior_weight", low=0, high=1)
    if ((importance < 0) | (importance > 1)).any():
        raise InputError("range", "prior", "{field} is {given}; importance is in [0, 1], or NaN", given=importance)
    return np.where(np.isnan(importance), 1.0, (1.0 - weight) + weight * importance)


def _capped(lists: Sequence[Hits | Ranking], pool: Any) -> list[Ranking]:
    pools = list(pool) if isinstance(pool, (list, tuple, np.ndarray)) else [pool] * len(lists)
    check_length(len(pools), "pool", len(lists), "list")
    for at, most in enumerate(pools):
        if most is not None:
            check_k(most, f"pool[{at}]")
    return [
        Ranking(one.ids[:, :p], one.scores[:, :p].astype(np.float64), np.minimum(one.counts, one.ids[:, :p].shape[1]))
        for one, p in zip(lists, pools, strict=True)
    ]


def _calibrated(
    rule: FusionMethod, lists: Sequence[Ranking], calibration: str | None, ties: str | None, options: dict[str, Any]
) -> list[Ranking]:
    if rule.calibrations == ():
        named = {"calibration": calibration, "ties": ties, **options}
        for option in (name for name, value in named.items() if value is not None):
            raise InputError(
                "unused",
                option,
                "{field} is given, but fusion method {name!r} uses ranks, not scores; leave it out",
                name=rule.name,
            )
        return [calibrate(one, "none") for one in lists]
    given = rule.default_calibration if calibration is None else calibration
    name = check_choice(given, "calibration", CALIBRATIONS if rule.calibrations is None else rule.calibrations)
    of_list = [dict(options) for _ in lists]
    for bound in ("lower", "upper"):
        if np.ndim(options.get(bound, 0.0)) == 1:
            for own, value in zip(of_list, options[bound], strict=True):
                own[bound] = value
    return [calibrate(one, name, ties=ties, **own) for one, own in zip(lists, of_list, strict=True)]
