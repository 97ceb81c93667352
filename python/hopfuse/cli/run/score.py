"""``hopfuse score``: ranked evidence for a file of queries, in bounded memory, resumable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ... import Hits, Index, __version__
from ..console import note, progress_bar
from ..files import check_outputs
from ..options import FILE, case_option, encoder_for, encoder_option, index_argument, k_option
from ..recipes import (
    BoundRecipe,
    answering_options,
    bind,
    check_given,
    check_names,
    hit_ids,
    identity_of,
    language_model,
    read_files,
    recipe_options,
)
from .job import Job, Row, writer_for
from .queries import Query, QueryInputs, chunks, count_queries, file_digest, read_queries, text_of


@click.command()
@index_argument
@click.option("--queries", type=FILE, required=True, help="Rows of id, text, entities: .jsonl or .parquet.")
@click.option("--vectors", type=FILE, help="One vector per query: .npy; else they are encoded from the texts.")
@encoder_option
@click.option("--out", type=FILE, required=True, help="The result: .jsonl or .parquet.")
@k_option
@click.option("--chunk", type=click.IntRange(min=1), default=256, show_default=True, help="Queries at a time.")
@recipe_options
@answering_options
@case_option
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")
@click.option("--restart", is_flag=True, help="Drop an unfinished run instead of going on with it.")
def score(
    directory: Path,
    queries: Path,
    vectors: Path | None,
    encoder: str | None,
    out: Path,
    k: int,
    chunk: int,
    case_sensitive: bool,
    answers: bool,
    overwrite: bool,
    restart: bool,
    **options: Any,
) -> None:
    """Rank passages for every query of a file; with triple-hybrid, entities by name.

    A query without entities takes the names of the index that are found in its text. A run that was killed goes on
    where it was if it is started again with the same options: the finished parts are in OUT.partial until OUT is there.

    A policy with facts.gate = "llm" asks --model which facts count. With --answers the model answers each question from
    the first hits alone, answers.passages of the policy and at most --k; OUT has it as "answer", which hopfuse eval
    reads.
    """
    read = {"--queries": queries, "--vectors": vectors, **read_files(options)}
    check_outputs({"--out": out}, read, overwrite=overwrite)
    llm = language_model(options["recipe"], options["policy"], {**options, "answers": answers})
    index = Index.open(directory)
    whole = any(isinstance(id, int) for id in hit_ids(index, options)[:1])
    writer = writer_for(out, whole=whole, answers=answers)
    model = encoder_for(index, encoder, vectors)
    bound = bind(index, options, encoder=model, llm=llm)
    check_given(bound, vectors, model)
    check_names(bound)
    bound.check(k)
    total = count_queries(queries)
    inputs = QueryInputs(index, vectors, model, total, case_sensitive=case_sensitive, alone=bound.alone)
    identity = {
        "hopfuse": __version__,
        "index": {"directory": str(directory.resolve()), **index.info()},
        **{option.split()[-1].lstrip("-"): file_digest(path) for option, path in read.items() if path is not None},
        "model": None if llm is None else repr(llm),
        "options": {"encoder": encoder, "k": k, "chunk": chunk, "case_sensitive": case_sensitive, "answers": answers}
        | identity_of(bound.name, options),
    }
    scorer = Scorer(bound, inputs, k, answers=answers)
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
    note(f"Scored {total:,} queries into {out}")


class Scorer:
    """Turns a chunk of queries into rows of the result."""

    def __init__(self, bound: BoundRecipe, inputs: QueryInputs, k: int, *, answers: bool) -> None:
        self._bound, self._inputs, self._k, self._answers = bound, inputs, k, answers

    def score(self, queries: list[Query], first: int) -> list[Row]:
        """Return rows for the queries ``first``, ``first + 1``, ... of the file."""
        bound, needs = self._bound, self._bound.recipe.needs
        texts = [text_of(q, bound.purpose) for q in queries] if needs.texts else None
        vectors = self._inputs.vectors(queries, first) if needs.vectors else None
        entities = self._inputs.entities(queries) if needs.entities else None
        found = bound.search(texts, vectors, entities, self._k)
        rows = [{"id": q.id, "hits": self._hits(found.hits, row)} for row, q in enumerate(queries)]
        if not self._answers:
            return rows
        answers = bound.recipe.answer(texts or [], found)  # type: ignore[attr-defined]
        return [row | {"answer": answer} for row, answer in zip(rows, answers, strict=True)]

    def _hits(self, hits: Hits, row: int) -> list[dict[str, Any]]:
        return [{"id": self._bound.ids[hit], "score": score} for hit, score in hits.row(row)]
