"""``hopfuse compare``: all recipes and legs on the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console

from .. import Index
from .._validation import check_choice
from ..diagnose import RANKINGS, RecipeComparison, compare_recipes
from ..diagnose.comparison import BATCH
from ..evaluate import PassageNames, parse_metric, read_run
from ..io.files import write_all
from ..io.queries import count_queries
from ..report import Table, printable, table
from ..retriever import WORDS
from .info import machine
from .judgements import gaps, judged_queries, named_files, qrels_files
from .naming import left_out_lines
from .options import DIRECTORY, FILE, case_option, encoder_option, index_argument
from .outputs import check_outputs, strict_json
from .queries import QueryInputs, text_of
from .recipes import open_retriever, threads_option

METRICS = "recall@2,recall@5,recall@10,last_hop@5,last_hop@10,full_support@10,mrr,ndcg@10"
AGAINST = "recall@5"
MEASURED = (
    "Arrays: the index without its texts and names, as stored. Peak: the most that Python and NumPy allocate while "
    "searching a batch (tracemalloc). Process: its largest resident set, including the kernels' workspaces."
)


@click.command()
@index_argument
@click.option("--queries", type=FILE, required=True, help="Rows of id, text, entities: .jsonl or .parquet.")
@click.option("--vectors", type=FILE, help="One vector per query: .npy.  [default: made by --encoder]")
@encoder_option
@click.option(
    "--qrels",
    "judgements",
    type=click.Path(path_type=Path),
    help="Judgements, as for eval.  [default: the file of --queries]",
)
@click.option("--metrics", default=METRICS, show_default=True, help="Separated by commas.")
@click.option("--against", default=AGAINST, show_default=True, help="Metric by which rankings are compared with dense.")
@click.option(
    "--only",
    type=click.Choice(tuple(RANKINGS)),
    multiple=True,
    help="Run only this ranking and dense; may be given several times.",
)
@click.option(
    "--run",
    "named",
    metavar="NAME=FILE",
    multiple=True,
    help="Also judge this run of another system, as for eval; may be given several times.",
)
@click.option(
    "--skip",
    type=click.Choice([name for name in RANKINGS if name != "dense"]),
    multiple=True,
    help="Leave this ranking out; may be given several times.",
)
@click.option("--time", "timed", is_flag=True, help="Also measure the time and memory of each search.")
@click.option("--cache", type=DIRECTORY, help="Folder that keeps the encoder's vectors of questions and facts.")
@click.option(
    "--words",
    type=click.Choice(WORDS),
    help="The ranking by words, as for search.  [default: the index's own BM25, else auto]",
)
@case_option
@threads_option
@click.option("--out", type=FILE, help="Also write the numbers here, as JSON.")
@click.option("--overwrite", is_flag=True, help="Replace the file of --out if it exists.")
def compare(
    directory: Path,
    queries: Path,
    vectors: Path | None,
    encoder: str | None,
    judgements: Path | None,
    metrics: str,
    against: str,
    only: tuple[str, ...],
    named: tuple[str, ...],
    skip: tuple[str, ...],
    timed: bool,
    cache: Path | None,
    words: str | None,
    case_sensitive: bool,
    threads: int | None,
    out: Path | None,
    overwrite: bool,
) -> None:
    """Run all recipes and legs of an index on the same questions.

    Prints the quality of each and the significance of its difference from dense retrieval (in an index without vectors,
    from words). With --time it also prints the milliseconds per question, alone and in batches of 32 (encoding and
    matching names excluded), and the memory of a search. With --encoder, PolicyRAG also searches facts by vectors: all
    facts of the index are encoded, and --cache keeps the vectors. TripleHybrid needs facts and entity vectors; it ranks
    passages by the entities that they mention. With both --vectors and --encoder, passages are searched with the
    former, entities and facts with the latter.
    """
    files = named_files(named)
    read: dict[str, Path | None] = {f"run {name}": path for name, path in files.items()}
    read |= {"queries": queries, "vectors": vectors, **({} if judgements is None else qrels_files(judgements))}
    check_outputs({"out": out}, read, overwrite=overwrite)
    wanted = [name.strip() for name in metrics.split(",")]
    check_choice(against, "against", wanted)
    rankings = [name for name in only or RANKINGS if name not in skip]
    index = Index.open(directory)
    given = {
        "encoder": "none" if vectors and encoder is None else encoder,
        "case_sensitive": case_sensitive,
        "threads": threads,
    }
    retriever = open_retriever(index, given)
    judged = judged_queries(index, queries, judgements or queries)
    texts = [text_of(query, "for the lexical leg") for query in judged.queries]
    asked = QueryInputs(vectors, count_queries(queries)).of(judged.queries, judged.rows)
    qrels = judged.qrels
    runs = {name: read_run(path, qrels.ids, PassageNames(index.passage_ids)) for name, path in files.items()}
    options: dict[str, Any] = {"words": words, "rankings": rankings, "timed": timed, "cache": cache, "runs": runs}
    found = compare_recipes(retriever, qrels=qrels, metrics=wanted, **{**asked, "questions": texts}, **options)
    console = Console()
    console.print(_quality(found, wanted).to_rich(), _certainty(found, against).to_rich(), sep="\n")
    test = "McNemar's exact test" if parse_metric(against).binary else "paired randomisation test"
    lines = [f"p: {test}, not corrected for the number of rankings."]
    if timed:
        lines.append(f"Milliseconds per question, without encoding and matching names. {MEASURED}")
    sizes = (f"{size / 1e6:,.1f} MB" for size in (found.index_bytes, found.array_bytes, found.process_bytes))
    lines.append("Index {}, its arrays {}, process {}".format(*sizes))
    if found.words is not None:
        lines.append(f"Lexical: {found.words}")
    lines += gaps(runs, len(qrels))
    lines += left_out_lines(found.left_out)
    console.print(printable("\n".join(lines)), highlight=False, markup=False)
    if out is not None:
        write_all({out: strict_json({"machine": machine("numpy"), **found.to_dict(per_query=True)})})


def _quality(found: RecipeComparison, metrics: Sequence[str]) -> Table:
    """Return a table of means, with names of metrics broken into lines so that eight fit 80 columns."""
    heads = [metric.replace("_", "\n").replace("@", "\n@") for metric in metrics]
    rows = []
    for run in found.evaluation.runs:
        means = [found.evaluation.estimate(run, metric).mean for metric in metrics]
        rows.append([run, *("-" if np.isnan(mean) else f"{100 * mean:.1f}" for mean in means)])
    return table("Percent of questions, mean", ["ranking", *heads], rows)


def _certainty(found: RecipeComparison, against: str) -> Table:
    columns = ["ranking", "won", "lost", "p"]
    sizes = [] if not found.milliseconds else list(next(iter(found.milliseconds.values())))
    columns += [f"ms, {'alone' if size == 1 else f'in {size}'}" for size in sizes] + (["peak MB"] if sizes else [])
    rows = []
    for run in found.evaluation.runs:
        compared = ["", "", ""]
        if run != found.evaluation.baseline:
            c = found.evaluation.comparison(run, against)
            compared = [str(c.wins), str(c.losses), f"{c.p_value:.2g}"]
        times = [""] * (len(sizes) + 1) if sizes else []
        if run in found.milliseconds:
            times = [f"{found.milliseconds[run][size]:.2f}" for size in sizes]
            times.append(f"{found.search_bytes[run] / 1e6:.1f}")
        rows.append([run, *compared, *times])
    batch = f"; times and peak of up to {BATCH} questions" if sizes else ""
    return table(f"Against {found.evaluation.baseline}, {against}{batch}", columns, rows)
