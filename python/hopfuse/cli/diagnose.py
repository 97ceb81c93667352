"""``hopfuse diagnose``: when does the graph help."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from .. import Index, Seeds
from ..errors import InputError
from ..evaluate import PassageNames, Qrels, read_qrels
from ..recipes import PhaseGraph
from .diagnosis import Searched, Section, diagnose_legs
from .inputs import QueryInputs, check_one_source, chunks
from .joining import joined
from .options import DIRECTORY, FILE, case_option, encoder_option
from .policy_checks import check_policy
from .queries import Query, count_queries, read_queries
from .recipe_choice import make_chosen
from .stability import STABLE, stability_section

CHUNK = 256


@click.command()
@click.argument("directory", metavar="INDEX", type=DIRECTORY)
@click.option("--questions", type=FILE, required=True, help="Rows of id, text, entities: .jsonl or .parquet.")
@click.option("--vectors", type=FILE, help="One vector per question: .npy; else --encoder makes them from the texts.")
@encoder_option
@click.option(
    "--qrels",
    "judgements",
    type=click.Path(path_type=Path),
    help="Judgements, as eval reads them; may be the file of the questions.",
)
@click.option("--k", type=click.IntRange(min=1), default=10, show_default=True, help="Hits that count as found.")
@click.option("--pool", type=click.IntRange(min=1), default=200, show_default=True, help="Longest list of each leg.")
@click.option("--damping", type=float, default=0.5, show_default=True, help="Probability of walking on.")
@click.option(
    "--stability",
    "stable",
    type=click.Choice(STABLE),
    multiple=True,
    help="Also how this recipe's ranking changes when questions are asked in other words; may be given several times.",
)
@click.option("--policy", type=FILE, help="What --stability policy-rag does; see hopfuse policy.  [default: its own]")
@case_option
@click.option("--threads", type=int, help="By default HOPFUSE_NUM_THREADS, else all processors.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diagnose(
    directory: Path,
    questions: Path,
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
    """Say what decides whether the graph of INDEX helps with these questions.

    Its components and names, the questions' seeds, how far their walks spread, and whether the dense
    and the graph leg find the same and fail together; with --qrels also what pools of each size lose.
    With --stability each question is paraphrased, and an entity of it called by another name of the
    index; the recipe's first K passages are compared with those of the question as it was.
    """
    check_one_source(vectors, encoder)
    _check_stability(stable, vectors, policy, k)
    index = Index.open(directory)
    inputs = QueryInputs(index, vectors, encoder, count_queries(questions), case_sensitive=case_sensitive)
    length = min(pool, index.num_passages)
    if k > length:
        raise InputError(f"--k is {k}, and the lists are {length} long; raise --pool, or lower --k")
    recipe = PhaseGraph(index, encoder=inputs.encoder, dense_k=length, graph_k=length, damping=damping, threads=threads)
    rows = list(read_queries(questions))
    if not rows:
        raise InputError(f"{questions} has no questions")
    qrels = None if judgements is None else aligned(judgements, index, rows)
    options = {"damping": damping, "threads": threads}
    chosen = [make_chosen(name, index, inputs.encoder, policy, options) for name in dict.fromkeys(stable)]
    searched = search(recipe, inputs, rows)
    found = diagnose_legs(index, searched, qrels, k=k, damping=damping, threads=threads)
    if chosen:
        found["stability"] = stability_section(chosen, index, inputs, rows, qrels, k=k)
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        Console().print(*tables(found), sep="\n")


def _check_stability(stable: Sequence[str], vectors: Path | None, policy: Path | None, k: int) -> None:
    if stable and vectors is not None:
        raise InputError(
            "--stability asks questions in other words, which --vectors has no vectors of; give --encoder instead"
        )
    if policy is not None and "policy-rag" not in stable:
        raise InputError("--policy is given without --stability policy-rag, which reads it")
    if "policy-rag" in stable:
        check_policy(policy, k, f"--k is {k}")


def search(recipe: PhaseGraph, inputs: QueryInputs, rows: Sequence[Query]) -> Searched:
    """Both legs of all questions."""
    dense, graph, seeds, done = [], [], [], 0
    for chunk in chunks(iter(rows), CHUNK):
        found = recipe.search(vectors=inputs.vectors(chunk, done), entities=inputs.entities(chunk), k=1)
        dense.append(found.dense)
        graph.append(found.graph)
        seeds += _by_node(found.seeds)
        done += len(chunk)
    return Searched(joined(dense), joined(graph), seeds)


def _by_node(seeds: Seeds) -> list[dict[int, float]]:
    """The weight of each seed, a mapping per question."""
    pairs = zip(seeds.nodes.tolist(), seeds.weights.tolist(), strict=True)
    return [{node: weight for node, weight in zip(*row, strict=True) if node >= 0} for row in pairs]


def aligned(path: Path, index: Index, rows: Sequence[Query]) -> Qrels:
    """Judgements by the index's passages, in the order of the questions; none where a question has none."""
    names = PassageNames(index.passage_ids)
    qrels = read_qrels(path, names)
    strangers = [names.name(p) for gold in qrels.gold for p in gold if p >= index.num_passages]
    if strangers:
        raise InputError(
            f"{path} has gold passages that the index does not have: {len(strangers)}, one {strangers[0]!r}"
        )
    gold = dict(zip(qrels.ids, qrels.gold, strict=True))
    if not any(gold.get(row.id) for row in rows):
        raise InputError(f"{path} judges none of the {len(rows)} questions, such as {rows[0].id!r}")
    return Qrels([row.id for row in rows], [gold.get(row.id, ()) for row in rows])


def tables(found: Mapping[str, Any]) -> list[Table]:
    """A table for each section."""
    made = []
    for name, section in found.items():
        listed = isinstance(section, list)
        table = Table(title=name, title_justify="left", show_header=listed)
        if name == "pools":
            _pools(table, section)
        elif listed:
            _rows(table, section)
        else:
            _lines(table, section)
        made.append(table)
    return made


def _pools(table: Table, section: list[Section]) -> None:
    for column in section[0]:
        table.add_column("gold lost, %: " + column if column == "dense" else column, justify="right")
    for row in section:
        table.add_row(str(row["size"]), *(f"{100 * row[leg]:.1f}" for leg in ("dense", "graph", "either")))


def _rows(table: Table, section: list[Section]) -> None:
    for column, value in section[0].items():
        table.add_column(column, justify="left" if isinstance(value, str) else "right")
    for row in section:
        table.add_row(*(value if isinstance(value, str) else _written(value) for value in row.values()))


def _lines(table: Table, section: Section) -> None:
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in section.items():
        table.add_row(key, _written(value))


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {number:,}" for name, number in value.items()) or "none"
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
