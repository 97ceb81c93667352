"""``hopfuse diagnose``: whether the graph of an index helps with a set of questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ... import Hits, Index
from ...diagnose import Rewriting, rewritings, search_legs, stability_rows
from ...diagnose import diagnose as diagnose_legs
from ...errors import InputError
from ...evaluate import PassageNames, Qrels, join_hits, read_qrels
from ...extract import Match
from ...io.queries import Query, count_queries, read_queries
from ...recipes import RECIPES
from ...report import section_tables
from ..checks import Rule, check_rules
from ..console import json_text
from ..options import DIRECTORY, FILE, case_option, encoder_option, question_encoder
from ..recipes import threads_option
from ..run.queries import chunks, text_of, unjudged, unknown_gold
from .inputs import BoundRecipe, QueryInputs, bind

CHUNK = 256
NEEDS: tuple[Rule, ...] = (("policy", "stability policy-rag", "which reads it"),)
EXCLUDES: tuple[Rule, ...] = (
    ("vectors", "encoder", "since each question has one vector"),
    ("stability", "vectors", "which has no vectors of reworded questions"),
)
#: Recipes whose hits are passages.
STABILITY_RECIPES = tuple(name for name in RECIPES if name != "triple-hybrid")


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
@click.option("--policy", type=FILE, help="Policy of --stability policy-rag; see hopfuse policy.")
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
    given["stability policy-rag"] = "policy-rag" in stable
    check_rules(given, NEEDS, EXCLUDES)
    index = Index.open(directory)
    model = question_encoder(index, encoder, vectors)
    inputs = QueryInputs(index, vectors, model, count_queries(queries), case_sensitive=case_sensitive)
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
    bound = [_bind(name, index, model, policy, threads, k) for name in dict.fromkeys(stable)]
    options: dict[str, Any] = {"damping": damping, "threads": threads}
    legs = search_legs(index, _batches(inputs, rows), length=length, encoder=model, **options)
    found = diagnose_legs(index, legs, qrels, k=k, **options)
    if bound:
        made = _rewritings(index, inputs, rows)
        found["stability"] = [
            row for one in bound for row in stability_rows(one.name, _search(one, inputs, k), made, k=k, qrels=qrels)
        ]
    if as_json:
        click.echo(json_text(found))
    else:
        Console().print(*(table.to_rich() for table in section_tables(found)), sep="\n")


def _rewritings(index: Index, inputs: QueryInputs, rows: Sequence[Query]) -> dict[str, Rewriting]:
    texts = [text_of(row, "to be rewritten") for row in rows]
    given = any(row.entities is not None for row in rows)
    return rewritings(texts, index, inputs.entities(list(rows)) if given else None)


def _bind(name: str, index: Index, encoder: Any, policy: Path | None, threads: int | None, k: int) -> BoundRecipe:
    own = {"policy": policy} if name == "policy-rag" else {}
    bound = bind(index, {"recipe": name, "threads": threads, **own}, encoder=encoder)
    bound.check(k)
    return bound


def _batches(inputs: QueryInputs, rows: Sequence[Query]) -> Iterator[tuple[Any, list[Sequence[str | int | Match]]]]:
    done = 0
    for chunk in chunks(iter(rows), CHUNK):
        found = inputs.entities(chunk)
        yield inputs.vectors(chunk, done, found), found
        done += len(chunk)


def _search(bound: BoundRecipe, inputs: QueryInputs, k: int) -> Any:
    """Return a search for :func:`rank_stability`; entities that are not given are found in the texts."""

    def search(questions: list[str], entities: list[Sequence[str]] | None) -> Hits:
        given = [None if entities is None else list[str | int](entities[at]) for at in range(len(questions))]
        queries = [Query("", text, row) for text, row in zip(questions, given, strict=True)]
        return join_hits([hits(part) for part in chunks(iter(queries), CHUNK)])

    def hits(part: list[Query]) -> Hits:
        texts = [str(query.text) for query in part]
        named = inputs.entities(part)
        found: Hits = bound.search(texts, inputs.vectors(part, 0, named), named, k).hits
        return found

    return search


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
