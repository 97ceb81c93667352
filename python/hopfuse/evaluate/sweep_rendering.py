"""A sweep as tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .cells import estimate_cells, p_text
from .curves import Curve, option_curves
from .rendering import cells, plain_table
from .sweep import Options, Sweep, Trial

if TYPE_CHECKING:
    from rich.table import Table

TEST_COLUMNS = ("options", "mean", "95 %", "won", "lost", "p")
TUNE_COLUMNS = (*TEST_COLUMNS[:-1], "p (Holm)")


def sweep_tables(sweep: Sweep, show: int = 15) -> list[Table]:
    """Tables for :mod:`rich`: the best trials on the tune half, the metric against each option, and the test half.

    Parameters
    ----------
    sweep : Sweep
    show : int
        At most so many trials, the best first; the baseline and the selected one are always there.

    Raises
    ------
    MissingExtraError
        Rich is not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import Qrels, sweep, sweep_tables
    >>> qrels = Qrels([f"q{i}" for i in range(40)], [[i] for i in range(40)])
    >>> def run(options, rows):
    ...     found = np.where(rows % 10 < options["good"], rows, rows + 100)
    ...     return hf.Hits(found[:, None], np.ones((rows.size, 1)))
    >>> tables = sweep_tables(sweep(run, qrels, {"good": [2, 8, 5]}, baseline={"good": 1}, metric="hit@1"))
    >>> [table.title.plain.split(":")[0] for table in tables]
    ['hit@1 on 20 tune queries', 'hit@1 against good, tune half', 'hit@1 on 20 test queries']
    """
    ordered = ranked(sweep)
    kept = [trial for at, trial in enumerate(ordered) if at < show or trial.comparison is None]
    tuned, tested = sweep.tune[0].estimate.n, sweep.test[0].estimate.n
    of = f"the best {len(kept)} of {len(ordered)} trials" if len(kept) < len(ordered) else f"{len(kept)} trials"
    made = [_trials(f"{sweep.metric} on {tuned} tune queries: {of}", kept, sweep, holm=True)]
    for option, curves in option_curves(sweep).items():
        made.append(_curves(f"{sweep.metric} against {option}, tune half", option, curves))
    made.append(_trials(f"{sweep.metric} on {tested} test queries: run once", list(sweep.test), sweep, holm=False))
    return made


def ranked(sweep: Sweep) -> list[Trial]:
    """The trials of the tune half, the best first, equal ones in their order: the first is the selected one.

    Examples
    --------
    >>> from hopfuse.evaluate import Estimate, Sweep, Trial
    >>> a, b = Trial({"k": 1}, Estimate(0.2, 9), None), Trial({"k": 2}, Estimate(0.4, 9), None)
    >>> [trial.options for trial in ranked(Sweep("mrr", (a, b), b, (a, b), ()))]
    [{'k': 2}, {'k': 1}]
    """
    return sorted(sweep.tune, key=lambda trial: -trial.estimate.mean)


def trial_cells(trial: Trial, sweep: Sweep, *, holm: bool) -> tuple[str, ...]:
    """Options, mean, interval, won, lost and p of a trial; the baseline and the selected options are called so.

    Examples
    --------
    >>> from hopfuse.evaluate import Estimate, Sweep, Trial
    >>> a = Trial({"k": 1}, Estimate(0.2, 9, 0.1, 0.3), None)
    >>> trial_cells(a, Sweep("mrr", (a,), a, (a,), ()), holm=True)
    ('baseline, selected: k 1', '20.0', '10.0 .. 30.0', '', '', '')
    """
    marks = (("baseline", trial.comparison is None), ("selected", trial.options == sweep.selected.options))
    mark = ", ".join(word for word, true in marks if true)
    name = option_text(trial.options)
    c = trial.comparison
    compared = ("", "", "") if c is None else (str(c.wins), str(c.losses), p_text(c.p_holm if holm else c.p_value))
    return (f"{mark}: {name}" if mark else name, *estimate_cells(trial.estimate)[:2], *compared)


def option_text(options: Options) -> str:
    """Options for a table: the leg or the method, then the rest.

    Examples
    --------
    >>> option_text({"method": "boltzmann", "alpha": 0.7, "pool graph": 30}), option_text({"leg": "dense"})
    ('boltzmann, alpha 0.7, pool graph 30', 'dense alone')
    """
    if set(options) == {"leg"}:
        return f"{options['leg']} alone"
    return ", ".join(str(v) if name == "method" else f"{name} {v}" for name, v in options.items())


def _trials(title: str, trials: list[Trial], sweep: Sweep, *, holm: bool) -> Table:
    made = plain_table(title, TUNE_COLUMNS if holm else TEST_COLUMNS)
    for trial in trials:
        made.add_row(*cells(*trial_cells(trial, sweep, holm=holm)))
    return made


def _curves(title: str, option: str, curves: tuple[Curve, ...]) -> Table:
    made = plain_table(title, ["method and other options", option, "mean", "95 %"])
    for curve in curves:
        name: Mapping[str, object] = curve.others
        for at, (value, estimate) in enumerate(curve.points):
            made.add_row(*cells("" if at else option_text(name), f"{value:.6g}", *estimate_cells(estimate)[:2]))
    return made
