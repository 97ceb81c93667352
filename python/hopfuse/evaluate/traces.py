"""Traces of queries: the ranks of gold passages, and the first hits, in each run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .evaluation import Evaluation
from .passages import PassageNames
from .qrels import Qrels
from .runs import Run, gold_ranks


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
        ``id``, ``question``, ``hops`` (their number, None if not known); ``gold``: for each gold passage, hop by hop,
        ``id``, ``title``, ``hop`` (from 1, or None) and ``runs``, its rank (from 1) and score in each run or None;
        ``first``: the first hits of each run with id, title and score; if there are runs with answers, ``accepted``
        and ``answers``.

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
