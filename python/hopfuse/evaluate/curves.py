"""The metric of a sweep as a function of its options: curves and grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_shape
from ..errors import InputError
from .evaluation import Estimate
from .sweep import Options, Sweep, Trial, as_number, is_number, plain_options


@dataclass(frozen=True)
class Curve:
    """Trials on the tune half that differ only in one option.

    Attributes
    ----------
    label : str
        The option ``method``, or ``""`` if the sweep has none.
    others : mapping of str to value
        The options that all the trials share.
    points : tuple of (float, Estimate)
        Values of the option and the metric there, in ascending order.
    """

    label: str
    others: Options
    points: tuple[tuple[float, Estimate], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form, if the options' values are."""
        points = [{"value": as_number(value), **estimate.to_dict()} for value, estimate in self.points]
        return {"label": self.label, "options": plain_options(self.others), "points": points}


def option_curves(sweep: Sweep) -> dict[str, tuple[Curve, ...]]:
    """Return a curve of the metric for each numeric option and each method.

    A method's other options are those of its best trial, so the curve passes through that trial. All points are on the
    tune half, where the best one is optimistic because it was chosen there.

    Parameters
    ----------
    sweep : Sweep
        Trials may have an option "method", and need not all have the same options.

    Returns
    -------
    dict of str to tuple of Curve
        The method with the best trial first; methods with fewer than two values of the option are left out.

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


@dataclass(frozen=True, eq=False, init=False)
class Grid:
    """Values on a grid of two parameters.

    Parameters
    ----------
    x, y : array_like of float, shapes (X,) and (Y,)
        Values of the parameters, at least one each, strictly increasing.
    values : array_like of float, shape (Y, X)
        ``values[i, j]`` is at ``y[i]`` and ``x[j]``; NaN if there is none.
    x_label, y_label, label : str
        Names of x, y and the values.

    Raises
    ------
    InputError
        The shape is wrong, parameters do not increase, or values are infinite or all NaN.

    Examples
    --------
    >>> from hopfuse.evaluate import Grid
    >>> Grid([0.5, 1.0, 2.0], [0.0, 1.0], [[0.1, 0.1, 0.1], [0.9, 0.6, 0.1]], "temperature", "coupling", "mean |m|")
    Grid(mean |m| over 3 temperature x 2 coupling)
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    values: NDArray[np.float64]
    x_label: str
    y_label: str
    label: str

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        values: ArrayLike,
        x_label: str = "x",
        y_label: str = "y",
        label: str = "value",
    ) -> None:
        axes = {"x": np.array(x, np.float64), "y": np.array(y, np.float64)}
        for name, axis in axes.items():
            if axis.ndim != 1 or not axis.size or not np.isfinite(axis).all() or not (np.diff(axis) > 0).all():
                raise InputError(
                    "order",
                    name,
                    "{field} is {given}; give one or more finite numbers in increasing order",
                    given=axis.tolist(),
                )
        cells = np.array(values, np.float64)
        shape = (axes["y"].size, axes["x"].size)
        check_shape(cells.shape, "values", shape, reason="a row for each y, a column for each x")
        if np.isinf(cells).any() or np.isnan(cells).all():
            raise InputError(
                "finite",
                "values",
                "{field} has an infinite number, or only NaN; give finite numbers, and NaN where there is none",
            )
        arrays = {**axes, "values": cells}
        for name, array in arrays.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        for name, word in (("x_label", x_label), ("y_label", y_label), ("label", label)):
            object.__setattr__(self, name, str(word))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form; NaN is None."""
        rows = [[None if np.isnan(v) else v for v in row] for row in self.values.tolist()]
        labels = {name: getattr(self, name) for name in ("x_label", "y_label", "label")}
        return {"x": self.x.tolist(), "y": self.y.tolist(), "values": rows, **labels}

    def __repr__(self) -> str:
        return f"Grid({self.label} over {self.x.size} {self.x_label} x {self.y.size} {self.y_label})"


def sweep_grid(sweep: Sweep, x: str, y: str) -> Grid:
    """Return a grid of a sweep's metric over two of its options: the mean on the tune half, in [0, 1].

    If trials at one place of the grid differ in other options, the best of them is shown.

    Parameters
    ----------
    sweep : Sweep
    x, y : str
        Numeric options; trials that lack one of them are left out.

    Raises
    ------
    InputError
        No trial has both options as numbers.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import Qrels, sweep, sweep_grid
    >>> qrels = Qrels([f"q{i}" for i in range(40)], [[i] for i in range(40)])
    >>> def run(options, rows):
    ...     good = rows % 10 < options["coupling"] / options["temperature"]
    ...     return hf.Hits(np.where(good, rows, rows + 100)[:, None], np.ones((rows.size, 1)))
    >>> grid = {"temperature": [1.0, 2.0], "coupling": [0.0, 20.0]}
    >>> result = sweep(run, qrels, grid, baseline={"coupling": 0.0, "temperature": 1.0}, metric="hit@1")
    >>> sweep_grid(result, "temperature", "coupling").values
    array([[0., 0.],
           [1., 1.]])
    """
    best: dict[tuple[float, float], float] = {}
    for trial in sweep.tune:
        at, up = trial.options.get(x), trial.options.get(y)
        if is_number(at) and is_number(up):
            best[at, up] = max(trial.estimate.mean, best.get((at, up), -np.inf))
    if not best:
        raise InputError(
            "unknown",
            "x",
            "{field} is {given!r} beside {@y}{y!r}, and no trial of the sweep has numbers for both; its options are "
            "{allowed}",
            given=x,
            y=y,
            allowed=_options(sweep),
        )
    across, along = (np.unique([pair[axis] for pair in best]) for axis in (0, 1))
    values = [[best.get((a, b), np.nan) for a in across.tolist()] for b in along.tolist()]
    return Grid(across, along, values, x, y, sweep.metric)


def _options(sweep: Sweep) -> str:
    names: Sequence[str] = list(dict.fromkeys(name for trial in sweep.tune for name in trial.options))
    return ", ".join(names) or "none"
