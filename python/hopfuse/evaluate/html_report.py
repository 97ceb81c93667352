"""An evaluation as one HTML page that needs nothing else: no script, no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

import numpy as np

from ..errors import InputError
from .evaluation import Evaluation, Group
from .html_parts import STYLE, query_table, table
from .passage_names import PassageNames
from .qrels import Qrels
from .relevance import relevance
from .rendering import COMPARISON_COLUMNS, comparison_cells, estimate_cell, group_title
from .run import Run
from .svg import difference_bars, histogram


def html_report(
    evaluation: Evaluation,
    runs: Mapping[str, Run],
    qrels: Qrels,
    names: PassageNames,
    *,
    title: str = "Evaluation",
    notes: Sequence[str] = (),
) -> str:
    """A page with the numbers, each query's win or loss, the scores' distributions, and the queries.

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

    Returns
    -------
    str
        HTML; all text from files is escaped.

    Raises
    ------
    InputError
        Runs or judgements other than those that were evaluated.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import PassageNames, Qrels, Run, evaluate, html_report
    >>> names = PassageNames()
    >>> qrels = Qrels(["a"], [[names.number("doc1")]], questions=["Who?"])
    >>> runs = {"dense": Run(hf.Hits([[1]], [[0.9]])), "graph": Run(hf.Hits([[0]], [[0.9]]))}
    >>> page = html_report(evaluate(runs, qrels, ["hit@1"], baseline="dense"), runs, qrels, names)
    >>> page.startswith("<!doctype html>"), "Who?" in page
    (True, True)
    """
    if tuple(runs) != evaluation.runs or qrels.ids != evaluation.ids:
        raise InputError("give the runs and the judgements that were evaluated, all of them and in their order")
    sections = [
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(note)}</p>" for note in notes),
        *_numbers(evaluation),
        *_scores(runs, qrels),
        *_queries(evaluation, runs, qrels, names),
    ]
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n' + "\n".join(sections) + "\n</body></html>\n"


def _numbers(evaluation: Evaluation) -> Iterator[str]:
    yield "<h2>Means</h2><p>Percent, with 95 % intervals: Wilson's where values are 0 or 1, else by bootstrap.</p>"
    for group in evaluation.groups:
        rows = [
            [run, *(estimate_cell(row[metric], group.queries) for metric in evaluation.metrics)]
            for run, row in group.estimates.items()
        ]
        yield table(group_title(group), ["run", *evaluation.metrics], rows)
    if evaluation.baseline is not None:
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


def _scores(runs: Mapping[str, Run], qrels: Qrels) -> Iterator[str]:
    yield "<h2>Scores</h2><p>Of gold passages and of others among each run's hits, each outline of area 1.</p>"
    for name, run in runs.items():
        gold = relevance(run.hits, qrels.gold_pairs)
        valid = np.arange(run.hits.shape[1]) < run.hits.counts[:, None]
        scores = np.asarray(run.hits.scores, np.float64)
        yield f"<h3>{escape(name)}</h3>" + histogram({"gold": scores[gold], "other": scores[valid & ~gold]})


def _queries(evaluation: Evaluation, runs: Mapping[str, Run], qrels: Qrels, names: PassageNames) -> Iterator[str]:
    baseline = evaluation.baseline
    if baseline is None:
        return
    yield f"<h2>Queries won and lost against {escape(baseline)}</h2>"
    yield "<p>A bar is a query, its height the difference; ties are not drawn. Ranks are of the gold passages.</p>"
    place = {query: row for row, query in enumerate(evaluation.ids)}
    for run in evaluation.runs:
        if run == baseline:
            continue
        for metric in evaluation.metrics:
            differences = evaluation.per_query[run][metric] - evaluation.per_query[baseline][metric]
            named = [(q, d) for q, d in zip(evaluation.ids, differences.tolist(), strict=True) if not np.isnan(d)]
            won, lost = evaluation.wins(run, metric), evaluation.losses(run, metric)
            yield f"<h3>{escape(run)}, {escape(metric)}: {len(won)} won, {len(lost)} lost</h3>{difference_bars(named)}"
            for word, queries in (("won", won), ("lost", lost)):
                rows = [place[query] for query in queries]
                inside = query_table(rows, runs[run].hits, runs[baseline].hits, (run, baseline), qrels, names)
                yield f"<details><summary>{len(queries)} {word}</summary>{inside}</details>"


_EXPLAINED = (
    "Difference: percent, with its paired bootstrap 95 % interval. Odds ratio: of the queries that only one answers, "
    "with its exact 95 % interval. p: McNemar's exact test where values are 0 or 1, else the paired randomisation "
    "test; (Holm): corrected for the number of runs. Detects: the smallest difference that so many queries show with a "
    "power of 0.8."
)
