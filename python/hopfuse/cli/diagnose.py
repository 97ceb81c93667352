"""``hopfuse diagnose``: which recipe to use, whether the graph helps, and what is wrong with the data of an index."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from .. import Index, Retriever
from .._validation import counted
from ..diagnose import (
    JUDGED,
    RANKINGS,
    Indication,
    Verdict,
    find_faults,
    indicate,
    judge,
    look_alikes,
    over_all,
    rewritings,
    search_legs,
    searchable,
    stability_rows,
)
from ..diagnose import diagnose as diagnose_graph
from ..diagnose.samples import SIZE
from ..errors import InputError
from ..evaluate import PassageNames, Qrels, read_qrels
from ..io.json_lines import json_objects
from ..io.queries import Query, read_queries
from ..recipes import RECIPES, Policy
from ..report import Table, p_text, printable, section_tables, table
from .console import json_text
from .naming import left_out_lines
from .options import DIRECTORY, FILE, Rule, case_option, check_rules, encoder_option
from .queries import QueryInputs, text_of, unjudged, unknown_gold
from .recipes import config_of, threads_option

EXCLUDES: tuple[Rule, ...] = (
    ("names", ("queries", "vectors", "qrels", "encoder", "stability"), "since it lists names alone"),
    ("vectors", "encoder", "since each question has one vector"),
    ("stability", "vectors", "which has no vectors of reworded questions"),
)
#: Recipes whose hits are passages, and those whose config is a policy.
STABILITY_RECIPES = tuple(name for name, kind in RECIPES.items() if kind.ranks == "passages")
POLICY_RECIPES = tuple(name for name in STABILITY_RECIPES if RECIPES[name].Config is Policy)
NEEDS: tuple[Rule, ...] = (
    ("policy", tuple(f"stability {name}" for name in POLICY_RECIPES), "which reads it"),
    ("qrels", "queries", "which it judges"),
    ("vectors", "queries", "which it has the vectors of"),
    ("stability", "queries", "which are reworded"),
)
#: Hits per list that are compared, if there are so many passages.
K = 10


@click.command()
@click.argument("directory", metavar="INDEX", type=DIRECTORY)
@click.option(
    "--queries",
    type=FILE,
    help="Rows of id, text, entities and, for a verdict, gold: .jsonl; or .parquet without gold.",
)
@click.option("--vectors", type=FILE, help="One vector per question: .npy.  [default: made by --encoder]")
@encoder_option
@click.option(
    "--qrels",
    "judgements",
    type=click.Path(path_type=Path),
    help="Judgements, as for eval.  [default: the file of --queries, if its rows have gold]",
)
@click.option(
    "--skip",
    type=click.Choice([name for name in JUDGED if name not in ("dense", "words")]),
    multiple=True,
    help="Leave this ranking out of the verdict; may be given several times.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=0),
    default=SIZE,
    show_default=True,
    help="Without judgements: most questions of each kind that are made from the index; 0 for none.",
)
@click.option(
    "--k",
    type=click.IntRange(min=1),
    help=f"Hits per list that are compared.  [default: {K}, or all passages if there are fewer]",
)
@click.option("--pool", type=click.IntRange(min=1), default=200, show_default=True, help="Longest list of each leg.")
@click.option("--damping", type=float, default=0.5, show_default=True, help="Probability of walking on.")
@click.option(
    "--stability",
    "stable",
    type=click.Choice(STABILITY_RECIPES),
    multiple=True,
    help="Also measure how this recipe's ranking changes if questions are reworded; may be given several times.",
)
@click.option("--policy", type=FILE, help=f"Policy of --stability {POLICY_RECIPES[0]}; see hopfuse policy.")
@click.option("--names", is_flag=True, help="List the entities whose names look alike, and nothing else.")
@case_option
@threads_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diagnose(
    directory: Path,
    queries: Path | None,
    vectors: Path | None,
    encoder: str | None,
    judgements: Path | None,
    skip: tuple[str, ...],
    sample: int,
    k: int | None,
    pool: int,
    damping: float,
    stable: tuple[str, ...],
    policy: Path | None,
    names: bool,
    case_sensitive: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Say which recipe to use on an index, whether its graph helps, and what is wrong with its data.

    With judged questions, prints a verdict: recall@5 and MRR of each leg, of the plain hybrid and of each recipe, which
    of them to use, and the command to run next. Without, prints an indication from titles taken out of their passages
    and pairs of passages that a name joins. Then what is wrong with the data, and how walks and lists behave. With
    --stability, each question is paraphrased, and an entity in it is called by another of its names; the recipe's
    first K passages are compared with those of the original question. With --names, entities that may be one are
    listed instead: their names are equal but for accents, apostrophes, spaces, the order of words, or one letter.
    """
    given: dict[str, Any] = {"vectors": vectors, "encoder": encoder, "stability": stable, "policy": policy}
    given |= {"queries": queries, "qrels": judgements, **{f"stability {name}": name for name in stable}}
    check_rules({**given, "names": names}, NEEDS, EXCLUDES)
    index = Index.open(directory)
    if names:
        _print_look_alikes(index, as_json=as_json)
        return
    length = min(pool, index.num_passages)
    if k is not None and k > length:
        raise InputError(
            "range",
            "k",
            "{field} is {given}, and the lists are {allowed} long; raise {@pool}, or lower {field}",
            given=k,
            allowed=length,
        )
    k = min(K, length) if k is None else k
    rows = [] if queries is None else _rows(queries)
    qrels = _judgements(queries, judgements, index, rows)
    how = "case-sensitive" if case_sensitive else None
    opened = Retriever(index, encoder="none" if vectors else encoder, names=how, threads=threads)
    variants = [_variant(opened, name, policy, k) for name in dict.fromkeys(stable)]
    retriever, lack = searchable(opened, vectors=vectors is not None)
    rankings = [name for name in JUDGED if name not in skip]
    asked = QueryInputs(vectors, len(rows)).of(rows, range(len(rows)))
    if lack is not None:
        asked["vectors"] = None
    found: dict[str, Any] = {"note": lack, "verdict": None, "indication": None}
    judged: Verdict | Indication | None = None
    if qrels is not None:
        texts = [text_of(row, "for the lexical leg") for row in rows]
        judged = judge(retriever, qrels=qrels, rankings=rankings, **{**asked, "questions": texts})
        judged = judged if lack is None else over_all(judged, opened)
        found["verdict"] = judged.to_dict()
    elif sample and index.num_passages:
        judged = indicate(retriever, size=sample, rankings=rankings)
        if lack is not None:
            judged = replace(judged, verdicts={name: over_all(one, opened) for name, one in judged.verdicts.items()})
        found["indication"] = judged.to_dict()
    more = {**given, "threads": threads}
    found["next"] = None if lack is not None else _next(directory, index, judged, rows, queries, more)
    faults = find_faults(opened)
    found["faults"] = [fault.to_dict() for fault in faults]
    legs = None
    if rows:
        asked["vectors"], asked["entities"] = retriever.prepare(**asked)
    if rows and index.graph is not None:
        legs = search_legs(retriever, **asked, length=length, damping=damping)
    sections = diagnose_graph(index, legs, qrels, k=k, damping=damping, threads=threads)
    if variants:
        named = asked["entities"] if any(row.entities is not None for row in rows) else None
        made = rewritings([text_of(row, "to be rewritten") for row in rows], index, named)
        sections["stability"] = [row for one in variants for row in stability_rows(one, made, k=k, qrels=qrels)]
    if as_json:
        click.echo(json_text({**found, **sections}))
        return
    console = Console()
    for part in _verdict_parts(judged, found, unjudged_rows=bool(rows) and qrels is None):
        console.print(part if isinstance(part, str) else part.to_rich(), highlight=False, markup=False)
    if found["next"] is not None:
        console.print(printable(f"\nNext: {found['next']}\n"), highlight=False, markup=False, soft_wrap=True)
    lines = [f"- {fault}" for fault in faults] or ["Nothing was found wrong with the data."]
    console.print(printable("\n".join(["What is wrong with the data:"] * bool(faults) + lines)), "", markup=False)
    console.print(*(one.to_rich() for one in section_tables(sections)), sep="\n")


# ---- What is printed ------------------------------------------------------------------------------------------------


def _verdict_parts(
    judged: Verdict | Indication | None, found: dict[str, Any], *, unjudged_rows: bool
) -> Iterator[str | Table]:
    """Yield what the command prints first: sentences, tables, and what was left out."""
    if found["note"] is not None and judged is not None:
        how = "give --vectors FILE of the questions or --encoder" if isinstance(judged, Verdict) else "give --encoder"
        yield f"Without the index's vectors: {how}."
    if unjudged_rows:
        yield (
            "The questions of --queries have no gold, so they are not judged: they are used only for the seeds, mass "
            "and legs below and for the example of Next.\n"
        )
    if isinstance(judged, Verdict):
        few = ", too few to decide: an indication only" if judged.few else ""
        yield printable(f"Verdict on {counted(judged.questions, 'judged question')}{few}.\n{judged}\n")
        yield _figures(judged, "Percent, with 95 % intervals")
        if judged.hint is not None:
            yield printable(f"{judged.hint}\n")
    elif judged is not None:
        yield "An indication, not a verdict: no questions are judged, so some were made from the index.\n"
        for name, one in judged.verdicts.items():
            yield printable(f"{judged.said(name)}\n")
            yield _figures(one, f"{name}: percent, with 95 % intervals")
            yield ""
        yield from (printable(f"No sample of {name}: {why}") for name, why in judged.lacks.items())
        if judged.conclusion is not None:
            yield printable(judged.conclusion)
        yield "To know, judge about 100 questions of your own: rows of id, question and gold for --queries."
    said = [] if found["note"] is None else [found["note"]]
    if judged is not None:
        verdicts = [judged] if isinstance(judged, Verdict) else judged.verdicts.values()
        said += left_out_lines({name: why for one in verdicts for name, why in one.left_out.items()})
    if said:
        yield printable("\n".join(said))


def _print_look_alikes(index: Index, *, as_json: bool) -> None:
    found = look_alikes(index)
    if as_json:
        click.echo(json_text({"look_alikes": [one.to_dict() for one in found]}))
        return
    if not found:
        click.echo("No two names look alike.")
        return
    rows = [
        (one.why, ", ".join(f"{name} ({count})" for name, count in zip(one.names, one.passages, strict=True)))
        for one in found
    ]
    title = "Entities that look alike, and their numbers of passages"
    Console().print(table(title, ("equal but for", "entities"), rows).to_rich(), highlight=False, markup=False)
    click.echo("Merge those that are one: hopfuse merge, change.merge_entities in Python, merge over HTTP.")


def _figures(found: Verdict, title: str) -> Table:
    rows = []
    for one in found.figures:
        cells = [one.ranking]
        for estimate in (one.recall, one.mrr):
            ends = (estimate.low, estimate.high)
            cells += [_percent(estimate.mean), "-".join("" if end is None else _percent(end) for end in ends)]
        c = one.compared
        cells += ["", ""] if c is None else [f"{100 * c.recall.difference:+.1f}", p_text(c.recall.p_holm)]
        rows.append([*cells, f"{one.milliseconds:.2g}" if one.milliseconds < 10 else f"{one.milliseconds:.0f}"])
    title += f"; difference from {found.bar} by recall@5, with p after Holm's correction; ms of a question"
    return table(title, ("ranking", "recall@5", "95 %", "mrr", "95 %", "diff.", "p", "ms"), rows)


def _percent(value: float) -> str:
    return "" if np.isnan(value) else f"{100 * value:.1f}"


def _next(
    directory: Path,
    index: Index,
    judged: Verdict | Indication | None,
    rows: Sequence[Query],
    queries: Path | None,
    given: dict[str, Any],
) -> str | None:
    """Return the command that searches as the verdict says; with vectors of a file, the one that scores its questions.

    The default search where samples disagree or say nothing. None if nothing was judged.
    """
    if judged is None or (isinstance(judged, Indication) and not judged.verdicts):
        return None
    ranked = [] if judged.use is None else RANKINGS[judged.use].arguments(index)
    more = [part for name in ("encoder", "threads") if given[name] is not None for part in (f"--{name}", given[name])]
    if given["vectors"] is not None:
        asked = ["score", directory, "--queries", queries, "--vectors", given["vectors"], "--out", "run.jsonl"]
        return shlex.join(map(str, ["hopfuse", *asked, *ranked, *more]))
    made = [] if isinstance(judged, Verdict) else list(judged.first_questions.values())
    question = next((row.text for row in rows if row.text), made[0] if made else "")
    asked = [directory, question, *ranked, *more]
    if question.startswith("-"):  # which is no option
        asked = [*ranked, *more, "--", directory, question]
    return shlex.join(map(str, ["hopfuse", "search", *asked]))


# ---- What is read ---------------------------------------------------------------------------------------------------


def _rows(queries: Path) -> list[Query]:
    rows = list(read_queries(queries))
    if not rows:
        raise InputError("empty", "queries", "{field}: {path} has no questions", path=queries)
    return rows


def _judgements(queries: Path | None, judgements: Path | None, index: Index, rows: Sequence[Query]) -> Qrels | None:
    """Return judgements of ``--qrels`` or, if its rows have gold, of ``--queries``; None without any."""
    if judgements is not None:
        return _aligned(judgements, index, rows, "qrels")
    own = (
        queries is not None
        and queries.suffix == ".jsonl"
        and any("gold" in row for _, row in json_objects(queries, ()))
    )
    return _aligned(queries, index, rows, "queries") if own and queries is not None else None


def _variant(retriever: Retriever, recipe: str, policy: Path | None, k: int) -> Retriever:
    """Return the retriever of a recipe, which a search of no questions has checked."""
    made = retriever.variant(recipe, config=config_of(recipe, {"policy": policy} if recipe in POLICY_RECIPES else {}))
    made.check(k)
    return made


def _aligned(path: Path, index: Index, rows: Sequence[Query], field: str) -> Qrels:
    """Return judgements by row of the index, in the order of the questions; an unjudged question has no gold."""
    names = PassageNames(index.passage_ids)
    qrels = read_qrels(path, names)
    strangers = [names.name(p) for gold in qrels.gold for p in gold if p >= index.num_passages]
    if strangers:
        raise unknown_gold(path, len(strangers), strangers[0], field)
    gold = dict(zip(qrels.ids, qrels.gold, strict=True))
    if not any(gold.get(row.id) for row in rows):
        raise unjudged(path, rows, field)
    return Qrels([row.id for row in rows], [gold.get(row.id, ()) for row in rows])
