"""Choose options on one half of the queries, and evaluate the choice on the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import md5
from inspect import signature
from itertools import product
from math import isfinite
from numbers import Real
from typing import Any, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._validation import check_choice, check_list, check_some
from ..errors import InputError
from ..fusion import METHODS, Custom, FusionMethod
from ..types import Hits
from .comparison import Comparison, compare
from .evaluation import Estimate, summarise
from .metric_names import Metric, parse_metric
from .metrics import Values
from .qrels import Qrels
from .runs import Run
from .significance import holm

SPLITS = ("tune", "test", "all")


def in_test_half(ids: Iterable[str]) -> NDArray[np.bool_]:
    """Return True for the queries of the test half, False for those of the tune half.

    A query is in the test half if the MD5 hash of its id in UTF-8 is odd. The half depends only on the id: not on the
    order of the queries, on which others there are, or on a seed.

    Parameters
    ----------
    ids : iterable of str, B entries

    Returns
    -------
    ndarray of bool, shape (B,)
        About half are True.

    Examples
    --------
    >>> from hopfuse.evaluate import in_test_half
    >>> in_test_half(["q1", "q2", "q3", "q4"])
    array([False,  True,  True, False])
    """
    odd = (md5(query.encode(), usedforsecurity=False).digest()[-1] % 2 == 1 for query in ids)
    return np.fromiter(odd, bool)


def split_rows(qrels: Qrels, split: str) -> NDArray[np.int64]:
    """Return the positions of the queries of one half, or of all queries.

    Parameters
    ----------
    qrels : Qrels
    split : "tune", "test" or "all"

    Raises
    ------
    InputError
        The name is unknown, or the half has no query.

    Examples
    --------
    >>> from hopfuse.evaluate import Qrels, split_rows
    >>> split_rows(Qrels(["q1", "q2", "q3"], [[1], [2], [3]]), "test")
    array([1, 2])
    """
    check_choice(split, "split", SPLITS)
    test = in_test_half(qrels.ids)
    rows = np.arange(len(qrels)) if split == "all" else np.flatnonzero(test == (split == "test"))
    if rows.size == 0:
        raise InputError(
            "empty",
            "split",
            "{field} is {given!r}, and no query is in that half; evaluate more queries, or all",
            given=split,
        )
    return rows


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a finite real number and not a bool.

    Examples
    --------
    >>> import numpy as np
    >>> is_number(0.5), is_number(np.int64(3)), is_number("auto"), is_number(True), is_number(None)
    (True, True, False, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def as_number(value: float) -> int | float:
    """Return a number as an int or a float.

    Examples
    --------
    >>> import numpy as np
    >>> as_number(np.int64(3)), as_number(np.float32(0.5))
    (3, 0.5)
    """
    bare = plain(value)
    return bare if isinstance(bare, int) else float(bare)


def plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python value; return anything else unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> plain(np.float64(0.5)), plain("auto")
    (0.5, 'auto')
    """
    return value.item() if isinstance(value, np.generic) else value


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with NumPy scalars as Python values.

    Examples
    --------
    >>> import numpy as np
    >>> plain_options({"method": "rrf", "pool": np.int64(30)})
    {'method': 'rrf', 'pool': 30}
    """
    return {name: plain(value) for name, value in options.items()}


def shown_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as they are printed and written: functions by their names, other fusion methods as text.

    Examples
    --------
    >>> from hopfuse import fusion
    >>> shown_options({"method": max, "pool": 30}), shown_options({"method": fusion.Custom(max, {"default": 0})})
    ({'method': 'max', 'pool': 30}, {'method': 'max(default=0)'})
    """
    return {name: _shown(value) for name, value in options.items()}


def _shown(value: Any) -> Any:
    if isinstance(value, Custom):
        own = ", ".join(f"{name}={option!r}" for name, option in value.options.items())
        return f"{_shown(value.function)}({own})" if own else _shown(value.function)
    if isinstance(value, FusionMethod):
        return repr(value)
    return getattr(value, "__name__", repr(value)) if callable(value) else plain(value)


Options = Mapping[str, Any]
#: A fusion method, as :func:`hopfuse.fuse` takes it.
Method = str | FusionMethod | Callable[..., Any]
MakeRun = Callable[[Options, NDArray[np.int64]], Hits | Run]
T = TypeVar("T")


@dataclass(frozen=True)
class Trial:
    """Options, and the results of their run on one half.

    Attributes
    ----------
    options : mapping of str to value
    estimate : Estimate
    comparison : Comparison or None
        Comparison with the baseline, None for the baseline itself; p_holm is corrected over all trials on the tune
        half.
    """

    options: Options
    estimate: Estimate
    comparison: Comparison | None

    def to_dict(self) -> dict[str, Any]:
        """Return a form that is JSON-serialisable if the options' values are; functions by their names."""
        compared = None if self.comparison is None else self.comparison.to_dict()
        return {"options": shown_options(self.options), "estimate": self.estimate.to_dict(), "comparison": compared}


@dataclass(frozen=True)
class Sweep:
    """Results of :func:`sweep`.

    Attributes
    ----------
    metric : str
    tune : tuple of Trial
        The baseline first, then the grid in order, on the tune half.
    selected : Trial
        The first trial with the highest mean on the tune half.
    test : tuple of Trial
        The baseline and the selected options on the test half, each run once; only the baseline if it was selected.
        p needs no correction, because only one comparison is made there.
    test_runs : tuple of Hits or Run
        The hits of these trials on the test half, in the order of its queries.
    """

    metric: str
    tune: tuple[Trial, ...]
    selected: Trial
    test: tuple[Trial, ...]
    test_runs: tuple[Hits | Run, ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return a form that is JSON-serialisable if the options' values are; functions by their names."""
        return {
            "metric": self.metric,
            "tune": [trial.to_dict() for trial in self.tune],
            "selected": shown_options(self.selected.options),
            "test": [trial.to_dict() for trial in self.test],
        }

    def __str__(self) -> str:
        tuned, tested = self.tune[0].estimate.n, self.test[0].estimate
        chosen = f"{options_text(self.selected.options)}, of {len(self.tune)} on {tuned} tune queries"
        baseline = f"{100 * tested.mean:.1f} on {tested.n} test queries"
        if len(self.test) == 1:
            return f"{self.metric}: the baseline was selected ({chosen}); {baseline}"
        final = self.test[1]
        assert final.comparison is not None
        c = final.comparison
        return (
            f"{self.metric}: selected {chosen}; {100 * final.estimate.mean:.1f} against the baseline's {baseline} "
            f"({c.wins} won, {c.losses} lost, p = {c.p_value:.2g})"
        )


def sweep(
    make_run: MakeRun,
    qrels: Qrels,
    grid: Mapping[str, Sequence[Any]] | Sequence[Options],
    *,
    baseline: Options,
    metric: str,
) -> Sweep:
    """Run every combination of options on the tune half, and the best one once on the test half.

    The halves are made by :func:`in_test_half`. No query of the test half is run before the choice is made.

    Parameters
    ----------
    make_run : callable (options, rows) -> Hits or Run
        Runs a system with some options on the queries at the positions ``rows``, int64 of shape (R,), of
        ``qrels``; returns R rows in that order.
    qrels : Qrels
    grid : mapping of str to sequence, or sequence of mappings
        Values of each option: the trials are their product, the last option varying fastest. Or the options of each
        trial, if trials differ in which options they have (:func:`fusion_trials`). Duplicates are run once.
    baseline : mapping of str to value
        Options of the run with which all others are compared; run once, even if the grid also has it.
    metric : str
        The metric to choose by, a name of :func:`parse_metric`.

    Returns
    -------
    Sweep

    Raises
    ------
    InputError
        The grid or an option is empty, the metric is unknown, a half has no judged query, or a run has another shape.

    References
    ----------
    Holm, Scand. J. Stat. 6 (1979), for the trials' p_holm.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import Qrels, sweep
    >>> qrels = Qrels([f"q{i}" for i in range(40)], [[i] for i in range(40)])
    >>> def run(options, rows):
    ...     found = np.where(rows % 10 < options["good"], rows, rows + 100)
    ...     return hf.Hits(found[:, None], np.ones((rows.size, 1)))
    >>> result = sweep(run, qrels, {"good": [2, 8, 5]}, baseline={"good": 1}, metric="hit@1")
    >>> result.selected.options
    {'good': 8}
    """
    judge = selecting_metric(metric)
    base = plain_options(baseline)
    options = [base, *(one for one in trials_of(grid) if one != base)]
    tune, test = (split_rows(qrels, split) for split in ("tune", "test"))
    trials = _trials(options, [judged_run(make_run, one, qrels, tune, judge)[1] for one in options], judge)
    selected = max(trials, key=lambda trial: trial.estimate.mean)
    finalists = [base] if selected is trials[0] else [base, selected.options]
    runs, tested = zip(*(judged_run(make_run, one, qrels, test, judge) for one in finalists), strict=True)
    return Sweep(metric, trials, selected, _trials(finalists, tested, judge), runs)


def selecting_metric(name: str) -> Metric:
    """Return the metric with a name; refuse one that is relative to the baseline."""
    metric = parse_metric(name)
    if metric.reads_baseline:
        raise InputError(
            "unsupported",
            "metric",
            "{field} is {given!r}, which is relative to the baseline and cannot select; select by recall@k or mrr",
            given=name,
        )
    return metric


def trials_of(grid: Mapping[str, Sequence[Any]] | Sequence[Options]) -> list[dict[str, Any]]:
    """Return the distinct trials of a grid, the last option varying fastest.

    Examples
    --------
    >>> trials_of({"alpha": [0.3, 0.5], "pool": [10]})
    [{'alpha': 0.3, 'pool': 10}, {'alpha': 0.5, 'pool': 10}]
    """
    check_some(grid, "grid", "option and its values")
    if not isinstance(grid, Mapping):
        return _distinct([plain_options(options) for options in grid])
    for name, values in grid.items():
        check_some(check_list(values, f"grid[{name!r}]"), f"grid[{name!r}]", "value")
    each = [_distinct([plain(value) for value in values]) for values in grid.values()]
    return [dict(zip(grid, values, strict=True)) for values in product(*each)]


def _distinct(values: list[T]) -> list[T]:
    return [value for at, value in enumerate(values) if value not in values[:at]]


def judged_run(
    make_run: MakeRun, options: Options, qrels: Qrels, rows: NDArray[np.int64], metric: Metric
) -> tuple[Hits | Run, Values]:
    """Return the run with some options on the queries at ``rows``, and the metric of each query."""
    try:
        run = make_run(options, rows)
        values = metric.per_query(run, qrels.take(rows))
    except InputError as error:
        raise error.at(f"options {options_text(options)}, {metric.name}") from None
    if np.isnan(values).all():
        raise InputError(
            "empty",
            "metric",
            "{field} is {given!r}, which is defined for none of the {count} queries of a half; give more queries",
            given=metric.name,
            count=rows.size,
        )
    return run, values


def _trials(options: Sequence[Options], values: Sequence[Values], metric: Metric) -> tuple[Trial, ...]:
    """Return the trials; the first is the baseline with which the others are compared."""
    compared = [compare(one, values[0], binary=metric.binary) for one in values[1:]]
    adjusted = holm([c.p_value for c in compared]).tolist()
    comparisons = [None, *(replace(c, p_holm=p) for c, p in zip(compared, adjusted, strict=True))]
    estimates = [summarise(one, binary=metric.binary) for one in values]
    return tuple(Trial(*row) for row in zip(options, estimates, comparisons, strict=True))


def options_text(options: Options) -> str:
    """Return options in one line.

    Examples
    --------
    >>> options_text({"method": "rrf", "pool": 30})
    "method='rrf', pool=30"
    """
    return ", ".join(f"{name}={value!r}" for name, value in shown_options(options).items()) or "no options"


# ---- Fusions of runs -------------------------------------------------------------------------------------------------


class FusedLegs:
    """The fusion of several runs, as a system with options for :func:`sweep`.

    Options are ``leg`` (one of the runs by itself), or ``method`` (a name in ``hopfuse.fusion.METHODS``, or a function
    or an object, as :func:`hopfuse.fuse` takes them) with any of

    - ``alpha``: the weight of the first leg, in [0, 1]; the others share 1 - alpha equally. By default the method's.
    - ``pool``: the number of hits to take of each leg; ``pool NAME``: of that leg.
    - ``calibration``, ``consensus`` and the method's own options: see :func:`hopfuse.fuse`.

    Parameters
    ----------
    legs : mapping of str to Run
        Two or more, in the order of the judgements' queries.
    k : int
        Hits to keep for each query.

    Raises
    ------
    InputError
        There are fewer than two legs, or their numbers of queries differ.

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.evaluate import FusedLegs, Run
    >>> dense, graph = Run(hf.Hits([[0, 1]], [[0.9, 0.8]])), Run(hf.Hits([[2, 1]], [[0.7, 0.2]]))
    >>> legs = FusedLegs({"dense": dense, "graph": graph}, k=2)
    >>> legs({"method": "rrf", "alpha": 0.5, "pool graph": 1}, np.array([0])).ids
    array([[0, 2]])
    >>> legs({"leg": "graph"}, np.array([0])).hits.ids
    array([[2, 1]])
    """

    def __init__(self, legs: Mapping[str, Run], *, k: int = 100) -> None:
        if len(legs) < 2:
            raise InputError("missing", "legs", "{field} has {given}; give two or more runs to fuse", given=list(legs))
        sizes = {name: len(run) for name, run in legs.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(
                "length",
                "legs",
                "{field} has runs of different numbers of queries, {sizes}; read them for the same judgements",
                sizes=sizes,
            )
        self.legs, self.k = dict(legs), k

    def __call__(self, options: Options, rows: NDArray[np.int64]) -> Hits | Run:
        """Return the hits of the queries at ``rows``; a leg by itself keeps its answers, texts and baseline."""
        if "leg" in options:
            alone = self._leg(options["leg"]).take(rows)
            return replace(alone, hits=alone.hits.head(self.k), num_missing=0, num_unjudged=0)
        from ..ops.fusion import fuse  # loads the kernels, which other evaluations do not need

        given = dict(options)
        alpha, whole = given.pop("alpha", None), given.pop("pool", None)
        pools = [given.pop(f"pool {name}", whole) for name in self.legs]
        others = len(self.legs) - 1
        weights = None if alpha is None else [alpha, *[(1 - alpha) / others] * others]
        legs = [run.take(rows) for run in self.legs.values()]
        fused = fuse([run.hits for run in legs], weights=weights, pool=pools, k=self.k, **given)
        texts = next((run.texts for run in legs if run.texts is not None), None)
        baseline = next((run.baseline for run in legs if run.baseline is not None), None)
        return fused if texts is None and baseline is None else Run(fused, texts=texts, baseline=baseline)

    def _leg(self, name: str) -> Run:
        return self.legs[check_choice(name, "leg", self.legs)]


def fusion_trials(
    methods: Sequence[Method], grid: Mapping[str, Sequence[Any]], legs: Sequence[str]
) -> list[dict[str, Any]]:
    """Return each leg by itself, and each method with every combination of its options.

    Parameters
    ----------
    methods : sequence of str, FusionMethod or callable
        Names in ``hopfuse.fusion.METHODS``, objects of these classes, or functions as :class:`hopfuse.fusion.Custom`
        describes them. The options of an object are fixed; a function has its keywords.
    grid : mapping of str to sequence
        Values of options of :class:`FusedLegs`. Options that a method does not have are left out of its trials:
        ``temperature``, or ``calibration`` of a method that reads ranks. A method that reads scores is tried with the
        calibrations that it can use, and left out if it can use none.
    legs : sequence of str
        Names of the legs.

    Returns
    -------
    list of dict
        The ``grid`` of :func:`sweep`.

    Raises
    ------
    InputError
        There is no method, a method is unknown, an option has no values or belongs to none of the methods, or no
        method can use any of the calibrations.

    Examples
    --------
    >>> from hopfuse.evaluate import fusion_trials
    >>> grid = {"alpha": [0.5, 0.7], "temperature": ["auto", 1.0]}
    >>> for trial in fusion_trials(["rrf", "boltzmann"], grid, ["dense"])[1:4]:
    ...     print(trial)
    {'method': 'rrf', 'alpha': 0.5}
    {'method': 'rrf', 'alpha': 0.7}
    {'method': 'boltzmann', 'alpha': 0.5, 'temperature': 'auto'}

    A method of one's own has the weights of ``alpha`` and its keywords:

    >>> def first_only(lists, weights, *, top=10):
    ...     return {document: 1.0 for document in lists[0].ids[:top].tolist()}
    >>> trials = fusion_trials(["rrf", first_only], {"top": [5, 10]}, ["dense", "graph"])
    >>> trials[2], trials[3]["method"] is first_only, trials[3]["top"]
    ({'method': 'rrf'}, True, 5)
    """
    methods = check_some(check_list(methods, "methods", "a list of fusion methods"), "methods", "fusion method")
    for name, values in grid.items():
        check_some(check_list(values, f"grid[{name!r}]"), f"grid[{name!r}]", "value")
    found = [(method, _usable(method, grid, legs)) for method in _distinct(list(methods))]
    usable = [(method, own) for method, own in found if own is not None]
    cannot = [str(_shown(method)) for method, own in found if own is None]
    reason = f"{', '.join(cannot)} can use none of the calibrations {grid.get('calibration')}"
    if not usable:
        raise InputError(
            "unsupported",
            "methods",
            "{field}: {reason}; leave them out, or name another calibration or method",
            reason=reason,
        )
    unused = [name for name in grid if not any(name in own for _, own in usable)]
    if unused:
        raise InputError(
            "unused",
            "grid",
            "{field} has {unused}, which {methods} do not take{reason}; leave it out, or name another method",
            unused=", ".join(unused),
            methods=", ".join(str(_shown(method)) for method, _ in usable),
            reason=f", and {reason}" if cannot else "",
        )
    made: list[dict[str, Any]] = [{"leg": leg} for leg in legs]
    for method, own in usable:
        made += [{"method": method, **dict(zip(own, values, strict=True))} for values in product(*own.values())]
    return made


def _usable(method: Method, grid: Mapping[str, Sequence[Any]], legs: Sequence[str]) -> dict[str, Sequence[Any]] | None:
    """Return the options of the grid that a method has, or None if it can use none of the calibrations."""
    kind, own = _kind_and_options(method)
    allowed = {"consensus", "pool", *(f"pool {leg}" for leg in legs), *own}
    if kind.weighted:
        allowed.add("alpha")
    found = {name: values for name, values in grid.items() if name in allowed}
    reads_scores = kind.calibrations is None or len(kind.calibrations) > 0
    if "calibration" in grid and reads_scores:
        kept = [one for one in grid["calibration"] if kind.calibrations is None or one in kind.calibrations]
        if not kept:
            return None
        found["calibration"] = kept
    return found


def _kind_and_options(method: Method) -> tuple[type[FusionMethod], Iterable[str]]:
    """Return the class of a method and the names of its own options: none of an object, the keywords of a function."""
    if isinstance(method, FusionMethod):
        return type(method), ()
    if isinstance(method, type) or not callable(method):
        kind = METHODS[check_choice(method, "methods", METHODS)]
        return kind, [field.name for field in fields(kind)]  # type: ignore[arg-type]
    given = list(signature(method).parameters.values())[2:]  # after the lists and the weights
    return Custom, [one.name for one in given if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)]
