"""``hopfuse diagnose``: whether the graph of an index helps with a set of questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ... import Hits, Index
from ..._validation import counted
from ...diagnose import Rewriting, paraphrase, search_legs, stability_rows, substitute_aliases
from ...diagnose import diagnose as diagnose_legs
from ...errors import InputError
from ...evaluate import PassageNames, Qrels, join_hits, read_qrels
from ...extract import Match
from ...io.queries import Query, count_queries, read_queries
from ...recipes import RECIPES
from ...report import section_tables
from ..console import json_text
from ..options import DIRECTORY, FILE, case_option, encoder_for, encoder_option
from ..recipes import BoundRecipe, bind, threads_option
from ..run.queries import QueryInputs, chunks, text_of

CHUNK = 256
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
    if vectors is not None and encoder is not None:
        raise InputError("conflict", None, "give {@vectors} or {@encoder}, and not both: each query needs one vector")
    _check_stability(stable, vectors, policy)
    index = Index.open(directory)
    model = encoder_for(index, encoder, vectors)
    if vectors is None and model is None:
        raise InputError(
            "length",
            None,
            "each query needs one vector, and the index does not record the encoder of its vectors; give "
            "{@vectors} or {@encoder}",
        )
    inputs = QueryInputs(index, vectors, model, count_queries(queries), case_sensitive=case_sensitive)
    length = min(pool, index.num_passages)
    if k > length:
        raise InputError(
            "UNSORTED",
            None,
            "--k is {k}, and the lists are {length} long; raise {@pool}, or lower --k",
            k=k,
            length=length,
        )
    rows = list(read_queries(queries))
    if not rows:
        raise InputError("unknown", None, "{queries} has no questions", queries=queries)
    qrels = None if judgements is None else _aligned(judgements, index, rows)
    bound = [_bind(name, index, model, policy, threads, k) for name in dict.fromkeys(stable)]
    options: dict[str, Any] = {"damping": damping, "threads": threads}
    legs = search_legs(index, _batches(inputs, rows), length=length, encoder=model, **options)
    found = diagnose_legs(index, legs, qrels, k=k, **options)
    if bound:
        made = rewritings(index, inputs, rows)
        found["stability"] = [
            row for one in bound for row in stability_rows(one.name, _search(one, inputs, k), made, k=k, qrels=qrels)
        ]
    if as_json:
        click.echo(json_text(found))
    else:
        Console().print(*(table.to_rich() for table in section_tables(found)), sep="\n")


def rewritings(index: Index, inputs: QueryInputs, rows: Sequence[Query]) -> dict[str, Rewriting]:
    """Return two rewritings of the questions: paraphrases, and other names of an entity."""
    texts = [text_of(row, "to be rewritten") for row in rows]
    mentions = None
    if any(row.entities is not None for row in rows):
        found = inputs.entities(list(rows))
        named = ((_name_of(one, index, row.id) for one in part) for part, row in zip(found, rows, strict=True))
        mentions = [list(dict.fromkeys(row)) for row in named]
    return {"paraphrases": paraphrase(texts, mentions), "other names": substitute_aliases(texts, index, mentions)}


def _check_stability(stable: Sequence[str], vectors: Path | None, policy: Path | None) -> None:
    if stable and vectors is not None:
        raise InputError(
            "unknown",
            "stability",
            "{field} rewords questions, and {@vectors} has no vectors of the new texts; give {@encoder} instead",
        )
    if policy is not None and "policy-rag" not in stable:
        raise InputError("unused", "policy", "{field} is given without {@stability} policy-rag, which reads it; add it")


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
        raise InputError(
            "UNSORTED",
            None,
            "{path} has {count} that the index does not have, such as {strangers!r}",
            path=path,
            count=counted(len(strangers), "gold passage"),
            strangers=strangers[0],
        )
    gold = dict(zip(qrels.ids, qrels.gold, strict=True))
    if not any(gold.get(row.id) for row in rows):
        raise InputError(
            "UNSORTED",
            None,
            "{path} judges none of the {number} questions, such as {id!r}",
            path=path,
            number=len(rows),
            id=rows[0].id,
        )
    return Qrels([row.id for row in rows], [gold.get(row.id, ()) for row in rows])


def _name_of(entity: str | int | Match, index: Index, query: str) -> str:
    if isinstance(entity, str):
        return entity
    if isinstance(entity, Match):
        return entity.surface
    if not 0 <= entity < index.num_entities:
        raise InputError(
            "UNSORTED",
            "query",
            "{field} {query!r} has the entity {entity}; the index has 0 .. {num_entities}",
            query=query,
            entity=entity,
            num_entities=index.num_entities - 1,
        )
    return index.entity_names[entity]
