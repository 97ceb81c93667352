"""An evaluation as one HTML page that needs nothing else: no script, no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from ..errors import InputError
from ..fusion.calibration import CalibrationName
from .cells import COMPARISON_COLUMNS, comparison_cells, estimate_cell, group_title
from .distributions import ScoreDistribution, score_distributions
from .evaluation import Evaluation, Group
from .grid import Grid
from .html_parts import figure, query_table, table
from .html_style import STYLE
from .html_sweep import sweep_sections
from .passage_names import PassageNames
from .qrels import Qrels
from .run import Run
from .svg import difference_bars, histogram
from .svg_heat_map import heat_map
from .sweep import Sweep
from .traces import decided, traces


def html_report(
    evaluation: Evaluation,
    runs: Mapping[str, Run],
    qrels: Qrels,
    names: PassageNames,
    *,
    title: str = "Evaluation",
    notes: Sequence[str] = (),
    calibration: CalibrationName = "pit",
    legs: Mapping[str, Run] | None = None,
    distributions: Mapping[str, Mapping[str, ScoreDistribution]] | None = None,
    traced: Mapping[str, Mapping[str, Any]] | None = None,
    sweep: Sweep | None = None,
    diagrams: Sequence[Grid] = (),
) -> str:
    """A page with the numbers, each query's win or loss, the scores' distributions, and the queries with their traces.

    Parameters
    ----------
    evaluation : Evaluation
    runs : mapping of str to Run
        The runs that were evaluated, in the order of ``qrels.ids``.
    qrels : Qrels
    names : PassageNames
        The names that runs and judgements were read with.
    title : str
    notes : sequence of str
        Lines under the title: what was read, which half of the queries this is.
    calibration : str
        A method of :func:`hopfuse.calibrate`: scores are drawn before it and after it.
    legs : mapping of str to Run, optional
        Further runs that were not evaluated: their scores are drawn, and traces have their ranks.
    distributions : mapping, optional
        What :func:`score_distributions` gave for these runs and legs, where that is known; ``calibration`` is then not
        read.
    traced : mapping, optional
        What :func:`traces` gave for the queries won and lost (:func:`decided`), where that is known.
    sweep : Sweep, optional
        What the options were selected by; ``evaluation`` is then of its test half.
    diagrams : sequence of Grid
        Drawn as heat maps, for instance the phase diagram of a mean-field model.

    Returns
    -------
    str
        HTML; all text from files is escaped.

    Raises
    ------
    InputError
        Runs or judgements other than those that were evaluated, a leg with a run's name, scores that the calibration
        does not allow.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import PassageNames, Qrels, Run, evaluate, html_report
    >>> names = PassageNames()
    >>> qrels = Qrels(["a"], [[names.number("doc1")]], questions=["Who?"])
    >>> names.number("doc2")
    1
    >>> runs = {"dense": Run(hf.Hits([[1]], [[0.9]])), "graph": Run(hf.Hits([[0]], [[0.9]]))}
    >>> page = html_report(evaluate(runs, qrels, ["hit@1"], baseline="dense"), runs, qrels, names)
    >>> page.startswith("<!doctype html>"), "Who?" in page
    (True, True)
    """
    if tuple(runs) != evaluation.runs or qrels.ids != evaluation.ids:
        raise InputError("give the runs and the judgements that were evaluated, all of them and in their order")
    both = set(legs or {}) & set(runs)
    if both:
        raise InputError(f"{', '.join(sorted(both))} is a leg and a run; give each name once")
    every = {**runs, **(legs or {})}
    sections = [
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(note)}</p>" for note in notes),
        *(sweep_sections(sweep) if sweep is not None else ()),
        *_diagrams(diagrams),
        *_numbers(evaluation),
        *_scores(score_distributions(every, qrels, calibration) if distributions is None else distributions),
        *_queries(evaluation, traces(decided(evaluation), every, qrels, names) if traced is None else traced),
    ]
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(sections) + "\n</body></html>\n"


def _diagrams(diagrams: Sequence[Grid]) -> Iterator[str]:
    for grid in diagrams:
        yield f"<h2>{escape(grid.label)} by {escape(grid.x_label)} and {escape(grid.y_label)}</h2>"
        yield figure(heat_map(grid), f"{grid.label} at each {grid.x_label} and {grid.y_label}")


def _numbers(evaluation: Evaluation) -> Iterator[str]:
    yield "<h2>Means</h2><p>Percent, with 95 % intervals: Wilson's where values are 0 or 1, else by bootstrap.</p>"
    for group in evaluation.groups:
        rows = [
            [run, *(estimate_cell(row[metric], group.queries) for metric in evaluation.metrics)]
            for run, row in group.estimates.items()
        ]
        yield table(group_title(group), ["run", *evaluation.metrics], rows)
    if evaluation.baseline is not None and len(evaluation.runs) > 1:
        yield f"<h2>Against {escape(evaluation.baseline)}</h2><p>{escape(_EXPLAINED)}</p>"
        for group in evaluation.groups:
            yield table(group_title(group), ["run", "metric", *COMPARISON_COLUMNS], _compared(group))


def _compared(group: Group) -> list[list[str]]:
    return [
        [run, metric, *comparison_cells(one)]
        for run, row in group.comparisons.items()
        for metric, one in row.items()
        if one.n
    ]


def _scores(distributions: Mapping[str, Mapping[str, ScoreDistribution]]) -> Iterator[str]:
    yield f"<h2>Scores before and after calibration</h2><p>{escape(_SCORES)}</p>"
    for name, kinds in distributions.items():
        yield f'<h3>{escape(name)}</h3><div class="panels">'
        for kind, found in kinds.items():
            auc = "" if found.auc is None else f"; AUC {found.auc:.3f}"
            caption = "as they are" if kind == "raw" else f"after {kind}, query by query"
            yield figure(histogram(found, "score" if kind == "raw" else f"{kind} score"), caption + auc)
        yield "</div>"


def _queries(evaluation: Evaluation, traced: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    baseline = evaluation.baseline
    if baseline is None or len(evaluation.runs) == 1:
        return
    yield f"<h2>Queries won and lost against {escape(baseline)}</h2>"
    yield "<p>A bar is a query, its height the difference; ties are not drawn. Under it the queries with their traces: "
    yield "rank and score of each gold passage in every run, and the first hits.</p>"
    for run in evaluation.runs:
        if run == baseline:
            continue
        for metric in evaluation.metrics:
            differences = evaluation.per_query[run][metric] - evaluation.per_query[baseline][metric]
            named = [(q, d) for q, d in zip(evaluation.ids, differences.tolist(), strict=True) if not np.isnan(d)]
            won, lost = evaluation.wins(run, metric), evaluation.losses(run, metric)
            yield f"<h3>{escape(run)}, {escape(metric)}: {len(won)} won, {len(lost)} lost</h3>"
            yield f'<div class="wide">{difference_bars(named)}</div>'
            for word, queries in (("won", won), ("lost", lost)):
                inside = query_table([traced[query] for query in queries])
                yield f"<details><summary>{len(queries)} {word}</summary>{inside}</details>"


_EXPLAINED = (
    "Difference: percent, with its paired bootstrap 95 % interval. Odds ratio: of the queries that only one answers, "
    "with its exact 95 % interval. p: McNemar's exact test where values are 0 or 1, else the paired randomisation "
    "test; (Holm): corrected for the number of runs. Detects: the smallest difference that so many queries show with a "
    "power of 0.8 at 5 %, not corrected for the number of runs."
)
_SCORES = (
    "Of relevant hits and of others, of all queries together, each outline of area 1. AUC: how often the score of a "
    "relevant hit is above that of another one, of any query; 0.5 tells nothing."
)
