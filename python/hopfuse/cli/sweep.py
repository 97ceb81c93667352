"""``hopfuse sweep``: choose a fusion of runs, or a recipe's options, on half of the queries; test it on the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from .. import fusion
from .._validation import check_choice, check_names, check_number
from ..errors import InputError
from ..evaluate import (
    FusedLegs,
    Metric,
    Run,
    Sweep,
    evaluate,
    fusion_trials,
    option_curves,
    parse_metric,
    split_rows,
    sweep,
)
from ..evaluate.sweep import Options, options_text
from ..recipes import RECIPES
from ..report import sweep_tables
from ..retriever import WORDS
from .config_options import assigned, plain_value
from .judgements import EvaluationInputs, judging_options, notes, part, read_inputs, with_baseline, write_results
from .naming import field_of, given_parameters
from .options import FILE, check_rules, encoder_option
from .sweep_sets import sweep_recipe

METHODS = ("boltzmann", "linear", "rrf")

#: Options that only --sets reads, and those that it shares with --run.
OF_SETS = ("sets", "recipe", "encoder", "words", "threads")
OF_BOTH = ("metric", "option", "k", "out", "overwrite")


@click.command("sweep")
@partial(judging_options, required=False)
@click.option(
    "--sets",
    type=FILE,
    help="Instead of --run and --qrels: sets of questions, as .toml tables with index, queries and optionally vectors "
    "and qrels. --option then gives values of the recipe's options, which are chosen for all sets together.",
)
@click.option(
    "--recipe", type=click.Choice(tuple(RECIPES)), help="With --sets: the recipe.  [default: what the indexes can run]"
)
@encoder_option
@click.option("--words", "leg", type=click.Choice(WORDS), help="With --sets: the recipe's list by words.")
@click.option("--threads", type=int, help="With --sets.  [default: HOPFUSE_NUM_THREADS, else all processors]")
@click.option("--metric", default="recall@5", show_default=True, help="Metric to choose by; see hopfuse eval.")
@click.option(
    "--also", metavar="METRIC", multiple=True, help="Another metric for the test half; may be given several times."
)
@click.option("--baseline", metavar="NAME", help="Run with which the others are compared.  [default: the first]")
@click.option(
    "--method",
    "methods",
    metavar="NAME,...",
    default=",".join(METHODS),
    show_default=True,
    help=f"Fusion methods to try, of {', '.join(fusion.METHODS)}.",
)
@click.option(
    "--alpha",
    metavar="A,...",
    help="Weights of the first run, in [0, 1]; the others share the rest.  [default: the method's]",
)
@click.option(
    "--pool",
    "pools",
    metavar="[NAME=]K,...",
    multiple=True,
    help="Number of hits to take from each run, or from one of them.  [default: all]",
)
@click.option("--temperature", metavar="T,...", help="Temperatures, or auto, for methods that have one.")
@click.option("--consensus", metavar="C,...", help="Bonuses for being in two runs.")
@click.option("--calibration", metavar="NAME,...", help="Calibrations, for methods that read scores.")
@click.option(
    "--option",
    "further",
    metavar="NAME=V,...",
    multiple=True,
    help="Another option of a method, such as rank_constant=10,60; with --sets, a field of the recipe's config. May be "
    "given several times.",
)
@click.option("--k", type=click.IntRange(min=1), default=100, show_default=True, help="Fused hits per query.")
def sweep_command(
    sets: Path | None,
    recipe: str | None,
    encoder: str | None,
    leg: str | None,
    threads: int | None,
    **given: Any,
) -> None:
    """Choose how to fuse runs, and test it on held-out queries.

    Each run by itself, and each method with every combination of the given options, is tried on the tune half of the
    queries. The best one and the baseline are then run once on the test half.

    With --sets, every combination of a recipe's options is tried on the tune halves of several sets of questions. The
    combination is chosen whose largest loss against the best of each set is smallest. It, the best of each set, the
    combination with the smallest mean loss, and the defaults are run once on the test halves.
    """
    _check_kind(sets is not None)
    if sets is None:
        _sweep_runs(**given)
        return
    whole = {name: given[name] for name in ("k", "out", "overwrite")}
    legs: dict[str, Any] = {"encoder": encoder, "words": leg, "threads": threads}
    sweep_recipe(sets, recipe, given["further"], given["metric"], **legs, **whole)


def _check_kind(of_sets: bool) -> None:
    """Refuse options of runs if ``--sets`` is given, and options of sets if it is not."""
    context = click.get_current_context()
    names = given_parameters(context)
    given = {field_of(one): True for one in context.command.params if one.name in names}
    if of_sets:
        others = [name for name in given if name not in (*OF_SETS, *OF_BOTH)]
        check_rules(given, excludes=[(name, "sets", "which does not read it") for name in others])
        return
    check_rules(given, needs=[(name, "sets", "the only one that reads it") for name in OF_SETS[1:]])
    for field in ("qrels", "run"):
        if field not in given:
            raise InputError("missing", field, "{field} is missing; give {@qrels} and two or more {@run}, or {@sets}")


def _sweep_runs(
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
    **options: Any,
) -> None:
    metrics = list(dict.fromkeys((metric, *also)))
    judges = [parse_metric(name) for name in metrics]
    whole = read_inputs(judgements, named, metrics, options)
    base = baseline or next(iter(whole.runs))
    check_choice(base, "baseline", whole.runs)
    whole = with_baseline(whole, metrics, base)
    simple = {"alpha": alpha, "temperature": temperature, "consensus": consensus, "calibration": calibration}
    grid = _option_grid(simple, pools, further, list(whole.runs))
    fused = FusedLegs(whole.runs, k=k)
    tried = _words(methods, "method")
    trials = fusion_trials(tried, grid, list(whole.runs))
    _check_metrics(fused, whole, trials, judges)
    found = sweep(fused, whole.qrels, trials, baseline={"leg": base}, metric=metric)
    inputs = part(whole, "test")
    runs = _finalists(found, base, whole.runs)
    evaluation = evaluate(inputs.qrels, runs, metrics, baseline=base)
    first, *others = notes(whole, "test", evaluation)
    lines = [f"options are chosen on the tune half; results below are of the test half: {first}", *others]
    without = [method for method in dict.fromkeys(tried) if not any(trial.get("method") == method for trial in trials)]
    if without:
        lines.append(f"{', '.join(without)} can use none of the calibrations given; not tried")
    curves = {option: [curve.to_dict() for curve in row] for option, row in option_curves(found).items()}
    record = {
        "sweep": {"selected_on": "tune", "judged_on": "test", **found.to_dict(), "curves": curves},
        "test": evaluation.to_dict(per_query=True),
    }
    write_results(
        "sweep",
        judgements,
        whole,
        inputs._replace(runs=runs),
        evaluation,
        lines,
        record,
        options,
        legs={name: run for name, run in inputs.runs.items() if name not in runs},
        sweep=found,
        tables=sweep_tables(found),
    )


def _check_metrics(
    fused: FusedLegs, inputs: EvaluationInputs, trials: Sequence[Options], judges: Sequence[Metric]
) -> None:
    """Try every metric on one query of the tune half, so that a metric that cannot be computed fails early."""
    tune = split_rows(inputs.qrels, "tune")
    row = next((row for row in tune.tolist() if inputs.qrels.answers[row]), int(tune[0]))
    one = inputs.qrels.take([row])
    for trial in trials:
        for judge in judges:
            try:
                judge.per_query(fused(trial, np.array([row])), one)
            except InputError as error:
                raise error.at(f"options {options_text(trial)}, {judge.name}") from None


def _finalists(found: Sweep, baseline: str, legs: Mapping[str, Run]) -> dict[str, Run]:
    """Return the runs of the baseline and the selected trial on the test half, by name."""
    names = [baseline, *(_name(trial.options, legs) for trial in found.test[1:])]
    return {name: run if isinstance(run, Run) else Run(run) for name, run in zip(names, found.test_runs, strict=True)}


def _name(options: Options, legs: Mapping[str, Run]) -> str:
    """Return a leg's own name, and for a fusion a name that no leg has."""
    if "leg" in options:
        return str(options["leg"])
    free = ("selected", "selected by the sweep", *(f"selected by the sweep, {n}" for n in range(2, len(legs) + 2)))
    return next(name for name in free if name not in legs)


# ---- Values to try ---------------------------------------------------------------------------------------------------


def _option_grid(
    simple: Mapping[str, str | None], pools: Sequence[str], further: Sequence[str], legs: Sequence[str]
) -> dict[str, list[Any]]:
    """Return the values to try of each option; those of repeated options are concatenated.

    ``pools`` and ``further`` are the values of ``--pool`` and ``--option``, ``simple`` the other options by name.

    Examples
    --------
    >>> _option_grid({"alpha": "0.3,0.7", "consensus": None}, ["3", "graph=5", "9"], ["p=2"], ["dense", "graph"])
    {'alpha': [0.3, 0.7], 'pool': [3, 9], 'pool graph': [5], 'p': [2]}
    """
    grid: dict[str, list[Any]] = {}
    given = [(name, _values(written, name)) for name, written in simple.items() if written is not None]
    named = [(name, _values(written, name)) for name, written in assigned(further, example="rank_constant=10,60")]
    for name, found in (*given, *_pools(pools, legs), *named):
        grid.setdefault(name, []).extend(found)
    for value in grid.get("alpha", []):
        check_number(value, "alpha", low=0, high=1)
    return grid


def _words(given: str, name: str) -> list[str]:
    """Return the comma-separated words of an option.

    Examples
    --------
    >>> _words("rrf, linear", "method")
    ['rrf', 'linear']
    """
    parts = [part.strip() for part in given.split(",")]
    if not all(parts):
        raise InputError("syntax", name, "{field} is {given!r}; give values separated by commas", given=given)
    return parts


def _pools(given: Sequence[str], legs: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
    for one in given:
        name, equals, written = one.rpartition("=")
        if equals:
            check_names((name,), "pool", legs)
        yield (f"pool {name}" if equals else "pool"), _values(written, "pool")


def _values(given: str, name: str) -> list[Any]:
    """Return the comma-separated values of an option, as numbers where possible.

    Examples
    --------
    >>> _values("10, 0.5,auto", "pool")
    [10, 0.5, 'auto']
    """
    return [plain_value(word) for word in _words(given, name)]
