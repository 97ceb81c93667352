"""Runs against judgements: every metric, overall and by the number of hops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Hits
from .comparison import Comparison, compare
from .evaluation import Evaluation, Group, summarise
from .holm import holm
from .metric_names import Metric, parse_metric
from .metrics import Values
from .qrels import Qrels
from .run import Run

DEFAULT_METRICS = ("recall@5", "full_support@5", "last_hop@5", "mrr", "ndcg@10")

_Table = Mapping[str, Mapping[str, Values]]


def evaluate(
    runs: Mapping[str, Hits | Run],
    qrels: Qrels,
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    by_hops: bool = True,
    baseline: str | None = None,
) -> Evaluation:
    """Judge one or more runs on the same queries.

    Parameters
    ----------
    runs : mapping of str to Hits or Run
        A name and B rows of hits for each run, in the order of ``qrels.ids``. Answer metrics need a Run.
    qrels : Qrels
        Judgements of the B queries.
    metrics : sequence of str
        Names that :func:`parse_metric` takes.
    by_hops : bool
        Also give the numbers of each group of queries with the same number of hops.
    baseline : str, optional
        One of the runs: every other run is compared with it under each metric: wins and losses, the mean
        difference with its paired bootstrap interval, and p of McNemar's exact test (values of 0 and 1)
        or of the paired randomisation test, by itself and corrected for the number of runs compared.
        ``distractor_suppression@k`` counts its distractors, of every run that has no baseline of its own.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        No run or no metric, an unknown or repeated metric, a k above a run's width, a run with
        another number of queries, a baseline that is not a run.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, evaluate
    >>> q = Qrels(["a", "b"], gold=[[1, 2], [3]], hops=[[[1], [2]], [[3]]])
    >>> dense = hf.Hits([[1, 5], [4, 3]], [[0.9, 0.1], [0.8, 0.7]])
    >>> graph = hf.Hits([[1, 2], [3, 4]], [[0.9, 0.1], [0.8, 0.7]])
    >>> result = evaluate({"dense": dense, "graph": graph}, q, ["recall@2", "hit@1"], baseline="dense")
    >>> result.estimate("dense", "recall@2").mean
    0.75
    >>> result.comparison("graph", "hit@1").wins
    1
    >>> [group.label for group in result.groups]
    ['all', '1 hop', '2 hops']
    """
    chosen = _checked(runs, metrics, baseline)
    theirs = None if baseline is None else runs[baseline]
    values = {name: _per_query(name, _beside(run, theirs), qrels, chosen) for name, run in runs.items()}
    groups = tuple(_group(label, rows, values, chosen, baseline) for label, rows in _split(qrels, by_hops))
    return Evaluation(
        tuple(runs),
        tuple(metric.name for metric in chosen),
        baseline,
        groups,
        qrels.ids,
        MappingProxyType(values),
        qrels.num_without_last_hop,
    )


def _checked(runs: Mapping[str, Hits | Run], metrics: Sequence[str], baseline: str | None) -> list[Metric]:
    if not runs:
        raise InputError("runs is empty; give at least one name and its hits")
    if isinstance(metrics, str) or not metrics or len(set(metrics)) != len(metrics):
        raise InputError(f"metrics is {metrics!r}; give one or more distinct names, for instance ('recall@5', 'mrr')")
    chosen = [parse_metric(name) for name in metrics]
    if baseline is not None and baseline not in runs:
        raise InputError(f"baseline is {baseline!r}; it must be one of the runs: {', '.join(runs)}")
    return chosen


def _beside(run: Hits | Run, baseline: Hits | Run | None) -> Hits | Run:
    """The run with the baseline's hits, where it has none of its own and as many queries."""
    made = run if isinstance(run, Run) else Run(run)
    hits = baseline.hits if isinstance(baseline, Run) else baseline
    return run if hits is None or made.baseline is not None or len(hits) != len(made) else replace(made, baseline=hits)


def _per_query(run: str, hits: Hits | Run, qrels: Qrels, metrics: list[Metric]) -> Mapping[str, Values]:
    values = {}
    for metric in metrics:
        try:
            values[metric.name] = metric.per_query(hits, qrels)
        except InputError as error:
            raise InputError(f"run {run!r}, {metric.name}: {error}") from error
        values[metric.name].flags.writeable = False
    return MappingProxyType(values)


def _split(qrels: Qrels, by_hops: bool) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    yield "all", np.ones(len(qrels), bool)
    if by_hops:
        for hops in np.unique(qrels.num_hops).tolist():
            label = "hops unknown" if hops == 0 else "1 hop" if hops == 1 else f"{hops} hops"
            yield label, qrels.num_hops == hops


def _group(label: str, rows: NDArray[np.bool_], values: _Table, metrics: list[Metric], baseline: str | None) -> Group:
    estimates = {
        run: MappingProxyType({m.name: summarise(row[m.name][rows], binary=m.binary) for m in metrics})
        for run, row in values.items()
    }
    comparisons = _compared(
        {run: row for run, row in values.items() if run != baseline}, rows, values, metrics, baseline
    )
    return Group(label, int(rows.sum()), MappingProxyType(estimates), MappingProxyType(comparisons))


def _compared(
    runs: _Table, rows: NDArray[np.bool_], values: _Table, metrics: list[Metric], baseline: str | None
) -> dict[str, Mapping[str, Comparison]]:
    if baseline is None:
        return {}
    found: dict[str, dict[str, Comparison]] = {run: {} for run in runs}
    for metric in metrics:
        if metric.reads_baseline:  # the baseline's own value is what it is measured from: no other can be lower
            continue
        theirs = values[baseline][metric.name][rows]
        compared = [compare(row[metric.name][rows], theirs, binary=metric.binary) for row in runs.values()]
        for run, one, p in zip(runs, compared, holm([c.p_value for c in compared]), strict=True):
            found[run][metric.name] = replace(one, p_holm=float(p))
    return {run: MappingProxyType(row) for run, row in found.items()}
