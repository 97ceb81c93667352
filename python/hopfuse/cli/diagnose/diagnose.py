"""``hopfuse diagnose``: whether the graph of an index helps with a set of questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ... import Index, Retriever
from ...diagnose import diagnose as diagnose_legs
from ...diagnose import rewritings, search_legs, stability_rows
from ...errors import InputError
from ...evaluate import PassageNames, Qrels, read_qrels
from ...io.queries import Query, read_queries
from ...recipes import RECIPES, Policy
from ...report import section_tables
from ..checks import Rule, check_rules
from ..console import json_text
from ..options import DIRECTORY, FILE, case_option, encoder_option
from ..recipes import config_of, open_retriever, threads_option
from ..run.queries import QueryInputs, text_of, unjudged, unknown_gold

EXCLUDES: tuple[Rule, ...] = (
    ("vectors", "encoder", "since each question has one vector"),
    ("stability", "vectors", "which has no vectors of reworded questions"),
)
#: Recipes whose hits are passages, and those whose config is a policy.
STABILITY_RECIPES = tuple(name for name, kind in RECIPES.items() if kind.ranks == "passages")
POLICY_RECIPES = tuple(name for name in STABILITY_RECIPES if RECIPES[name].Config is Policy)
NEEDS: tuple[Rule, ...] = (("policy", tuple(f"stability {name}" for name in POLICY_RECIPES), "which reads it"),)


@click.command()
@click.argument("directory", metavar="INDEX", type=DIRECTORY)
@click.option("--queries", type=FILE, required=True, help="Rows of id, text, entities: .jsonl or .parquet.")
@click.option("--vectors", type=FILE, help="One vector per question: .npy.  [default: made by --encoder]")
@encoder_option
@click.option(
    "--qrels",
    "judgements",
    type=click.Path(path_type=Path),
    help="Judgements, as for eval; may be the file of --queries.",
)
@click.option("--k", type=click.IntRange(min=1), default=10, show_default=True, help="Hits per list that are compared.")
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
@case_option
@threads_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diagnose(
    directory: Path,
    queries: Path,
    vectors: Path | None,
    encoder: str | None,
    judgements: Path | None,
    k: int,
    pool: int,
    damping: float,
    stable: tuple[str, ...],
    policy: Path | None,
    case_sensitive: bool,
    threads: int | None,
    as_json: bool,
) -> None:
    """Show whether an index's graph helps with a set of questions.

    Prints the graph's components and names, the questions' seeds, how far their walks spread, and how far the dense
    and the graph leg agree; with --qrels also whether they fail on the same questions, and what is lost by pools of
    each size. With --stability, each question is paraphrased, and an entity in it is called by another of its names;
    the recipe's first K passages are compared with those of the original question.
    """
    given: dict[str, Any] = {"vectors": vectors, "encoder": encoder, "stability": stable, "policy": policy}
    given |= {f"stability {name}": name for name in stable}
    check_rules(given, NEEDS, EXCLUDES)
    index = Index.open(directory)
    length = min(pool, index.num_passages)
    if k > length:
        raise InputError(
            "range",
            "k",
            "{field} is {given}, and the lists are {allowed} long; raise {@pool}, or lower {field}",
            given=k,
            allowed=length,
        )
    rows = list(read_queries(queries))
    if not rows:
        raise InputError("empty", "queries", "{field}: {path} has no questions", path=queries)
    qrels = None if judgements is None else _aligned(judgements, index, rows)
    model = "none" if vectors else encoder
    retriever = open_retriever(index, {"encoder": model, "case_sensitive": case_sensitive, "threads": threads})
    variants = [_variant(retriever, name, policy, k) for name in dict.fromkeys(stable)]
    asked = QueryInputs(vectors, len(rows)).of(rows, range(len(rows)))
    asked["vectors"], asked["entities"] = retriever.prepare(**asked)
    legs = search_legs(retriever, **asked, length=length, damping=damping)
    found = diagnose_legs(index, legs, qrels, k=k, damping=damping, threads=threads)
    if variants:
        named = asked["entities"] if any(row.entities is not None for row in rows) else None
        made = rewritings([text_of(row, "to be rewritten") for row in rows], index, named)
        found["stability"] = [row for one in variants for row in stability_rows(one, made, k=k, qrels=qrels)]
    if as_json:
        click.echo(json_text(found))
    else:
        Console().print(*(table.to_rich() for table in section_tables(found)), sep="\n")


def _variant(retriever: Retriever, recipe: str, policy: Path | None, k: int) -> Retriever:
    """Return the retriever of a recipe, which a search of no questions has checked."""
    made = retriever.variant(recipe, config=config_of(recipe, {"policy": policy} if recipe in POLICY_RECIPES else {}))
    made.check(k)
    return made


def _aligned(path: Path, index: Index, rows: Sequence[Query]) -> Qrels:
    """Return judgements by row of the index, in the order of the questions; an unjudged question has no gold."""
    names = PassageNames(index.passage_ids)
    qrels = read_qrels(path, names)
    strangers = [names.name(p) for gold in qrels.gold for p in gold if p >= index.num_passages]
    if strangers:
        raise unknown_gold(path, len(strangers), strangers[0])
    gold = dict(zip(qrels.ids, qrels.gold, strict=True))
    if not any(gold.get(row.id) for row in rows):
        raise unjudged(path, rows)
    return Qrels([row.id for row in rows], [gold.get(row.id, ()) for row in rows])
