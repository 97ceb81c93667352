"""``hopfuse sweep``: which way to fuse several runs, chosen on one half of the queries and judged on the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .. import fusion
from ..errors import InputError
from ..evaluate import (
    FusedLegs,
    Run,
    Sweep,
    decided,
    evaluate,
    fusion_trials,
    html_report,
    option_curves,
    query_tables,
    rich_tables,
    score_distributions,
    score_table,
    sweep,
    sweep_tables,
    traces,
)
from ..evaluate.curves import is_number
from ..fusion.calibration import CalibrationName
from .judging import Judged, check_outputs, judging_options, notes, origin, part, read_judged, write_json, write_text

METHODS = ("boltzmann", "linear", "rrf")


@click.command("sweep")
@judging_options
@click.option("--metric", default="recall@5", show_default=True, help="What to choose by; see hopfuse eval.")
@click.option("--also", metavar="METRIC", multiple=True, help="Another metric for the test half. Several times.")
@click.option("--baseline", metavar="NAME", help="The run that all are compared with.  [default: the first]")
@click.option(
    "--method",
    "methods",
    metavar="NAME,...",
    default=",".join(METHODS),
    show_default=True,
    help=f"Of {', '.join(fusion.METHODS)}.",
)
@click.option(
    "--alpha",
    metavar="A,...",
    help="Weights of the first run, in 0 .. 1; the others share the rest.  [default: the method's]",
)
@click.option(
    "--pool",
    "pools",
    metavar="[NAME=]K,...",
    multiple=True,
    help="How many hits of each run, or of one of them, are taken.  [default: all]",
)
@click.option("--temperature", metavar="T,...", help="Numbers, or auto, of methods that have one.")
@click.option("--consensus", metavar="C,...", help="Bonuses for being in two runs.")
@click.option("--calibration", metavar="NAME,...", help="Of methods that read scores.")
@click.option(
    "--option", "further", metavar="NAME=V,...", multiple=True, help="A method's own option, e.g. rank_constant=10,60."
)
@click.option("--k", type=click.IntRange(min=1), default=100, show_default=True, help="Fused hits for each query.")
def sweep_runs(
    judgements: Path,
    named: tuple[str, ...],
    metric: str,
    also: tuple[str, ...],
    baseline: str | None,
    methods: str,
    alpha: str | None,
    pools: tuple[str, ...],
    temperature: str | None,
    consensus: str | None,
    calibration: str | None,
    further: tuple[str, ...],
    k: int,
    beir_split: str,
    passages: Path | None,
    scores: CalibrationName,
    show: int,
    json_out: Path | None,
    html_out: Path | None,
    overwrite: bool,
) -> None:
    """Find the best way to fuse runs, and say how good it is on queries that it was not chosen on.

    Every run alone and every method with every combination of the options given is tried on the tune
    half of the queries. The best one and the baseline are run once on the test half.
    """
    check_outputs(json_out, html_out, overwrite=overwrite)
    whole = read_judged(judgements, named, passages, beir_split)
    base = baseline or next(iter(whole.runs))
    if base not in whole.runs:
        raise InputError(f"--baseline is {base!r}; it must be one of the runs: {', '.join(whole.runs)}")
    simple = {"alpha": alpha, "temperature": temperature, "consensus": consensus, "calibration": calibration}
    grid = {name: _values(given, name) for name, given in simple.items() if given is not None}
    if not all(is_number(value) and 0 <= value <= 1 for value in grid.get("alpha", ())):
        raise InputError(f"--alpha is {alpha!r}; it must be numbers from 0 to 1 with a comma between them")
    grid |= _pools(pools, whole) | _further(further)
    fused = FusedLegs(whole.runs, k=k)
    trials = fusion_trials(methods.split(","), grid, list(whole.runs))
    found = sweep(fused, whole.qrels, trials, baseline={"leg": base}, metric=metric)
    judged = part(whole, "test")
    runs = _finalists(found, base)
    legs = {name: run for name, run in judged.runs.items() if name not in runs}
    evaluation = evaluate(runs, judged.qrels, list(dict.fromkeys((metric, *also))), baseline=base)
    everyone = {**runs, **legs}
    traced = traces(decided(evaluation), everyone, judged.qrels, judged.names)
    distributions = score_distributions(everyone, judged.qrels, scores)
    said = [f"chosen on the tune half; all but the sweep is of the test half: {notes(whole, 'test')[0]}"]
    said += notes(whole, "test")[1:]
    console = Console()
    console.print("\n".join([str(found), *said]), highlight=False, soft_wrap=True, markup=False)
    shown = (*sweep_tables(found), *rich_tables(evaluation), score_table(distributions))
    for table in (*shown, *query_tables(evaluation, traced, show)):
        console.print("", table, sep="\n")
    if json_out is not None:
        curves = {option: [curve.to_dict() for curve in row] for option, row in option_curves(found).items()}
        record = {
            **origin(whole, judgements),
            "sweep": {"selected_on": "tune", "judged_on": "test", **found.to_dict(), "curves": curves},
            "test": evaluation.to_dict(per_query=True),
            "scores": {run: {kind: d.to_dict() for kind, d in row.items()} for run, row in distributions.items()},
            "traces": traced,
        }
        write_json(json_out, record)
    if html_out is not None:
        title = f"hopfuse sweep: {judgements.name}"
        page = html_report(
            evaluation,
            runs,
            judged.qrels,
            judged.names,
            title=title,
            notes=said,
            calibration=scores,
            legs=legs,
            sweep=found,
        )
        write_text(html_out, page)


def _finalists(found: Sweep, baseline: str) -> dict[str, Run]:
    """The baseline's run on the test half, under its name, and the selected one's."""
    names = [baseline, *(_free_name(trial.options, baseline) for trial in found.test[1:])]
    return {name: run if isinstance(run, Run) else Run(run) for name, run in zip(names, found.test_runs, strict=True)}


def _free_name(options: Any, baseline: str) -> str:
    if "leg" in options:
        return str(options["leg"])
    return "selected" if baseline != "selected" else "selected by the sweep"


def _pools(given: tuple[str, ...], judged: Judged) -> dict[str, list[Any]]:
    made = {}
    for one in given:
        name, equals, values = one.rpartition("=")
        if equals and name not in judged.runs:
            raise InputError(f"--pool {one}: {name!r} is not a run; there are {', '.join(judged.runs)}")
        made[f"pool {name}" if equals else "pool"] = _values(values, "pool")
    return made


def _further(given: tuple[str, ...]) -> dict[str, list[Any]]:
    made = {}
    for one in given:
        name, equals, values = one.partition("=")
        if not (name and equals and values):
            raise InputError(f"--option is {one!r}; give a name and values, for instance --option rank_constant=10,60")
        made[name] = _values(values, name)
    return made


def _values(given: str, name: str) -> list[Any]:
    """Numbers where they are written so, else words."""
    parts = [part.strip() for part in given.split(",")]
    if not all(parts):
        raise InputError(f"--{name} is {given!r}; give values with a comma between them")
    return [_value(part) for part in parts]


def _value(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
