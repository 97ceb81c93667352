"""Answer questions, explain one, and print the quality and the speed of each retrieval method."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten

import hopfuse as hf
import numpy as np
from hopfuse.encoders import Encoder, WordLlamaEncoder
from hopfuse.errors import HopfuseError, InputError
from hopfuse.evaluate import parse_metric
from hopfuse.extract import Gazetteer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .build import build_atlas
from .data import Dataset, atlas_data, folder_data

RECIPES = ("plain-hybrid", "guided-walk", "phase-graph", "hybrid-rrf", "policy-rag")  # those that rank passages
DEPTH = 10  # passages of each ranking
DENSE, WALK = "dense retrieval", "graph walk"
BATCHES = {1: "ms, one\nby one", 64: "ms, 64\nat once"}
SECONDS = 1.0  # for the batches of one size
Search = Callable[[Sequence[int]], hf.Hits]


def main() -> None:
    """Parse the options and run; errors are printed without a traceback."""
    parser = argparse.ArgumentParser(prog="python examples/atlas", description=__doc__)
    parser.add_argument("--recipe", action="append", choices=RECIPES, help="only this one; may be repeated")
    parser.add_argument("--questions", type=int, default=400, help="at most so many, spread over all (default: 400)")
    parser.add_argument("--data", type=Path, help="a folder of questions instead of the atlas; see data.py")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write the index there, for hopfuse serve")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
    try:
        if options.questions < 1:
            raise InputError("range", "questions", "{field} is {given}; give at least 1", given=options.questions)
        run(console, options.recipe or RECIPES, options.questions, options.data, options.save)
    except HopfuseError as error:
        sys.exit(f"error: {error.sentence('--{}'.format)}")


def run(
    console: Console, recipes: Sequence[str], questions: int, folder: Path | None, save: Path | None = None
) -> None:
    """Build an index, answer questions, explain one, print the table, and say how to serve the index."""

    @contextmanager
    def step(what: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        console.print(f"{time.perf_counter() - start:5.1f} s  {what}")

    console.print(f"hopfuse {hf.__version__}: questions of several steps, answered from a graph and from vectors")
    encoder = WordLlamaEncoder()
    if folder is None:
        with step("Facts about real places, as passages, a graph and questions"):
            atlas = build_atlas()
        with step("An index of them, with vectors of the passages by WordLlama"):
            data = atlas_data(atlas, encoder)
    else:
        with step(f"An index of {folder}"):
            data = folder_data(folder, encoder)
    index, total = data.index, len(data.qrels)
    data = data.take(questions)
    with step("Recipes over the index: names and words to search by, vectors of facts"):
        searches = make_searches(data, encoder, recipes)
    with step(f"{len(data.qrels):,} of {total:,} questions, answered in {len(searches)} ways"):
        found = {name: in_batches(search, len(data.qrels)) for name, search in searches.items()}
    with step("Batches of questions, timed"):
        times = {
            name: [ms_per_question(search, len(data.qrels), n) for n in BATCHES] for name, search in searches.items()
        }
    links = index.graph.indices.size // 2
    console.print(f"\n{index.num_passages:,} passages, {index.num_entities:,} names, {links:,} links between them.\n")
    explain(console, data, found)
    if save is not None:
        index.save(save)
    console.print(offer(save), markup=False, soft_wrap=True)
    threads = hf.backend_info()["backends"]["cpu"]["threads"]
    measured = "Percent found in the first 5 or 10 passages; median time of a question."
    console.print(f"\n{len(data.qrels):,} questions, {threads} threads. {measured}")
    console.print(result_table(data, found, times))


def offer(saved: Path | None) -> str:
    """Return the command that serves the index for questions in a browser."""
    first = "" if saved else ", add --save atlas-index and then run"
    serve = f"hopfuse serve {shlex.quote(str(saved or 'atlas-index'))}"
    return f"To ask questions of your own in a browser{first}:\n  {serve}  # pip install 'hopfuse[serve]'"


def make_searches(data: Dataset, encoder: Encoder, recipes: Sequence[str]) -> dict[str, Search]:
    """Return functions from rows of questions to hits: dense retrieval, the walk, and each recipe."""
    index, texts = data.index, data.qrels.questions
    given = {"vectors": data.vectors, "entities": data.entities}
    names, aliases = list(index.entity_names), {e: row for e, row in enumerate(index.entity_aliases) if row}
    matcher = Gazetteer(names, aliases, case_sensitive=True) if data.entities is None else None
    number = {name: entity for entity, name in enumerate(names)}
    passages = np.arange(index.num_passages)

    def dense(rows: Sequence[int]) -> hf.Hits:
        if data.vectors is None:
            return hf.dense_topk(encoder.encode_queries([texts[row] for row in rows]), index.corpus, DEPTH)
        return hf.dense_topk(np.array([data.vectors[row] for row in rows]), index.corpus, DEPTH)

    def walk(rows: Sequence[int]) -> hf.Hits:
        if matcher is not None:
            named = [{match.entity for match in found} for found in matcher.match([texts[row] for row in rows])]
        else:
            named = [{number[name] for name in data.entities[row] if name in number} for row in rows]
        # A walk restarts at the names, with more weight at those that few passages mention.
        restart = [{index.entity_node(e): 1 / max(1, index.passage_frequency[e]) for e in row} for row in named]
        return hf.ppr_topk(index.graph, restart, DEPTH, candidates=passages, stop="tol", empty="skip")

    def search_with(retriever: hf.Retriever) -> Search:
        def search(rows: Sequence[int]) -> hf.Hits:
            known = {key: [values[row] for row in rows] for key, values in given.items() if values is not None}
            return retriever.search([texts[row] for row in rows], k=DEPTH, **known).hits

        return search

    searches: dict[str, Search] = {DENSE: dense, WALK: walk}
    default = hf.Retriever(index, encoder=encoder, names=matcher)
    for retriever in map(default.variant, recipes):
        searches[type(retriever.recipe).__name__] = search_with(retriever)
    return searches


def in_batches(search: Search, count: int) -> hf.Hits:
    """Return the hits of all questions, searched 64 at a time."""
    parts = [search(range(start, min(start + 64, count))) for start in range(0, count, 64)]
    ids, scores, counts = (np.concatenate([getattr(p, field) for p in parts]) for field in ("ids", "scores", "counts"))
    return hf.Hits(ids, scores, counts)


def ms_per_question(search: Search, count: int, size: int) -> float:
    """Return the median time per question of batches with different questions, as many as time allows."""
    search([row % count for row in range(size)])
    taken: list[float] = []
    while not taken or (sum(taken) < SECONDS and len(taken) < 20):
        rows = [(size * (len(taken) + 1) + row) % count for row in range(size)]
        start = time.perf_counter()
        search(rows)
        taken.append(time.perf_counter() - start)
    return 1e3 * float(np.median(taken)) / size


def explain(console: Console, data: Dataset, found: dict[str, hf.Hits]) -> None:
    """Show a question whose answer the walk finds and dense retrieval does not: of most hops, then of the best rank."""
    qrels, index = data.qrels, data.index
    answers = [last or gold for last, gold in zip(qrels.last_hop, qrels.gold, strict=True)]
    rank = {name: [_rank(found[name], b, rows) for b, rows in enumerate(answers)] for name in (DENSE, WALK)}
    rows = [b for b in range(len(qrels)) if rank[WALK][b] and not rank[DENSE][b]]
    if not rows:
        console.print("Dense retrieval finds every answer that the walk finds.\n")
        return
    b = min(rows, key=lambda row: (len(qrels.gold[row]) > 4, -qrels.num_hops[row], rank[WALK][row], row))
    console.print(
        f"The graph walk starts at the names in a question and follows links. For {len(rows):,} questions it finds a\n"
        "passage with the answer and dense retrieval, the passages most similar to it, does not. One is:\n"
    )
    console.print(f"  [bold]{escape(qrels.questions[b])}[/bold]  Answer: {escape(qrels.answers[b][0])}\n")
    table = Table(box=None, padding=(0, 2, 0, 1), header_style="")
    table.add_column("it needs, with the rank (- beyond 10) by", max_width=42)
    for name in found:
        table.add_column(name.removesuffix(" retrieval").removeprefix("graph "), justify="right", no_wrap=True)
    for passage in [passage for hop in qrels.hops[b] or [qrels.gold[b]] for passage in hop][:5]:
        ranks = (_rank(hits, b, [passage]) for hits in found.values())
        table.add_row(_shown(index, passage), *(str(rank) if rank else "-" for rank in ranks))
    console.print(table)
    console.print("\n  What dense retrieval finds looks like the question:")
    for passage, _ in found[DENSE].row(b)[:3]:
        console.print(f"  - {_shown(index, passage)}")
    console.print()


def _rank(hits: hf.Hits, row: int, passages: Collection[int]) -> int:
    """Return the rank of the first of some passages, from 1, or 0 if none is a hit."""
    return next((rank for rank, (passage, _) in enumerate(hits.row(row), 1) if passage in passages), 0)


def _shown(index: hf.Index, passage: int) -> str:
    title, text = index.titles[passage], index.texts[passage]
    return escape(shorten(text if text.startswith(title) else f"{title}: {text}", 96, placeholder=" …"))


def result_table(data: Dataset, found: dict[str, hf.Hits], times: dict[str, list[float]]) -> Table:
    """Return a table of quality, by groups of questions, and speed, with a row for each method."""
    hops = data.qrels.num_hops
    groups = {f"in 10,\n{n} hops": hops == n for n in np.unique(hops).tolist() if n > 1}
    if data.by_alias is not None:
        groups["in 10,\nalias"] = np.array(data.by_alias)
    table = Table(box=SIMPLE, padding=(0, 1))
    table.add_column("", no_wrap=True)
    for column in (*data.metrics, *groups, *BATCHES.values()):
        table.add_column(column, justify="right", no_wrap=True)
    for name, hits in found.items():
        values = [parse_metric(metric).per_query(hits, data.qrels) for metric in data.metrics.values()]
        values += [values[-1][rows] for rows in groups.values()]
        shares = (f"{100 * np.nanmean(v):.1f}" if np.isfinite(v).any() else "-" for v in values)
        table.add_row(name, *shares, *(f"{ms:.2f}" for ms in times[name]))
    return table
