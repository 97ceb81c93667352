"""Judgements and runs of ``hopfuse eval``, ``sweep`` and ``compare``: options, reading, results and their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import click
import numpy as np
from rich.console import Console

from .. import Index, __version__
from .._validation import counted
from ..errors import InputError
from ..evaluate import (
    Evaluation,
    PassageNames,
    Qrels,
    Run,
    Sweep,
    differing_queries,
    findable_answers,
    parse_metric,
    read_qrels,
    read_run,
    read_texts,
    score_distributions,
    split_rows,
    traces,
)
from ..fusion.calibration import CalibrationName
from ..io.files import write_all
from ..io.queries import Query, query_file
from ..report import Table, evaluation_page, evaluation_tables, printable, query_tables, score_table
from .config_options import assigned
from .options import FILE
from .outputs import check_outputs, strict_json
from .queries import unjudged, unknown_gold

F = TypeVar("F", bound=Callable[..., Any])

CALIBRATIONS = get_args(CalibrationName)


def judging_options(command: F, *, required: bool = True) -> F:
    """Add the options of judgements, runs and the report; they become keyword arguments."""
    for option in (
        click.option("--overwrite", is_flag=True, help="Replace the files of --out and --html if they exist."),
        click.option("--html", "html_out", type=FILE, help="Also write an HTML page: plots, queries won and lost."),
        click.option("--out", type=FILE, help="Also write the numbers as JSON, with the values of every query."),
        click.option(
            "--show",
            type=click.IntRange(min=0),
            default=3,
            show_default=True,
            help="Number of queries won and lost under the first metric to print; --out and --html have all.",
        ),
        click.option(
            "--scores",
            type=click.Choice(CALIBRATIONS),
            default="pit",
            show_default=True,
            help="Calibration of scores, which are shown before and after it.",
        ),
        click.option(
            "--passages",
            type=FILE,
            help="Rows of id and title, for the report, and text, for answer_supported@k: .jsonl.",
        ),
        click.option("--beir-split", default="test", show_default=True, help="Split of a BEIR folder."),
        click.option(
            "--run",
            "named",
            metavar="NAME=FILE",
            multiple=True,
            required=required,
            help="A run: .jsonl, .json or .parquet as score writes it, else a TREC run. May be given several times.",
        ),
        click.option(
            "--qrels",
            "judgements",
            type=click.Path(path_type=Path),
            required=required,
            help="Judgements: .jsonl with id and gold, TREC qrels, a BEIR table or a BEIR folder.",
        ),
    ):
        command = option(command)
    return command


class EvaluationInputs(NamedTuple):
    """Judgements, runs in order, names of passages, and the runs' files."""

    qrels: Qrels
    runs: dict[str, Run]
    names: PassageNames
    files: dict[str, Path]


def read_inputs(
    judgements: Path, named: Sequence[str], metrics: Sequence[str], options: Mapping[str, Any]
) -> EvaluationInputs:
    """Check the output files, then read judgements, runs, and the texts of hits if a metric needs them."""
    files, passages = named_files(named), options["passages"]
    inputs = {f"run {name}": path for name, path in files.items()}
    inputs |= {"passages": passages, **qrels_files(judgements, options["beir_split"])}
    outputs = {"out": options["out"], "html": options["html_out"]}
    check_outputs(outputs, inputs, overwrite=options["overwrite"])
    names = PassageNames()
    if passages is not None:
        names.read_titles(passages)
    qrels = read_qrels(judgements, names, split=options["beir_split"])
    runs = {name: read_run(path, qrels.ids, names) for name, path in files.items()}
    return _with_texts(EvaluationInputs(qrels, runs, names, files), metrics, passages)


def _with_texts(inputs: EvaluationInputs, metrics: Sequence[str], passages: Path | None) -> EvaluationInputs:
    """Return the runs with the texts of their hits, if a metric reads them."""
    if passages is None or not any(parse_metric(name).reads_texts for name in metrics):
        return inputs
    texts = read_texts(passages, inputs.names)
    for name, run in inputs.runs.items():
        unread = np.setdiff1d(run.hits.ids[run.hits.ids >= 0], np.fromiter(texts, np.int64))
        if unread.size:
            one = inputs.names.name(int(unread[0]))
            raise InputError(
                "missing",
                "passages",
                "{field}: {path} lacks {count} that {name} found, such as {example!r}; give a file with all of them",
                path=passages,
                count=counted(unread.size, "passage"),
                name=name,
                example=one,
            )
    return inputs._replace(runs={name: replace(run, texts=texts) for name, run in inputs.runs.items()})


def with_baseline(inputs: EvaluationInputs, metrics: Sequence[str], baseline: str) -> EvaluationInputs:
    """Return the runs with the hits of the baseline, if a metric reads them."""
    if not any(parse_metric(name).reads_baseline for name in metrics):
        return inputs
    hits = inputs.runs[baseline].hits
    return inputs._replace(runs={name: replace(run, baseline=hits) for name, run in inputs.runs.items()})


def part(inputs: EvaluationInputs, split: str) -> EvaluationInputs:
    """Return the queries of one split."""
    rows = split_rows(inputs.qrels, split)
    runs = {name: run.take(rows) for name, run in inputs.runs.items()}
    return inputs._replace(qrels=inputs.qrels.take(rows), runs=runs)


def notes(inputs: EvaluationInputs, split: str, evaluation: Evaluation) -> list[str]:
    """Return sentences on which queries are counted, and what the metrics leave out."""
    total, kept = len(inputs.qrels), part(inputs, split).qrels
    half = "" if split == "all" else f", the {split} half (by MD5 of the id) of {total:,}"
    lines = [f"{counted(len(kept), 'query')}{half}"]
    if evaluation.num_without_gold:
        level = evaluation.relevance_level
        least = f" of grade {level} or above" if level > 1 else ""
        counts = "count 0 for them" if evaluation.without_gold == "zero" else "leave them out"
        lines.append(f"{evaluation.num_without_gold:,} have no relevant passage{least}; ranking metrics {counts}")
    for kind, what, unknown in (
        ("last_hop", "a known last hop", kept.num_without_last_hop),
        ("hops_recovered", "known hops", sum(not hops for hops in kept.hops)),
    ):
        leaving = [name for name in evaluation.metrics if name.startswith(kind)]
        if leaving and unknown:
            lines.append(f"{counted(unknown, 'query')} without {what}: left out of {', '.join(leaving)}")
    if any(run.texts is not None for run in inputs.runs.values()):
        unanswered = sum(not answers for answers in findable_answers(kept))
        lines.append(
            f"{unanswered:,} have no answer that a passage could contain (none, or yes or no); answer_supported leaves "
            "them out"
        )
    return lines + gaps(inputs.runs, total)


def gaps(runs: Mapping[str, Run], total: int) -> list[str]:
    """Return sentences on queries that runs lack, that are not judged, or that have notes."""
    lines = []
    for name, run in runs.items():
        if run.num_missing:
            lines.append(f"{name} lacks {run.num_missing:,} of {counted(total, 'query')}; they count as empty lists")
        if run.num_unjudged:
            lines.append(f"{name} has {counted(run.num_unjudged, 'query')} without judgements; they are left out")
        if run.notes:
            lines.append(f"{name} has notes on {counted(len(run.notes), 'query')}, such as: {run.notes[0]}")
    return lines


def origin(inputs: EvaluationInputs, judgements: Path) -> dict[str, Any]:
    """Return the version and the files behind a JSON report."""
    files = {
        name: {"file": str(path), "missing": inputs.runs[name].num_missing, "unjudged": inputs.runs[name].num_unjudged}
        for name, path in inputs.files.items()
    }
    return {"hopfuse": __version__, "qrels": str(judgements), "files": files}


def qrels_files(judgements: Path, beir_split: str = "test") -> dict[str, Path]:
    """Return the files that ``--qrels`` reads, by option: a file, or those of a BEIR folder."""
    if not judgements.is_dir():
        return {"qrels": judgements}
    parts = ("corpus.jsonl", "queries.jsonl", f"qrels/{beir_split}.tsv")
    return {f"qrels ({part})": judgements / part for part in parts}


def named_files(named: Sequence[str]) -> dict[str, Path]:
    """Return the files of ``--run NAME=FILE``, by name."""
    files: dict[str, Path] = {}
    for name, path in assigned(named, "run", "dense=dense.jsonl"):
        if name in files:
            raise InputError("duplicate", "run", "{field} {name} is given twice; give each run its own name", name=name)
        files[name] = Path(path)
    return files


# ---- Results ---------------------------------------------------------------------------------------------------------


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


# ---- Judged queries of an index --------------------------------------------------------------------------------------


class JudgedQueries(NamedTuple):
    """Queries with their places and rows in their file, and their judgements by row of the index."""

    queries: list[Query]
    places: list[str]
    rows: list[int]
    qrels: Qrels


def judged_queries(index: Index, queries: Path, judgements: Path) -> JudgedQueries:
    """Return the queries of a file that are judged."""
    names = PassageNames(index.passage_ids)
    qrels = read_qrels(judgements, names)
    if len(names) > index.num_passages:
        raise unknown_gold(judgements, len(names) - index.num_passages, names.name(index.num_passages))
    found = list(query_file(queries).rows())
    at = {id: row for row, id in enumerate(qrels.ids)}
    kept = [row for row, (_, query) in enumerate(found) if query.id in at]
    if not kept:
        raise unjudged(judgements, [query for _, query in found])
    asked = [found[row][1] for row in kept]
    return JudgedQueries(
        asked, [found[row][0] for row in kept], kept, qrels.take(np.array([at[one.id] for one in asked]))
    )
