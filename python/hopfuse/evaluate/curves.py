"""A sweep's metric against one of its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .evaluation import Estimate
from .option_values import as_number, is_number, plain_options
from .sweep import Options, Sweep, Trial


@dataclass(frozen=True)
class Curve:
    """Trials on the tune half that differ in one option alone.

    Attributes
    ----------
    label : str
        The method, or ``""`` where the sweep has no option of that name.
    others : mapping of str to value
        What all its trials have.
    points : tuple of (float, Estimate)
        The option's value and the metric there, by value.
    """

    label: str
    others: Options
    points: tuple[tuple[float, Estimate], ...]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serialisable form, if the options' values are."""
        points = [{"value": as_number(value), **estimate.to_dict()} for value, estimate in self.points]
        return {"label": self.label, "options": plain_options(self.others), "points": points}


def option_curves(sweep: Sweep) -> dict[str, tuple[Curve, ...]]:
    """For every option with several numbers: the metric against it, a curve for each method.

    A method's other options stand where its best trial has them, so that the curve goes through that trial. All of
    it is on the tune half; its best point is better there than it is elsewhere.

    Parameters
    ----------
    sweep : Sweep
        Trials may have an option "method", and need not all have the same options.

    Returns
    -------
    dict of str to tuple of Curve
        The method with the best trial first; methods that have fewer than two numbers of the option are left out.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import Qrels, option_curves, sweep
    >>> qrels = Qrels([f"q{i}" for i in range(40)], [[i] for i in range(40)])
    >>> def run(options, rows):
    ...     found = np.where(rows % 10 < options["good"], rows, rows + 100)
    ...     return hf.Hits(found[:, None], np.ones((rows.size, 1)))
    >>> result = sweep(run, qrels, {"good": [2, 8, 5]}, baseline={"good": 1}, metric="hit@1")
    >>> [value for value, _ in option_curves(result)["good"][0].points]
    [1, 2, 5, 8]
    """
    best: dict[Any, Trial] = {}
    for trial in sorted(sweep.tune, key=lambda trial: -trial.estimate.mean):
        best.setdefault(trial.options.get("method"), trial)
    names = dict.fromkeys(name for trial in sweep.tune for name in trial.options)
    made = {name: tuple(_curve(sweep, name, trial) for trial in best.values()) for name in names}
    kept = {name: tuple(c for c in curves if len(c.points) > 1) for name, curves in made.items()}
    return {name: curves for name, curves in kept.items() if curves}


def _curve(sweep: Sweep, name: str, best: Trial) -> Curve:
    others = _without(best.options, name)
    points = [
        (as_number(trial.options[name]), trial.estimate)
        for trial in sweep.tune
        if is_number(trial.options.get(name)) and _without(trial.options, name) == others
    ]
    return Curve(str(others.get("method", "")), others, tuple(sorted(points, key=lambda point: point[0])))


def _without(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {option: value for option, value in options.items() if option != name}
