"""``hopfuse eval``: metrics of runs, their uncertainty, and the queries won and lost against a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import click

from ..evaluate import DEFAULT_METRICS, SPLITS, Qrels, Run, WithoutGold, evaluate
from .judgements import judging_options, notes, part, read_inputs, write_results


@click.command("eval")
@judging_options
@click.option("--baseline", metavar="NAME", help="Run with which the others are compared.")
@click.option(
    "--metric",
    "metrics",
    metavar="METRIC",
    multiple=True,
    help="recall@k, precision@k, hit@k, full_support@k, last_hop@k, last_hop_recall@k, hops_recovered@k, mrr, mrr@k, "
    "map, map@k, ndcg, ndcg@k, r_precision, answer_supported@k, distractor_suppression@k, answer_em or answer_f1; "
    "may be given several times. "
    f"By default {', '.join(DEFAULT_METRICS)}, and answer_em and answer_f1 if runs and judgements have answers.",
)
@click.option(
    "--split",
    type=click.Choice(SPLITS),
    default="all",
    show_default=True,
    help="Only the queries whose id has an even (tune) or odd (test) MD5 hash.",
)
@click.option(
    "--relevance-level",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Least grade of a relevant passage. nDCG reads the grades of all.",
)
@click.option(
    "--without-gold",
    type=click.Choice(get_args(WithoutGold)),
    default="skip",
    show_default=True,
    help="Leave judged queries without a relevant passage out of means, or count 0 for them, as trec_eval does.",
)
def evaluate_runs(
    judgements: Path,
    named: tuple[str, ...],
    baseline: str | None,
    metrics: tuple[str, ...],
    split: str,
    relevance_level: int,
    without_gold: WithoutGold,
    **options: Any,
) -> None:
    """Evaluate runs against relevance judgements.

    Prints means with 95 % intervals, overall and by number of hops. With --baseline it also prints the queries that
    each run wins and loses against it, and the mean difference with its interval and p-value. It adds the smallest
    difference that these queries could show, and the ranks of the relevant passages of some queries won and lost.
    """
    whole = read_inputs(judgements, named, metrics, options)
    inputs = part(whole, split)
    answered = ("answer_em", "answer_f1") if _all_answer(inputs.runs, inputs.qrels) else ()
    evaluation = evaluate(
        inputs.qrels,
        inputs.runs,
        metrics or (*DEFAULT_METRICS, *answered),
        baseline=baseline,
        relevance_level=relevance_level,
        without_gold=without_gold,
    )
    record = {"split": split, **evaluation.to_dict(per_query=True)}
    said = notes(whole, split, evaluation)
    write_results("eval", judgements, whole, inputs, evaluation, said, record, options)


def _all_answer(runs: Mapping[str, Run], qrels: Qrels) -> bool:
    return any(qrels.answers) and all(run.answers is not None for run in runs.values())
