"""``hopfuse score``: ranked evidence for a file of queries, in bounded memory, resumable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .. import Hits, Index, __version__
from ..encoders import Encoder
from ..errors import InputError
from ..recipes import PhaseGraph
from .job import Job
from .names import NameFinder
from .options import (
    FILE,
    case_option,
    encoder_option,
    index_option,
    lexical_options,
    make_encoder,
    recipe_arguments,
    recipe_options,
)
from .queries import Query, count_queries, file_digest, read_queries
from .results import Row, writer_for


@click.command()
@index_option
@click.option("--queries", type=FILE, required=True, help="Rows of id, text, entities: .jsonl or .parquet.")
@click.option("--vectors", type=FILE, help="One vector per query: .npy; else --encoder makes them from the texts.")
@encoder_option
@click.option("--out", type=FILE, required=True, help="The result: .jsonl or .parquet.")
@click.option("--k", type=click.IntRange(min=1), default=10, show_default=True, help="Passages per query.")
@click.option("--chunk", type=click.IntRange(min=1), default=256, show_default=True, help="Queries at a time.")
@recipe_options(alpha=0.7)
@lexical_options
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
    case_sensitive: bool,
    overwrite: bool,
    restart: bool,
    **recipe: Any,
) -> None:
    """Rank passages for every query of a file.

    A query without entities takes the names of the index that stand in its text. A run that was
    killed goes on where it was when it is started again with the same options: the finished parts are
    in OUT.partial until OUT is there.
    """
    if (vectors is None) == (encoder is None):
        raise InputError("give --vectors or --encoder, and not both: the queries need one vector each")
    if out.exists() and not overwrite:
        raise InputError(f"{out} exists; choose another --out, or replace it with --overwrite")
    writer, index, total = writer_for(out), Index.open(directory), count_queries(queries)
    given = None if vectors is None else _read_vectors(vectors, total)
    identity = {
        "hopfuse": __version__,
        "index": {"directory": str(directory.resolve()), **index.info()},
        "queries": file_digest(queries),
        "vectors": None if vectors is None else file_digest(vectors),
        "options": {"encoder": encoder, "k": k, "chunk": chunk, "case_sensitive": case_sensitive}
        | {name: value for name, value in recipe.items() if name != "threads"},
    }
    scorer = Scorer(index, given, None if encoder is None else make_encoder(encoder), k, case_sensitive, recipe)
    job = Job(out, identity, writer)
    with job.started(restart=restart) as parts, _progress() as progress:
        done = min(parts * chunk, total)
        if done:
            progress.console.print(f"Going on after {done:,} of {total:,} queries", highlight=False)
        task = progress.add_task("Scoring", total=total, completed=done)
        for number, rows in enumerate(_chunks(read_queries(queries), chunk)):
            if number >= parts:
                job.add(number, scorer.score(rows, number * chunk))
                progress.advance(task, len(rows))
        job.finish(-(-total // chunk))
    Console(stderr=True).print(f"Scored {total:,} queries into {out}", highlight=False, soft_wrap=True)


class Scorer:
    """Turns a chunk of queries into rows of the result."""

    def __init__(
        self,
        index: Index,
        vectors: NDArray[Any] | None,
        encoder: Encoder | None,
        k: int,
        case_sensitive: bool,
        recipe: dict[str, Any],
    ) -> None:
        self._recipe = PhaseGraph(index, encoder=encoder, **recipe_arguments(index, recipe))
        self._names = NameFinder(index, case_sensitive=case_sensitive)
        self._ids = index.passage_ids
        self._vectors, self._encoder, self._k = vectors, encoder, k

    def score(self, queries: list[Query], first: int) -> list[Row]:
        """Rows for the queries ``first``, ``first + 1``, ... of the file."""
        words = None if self._recipe.lexical is None else [_text(q, "for BM25's list") for q in queries]
        found = self._recipe.search(
            words, vectors=self._query_vectors(queries, first), entities=self._entities(queries), k=self._k
        )
        return [{"id": q.id, "hits": self._hits(found.hits, row)} for row, q in enumerate(queries)]

    def _hits(self, hits: Hits, row: int) -> list[dict[str, Any]]:
        return [{"id": self._ids[passage], "score": score} for passage, score in hits.row(row)]

    def _query_vectors(self, queries: list[Query], first: int) -> NDArray[Any]:
        if self._encoder is None:
            assert self._vectors is not None
            return np.asarray(self._vectors[first : first + len(queries)])
        return self._encoder.encode_queries([_text(q, "to be encoded") for q in queries])

    def _entities(self, queries: list[Query]) -> list[Sequence[str | int]]:
        without = [_text(q, "to find names in") for q in queries if q.entities is None]
        names = iter(self._names.find(without) if without else [])
        return [next(names) if q.entities is None else q.entities for q in queries]


def _text(query: Query, purpose: str) -> str:
    if query.text is None:
        raise InputError(f"query {query.id!r} has no text {purpose}; give it 'text', or 'entities' and --vectors")
    return query.text


def _read_vectors(path: Path, rows: int) -> NDArray[Any]:
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"--vectors: {path} cannot be read as an .npy array: {error}") from None
    if vectors.ndim != 2 or len(vectors) != rows:
        raise InputError(f"--vectors has shape {vectors.shape}; there are {rows} queries, one vector each")
    return np.asarray(vectors)


def _chunks(queries: Iterator[Query], size: int) -> Iterator[list[Query]]:
    while chunk := list(islice(queries, size)):
        yield chunk


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))
