"""``hopfuse score``: ranked evidence for a file of queries, in bounded memory, resumable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .. import Hits, Index, __version__
from .answering import answering_options, language_model
from .inputs import QueryInputs, chunks, text_of
from .job import Job
from .options import (
    FILE,
    case_option,
    encoder_option,
    index_option,
    lexical_options,
    recipe_options,
)
from .outputs import check_outputs
from .progress import progress_bar
from .queries import Query, count_queries, file_digest, read_queries
from .recipe_choice import Chosen, check_read, make_chosen, recipe_choice
from .recipe_settings import setting_files, setting_option
from .results import Row, writer_for
from .vector_needs import check_source, encodes_more, why_unread
from .words import words_option


@click.command()
@index_option
@click.option("--queries", type=FILE, required=True, help="Rows of id, text, entities: .jsonl or .parquet.")
@click.option("--vectors", type=FILE, help="One vector per query: .npy; else --encoder makes them from the texts.")
@encoder_option
@click.option("--out", type=FILE, required=True, help="The result: .jsonl or .parquet.")
@click.option("--k", type=click.IntRange(min=1), default=10, show_default=True, help="Passages per query.")
@click.option("--chunk", type=click.IntRange(min=1), default=256, show_default=True, help="Queries at a time.")
@recipe_choice
@setting_option
@recipe_options()
@lexical_options
@words_option
@answering_options
@case_option
@click.option("--overwrite", is_flag=True, help="Replace OUT where it exists.")
@click.option("--restart", is_flag=True, help="Drop an unfinished run instead of going on with it.")
def score(
    directory: Path,
    queries: Path,
    vectors: Path | None,
    encoder: str | None,
    out: Path,
    k: int,
    chunk: int,
    chosen: str,
    policy: Path | None,
    settings: tuple[str, ...],
    words: str | None,
    answers: bool,
    endpoint: str | None,
    model: str | None,
    cache: Path | None,
    concurrency: int | None,
    case_sensitive: bool,
    overwrite: bool,
    restart: bool,
    **recipe: Any,
) -> None:
    """Rank passages for every query of a file; with triple-hybrid, entities by name.

    A query without entities takes the names of the index that stand in its text. A run that was
    killed goes on where it was when it is started again with the same options: the finished parts are
    in OUT.partial until OUT is there.

    Queries need --vectors or --encoder where the recipe reads vectors: triple-hybrid's mode=lexical does not, nor
    hybrid-rrf over an index without any.

    A policy with facts.gate = "llm" asks --model which facts count; with --answers it answers each question
    from the first hits alone, answers.passages of the policy and at most --k, and OUT has it as "answer",
    which hopfuse eval reads.
    """
    check_read(chosen)
    files = {"--queries": queries, "--vectors": vectors, "--policy": policy, **setting_files(settings)}
    read = {option: path for option, path in files.items() if path is not None}
    check_outputs({"--out": out}, read, overwrite=overwrite)
    asking = {"endpoint": endpoint, "model": model, "cache": cache, "concurrency": concurrency}
    llm = language_model(chosen, policy, answers=answers, **asking)
    writer, index = writer_for(out, answers=answers), Index.open(directory)
    unread = why_unread(chosen, index, policy, settings)
    check_source("--vectors", vectors, encoder, unread, encodes=encodes_more(chosen, index))
    total = count_queries(queries)
    inputs = QueryInputs(index, vectors, encoder, total, case_sensitive=case_sensitive)
    made = make_chosen(chosen, index, inputs.encoder, policy, recipe, settings=settings, words=words, llm=llm)
    identity = {
        "hopfuse": __version__,
        "index": {"directory": str(directory.resolve()), **index.info()},
        **{option.split()[-1].lstrip("-"): file_digest(path) for option, path in read.items()},
        "model": None if llm is None else repr(llm),
        "options": {"recipe": chosen, "encoder": encoder, "k": k, "chunk": chunk, "case_sensitive": case_sensitive}
        | {"settings": settings, "words": made.leg, "answers": answers}
        | {name: value for name, value in recipe.items() if name != "threads"},
    }
    scorer = Scorer(made, inputs, k, answers=answers, reads_vectors=not unread)
    job = Job(out, identity, writer)
    with job.started(restart=restart) as parts, progress_bar() as progress:
        done = min(parts * chunk, total)
        if done:
            progress.console.print(f"Going on after {done:,} of {total:,} queries", highlight=False)
        task = progress.add_task("Scoring", total=total, completed=done)
        for number, rows in enumerate(chunks(read_queries(queries), chunk)):
            if number >= parts:
                job.add(number, scorer.score(rows, number * chunk))
                progress.advance(task, len(rows))
        job.finish(-(-total // chunk))
    Console(stderr=True).print(f"Scored {total:,} queries into {out}", highlight=False, soft_wrap=True)


class Scorer:
    """Turns a chunk of queries into rows of the result."""

    def __init__(self, chosen: Chosen, inputs: QueryInputs, k: int, *, answers: bool, reads_vectors: bool) -> None:
        self._chosen, self._inputs, self._k, self._answers = chosen, inputs, k, answers
        self._reads_vectors = reads_vectors

    def score(self, queries: list[Query], first: int) -> list[Row]:
        """Rows for the queries ``first``, ``first + 1``, ... of the file."""
        chosen = self._chosen
        texts = [text_of(q, f"for {chosen.words}") for q in queries] if chosen.words else None
        vectors = self._inputs.vectors(queries, first) if self._reads_vectors else None
        entities = self._inputs.entities(queries) if chosen.reads_entities else None
        found = chosen.search(texts, vectors, entities, self._k)
        rows = [{"id": q.id, "hits": self._hits(found.hits, row)} for row, q in enumerate(queries)]
        if not self._answers:
            return rows
        said = chosen.answer(texts or [], found)
        return [row | {"answer": answer} for row, answer in zip(rows, said, strict=True)]

    def _hits(self, hits: Hits, row: int) -> list[dict[str, Any]]:
        return [{"id": self._chosen.ids[hit], "score": score} for hit, score in hits.row(row)]
