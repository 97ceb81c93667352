"""``hopfuse eval``: how good runs are, how sure that is, and which queries they win and lose."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .. import __version__
from ..errors import InputError
from ..evaluate import (
    DEFAULT_METRICS,
    SPLITS,
    Evaluation,
    PassageNames,
    Qrels,
    Run,
    evaluate,
    html_report,
    read_qrels,
    read_run,
    rich_tables,
    split_rows,
)
from .files import write_whole
from .options import FILE


@click.command("eval")
@click.option(
    "--qrels",
    "judgements",
    type=click.Path(path_type=Path),
    required=True,
    help="Judgements: .jsonl with id and gold, TREC qrels, a BEIR table or a BEIR folder.",
)
@click.option(
    "--run",
    "named",
    metavar="NAME=FILE",
    multiple=True,
    required=True,
    help="A run: .jsonl, .json or .parquet as score writes it, else a TREC run. May be given several times.",
)
@click.option("--baseline", metavar="NAME", help="The run that the others are compared with.")
@click.option(
    "--metric",
    "metrics",
    metavar="METRIC",
    multiple=True,
    help="recall@k, hit@k, full_support@k, last_hop@k, mrr, mrr@k, map, map@k, ndcg@k, answer_em or answer_f1; may be "
    f"given several times. By default {', '.join(DEFAULT_METRICS)}.",
)
@click.option(
    "--split",
    type=click.Choice(SPLITS),
    default="all",
    show_default=True,
    help="Only the queries whose id has an even (tune) or odd (test) MD5.",
)
@click.option("--beir-split", default="test", show_default=True, help="Which table of a BEIR folder.")
@click.option("--passages", type=FILE, help="Passages with id and title, .jsonl: titles for the page.")
@click.option("--json", "json_out", type=FILE, help="Write the numbers here too, with every query's values.")
@click.option("--html", "html_out", type=FILE, help="Write a page here too: plots, queries won and lost.")
@click.option("--overwrite", is_flag=True, help="Replace the files of --json and --html where they exist.")
def evaluate_runs(
    judgements: Path,
    named: tuple[str, ...],
    baseline: str | None,
    metrics: tuple[str, ...],
    split: str,
    beir_split: str,
    passages: Path | None,
    json_out: Path | None,
    html_out: Path | None,
    overwrite: bool,
) -> None:
    """Judge runs by the passages that should have been found.

    Prints means with 95 % intervals, by number of hops; with --baseline also what each run wins and
    loses against it, how large the difference is, how surely it is there, and how small a one these
    queries would show.
    """
    files = _named_files(named)
    for option, out in (("--json", json_out), ("--html", html_out)):
        if out is not None and out.exists() and not overwrite:
            raise InputError(f"{option}: {out} exists; choose another name, or replace it with --overwrite")
    names = PassageNames()
    if passages is not None:
        names.read_titles(passages)
    qrels = read_qrels(judgements, names, split=beir_split)
    whole = {name: read_run(path, qrels.ids, names) for name, path in files.items()}
    rows = split_rows(qrels, split)
    judged, runs = qrels.take(rows), {name: run.take(rows) for name, run in whole.items()}
    evaluation = evaluate(runs, judged, metrics or DEFAULT_METRICS, baseline=baseline)
    notes = _notes(len(qrels), judged, split, whole)
    console = Console()
    console.print("\n".join(notes), highlight=False, soft_wrap=True, markup=False)
    console.print(*rich_tables(evaluation), sep="\n")
    if json_out is not None:
        text = json.dumps(_record(evaluation, judgements, files, split, whole), indent=1, allow_nan=False)
        write_whole(json_out, lambda path: _write(path, text + "\n"))
    if html_out is not None:
        page = html_report(evaluation, runs, judged, names, title=f"hopfuse eval: {judgements.name}", notes=notes)
        write_whole(html_out, lambda path: _write(path, page))


def _named_files(named: Sequence[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for one in named:
        name, equals, path = one.partition("=")
        if not (name and equals and path):
            raise InputError(f"--run is {one!r}; give a name and a file, for instance --run dense=dense.jsonl")
        if name in files:
            raise InputError(f"--run {name} is given twice; names are distinct")
        files[name] = Path(path)
    return files


def _notes(total: int, judged: Qrels, split: str, runs: Mapping[str, Run]) -> list[str]:
    """What the numbers are of, and what they leave out."""
    part = "" if split == "all" else f", the {split} half (by MD5 of the id) of {total:,}"
    notes = [f"{len(judged):,} queries{part}"]
    without = sum(not gold for gold in judged.gold)
    if without:
        notes.append(f"{without:,} have no relevant passage; ranking metrics leave them out")
    for name, run in runs.items():
        if run.num_missing:
            notes.append(f"{name} lacks {run.num_missing:,} of {total:,} queries; its lists for them are empty")
        if run.num_unjudged:
            notes.append(f"{name} has {run.num_unjudged:,} queries without judgements; they are left out")
    return notes


def _record(
    evaluation: Evaluation, judgements: Path, files: Mapping[str, Path], split: str, runs: Mapping[str, Run]
) -> dict[str, Any]:
    return {
        "hopfuse": __version__,
        "qrels": str(judgements),
        "split": split,
        "files": {
            name: {"file": str(path), "missing": runs[name].num_missing, "unjudged": runs[name].num_unjudged}
            for name, path in files.items()
        },
        **evaluation.to_dict(per_query=True),
    }


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
