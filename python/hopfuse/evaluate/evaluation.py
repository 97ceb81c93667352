"""Evaluate runs: every metric, overall and by the number of hops, and compared with a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isnan
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from .._validation import check_choice, check_distinct, check_list, check_some, check_whole
from ..errors import InputError
from ..types import Hits
from .comparison import Comparison, compare
from .metric_names import Metric, parse_metric
from .metrics import Values
from .passages import PassageNames
from .qrels import Qrels
from .runs import Run, gold_ranks
from .significance import bootstrap_interval, holm, wilson_interval

T = TypeVar("T")

WithoutGold = Literal["skip", "zero"]


@dataclass(frozen=True)
class Estimate:
    """The mean of a metric over a group of queries.

    Attributes
    ----------
    mean : float
        NaN if n is 0.
    n : int
        Queries for which the metric is defined.
    low, high : float or None
        95 % interval: Wilson's for a metric with values 0 or 1, else by bootstrap; None if n is 0.
    """

    mean: float
    n: int
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form; the mean of no queries is None."""
        return {**asdict(self), "mean": None if isnan(self.mean) else self.mean}


@dataclass(frozen=True)
class Group:
    """The results of a group of queries.

    Attributes
    ----------
    label : str
        ``"all"``, ``"1 hop"``, ``"2 hops"``, ..., or ``"hops unknown"``.
    queries : int
    estimates : mapping of run to mapping of metric to Estimate
    comparisons : mapping of run to mapping of metric to Comparison
        Empty without a baseline.
    """

    label: str
    queries: int
    estimates: Mapping[str, Mapping[str, Estimate]]
    comparisons: Mapping[str, Mapping[str, Comparison]]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        return {
            "group": self.label,
            "queries": self.queries,
            "estimates": _nested(self.estimates),
            "comparisons": _nested(self.comparisons),
        }


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Results of :func:`hopfuse.evaluate.evaluate`.

    Attributes
    ----------
    runs, metrics : tuple of str
        In the order given.
    baseline : str or None
    groups : tuple of Group
        All queries first, then one group per number of hops; no further group if no query's hops are known.
    ids : tuple of str, B entries
        The queries.
    per_query : mapping of run to mapping of metric to ndarray of float64, shape (B,)
        Read-only; NaN if the metric is not defined for a query.
    num_without_last_hop : int
        Queries that last-hop metrics leave out.
    relevance_level : int
    without_gold : {"skip", "zero"}
        What a query without gold passages counts as.
    num_without_gold : int
        Queries without a gold passage of at least the relevance level.
    """

    runs: tuple[str, ...]
    metrics: tuple[str, ...]
    baseline: str | None
    groups: tuple[Group, ...]
    ids: tuple[str, ...]
    per_query: Mapping[str, Mapping[str, NDArray[np.float64]]]
    num_without_last_hop: int
    relevance_level: int
    without_gold: WithoutGold
    num_without_gold: int

    def group(self, label: str = "all") -> Group:
        """Return the results of a group of queries.

        Raises
        ------
        InputError
            No group has this label.
        """
        check_choice(label, "group", [group.label for group in self.groups])
        return next(group for group in self.groups if group.label == label)

    def estimate(self, run: str, metric: str, *, group: str = "all") -> Estimate:
        """Return the mean of a metric for a run.

        Raises
        ------
        InputError
            A run, metric or group that was not evaluated.
        """
        return _pick(self.group(group).estimates, run, metric)

    def comparison(self, run: str, metric: str, *, group: str = "all") -> Comparison:
        """Return the comparison of a run with the baseline under a metric.

        Raises
        ------
        InputError
            A run, metric or group that was not compared, or no baseline was named.
        """
        self._named_baseline()
        return _pick(self.group(group).comparisons, run, metric)

    def wins(self, run: str, metric: str) -> tuple[str, ...]:
        """Return the queries for which a run has a higher value than the baseline, in order.

        Raises
        ------
        InputError
            A run or metric that was not evaluated, or no baseline was named.
        """
        return self._where(self._difference(run, metric) > 0)

    def losses(self, run: str, metric: str) -> tuple[str, ...]:
        """Return the queries for which a run has a lower value than the baseline, in order.

        Errors are as for :meth:`wins`.
        """
        return self._where(self._difference(run, metric) < 0)

    def _difference(self, run: str, metric: str) -> NDArray[np.float64]:
        baseline = self._named_baseline()
        return _pick(self.per_query, run, metric) - self.per_query[baseline][metric]

    def _named_baseline(self) -> str:
        if self.baseline is None:
            raise InputError("missing", "baseline", "{field} was not given to evaluate(); give the run to compare with")
        return self.baseline

    def _where(self, rows: NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(self.ids[row] for row in np.flatnonzero(rows).tolist())

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Return a JSON-serialisable form.

        Parameters
        ----------
        per_query : bool
            Add each query's values (None if a metric is not defined for it), and the queries won and lost.
        """
        made: dict[str, Any] = {
            "runs": list(self.runs),
            "metrics": list(self.metrics),
            "baseline": self.baseline,
            "queries_without_last_hop": self.num_without_last_hop,
            "relevance_level": self.relevance_level,
            "without_gold": self.without_gold,
            "queries_without_gold": self.num_without_gold,
            "groups": [group.to_dict() for group in self.groups],
        }
        if per_query:
            made["per_query"] = {
                "ids": list(self.ids),
                "values": {run: {m: _or_none(row[m]) for m in self.metrics} for run, row in self.per_query.items()},
            }
            if self.baseline is not None:
                others = [run for run in self.runs if run != self.baseline]
                made["won"] = {run: {m: list(self.wins(run, m)) for m in self.metrics} for run in others}
                made["lost"] = {run: {m: list(self.losses(run, m)) for m in self.metrics} for run in others}
        return made

    def __repr__(self) -> str:
        groups = [group.label for group in self.groups]
        return f"Evaluation(runs={list(self.runs)}, metrics={list(self.metrics)}, groups={groups})"


def summarise(values: NDArray[np.float64], *, binary: bool) -> Estimate:
    """Return the mean of values, with its 95 % interval.

    Parameters
    ----------
    values : ndarray of float64, shape (B,)
        NaN entries are left out.
    binary : bool
        True if the values are 0 or 1: the interval is Wilson's, else the bootstrap's.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.evaluate import summarise
    >>> summarise(np.array([1.0, 0.5, np.nan]), binary=False)
    Estimate(mean=0.75, n=2, low=0.5, high=1.0)
    """
    defined = values[~np.isnan(values)]
    if defined.size == 0:
        return Estimate(float("nan"), 0)
    interval = wilson_interval(int(defined.sum()), defined.size) if binary else bootstrap_interval(defined)
    return Estimate(float(defined.mean()), defined.size, *interval)


def _or_none(values: NDArray[np.float64]) -> list[float | None]:
    return [None if isnan(value) else value for value in values.tolist()]


def _pick(table: Mapping[str, Mapping[str, T]], run: str, metric: str) -> T:
    check_choice(run, "run", table)
    return table[run][check_choice(metric, "metric", table[run])]


def _nested(table: Mapping[str, Mapping[str, Estimate]] | Mapping[str, Mapping[str, Comparison]]) -> dict[str, Any]:
    return {run: {metric: value.to_dict() for metric, value in row.items()} for run, row in table.items()}


DEFAULT_METRICS = ("recall@5", "full_support@5", "last_hop@5", "mrr", "ndcg@10")

_Table = Mapping[str, Mapping[str, Values]]


def evaluate(
    qrels: Qrels,
    runs: Mapping[str, Hits | Run],
    metrics: Sequence[str] = DEFAULT_METRICS,
    *,
    by_hops: bool = True,
    baseline: str | None = None,
    relevance_level: int = 1,
    without_gold: WithoutGold = "skip",
) -> Evaluation:
    """Evaluate one or more runs on the same queries.

    Parameters
    ----------
    qrels : Qrels
        Judgements of the B queries.
    runs : mapping of str to Hits or Run
        By name: B rows of hits, in the order of ``qrels.ids``. Answer metrics need a Run.
    metrics : sequence of str
        Names of :func:`parse_metric`.
    by_hops : bool
        Also evaluate each group of queries with the same number of hops, if any is known.
    baseline : str, optional
        One of the runs. Every other run is compared with it under each metric: wins and losses, the mean difference
        with its paired bootstrap interval, and a p-value. The test is McNemar's exact one for values of 0 and 1, else
        the paired randomisation test; p is also corrected for the number of runs compared. ``distractor_suppression@k``
        uses its hits for runs without a baseline of their own.
    relevance_level : int, at least 1
        Passages of lower grades are not relevant, as with trec_eval's ``-l``. nDCG reads the grades of all.
    without_gold : {"skip", "zero"}
        Queries that are judged and have no relevant passage are left out of means, or count 0 as in trec_eval. "zero"
        does not apply to metrics of hops, answers and distractors.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        There is no run or no metric, a metric is unknown or repeated, a run has another number of queries, or the
        baseline is not a run.
    MissingExtraError
        SciPy, which intervals of shares and p-values need, is not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, evaluate
    >>> q = Qrels(["a", "b"], gold=[[1, 2], [3]], hops=[[[1], [2]], [[3]]])
    >>> dense = hf.Hits([[1, 5], [4, 3]], [[0.9, 0.1], [0.8, 0.7]])
    >>> graph = hf.Hits([[1, 2], [3, 4]], [[0.9, 0.1], [0.8, 0.7]])
    >>> result = evaluate(q, {"dense": dense, "graph": graph}, ["recall@2", "hit@1"], baseline="dense")
    >>> result.estimate("dense", "recall@2").mean
    0.75
    >>> result.comparison("graph", "hit@1").wins
    1
    >>> [group.label for group in result.groups]
    ['all', '1 hop', '2 hops']
    """
    chosen = _checked(runs, metrics, baseline)
    check_choice(without_gold, "without_gold", get_args(WithoutGold))
    level = check_whole(relevance_level, "relevance_level")
    judgements = _Judgements(qrels, qrels if level == 1 else qrels.at_level(level), without_gold)
    base = None if baseline is None else runs[baseline]
    values = {name: _per_query(name, _with_baseline(run, base), judgements, chosen) for name, run in runs.items()}
    groups = tuple(_group(label, rows, values, chosen, baseline) for label, rows in _split(qrels, by_hops))
    return Evaluation(
        tuple(runs),
        tuple(metric.name for metric in chosen),
        baseline,
        groups,
        qrels.ids,
        MappingProxyType(values),
        judgements.relevant.num_without_last_hop,
        int(relevance_level),
        without_gold,
        sum(not gold for gold in judgements.relevant.gold),
    )


class _Judgements(NamedTuple):
    """Judgements with all grades and of relevant passages alone, and what a query without relevant passages counts."""

    graded: Qrels
    relevant: Qrels
    without_gold: WithoutGold


def _checked(runs: Mapping[str, Hits | Run], metrics: Sequence[str], baseline: str | None) -> list[Metric]:
    check_some(runs, "runs", "name and its hits")
    names = check_some(check_list(metrics, "metrics", "a list of names"), "metrics", "name")
    check_distinct(names, "metrics")
    chosen = [parse_metric(name) for name in metrics]
    if baseline is not None:
        check_choice(baseline, "baseline", runs)
    return chosen


def _with_baseline(run: Hits | Run, baseline: Hits | Run | None) -> Hits | Run:
    """Return the run with the baseline's hits, unless it has its own baseline or another number of queries."""
    made = run if isinstance(run, Run) else Run(run)
    hits = baseline.hits if isinstance(baseline, Run) else baseline
    return run if hits is None or made.baseline is not None or len(hits) != len(made) else replace(made, baseline=hits)


def _per_query(run: str, hits: Hits | Run, judgements: _Judgements, metrics: list[Metric]) -> Mapping[str, Values]:
    values = {}
    for metric in metrics:
        qrels = judgements.graded if metric.reads_grades else judgements.relevant
        try:
            found = metric.per_query(hits, qrels)
        except InputError as error:
            raise error.at(f"run {run!r}, {metric.name}") from None
        if metric.counts_gold and judgements.without_gold == "zero":
            found = np.where(qrels.gold_pairs.sizes > 0, found, 0.0)
        values[metric.name] = found
        values[metric.name].flags.writeable = False
    return MappingProxyType(values)


def _split(qrels: Qrels, by_hops: bool) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    yield "all", np.ones(len(qrels), bool)
    if by_hops and qrels.num_hops.any():
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
        if metric.reads_baseline:  # the metric is relative to the baseline, whose own value is the minimum
            continue
        theirs = values[baseline][metric.name][rows]
        compared = [compare(row[metric.name][rows], theirs, binary=metric.binary) for row in runs.values()]
        for run, one, p in zip(runs, compared, holm([c.p_value for c in compared]), strict=True):
            found[run][metric.name] = replace(one, p_holm=float(p))
    return {run: MappingProxyType(row) for run, row in found.items()}


# ---- Traces ----------------------------------------------------------------------------------------------------------


def query_trace(
    row: int, qrels: Qrels, runs: Mapping[str, Run], names: PassageNames, *, first: int = 3
) -> dict[str, Any]:
    """Return the results of each run for a query, as a JSON-serialisable dict.

    Parameters
    ----------
    row : int
        The query's position.
    qrels : Qrels
    runs : mapping of str to Run
    names : PassageNames
        The names that runs and judgements were read with.
    first : int
        Number of hits to list of each run.

    Returns
    -------
    dict
        ``id``, ``question`` and ``hops`` (their number, None if not known). ``gold`` has for each gold passage, hop by
        hop, ``id``, ``title``, ``hop`` (from 1, or None) and ``runs``: its rank (from 1) and score in each run, or
        None. ``first`` has the first hits of each run with id, title and score. If there are runs with answers, there
        are also ``accepted`` and ``answers``.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import PassageNames, Qrels, Run, query_trace
    >>> names = PassageNames()
    >>> qrels = Qrels(["q1"], [[names.number("doc")]], questions=["Who?"])
    >>> made = query_trace(0, qrels, {"graph": Run(hf.Hits([[0]], [[0.5]]))}, names)
    >>> made["gold"]
    [{'id': 'doc', 'title': None, 'hop': None, 'runs': {'graph': {'rank': 1, 'score': 0.5}}}]
    """
    hop_of = {passage: at for at, hop in enumerate(qrels.hops[row], 1) for passage in hop}
    ranks = {name: gold_ranks(run.hits, qrels, row) for name, run in runs.items()}
    scores = {name: dict(run.hits.row(row)) for name, run in runs.items()}
    passages: dict[int, None] = dict.fromkeys(p for found in ranks.values() for p in found)
    made: dict[str, Any] = {
        "id": qrels.ids[row],
        "question": qrels.questions[row],
        "hops": len(qrels.hops[row]) or None,
        "gold": [
            {
                **_named(passage, names),
                "hop": hop_of.get(passage),
                "runs": {
                    name: None
                    if (rank := ranks[name][passage]) is None
                    else {"rank": rank, "score": scores[name][passage]}
                    for name in runs
                },
            }
            for passage in passages
        ],
        "first": {
            name: [{**_named(p, names), "score": score} for p, score in run.hits.row(row)[:first]]
            for name, run in runs.items()
        },
    }
    answers = {name: run.answers[row] for name, run in runs.items() if run.answers is not None}
    return {**made, "accepted": list(qrels.answers[row]), "answers": answers} if answers else made


def traces(
    queries: Iterable[str], qrels: Qrels, runs: Mapping[str, Run], names: PassageNames
) -> dict[str, dict[str, Any]]:
    """Return :func:`query_trace` of some queries, by id.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import PassageNames, Qrels, Run, traces
    >>> names = PassageNames()
    >>> qrels = Qrels(["q1", "q2"], [[names.number("doc")], []])
    >>> list(traces(["q2"], qrels, {"graph": Run(hf.Hits([[0], [0]], [[0.5], [0.5]]))}, names))
    ['q2']
    """
    place = {query: row for row, query in enumerate(qrels.ids)}
    return {query: query_trace(place[query], qrels, runs, names) for query in queries}


def differing_queries(evaluation: Evaluation) -> tuple[str, ...]:
    """Return the queries that some run won or lost against the baseline under some metric, in order.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, differing_queries, evaluate
    >>> one, two = hf.Hits([[1], [2]], [[1.0], [1.0]]), hf.Hits([[1], [3]], [[1.0], [1.0]])
    >>> differing_queries(evaluate(Qrels(["x", "y"], [[1], [2]]), {"a": one, "b": two}, ["hit@1"], baseline="a"))
    ('y',)
    """
    if evaluation.baseline is None:
        return ()
    kept = {
        query
        for run in evaluation.runs
        if run != evaluation.baseline
        for metric in evaluation.metrics
        for query in (*evaluation.wins(run, metric), *evaluation.losses(run, metric))
    }
    return tuple(query for query in evaluation.ids if query in kept)


def _named(passage: int, names: PassageNames) -> dict[str, Any]:
    name = names.name(passage)
    return {"id": name, "title": names.titles.get(name)}
