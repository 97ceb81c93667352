"""Print the results of ``eval`` and ``sweep``, and write their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from ...evaluate import Evaluation, Run, Sweep, differing_queries, score_distributions, traces
from ...io.files import write_all
from ...report import Table, evaluation_page, evaluation_tables, printable, query_tables, score_table
from ..files import strict_json
from .inputs import EvaluationInputs, origin


def write_results(
    command: str,
    judgements: Path,
    whole: EvaluationInputs,
    judged: EvaluationInputs,
    evaluation: Evaluation,
    said: Sequence[str],
    record: Mapping[str, Any],
    options: Mapping[str, Any],
    *,
    legs: Mapping[str, Run] | None = None,
    sweep: Sweep | None = None,
    tables: Sequence[Table] = (),
) -> None:
    """Print notes and tables, and write the files of ``--out`` and ``--html``.

    ``judged`` has the runs of the evaluation; ``legs`` are further runs whose scores and traces are shown.
    """
    everyone = {**judged.runs, **(legs or {})}
    traced = traces(differing_queries(evaluation), judged.qrels, everyone, judged.names)
    distributions = score_distributions(judged.qrels, everyone, options["scores"])
    console = Console()
    lines = said if sweep is None else [str(sweep), *said]
    console.print(printable("\n".join(lines)), highlight=False, soft_wrap=True, markup=False)
    shown = (*tables, *evaluation_tables(evaluation), score_table(distributions))
    for table in (*shown, *query_tables(evaluation, traced, options["show"])):
        console.print("", table.to_rich(), sep="\n")
    texts = {}
    if options["out"] is not None:
        scores = {run: {kind: d.to_dict() for kind, d in row.items()} for run, row in distributions.items()}
        texts[options["out"]] = strict_json({**origin(whole, judgements), **record, "scores": scores, "traces": traced})
    if options["html_out"] is not None:
        texts[options["html_out"]] = evaluation_page(
            evaluation,
            judged.qrels,
            judged.runs,
            judged.names,
            title=f"hopfuse {command}: {judgements.name}",
            notes=said,
            legs=legs,
            distributions=distributions,
            traced=traced,
            sweep=sweep,
        )
    write_all(texts)
