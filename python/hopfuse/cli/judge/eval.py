"""``hopfuse eval``: how good runs are, how sure that is, and which queries they win and lose."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
from rich.console import Console

from ...evaluate import DEFAULT_METRICS, SPLITS, Qrels, Run, differing_queries, evaluate, score_distributions, traces
from ...fusion.calibration import CalibrationName
from ...report import evaluation_page, evaluation_tables, printable, query_tables, score_table
from ..files import strict_json, write_all
from .inputs import check_report, judging_options, notes, origin, part, read_inputs, with_texts


@click.command("eval")
@judging_options
@click.option("--baseline", metavar="NAME", help="The run that the others are compared with.")
@click.option(
    "--metric",
    "metrics",
    metavar="METRIC",
    multiple=True,
    help="recall@k, hit@k, full_support@k, last_hop@k, hops_recovered@k, mrr, mrr@k, map, map@k, ndcg@k, "
    "answer_supported@k, distractor_suppression@k, answer_em or answer_f1; may be given several times. "
    f"By default {', '.join(DEFAULT_METRICS)}, and the answers' where answers are given.",
)
@click.option(
    "--split",
    type=click.Choice(SPLITS),
    default="all",
    show_default=True,
    help="Only the queries whose id has an even (tune) or odd (test) MD5.",
)
def evaluate_runs(
    judgements: Path,
    named: tuple[str, ...],
    baseline: str | None,
    metrics: tuple[str, ...],
    split: str,
    beir_split: str,
    passages: Path | None,
    scores: CalibrationName,
    show: int,
    out: Path | None,
    html_out: Path | None,
    overwrite: bool,
) -> None:
    """Judge runs by the passages that should have been found.

    Prints means with 95 % intervals, by number of hops; with --baseline also what each run wins and
    loses against it, how large the difference is, how surely it is there, how small a one these
    queries would show, and where the passages of queries won and lost stand in each run.
    """
    outputs = {"out": out, "html_out": html_out, "overwrite": overwrite}
    check_report(judgements, named, {**outputs, "passages": passages, "beir_split": beir_split})
    whole = with_texts(read_inputs(judgements, named, passages, beir_split), metrics, passages)
    inputs = part(whole, split)
    answered = ("answer_em", "answer_f1") if _all_answer(inputs.runs, inputs.qrels) else ()
    evaluation = evaluate(inputs.qrels, inputs.runs, metrics or (*DEFAULT_METRICS, *answered), baseline=baseline)
    traced = traces(differing_queries(evaluation), inputs.qrels, inputs.runs, inputs.names)
    distributions = score_distributions(inputs.qrels, inputs.runs, scores)
    said = notes(whole, split)
    console = Console()
    console.print(printable("\n".join(said)), highlight=False, soft_wrap=True, markup=False)
    for table in (*evaluation_tables(evaluation), score_table(distributions), *query_tables(evaluation, traced, show)):
        console.print("", table.to_rich(), sep="\n")
    texts = {}
    if out is not None:
        record = {
            **origin(whole, judgements),
            "split": split,
            **evaluation.to_dict(per_query=True),
            "scores": {run: {kind: d.to_dict() for kind, d in row.items()} for run, row in distributions.items()},
            "traces": traced,
        }
        texts[out] = strict_json(record)
    if html_out is not None:
        title = f"hopfuse eval: {judgements.name}"
        texts[html_out] = evaluation_page(
            evaluation,
            inputs.qrels,
            inputs.runs,
            inputs.names,
            title=title,
            notes=said,
            distributions=distributions,
            traced=traced,
        )
    write_all(texts)


def _all_answer(runs: Mapping[str, Run], qrels: Qrels) -> bool:
    return any(qrels.answers) and all(run.answers is not None for run in runs.values())
