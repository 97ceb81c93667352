"""Tables of a sweep over several sets of queries."""

from __future__ import annotations

from ..evaluate.sweep_sets import SetsSweep, SetsTrial
from .tables import Table, option_text, table
from .text import p_text


def sets_tables(found: SetsSweep, show: int = 15) -> list[Table]:
    """Return a table of the trials with the smallest worst losses on the tune halves, and one of the test halves.

    Parameters
    ----------
    found : SetsSweep
    show : int
        Maximum number of trials; the baseline, the selected trial and the best of each set are always included.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import JudgedSet, Qrels, sweep_sets
    >>> from hopfuse.report import sets_tables
    >>> def run(options, rows):
    ...     found = np.where(rows % 10 < options["good"], rows, rows + 100)
    ...     return hf.Hits(found[:, None], np.ones((rows.size, 1)))
    >>> news = JudgedSet(run, Qrels([f"q{i}" for i in range(40)], [[i] for i in range(40)]))
    >>> tables = sets_tables(sweep_sets({"news": news}, {"good": [2, 8]}, baseline={"good": 1}, metric="hit@1"))
    >>> [table.title for table in tables]
    ["hit@1, tune halves: loss against each set's best of 3 trials", 'hit@1, test halves: run once']
    """
    return [_tuned(found, show), _tested(found)]


def _tuned(found: SetsSweep, show: int) -> Table:
    order = sorted(found.trials, key=lambda trial: (trial.worst, trial.mean))
    named = _named(found)
    kept = [trial for at, trial in enumerate(order) if at < show or any(trial is one for one, _ in named)]
    rows = []
    for trial in kept:
        words = [word for one, word in named if trial is one]
        name = option_text(trial.options) or "defaults"
        losses = [f"{100 * loss:.1f}" for loss in (trial.worst, trial.mean)]
        means = [f"{100 * trial.means[one]:.1f}" for one in found.test]
        rows.append([f"{', '.join(words)}: {name}" if words else name, *losses, *means])
    title = f"{found.metric}, tune halves: loss against each set's best of {len(found.trials)} trials"
    return table(title, ["options", "worst\nloss", "mean\nloss", *found.test], rows)


def _named(found: SetsSweep) -> list[tuple[SetsTrial, str]]:
    bests = [(trial, f"best on {name}") for name, trial in found.best.items()]
    return [(found.trials[0], "baseline"), (found.selected, "selected"), (found.by_mean, "least mean"), *bests]


def _tested(found: SetsSweep) -> Table:
    rows = []
    for name, one in found.test.items():
        c = one.against_best
        means = [f"{100 * one.estimates[who].mean:.1f}" for who in ("baseline", "selected", "by mean", "best")]
        interval = "" if c.low is None or c.high is None else f"{100 * c.low:+.1f} to {100 * c.high:+.1f}"
        difference = f"{100 * c.difference:+.1f}"
        rows.append([name, str(c.n), *means, difference, interval, p_text(one.against_baseline.p_holm)])
    columns = ["set", "n", "base", "selected", "least\nmean", "set's\nbest", "to best", "95 %", "p to base\n(Holm)"]
    return table(f"{found.metric}, test halves: run once", columns, rows)
