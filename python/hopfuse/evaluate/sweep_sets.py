"""Choose options by the worst loss over several sets of queries, and evaluate the choice on their test halves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_some
from .comparison import Comparison, compare
from .evaluation import Estimate, summarise
from .metric_names import Metric
from .metrics import Values
from .qrels import Qrels
from .significance import holm
from .sweep import MakeRun, Options, judged_run, options_text, plain_options, selecting_metric, split_rows, trials_of


class JudgedSet(NamedTuple):
    """A set of judged queries, and a system to run on them.

    Attributes
    ----------
    make_run : callable (options, rows) -> Hits or Run
        As of :func:`sweep`.
    qrels : Qrels
    """

    make_run: MakeRun
    qrels: Qrels


@dataclass(frozen=True)
class SetsTrial:
    """Options, and their loss on the tune half of each set against the best trial of that set.

    Attributes
    ----------
    options : mapping of str to value
    means, losses : mapping of str to float
        The mean of the metric on each set, and its distance below the best mean of that set, at least 0.
    """

    options: Options
    means: Mapping[str, float]
    losses: Mapping[str, float]

    @property
    def worst(self) -> float:
        """The largest loss."""
        return max(self.losses.values())

    @property
    def mean(self) -> float:
        """The mean loss, with equal weight for each set."""
        return sum(self.losses.values()) / len(self.losses)

    def to_dict(self) -> dict[str, Any]:
        """Return a form that is JSON-serialisable if the options' values are."""
        losses = {"losses": dict(self.losses), "worst_loss": self.worst, "mean_loss": self.mean}
        return {"options": plain_options(self.options), "means": dict(self.means), **losses}


@dataclass(frozen=True)
class SetResult:
    """The results of a sweep's finalists on the test half of one set.

    Attributes
    ----------
    estimates : mapping of str to Estimate
        ``"baseline"``, ``"selected"``, ``"best"`` (the best trial on this set's tune half) and ``"by mean"``.
    against_baseline, against_best : Comparison
        The selected options compared with these two, query by query; p_holm is corrected over the sets.
    """

    estimates: Mapping[str, Estimate]
    against_baseline: Comparison
    against_best: Comparison

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        return {
            "estimates": {name: one.to_dict() for name, one in self.estimates.items()},
            "against_baseline": self.against_baseline.to_dict(),
            "against_best": self.against_best.to_dict(),
        }


@dataclass(frozen=True)
class SetsSweep:
    """Results of :func:`sweep_sets`.

    Attributes
    ----------
    metric : str
    trials : tuple of SetsTrial
        The baseline first, then the grid in order, on the tune halves.
    selected : SetsTrial
        The trial with the smallest worst loss, then the smallest mean loss, then the first.
    by_mean : SetsTrial
        The trial with the smallest mean loss, then the smallest worst loss. The difference between the mean losses of
        the two is the price of choosing by the worst set.
    best : mapping of str to SetsTrial
        The trial with the highest mean on each set.
    test : mapping of str to SetResult
        Results on the test half of each set, where only these trials are run, each once.
    """

    metric: str
    trials: tuple[SetsTrial, ...]
    selected: SetsTrial
    by_mean: SetsTrial
    best: Mapping[str, SetsTrial]
    test: Mapping[str, SetResult]

    def to_dict(self) -> dict[str, Any]:
        """Return a form that is JSON-serialisable if the options' values are."""
        return {
            "metric": self.metric,
            "num_trials": len(self.trials),
            "selected": self.selected.to_dict(),
            "by_mean": self.by_mean.to_dict(),
            "best": {name: trial.to_dict() for name, trial in self.best.items()},
            "test": {name: result.to_dict() for name, result in self.test.items()},
            "trials": [trial.to_dict() for trial in self.trials],
        }

    def __str__(self) -> str:
        chosen, price = self.selected, 100 * (self.selected.mean - self.by_mean.mean)
        lines = [
            f"{self.metric}: selected {options_text(chosen.options)}, of {len(self.trials)} trials; on the tune halves "
            f"it is at most {100 * chosen.worst:.1f} points below a set's best, {100 * chosen.mean:.1f} on average"
            + (f", {price:.1f} more than the trial with the smallest mean loss" if price > 0 else "")
        ]
        for name, one in self.test.items():
            c, mean = one.against_best, one.estimates["selected"].mean
            lines.append(
                f"{name}, test half: {100 * mean:.1f}; against the set's own best {100 * c.difference:+.1f} "
                f"({100 * (c.low or 0):+.1f} to {100 * (c.high or 0):+.1f}), against the baseline "
                f"{100 * one.against_baseline.difference:+.1f} on {c.n} queries"
            )
        return "\n".join(lines)


def sweep_sets(
    sets: Mapping[str, JudgedSet],
    grid: Mapping[str, Sequence[Any]] | Sequence[Options],
    *,
    baseline: Options,
    metric: str,
) -> SetsSweep:
    """Run every combination of options on the tune half of several sets, and the best for all on the test halves.

    Options that are best on one set of questions often lose on another. The trial is selected whose largest loss
    against the best trial of each set is smallest. The halves are made by :func:`in_test_half`; no query of a test half
    is run before the choice is made, and each finalist is run there once.

    Parameters
    ----------
    sets : mapping of str to JudgedSet
    grid, baseline
        As of :func:`sweep`; the same for every set.
    metric : str
        The metric to choose by, a name of :func:`parse_metric`.

    Returns
    -------
    SetsSweep

    Raises
    ------
    InputError
        There is no set, or an argument that :func:`sweep` refuses.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import JudgedSet, Qrels, sweep_sets
    >>> qrels = Qrels([f"q{i}" for i in range(40)], [[i] for i in range(40)])
    >>> def system(liked):
    ...     def run(options, rows):
    ...         right = rows % 10 < 9 - abs(options["depth"] - liked)
    ...         return hf.Hits(np.where(right, rows, rows + 100)[:, None], np.ones((rows.size, 1)))
    ...     return JudgedSet(run, qrels)
    >>> found = sweep_sets(
    ...     {"news": system(2), "films": system(6)}, {"depth": [2, 4, 6]}, baseline={"depth": 2}, metric="hit@1"
    ... )
    >>> found.selected.options, {name: trial.options for name, trial in found.best.items()}
    ({'depth': 4}, {'news': {'depth': 2}, 'films': {'depth': 6}})
    """
    check_some(sets, "sets", "name and its JudgedSet")
    judge = selecting_metric(metric)
    base = plain_options(baseline)
    options = [base, *(one for one in trials_of(grid) if one != base)]
    for one in sets.values():
        split_rows(one.qrels, "test")  # refuses an empty half before any work
    trials = _tuned(sets, options, judge)
    selected = min(trials, key=lambda trial: (trial.worst, trial.mean))
    by_mean = min(trials, key=lambda trial: (trial.mean, trial.worst))
    best = {name: _best_on(trials, name) for name in sets}
    chosen = {"selected": selected.options, "by mean": by_mean.options}
    tested = {
        name: _tested(one, {"baseline": base, **chosen, "best": best[name].options}, judge)
        for name, one in sets.items()
    }
    return SetsSweep(metric, trials, selected, by_mean, best, _corrected(tested))


def _tuned(sets: Mapping[str, JudgedSet], options: Sequence[Options], metric: Metric) -> tuple[SetsTrial, ...]:
    means: dict[str, list[float]] = {}
    for name, one in sets.items():
        rows = split_rows(one.qrels, "tune")
        found = (judged_run(one.make_run, given, one.qrels, rows, metric)[1] for given in options)
        means[name] = [float(np.nanmean(values)) for values in found]
    best = {name: max(row) for name, row in means.items()}
    made = []
    for at, given in enumerate(options):
        here = {name: row[at] for name, row in means.items()}
        made.append(SetsTrial(given, here, {name: best[name] - mean for name, mean in here.items()}))
    return tuple(made)


def _best_on(trials: Sequence[SetsTrial], name: str) -> SetsTrial:
    return max(trials, key=lambda trial: trial.means[name])


def _tested(one: JudgedSet, finalists: Mapping[str, Options], metric: Metric) -> SetResult:
    """Run the finalists on the test half, equal options once, and compare the selected one with the others."""
    rows = split_rows(one.qrels, "test")
    runs: list[tuple[Options, Values]] = []
    values: dict[str, Values] = {}
    for name, options in finalists.items():
        known = [found for given, found in runs if given == options]
        if not known:
            known = [judged_run(one.make_run, options, one.qrels, rows, metric)[1]]
            runs.append((options, known[0]))
        values[name] = known[0]
    estimates = {name: summarise(found, binary=metric.binary) for name, found in values.items()}
    against = (compare(values["selected"], values[name], binary=metric.binary) for name in ("baseline", "best"))
    return SetResult(estimates, *against)


def _corrected(tested: Mapping[str, SetResult]) -> dict[str, SetResult]:
    """Return the results with p_holm corrected over the sets."""
    ours = holm([one.against_baseline.p_value for one in tested.values()])
    theirs = holm([one.against_best.p_value for one in tested.values()])
    return {
        name: replace(
            one,
            against_baseline=replace(one.against_baseline, p_holm=float(p)),
            against_best=replace(one.against_best, p_holm=float(q)),
        )
        for (name, one), p, q in zip(tested.items(), ours, theirs, strict=True)
    }
