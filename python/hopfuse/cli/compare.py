"""``hopfuse compare``: every recipe and every leg on the same questions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from .. import Hits, Index
from ..errors import InputError
from ..evaluate import Evaluation, PassageNames, Qrels, evaluate, read_qrels
from .compare_memory import MEASURED, array_bytes, process_peak, search_peak
from .compare_ways import BASELINE, Asked, Search, check_spaces, searches
from .encoded_once import EncodedOnce
from .inputs import QueryInputs, text_of
from .joining import joined
from .judging import judged_files
from .machine import machine
from .options import FILE, case_option, encoder_option, index_option
from .outputs import check_outputs, strict_json, write_all
from .queries import count_queries, read_queries
from .words import words_of, words_option

METRICS = "recall@2,recall@5,recall@10,last_hop@5,last_hop@10,full_support@10,mrr,ndcg@10"
AGAINST = "recall@5"
BATCH = 32
REPEATS = 5  # of each timing


@click.command()
@index_option
@click.option("--queries", type=FILE, required=True, help="Rows of id, text, entities: .jsonl or .parquet.")
@click.option("--vectors", type=FILE, help="One vector per query: .npy; else --encoder's.")
@encoder_option
@click.option(
    "--qrels", "judgements", type=click.Path(path_type=Path), help="Judgements, as eval reads them; by default QUERIES."
)
@click.option("--metrics", default=METRICS, show_default=True, help="Separated by commas.")
@click.option("--against", default=AGAINST, show_default=True, help="Metric of the comparison with dense.")
@words_option
@case_option
@click.option("--threads", type=int, help="By default HOPFUSE_NUM_THREADS, else all processors.")
@click.option("--json", "json_out", type=FILE, help="Write the numbers here too.")
@click.option("--overwrite", is_flag=True, help="Replace the file of --json where it exists.")
def compare(
    directory: Path,
    queries: Path,
    vectors: Path | None,
    encoder: str | None,
    judgements: Path | None,
    metrics: str,
    against: str,
    words: str | None,
    case_sensitive: bool,
    threads: int | None,
    json_out: Path | None,
    overwrite: bool,
) -> None:
    """Run every recipe and every leg that the index has on the same questions.

    Says how good each is, how surely it differs from dense retrieval, how long it takes by itself and in
    batches of 32, questions' vectors and entities apart, and what memory it needs. PolicyRAG's facts have
    vectors where there is --encoder, which then encodes all facts of the index at the start. TripleHybrid
    needs --facts and --entity-vectors of the index; passages are then ranked by the entities that they mention.
    With --vectors and --encoder, passages are searched by the vectors, and entities and facts by the encoder's.
    """
    if vectors is None and encoder is None:
        raise InputError("give --vectors, --encoder or both: the queries need one vector each")
    judged = {} if judgements is None else judged_files(judgements)
    read = {"--queries": queries, "--vectors": vectors, **judged}
    check_outputs({"--json": json_out}, read, overwrite=overwrite)
    wanted = [name.strip() for name in metrics.split(",")]
    if against not in wanted:
        raise InputError(f"--against is {against!r}; it must be one of --metrics: {', '.join(wanted)}")
    index = Index.open(directory)
    if index.corpus is None or index.graph is None:
        raise InputError(f"{directory} has no vectors or no graph; build it with --vectors or --encoder, and --edges")
    inputs = QueryInputs(index, vectors, encoder, count_queries(queries), case_sensitive=case_sensitive)
    check_spaces(index, None if vectors is None else int(inputs.vectors([], 0).shape[1]), encoder, inputs.encoder)
    qrels, asked = _judged(index, queries, judgements or queries, inputs)
    leg = words_of(index, words)
    once = None if inputs.encoder is None else EncodedOnce(inputs.encoder)
    ways, left_out = searches(index, leg, once, int(asked[1].shape[1]), threads)
    runs = {name: _in_batches(search, asked) for name, search in ways.items()}
    result = evaluate(runs, qrels, wanted, baseline=BASELINE)
    batch = min(BATCH, len(asked[0]))
    timings = {name: {size: _milliseconds(search, asked, size) for size in (1, batch)} for name, search in ways.items()}
    peaks = {name: _peak(search, _part(asked, 0, batch)) for name, search in ways.items()}
    memory = {
        "index bytes": index.info()["bytes"],
        "index array bytes": array_bytes(index),
        "search peak bytes": peaks,
        "process peak bytes": process_peak(),
    }
    console = Console()
    console.print(_quality(result, wanted), _certainty(result, against, timings, peaks), sep="\n")
    sizes = (f"{memory[name] / 1e6:,.1f} MB" for name in ("index bytes", "index array bytes", "process peak bytes"))
    console.print("Index {}, its arrays {}, process {}".format(*sizes), MEASURED, sep="\n", highlight=False)
    console.print(f"Words: {type(leg).__name__}", highlight=False)
    for name, why in left_out.items():
        console.print(f"Left out: {name}: {why}", highlight=False, markup=False)
    if json_out is not None:
        numbers = {"machine": machine("numpy"), "words": type(leg).__name__, "memory": memory}
        numbers |= {"ms per query": timings, "left out": left_out}
        write_all({json_out: strict_json({**numbers, **result.to_dict()})})


def _judged(index: Index, queries: Path, judgements: Path, inputs: QueryInputs) -> tuple[Qrels, Asked]:
    """The questions that are judged, by the index's passages, and what is asked for each."""
    names = PassageNames(index.passage_ids)
    qrels = read_qrels(judgements, names)
    if len(names) > index.num_passages:
        stranger = names.name(index.num_passages)
        raise InputError(
            f"{judgements} has {len(names) - index.num_passages} passages that the index lacks: {stranger!r}"
        )
    rows = list(read_queries(queries))
    at = {id: row for row, id in enumerate(qrels.ids)}
    kept = [number for number, row in enumerate(rows) if row.id in at]
    if not kept:
        raise InputError(f"{judgements} judges none of the {len(rows)} questions of {queries}")
    asked = [rows[number] for number in kept]
    texts = [text_of(query, "for the words") for query in asked]
    vectors = inputs.vectors(rows, 0)[kept]
    return qrels.take(np.array([at[row.id] for row in asked])), (texts, vectors, inputs.entities(asked))


def _part(asked: Asked, first: int, last: int) -> Asked:
    return asked[0][first:last], asked[1][first:last], asked[2][first:last]


def _in_batches(search: Search, asked: Asked) -> Hits:
    return joined([search(*_part(asked, b, b + BATCH)) for b in range(0, len(asked[0]), BATCH)])


def _milliseconds(search: Search, asked: Asked, size: int) -> float:
    """For one question of a batch of this size, the median of some batches of different questions."""
    seconds = []
    for turn in range(REPEATS + 1):
        first = turn * size % max(1, len(asked[0]) - size + 1)
        part = _part(asked, first, first + size)
        start = time.perf_counter()
        search(*part)
        seconds.append((time.perf_counter() - start) / len(part[0]))
    return 1e3 * median(seconds[1:])


def _peak(search: Search, asked: Asked) -> int:
    return search_peak(lambda: search(*asked))


def _quality(result: Evaluation, metrics: Sequence[str]) -> Table:
    table = Table(title="Percent of questions, mean", title_justify="left", box=SIMPLE_HEAD, padding=(0, 0))
    table.add_column("ranking", no_wrap=True)
    for metric in metrics:
        table.add_column(metric.replace("_", "\n").replace("@", "\n@"), justify="right")
    for run in result.runs:
        means = [result.estimate(run, metric).mean for metric in metrics]
        table.add_row(run, *("-" if np.isnan(mean) else f"{100 * mean:.1f}" for mean in means))
    return table


def _certainty(
    result: Evaluation, against: str, timings: Mapping[str, Mapping[int, float]], peaks: Mapping[str, int]
) -> Table:
    batch = max(next(iter(timings.values())))
    table = Table(
        title=f"Against {BASELINE}, {against}; milliseconds per question; peak of {batch}",
        caption="p of the paired test, not corrected for the number of rankings. Vectors and entities are given.",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("ranking", no_wrap=True)
    for column in ("won", "lost", "p", "ms, alone", f"ms, in {batch}", "peak MB"):
        table.add_column(column, justify="right")
    for run in result.runs:
        compared = ["", "", ""]
        if run != BASELINE:
            c = result.comparison(run, against)
            compared = [str(c.wins), str(c.losses), f"{c.p_value:.2g}"]
        times = (f"{timings[run][size]:.2f}" for size in (1, batch))
        table.add_row(run, *compared, *times, f"{peaks[run] / 1e6:.1f}")
    return table
