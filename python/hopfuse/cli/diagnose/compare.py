"""``hopfuse compare``: all recipes and legs on the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from rich.console import Console

from ... import Index
from ..._validation import check_choice, check_needs
from ...diagnose import RANKINGS, CachedEncoder, RecipeComparison, compare_recipes
from ...diagnose.comparison import BASELINE, BATCH, reads_words
from ...encoders import Encoder
from ...errors import InputError
from ...evaluate import PassageNames, parse_metric, read_run
from ...io.files import write_all
from ...io.queries import count_queries
from ...lexical import words_of
from ...report import Table, printable, table
from ..about.info import machine
from ..evaluate.inputs import gaps, named_files, qrels_files
from ..files import check_outputs, strict_json
from ..options import DIRECTORY, FILE, case_option, check_dim, encoder_option, index_argument, question_encoder
from ..recipes import LEGS, threads_option
from .inputs import QueryInputs, judged_questions

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
    type=click.Choice(RANKINGS),
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
    "--skip", type=click.Choice(RANKINGS[1:]), multiple=True, help="Leave this ranking out; may be given several times."
)
@click.option("--time", "timed", is_flag=True, help="Also measure the time and memory of each search.")
@click.option("--cache", type=DIRECTORY, help="Folder that keeps the encoder's vectors of questions and facts.")
@click.option("--lexical", "words", type=click.Choice(LEGS[:3]), default="auto", help="The lexical ranking.")
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

    Prints the quality of each and the significance of its difference from dense retrieval; with --time also the
    milliseconds per question, alone and in batches of 32 (encoding and matching names excluded), and the memory of a
    search. With --encoder, PolicyRAG also searches facts by vectors: all facts of the index are encoded, and --cache
    keeps the vectors. TripleHybrid needs facts and entity vectors; it ranks passages by the entities that they
    mention. With both --vectors and --encoder, passages are searched with the former, entities and facts with the
    latter.
    """
    files = named_files(named)
    read: dict[str, Path | None] = {f"run {name}": path for name, path in files.items()}
    read |= {"queries": queries, "vectors": vectors, **({} if judgements is None else qrels_files(judgements))}
    check_outputs({"out": out}, read, overwrite=overwrite)
    wanted = [name.strip() for name in metrics.split(",")]
    check_choice(against, "against", wanted)
    rankings = [name for name in only or RANKINGS if name not in skip]
    index = Index.open(directory)
    if index.corpus is None or index.graph is None:
        raise InputError(
            "unsupported",
            "directory",
            "{field} has no vectors or no graph; build it with --encoder and --edges or --from",
        )
    model = question_encoder(index, encoder, vectors)
    check_needs("cache", cache, "encoder", model, "whose vectors it keeps")
    once = None if model is None else CachedEncoder(model, cache)
    inputs = QueryInputs(index, vectors, once, count_queries(queries), case_sensitive=case_sensitive)
    _check_spaces(index, None if vectors is None else int(inputs.vectors([], 0).shape[1]), once)
    qrels, questions = judged_questions(index, queries, judgements or queries, inputs)
    runs = {name: read_run(path, qrels.ids, PassageNames(index.passage_ids)) for name, path in files.items()}
    lexical = words_of(index, words) if reads_words(rankings) else None
    found = compare_recipes(
        index,
        questions,
        qrels,
        wanted,
        lexical=lexical,
        encoder=once,
        rankings=rankings,
        timed=timed,
        threads=threads,
        runs=runs,
    )
    console = Console()
    console.print(_quality(found, wanted).to_rich(), _certainty(found, against).to_rich(), sep="\n")
    test = "McNemar's exact test" if parse_metric(against).binary else "paired randomisation test"
    lines = [f"p: {test}, not corrected for the number of rankings."]
    if timed:
        lines.append(f"Milliseconds per question, without encoding and matching names. {MEASURED}")
    sizes = (f"{size / 1e6:,.1f} MB" for size in (found.index_bytes, found.array_bytes, found.process_bytes))
    lines.append("Index {}, its arrays {}, process {}".format(*sizes))
    if lexical is not None:
        lines.append(f"Lexical: {type(lexical).__name__}")
    lines += gaps(runs, len(qrels))
    lines += [f"Left out: {name}: {why}" for name, why in found.left_out.items()]
    console.print(printable("\n".join(lines)), highlight=False, markup=False)
    if out is not None:
        made = {"machine": machine("numpy"), "words": None if lexical is None else type(lexical).__name__}
        write_all({out: strict_json({**made, **found.to_dict(per_query=True)})})


def _check_spaces(index: Index, vectors: int | None, encoder: Encoder | None) -> None:
    """Refuse vectors or an encoder whose dimension differs from that of the vectors they search.

    ``vectors`` is the dimension of ``--vectors``, which search the passages. The encoder searches the entities, and
    without ``--vectors`` the passages too.
    """
    assert index.corpus is not None
    passages, entities = index.corpus.dim, index.entity_corpus
    if vectors is not None:
        check_dim("vectors", vectors, passages)
    elif encoder is not None:
        check_dim("encoder", encoder.dim, passages)
    if encoder is not None and entities is not None:
        check_dim("encoder", encoder.dim, entities.dim, "entities")


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
    sizes = [] if not found.milliseconds else list(found.milliseconds[BASELINE])
    columns += [f"ms, {'alone' if size == 1 else f'in {size}'}" for size in sizes] + (["peak MB"] if sizes else [])
    rows = []
    for run in found.evaluation.runs:
        compared = ["", "", ""]
        if run != BASELINE:
            c = found.evaluation.comparison(run, against)
            compared = [str(c.wins), str(c.losses), f"{c.p_value:.2g}"]
        times = [""] * (len(sizes) + 1) if sizes else []
        if run in found.milliseconds:
            times = [f"{found.milliseconds[run][size]:.2f}" for size in sizes]
            times.append(f"{found.search_bytes[run] / 1e6:.1f}")
        rows.append([run, *compared, *times])
    batch = f"; times and peak of up to {BATCH} questions" if sizes else ""
    return table(f"Against {BASELINE}, {against}{batch}", columns, rows)
