"""``hopfuse score``: ranked evidence for a file of queries, in bounded memory, by many processes, resumable."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from ...errors import InputError
from ...offline import Folder, Made, Merged, merge, ray, run, verify
from ...offline.merge import STDOUT, part_kind, writes_names
from ..console import note, progress_bar
from ..files import check_outputs
from ..options import DIRECTORY, FILE, case_option, encoder_option, index_argument, k_option
from ..recipes import answering_options, config_options, threads_option
from .planning import STDIN, input_files, planned, query_path
from .scorer import EXTRAS, open_scorer

F = TypeVar("F", bound=Callable[..., Any])

folder_argument = click.argument("folder", type=DIRECTORY)
chunk_option = click.option(
    "--chunk", type=click.IntRange(min=1), default=256, show_default=True, help="Queries at a time."
)
workers_option = click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes; of several, and of Ray's, each has one kernel thread.",
)


#: What :func:`engine_options` add.
ENGINE = ("engine", "workers", "address", "num_gpus", "copy_index", "chunk", "threads")


def engine_options(command: F) -> F:
    """Add the options that say which processes make the parts."""
    options = (
        click.option(
            "--engine",
            type=click.Choice(("local", "ray")),
            default="local",
            show_default=True,
            help="Processes of this machine, or actors of Ray Data; see docs/offline.md.",
        ),
        workers_option,
        click.option(
            "--address",
            metavar="HOST:PORT",
            help="Head of the Ray cluster.  [default: RAY_ADDRESS, else a new one on this machine]",
        ),
        click.option("--num-gpus", type=click.FloatRange(min=0), help="GPUs of each Ray actor; 0.5 puts two on one."),
        click.option("--copy-index", type=DIRECTORY, help="Folder on each Ray node's own disk to copy the index into."),
        chunk_option,
        threads_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def scoring_options(command: F) -> F:
    """Add the index, the queries, and the options that say what is found for them."""
    options = (
        index_argument,
        click.option(
            "--queries",
            type=FILE,
            required=True,
            help="Rows of id, text, entities, vector: .jsonl or .parquet; - for JSON lines on standard input.",
        ),
        click.option("--vectors", type=FILE, help="One vector per query: .npy; else they are encoded from the texts."),
        encoder_option,
        k_option,
        click.option(
            "--with",
            "extras",
            type=click.Choice(EXTRAS),
            multiple=True,
            help="More of each hit: title, text, metadata, or its score in each list of the recipe (legs).",
        ),
        click.option(
            "--part-rows",
            type=click.IntRange(min=1),
            help="Queries of a part, which is what is kept of a run that is killed.  [default: 256 to 4096]",
        ),
        config_options,
        answering_options,
        case_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


class _Score(click.Command):
    """``hopfuse score``, whose stages are commands of their own: ``hopfuse score plan`` and so on."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        stage = STAGES.get(args[0]) if args else None
        if stage is None:
            return super().make_context(info_name, args, parent, **extra)
        return stage.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Stages, each a command of its own (hopfuse score STAGE --help)"):
            formatter.write_dl([(name, stage.get_short_help_str(80)) for name, stage in STAGES.items()])


@click.command(cls=_Score)
@scoring_options
@click.option(
    "--out",
    type=FILE,
    required=True,
    help="The result: .jsonl, .parquet, a TREC run (.trec), .json for BEIR and ranx; - for JSON lines on stdout.",
)
@engine_options
@click.option(
    "--verify", "sample", type=click.IntRange(min=0), default=0, help="Make so many parts twice, and compare."
)
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")
@click.option("--restart", is_flag=True, help="Drop an unfinished run instead of going on with it.")
def score(
    directory: Path,
    queries: Path,
    out: Path,
    part_rows: int | None,
    sample: int,
    overwrite: bool,
    restart: bool,
    **options: Any,
) -> None:
    """Rank passages for every query of a file; with triple-hybrid, entities by name.

    A query without entities takes the names of the index that are found in its text. All rows are checked before
    anything is made. A run that was killed goes on where it was if it is started again with the same options: the
    finished parts are in OUT.partial until OUT is there. The stages, for many machines: docs/offline.md.

    A policy with facts.gate = "llm" asks --model which facts count. With --answers the model answers each question from
    the first hits alone, answers.passages of the policy and at most --k; OUT has it as "answer", which hopfuse eval
    reads.
    """
    start, kind = time.monotonic(), part_kind(out)
    how = {name: options.pop(name) for name in ENGINE}
    runner, threads, chunk = _runner(**how), how["threads"], how["chunk"]
    alone = how["engine"] == "local" and how["workers"] == 1
    if out == STDOUT and how["address"] is not None:
        raise InputError("--out - keeps the run in a folder of this machine alone; with --address give a file")
    if out == STDOUT and (overwrite or restart):
        raise InputError("--overwrite and --restart are about a file; leave them out with --out -")
    if out != STDOUT:
        check_outputs({"--out": out}, input_files(queries, options), overwrite=overwrite)
    with query_path(queries) as path, _run_folder(out) as folder:
        if restart and folder.path.exists():
            with folder.lock(alone=True):
                folder.clear()
        plan, scorer = planned(
            folder,
            directory,
            path,
            options,
            kind=kind,
            names=writes_names(out),
            part_rows=part_rows,
            stdin=queries == STDIN,
            threads=threads if alone else 1,
        )
        folder.create(plan, path if queries == STDIN else None)
        opening = (lambda plan, threads: scorer) if alone else open_scorer
        made = _made(folder, range(plan.num_parts), opening, runner, alone=True)
        if sample:
            _verified(folder, lambda plan, threads: scorer, sample, threads, chunk)
        merged = merge(folder.path, out)
        with folder.lock(alone=True):
            folder.remove()
    note(_summary(made, merged, out, time.monotonic() - start))


@click.command()
@scoring_options
@click.option("--out", "folder", type=DIRECTORY, required=True, help="The folder of the plan, and of its parts.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(("jsonl", "parquet")),
    default="jsonl",
    show_default=True,
    help="Of the parts; both can be joined to a TREC run or BEIR's .json, too.",
)
def plan(directory: Path, queries: Path, folder: Path, kind: str, part_rows: int | None, **options: Any) -> None:
    """Check all rows, and write the plan that any number of processes may run."""
    place = Folder(folder)
    with query_path(queries) as path:
        stdin = queries == STDIN
        found, _ = planned(place, directory, path, options, kind=kind, names=False, part_rows=part_rows, stdin=stdin)
        place.create(found, path if stdin else None)
    note(f"Planned {found.rows:,} queries in {found.num_parts:,} parts: hopfuse score run {folder}")


@click.command("run")
@folder_argument
@click.option("--shard", metavar="I/N", default="1/1", help="The I-th of N shares of the parts, from 1.")
@engine_options
def run_command(folder: Path, shard: str, **engine: Any) -> None:
    """Make the parts of a plan that are not there yet; several may run at once, on machines that share the folder."""
    place, (number, shares), start = Folder(folder), _shard(shard), time.monotonic()
    parts = range(number - 1, place.plan.num_parts, shares)
    made = _made(place, parts, open_scorer, _runner(**engine), shard=(number, shares), alone=False)
    note(f"Made {made.parts:,} parts of {made.rows:,} queries{_rate(made, time.monotonic() - start)}")


@click.command("merge")
@folder_argument
@click.option("--out", type=FILE, required=True, help="As of hopfuse score.")
@click.option("--tag", default="hopfuse", show_default=True, help="Name of the run in a TREC run.")
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")
def merge_command(folder: Path, out: Path, tag: str, overwrite: bool) -> None:
    """Join the parts of a plan to one file; the folder stays."""
    if out != STDOUT:
        check_outputs({"--out": out}, {}, overwrite=overwrite)
    merged = merge(folder, out, tag=tag)
    note(f"Joined {merged.parts:,} parts of {merged.rows:,} queries to {out}; {merged.empty:,} without a hit")


@click.command("verify")
@folder_argument
@click.option("--sample", type=click.IntRange(min=0), default=3, show_default=True, help="Parts that are made again.")
@chunk_option
@threads_option
def verify_command(folder: Path, sample: int, chunk: int, threads: int | None) -> None:
    """Check that all parts are there and whole, make some of them again, and compare every byte."""
    checked = _verified(Folder(folder), open_scorer, sample, threads, chunk)
    again = f"; parts {', '.join(map(str, checked))} were made again, with equal bytes" if checked else ""
    note(f"All {Folder(folder).plan.num_parts:,} parts of {folder} are whole{again}")


STAGES: dict[str, click.Command] = {
    "plan": plan,
    "run": run_command,
    "merge": merge_command,
    "verify": verify_command,
}


# ---- What they share -------------------------------------------------------------------------------------------------


@contextmanager
def _run_folder(out: Path) -> Iterator[Folder]:
    """Yield the folder of a run into a file; of one to standard output nothing is kept."""
    if out != STDOUT:
        yield Folder(out.with_name(f"{out.name}.partial"))
        return
    with tempfile.TemporaryDirectory() as place:
        yield Folder(Path(place, "run"))


def _runner(
    engine: str,
    workers: int,
    address: str | None,
    num_gpus: float | None,
    copy_index: Path | None,
    chunk: int,
    threads: int | None,
) -> Callable[..., Made]:
    """Return what makes parts by these processes: :func:`hopfuse.offline.run`, or that of Ray."""
    of_ray = {"--address": address, "--num-gpus": num_gpus, "--copy-index": copy_index}
    if engine == "local":
        given = [name for name, value in of_ray.items() if value is not None]
        if given:
            raise InputError(f"{given[0]} is for --engine ray; give that too, or leave it out")
        return partial(run, workers=workers, threads=threads, chunk=chunk)
    if threads is not None:
        raise InputError("--threads is given, and each actor of Ray has one kernel thread; leave it out")
    return partial(ray.run, actors=workers, address=address, num_gpus=num_gpus or 0, copy_index=copy_index, chunk=chunk)


def _made(folder: Folder, parts: Sequence[int], opening: Any, runner: Callable[..., Made], **how: Any) -> Made:
    plan = folder.plan
    total = sum(end - first for first, end in map(plan.row_range, parts))
    with progress_bar() as bar:
        task = bar.add_task("Scoring", total=total)
        done = False

        def progress(rows: int) -> None:
            nonlocal done
            if rows and not done:
                bar.console.print(f"Going on after {rows:,} of {total:,} queries", highlight=False)
            done = True
            bar.advance(task, rows)

        return runner(folder.path, opening, progress=progress, **how)


def _verified(folder: Folder, opening: Any, sample: int, threads: int | None, chunk: int) -> list[int]:
    with progress_bar() as bar:
        task = bar.add_task("Verifying", total=min(sample * folder.plan.part_rows, folder.plan.rows))
        return verify(
            folder.path,
            opening,
            sample=sample,
            threads=threads,
            chunk=chunk,
            progress=lambda rows: bar.advance(task, rows),
        )


def _shard(text: str) -> tuple[int, int]:
    number, slash, shares = text.partition("/")
    if not (slash and number.isdecimal() and shares.isdecimal()):
        raise InputError(f"--shard is {text!r}; give a share and how many there are, for instance 2/8")
    return int(number), int(shares)


def _summary(made: Made, merged: Merged, out: Path, seconds: float) -> str:
    kept = merged.parts - made.parts
    parts = f"{merged.parts:,} parts" + (f", {kept:,} of which were there" if kept else "")
    workers = f"; {made.replaced} workers died and were replaced" if made.replaced else ""
    return (
        f"Scored {merged.rows:,} queries into {out}{_rate(made, seconds)}: {parts}; {merged.empty:,} queries without a "
        f"hit{workers}; at most {_peak() / 1e6:,.0f} MB of memory in a process"
    )


def _rate(made: Made, seconds: float) -> str:
    minutes = f"{int(seconds // 60)} min {seconds % 60:.0f} s" if seconds >= 60 else f"{seconds:.1f} s"
    return f" in {minutes}" + (f" ({made.rows / seconds:,.0f} a second)" if made.rows else "")


def _peak() -> float:
    """Return the most memory that this process, or one that it started, had, in bytes."""
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return float(most) * (1 if sys.platform == "darwin" else 1024)
