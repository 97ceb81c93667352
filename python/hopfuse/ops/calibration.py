"""Calibrate the scores of ranked lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from ..backends.calls.fusion import CalibrateCall
from ..backends.engine import engine_for
from ..fusion.base import refuse_options
from ..fusion.calibration import Calibration, CalibrationName, Ties, by_name
from ..types import Hits
from ._arguments import check_hits

Bound = float | Sequence[float] | None


@overload
def calibrate(
    lists: Hits,
    method: CalibrationName | Calibration = ...,
    *,
    ties: Ties | None = ...,
    single: float | None = ...,
    equal: float | None = ...,
    lower: Bound = ...,
    upper: Bound = ...,
    temperature: float | None = ...,
    backend: str = ...,
    threads: int | None = ...,
) -> Hits: ...
@overload
def calibrate(
    lists: Sequence[Hits],
    method: CalibrationName | Calibration = ...,
    *,
    ties: Ties | None = ...,
    single: float | None = ...,
    equal: float | None = ...,
    lower: Bound = ...,
    upper: Bound = ...,
    temperature: float | None = ...,
    backend: str = ...,
    threads: int | None = ...,
) -> list[Hits]: ...


def calibrate(
    lists: Hits | Sequence[Hits],
    method: CalibrationName | Calibration = "pit",
    *,
    ties: Ties | None = None,
    single: float | None = None,
    equal: float | None = None,
    lower: Bound = None,
    upper: Bound = None,
    temperature: float | None = None,
    backend: str = "auto",
    threads: int | None = None,
) -> Hits | list[Hits]:
    """Map the scores of each list to a common scale, query by query; the order is unchanged.

    Parameters
    ----------
    lists : Hits, or sequence of Hits
    method : str, or a :class:`hopfuse.fusion.Calibration` with all options
        ``pit``: percentile rank in [0, 1]. ``min_max``: (s - min)/(max - min), 1 if all are equal.
        ``max``: s / max|s|. ``z_score``: (s - mean)/(population standard deviation), 0 if all are equal.
        ``l2``: s / sqrt(sum s^2). ``rank``: (n - r + 1)/n, with r = 1 for the first hit.
        ``theoretical_min_max``: (s - lower)/(upper - lower), clipped to [0, 1] (TM2C2).
        ``three_sigma``: 1/2 + (s - mean)/(6 sample standard deviations), clipped to [0, 1], 1/2 if all are equal
        (distribution-based score fusion). ``sum``: (s - min)/sum(s - min), 1/n if all are equal.
        ``gaussian``: the standard normal quantile of the mid-rank (l + g)/(2n), where l scores are less than s and g
        are at most s. It is the optimal transport of the list to N(0, 1), 0 if all are equal. ``softmax``: exp(s/T)/sum
        exp(s/T). ``none``: s.
    ties : {"strict", "weak", "mean", "rank"}, optional
        For ``pit`` only, named as in scipy.stats.percentileofscore. The default "strict", as in PhaseGraph, is the
        share of lower scores, so the minimum of a list gets 0.
    single, equal : float, optional
        The calibrated score of a list with one hit, and of a list with two or more equal scores. By default the
        method determines them.
    lower, upper : float or sequence of float, one per list, optional
        For ``theoretical_min_max`` only: the lowest and highest scores that the scorer can give. By default `upper` is
        the highest score of the list.
    temperature : float > 0, optional
        T of ``softmax``. Default: 1.

    Returns
    -------
    Hits, or list of Hits
        The same ids and counts with calibrated float32 scores.

    Raises
    ------
    InputError
        An unknown method, an option that the method does not have, or a value out of range.

    References
    ----------
    TM2C2: Bruch, Gai & Ingber, TOIS 2023. sum: Montague & Aslam, CIKM 2001. The normal quantile is Wichura's
    algorithm AS 241, 1988.

    Examples
    --------
    >>> import hopfuse as hf
    >>> h = hf.Hits([[3, 1, 4, 5]], [[9.0, 7.0, 7.0, 1.0]])
    >>> hf.calibrate(h).scores
    array([[0.75, 0.25, 0.25, 0.  ]], dtype=float32)
    >>> hf.calibrate(h, "min_max", single=0.5).scores
    array([[1.  , 0.75, 0.75, 0.  ]], dtype=float32)
    """
    options = {
        "ties": ties,
        "single": single,
        "equal": equal,
        "lower": lower,
        "upper": upper,
        "temperature": temperature,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(method, Calibration):
        refuse_options(given, method)
        rule = method
    else:
        rule = by_name(method, given)
    many = [lists] if isinstance(lists, Hits) else lists
    if not isinstance(many, Sequence):
        check_hits(many, "lists")
    for at, hits in enumerate(many):
        check_hits(hits, f"lists[{at}]")
    done = []
    for at, hits in enumerate(many):
        one = rule.of_list(at, len(many))
        kind = one.method, one.tie_rule, one.kernel_options_once(1)
        with engine_for(backend, hits.scores, "scores") as engine:
            _, scores, counts = engine.hits(hits, "hits")
            call = CalibrateCall(scores, counts, *kind, engine.threads(threads), engine.on_device)
            done.append(Hits.unchecked(hits.ids, engine.give(engine.ops.run(call)), hits.counts))
    return done[0] if isinstance(lists, Hits) else done
