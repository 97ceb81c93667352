"""HTML pages of an evaluation and of a PolicyRAG trace: self-contained, without scripts or network access.

The templates are in ``templates/`` and escape all text. The extra ``eval`` installs Jinja2 and matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..evaluate.curves import Grid, ScoreDistribution, option_curves, score_distributions
from ..evaluate.evaluation import Evaluation, differing_queries, traces
from ..evaluate.passages import PassageNames
from ..evaluate.qrels import Qrels
from ..evaluate.runs import Run
from ..evaluate.sweep import Sweep
from ..fusion.calibration import CalibrationName
from .paths import fact_words, path_words, subgraph, subgraph_plot
from .plots import MAX_CURVES, curve_plot, difference_bars, heat_map, histogram, stacked_bars
from .tables import Row, Table, comparison_tables, final_table, mean_tables, option_text, table, tune_table
from .text import render

#: Number of seeds whose shares have their own colour.
NAMED_SEEDS = 5
OTHERS = "other seeds"


def evaluation_page(
    evaluation: Evaluation,
    qrels: Qrels,
    runs: Mapping[str, Run],
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
    """Return a page with the results, the queries won and lost, distributions of scores, and traces of queries.

    Parameters
    ----------
    evaluation : Evaluation
    qrels : Qrels
    runs : mapping of str to Run
        The runs that were evaluated, in the order of ``qrels.ids``.
    names : PassageNames
        The names that runs and judgements were read with.
    title : str
    notes : sequence of str
        Paragraphs under the title, for instance on what was read, and which half of the queries this is.
    calibration : str
        A method of :func:`hopfuse.calibrate`; scores are plotted before and after it.
    legs : mapping of str to Run, optional
        Further runs that were not evaluated; their scores are plotted, and traces have their ranks.
    distributions : mapping, optional
        The result of :func:`hopfuse.evaluate.score_distributions` for these runs and legs, if it is already known;
        ``calibration`` is then ignored.
    traced : mapping, optional
        The result of :func:`hopfuse.evaluate.traces` for the queries that differ from the baseline, if it is already
        known.
    sweep : Sweep, optional
        The sweep that selected the options; ``evaluation`` is then of its test half.
    diagrams : sequence of Grid
        Plotted as heat maps, for instance the phase diagram of a mean-field model.

    Returns
    -------
    str
        HTML; all text from files is escaped.

    Raises
    ------
    InputError
        Runs or judgements are not those that were evaluated, a leg has the name of a run, or the calibration does not
        allow the scores.
    MissingExtraError
        Jinja2 or matplotlib is not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import PassageNames, Qrels, Run, evaluate
    >>> from hopfuse.report import evaluation_page
    >>> names, qrels = PassageNames(["doc1", "doc2"]), Qrels(["a"], [[0]], questions=["Who?"])
    >>> runs = {"dense": Run(hf.Hits([[1]], [[0.9]])), "graph": Run(hf.Hits([[0]], [[0.9]]))}
    >>> page = evaluation_page(evaluate(qrels, runs, ["hit@1"], baseline="dense"), qrels, runs, names)
    >>> page.startswith("<!doctype html>"), "Who?" in page
    (True, True)
    """
    if tuple(runs) != evaluation.runs or qrels.ids != evaluation.ids:
        raise InputError(
            "changed",
            "runs",
            "{field} or {@qrels} are not those that were evaluated; give the same ones in the same order",
        )
    both = set(legs or {}) & set(runs)
    if both:
        raise InputError(
            "duplicate", "legs", "{field} has {given!r}, the name of a run; give each name once", given=min(both)
        )
    every = {**runs, **(legs or {})}
    if distributions is None:
        distributions = score_distributions(qrels, every, calibration)
    if traced is None:
        traced = traces(differing_queries(evaluation), qrels, every, names)
    compared = evaluation.baseline is not None and len(evaluation.runs) > 1
    return render(
        "evaluation.html",
        title=title,
        notes=notes,
        sweep=None if sweep is None else _sweep(sweep),
        diagrams=[(grid, heat_map(grid)) for grid in diagrams],
        means=mean_tables(evaluation),
        baseline=evaluation.baseline if compared else None,
        comparisons=comparison_tables(evaluation),
        scores={run: list(_histograms(kinds)) for run, kinds in distributions.items()},
        differences=list(_differences(evaluation, traced)) if compared else [],
    )


def policy_page(trace: Mapping[str, Any]) -> str:
    """Return a page about a question of PolicyRAG: seeds, facts, and the terms, seeds and paths of each hit's score.

    Parameters
    ----------
    trace : mapping
        A trace of a search by :class:`hopfuse.recipes.PolicyRAG`.

    Returns
    -------
    str
        HTML; all text of the trace is escaped, and the same trace gives the same page.

    Raises
    ------
    InputError
        The trace is of another recipe, or was made by an older version.
    MissingExtraError
        Jinja2 or matplotlib is not installed.

    Examples
    --------
    >>> from hopfuse.report import policy_page
    >>> hit = {"passage": 0, "id": "p0", "title": "A <b>", "score": 0.5}
    >>> trace = {"query": "Who?", "ranked_by": "vectors", "seeds": [], "facts": [], "passage_seeds": [], "hits": [hit]}
    >>> page = policy_page(trace)
    >>> page.startswith("<!doctype html>"), "A &lt;b&gt;" in page, "<b>" in page
    (True, True, False)
    """
    missing = [name for name in ("query", "ranked_by", "seeds", "facts", "passage_seeds", "hits") if name not in trace]
    if missing:
        raise InputError(
            "missing",
            "trace",
            "{field} has no {key!r}; give a trace of PolicyRAG: search(..., trace=True).traces",
            key=missing[0],
        )
    by_policy = trace["ranked_by"] == "policy"
    if by_policy and not all(map(_has_paths, trace["hits"])):
        raise InputError("version", "trace", "{field} was made by an older version; search again with trace=True")
    named = [(f"{at}. {_name(hit)}", hit) for at, hit in enumerate(trace["hits"], 1)]
    context: dict[str, Any] = {"hits": _passages(trace["hits"], by_policy=by_policy), "by_policy": by_policy}
    if by_policy:
        context |= {
            "terms": stacked_bars([(name, hit["terms"]) for name, hit in named], "score"),
            "shares": stacked_bars(_attributed(named), "percent"),
            "drawing": subgraph_plot(subgraph(trace["hits"])),
            "paths": table(
                "The strongest paths",
                ("hit", "path", "facts behind it", "strength"),
                [_path(name, hit, path) for name, hit in named for path in hit["paths"]],
                text_columns=3,
            ),
        }
    starts = [(one["name"], str(one["number"]), f"{one['mass']:.4g}") for one in trace["passage_seeds"]]
    columns = ("passage", "row", "share of the restart")
    context["starts"] = table("Nearest to the question", columns, starts)
    seeds, facts = _seeds(trace["seeds"]), _facts(trace["facts"])
    return render("policy.html", title=str(trace["query"]), seeds=seeds, facts=facts, **context)


def _sweep(sweep: Sweep) -> dict[str, Any]:
    plots = []
    for option, curves in option_curves(sweep).items():
        drawn = f"; the best {MAX_CURVES} of {len(curves)} methods" if len(curves) > MAX_CURVES else ""
        others = "; ".join(dict.fromkeys(option_text(curve.others) for curve in curves[:MAX_CURVES] if curve.others))
        caption = f"{sweep.tune[0].estimate.n} tune queries{drawn}" + (f". Other options: {others}" if others else "")
        plots.append((curve_plot(curves, option, sweep.metric, sweep.tune[0].estimate.mean), caption))
    summary = {"summary": str(sweep), "metric": sweep.metric, "trials": len(sweep.tune)}
    return {**summary, "final": final_table(sweep), "plots": plots, "tuned": tune_table(sweep)}


def _histograms(kinds: Mapping[str, ScoreDistribution]) -> Iterator[tuple[str, str]]:
    for kind, found in kinds.items():
        auc = "" if found.auc is None else f"; AUC {found.auc:.3f}"
        caption = "raw scores" if kind == "raw" else f"after {kind}, query by query"
        yield histogram(found, "score" if kind == "raw" else f"{kind} score"), caption + auc


def _differences(evaluation: Evaluation, traced: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    assert evaluation.baseline is not None
    for run in evaluation.runs:
        for metric in evaluation.metrics if run != evaluation.baseline else ():
            values = evaluation.per_query[run][metric] - evaluation.per_query[evaluation.baseline][metric]
            named = [(q, d) for q, d in zip(evaluation.ids, values.tolist(), strict=True) if not np.isnan(d)]
            queries = {"won": evaluation.wins(run, metric), "lost": evaluation.losses(run, metric)}
            lists = {word: [traced[query] for query in some] for word, some in queries.items()}
            yield {"run": run, "metric": metric, "plot": difference_bars(named), "lists": lists}


def _has_paths(hit: Mapping[str, Any]) -> bool:
    """Return whether a hit has paths whose relations have the field ``walked``."""
    steps = (step for path in hit.get("paths", ()) for step in path)
    return "paths" in hit and all("walked" in step for step in steps if step.get("edge") == "relation")


def _seeds(seeds: Sequence[Mapping[str, Any]]) -> Table:
    columns = ("seed", "matched by", "in the question", "align", "names", "vectors", "specificity", "aliasOK", "share")
    rows = []
    for one in seeds:
        factors = (f"{one[key]:.4g}" for key in ("align", "lexical", "cosine", "specificity"))
        ends = ("yes" if one["alias_ok"] else "no", f"{one['share']:.4g}" if one["share"] > 0 else "dropped")
        cells = (one["name"], one["match"], one["surface"] or "-", *factors, *ends)
        rows.append(Row(cells, "" if one["share"] > 0 else "dropped"))
    return Table("Entities", columns, tuple(rows), 3)


def _facts(facts: Sequence[Mapping[str, Any]]) -> Table:
    columns = ("head", "relation", "tail", "reason", "gate", "score", "fact")
    rows = []
    for one in facts:
        words = (one["head"], one["relation"], one["tail"], one["reason"], "kept" if one["kept"] else "dropped")
        rows.append(Row((*words, f"{one['score']:.4g}", str(one["fact"])), "" if one["kept"] else "dropped"))
    return Table("Facts that the gate saw", columns, tuple(rows), 5)


def _passages(hits: Sequence[Mapping[str, Any]], *, by_policy: bool) -> Table:
    columns: tuple[str, ...] = ("passage", "id", "terms") if by_policy else ("passage", "id")
    rows = []
    for at, hit in enumerate(hits, 1):
        cells = [f"{at}. {_name(hit)}", str(hit["id"])]
        if by_policy:
            cells.append(", ".join(f"{name} {value + 0.0:+.3f}" for name, value in hit["terms"].items()))
        cells.append(f"{hit['score']:.4f}")
        rows.append([*cells, f"{hit['projected']:.3g}"] if by_policy else cells)
    numbers = ("score", "projected") if by_policy else ("score",)
    return table("Passages", (*columns, *numbers), rows, text_columns=len(columns))


def _path(name: str, hit: Mapping[str, Any], path: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    facts = "; ".join(fact_words(path))
    return name, path_words(path, hit["passage"]), facts or "-", f"{path[-1]['strength']:.3g}"


def _attributed(named: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, dict[str, float]]]:
    """Return the percentage of each hit's score by seed: for the largest seeds by name, and for the others together."""
    total: dict[tuple[str, int], float] = {}
    for _, hit in named:
        for one in hit["attribution"]:
            key = one["kind"], one["number"]
            total[key] = total.get(key, 0.0) + one["score"]
    largest = sorted(total, key=lambda key: (-total[key], key))[:NAMED_SEEDS]
    return [(name, seed_shares(hit["attribution"], largest)) for name, hit in named]


def seed_shares(attribution: Sequence[Mapping[str, Any]], largest: Sequence[tuple[str, int]]) -> dict[str, float]:
    """Return the percentage of a hit's score by seed: for the seeds in ``largest`` by name, and for all others.

    Parameters
    ----------
    attribution : sequence of mapping
        ``kind``, ``number``, ``name`` and ``score`` of each seed of a hit, as in a trace.
    largest : sequence of (str, int)
        Kind and number of the seeds to name.

    Examples
    --------
    >>> from hopfuse.report import seed_shares
    >>> ada = {"kind": "entity", "number": 1, "name": "Ada", "score": 0.25}
    >>> seed_shares([ada, {**ada, "number": 2, "name": "Bob", "score": 0.75}], [("entity", 1)])
    {'Ada': 25.0, 'other seeds': 75.0}
    """
    of = {(one["kind"], one["number"]): one for one in attribution}
    shares: dict[str, float] = {}
    for key in largest:
        if key in of:  # a passage may have the name of an entity
            name = of[key]["name"] if key[0] == "entity" else f"passage {key[1]}: {of[key]['name']}"
            name = f"{name} (entity {key[1]})" if name == OTHERS else name
            shares[name] = shares.get(name, 0.0) + of[key]["score"]
    others = sum(one["score"] for key, one in of.items() if key not in largest)
    whole = sum(shares.values()) + others
    return {name: 100 * share / whole for name, share in (shares | ({OTHERS: others} if others else {})).items()}


def _name(hit: Mapping[str, Any]) -> str:
    return str(hit["title"] or hit["id"])
