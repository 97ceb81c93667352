"""``hopfuse score``: rank passages for a file of queries, in bounded memory, in many processes, resumable."""

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

from .._validation import check_needs, counted
from ..errors import InputError
from ..offline import Folder, MergeCounts, RunCounts, merge, ray, run, verify
from ..offline.database import SCHEMES, TABLE, HitsTable, write_file, write_run
from ..offline.merge import STDOUT, part_kind, writes_names
from .console import note, progress_bar
from .options import DIRECTORY, FILE, Rule, case_option, check_rules, encoder_option, index_argument, k_option
from .outputs import check_outputs
from .planning import EXTRAS, STDIN, input_files, open_scorer, planned, query_path
from .recipes import answering_options, config_options, threads_option

F = TypeVar("F", bound=Callable[..., Any])

folder_argument = click.argument("folder", type=click.Path(path_type=Path))
chunk_option = click.option(
    "--chunk", type=click.IntRange(min=1), default=256, show_default=True, help="Queries per search."
)
workers_option = click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes; several, and all of Ray's, have one kernel thread each.",
)


OF_RAY: tuple[Rule, ...] = tuple((name, "engine ray", "") for name in ("address", "num_gpus", "copy_index"))
#: What a database does not take of a result.
NO_TABLE: tuple[Rule, ...] = (
    *((name, "out database", "which gets ids, ranks and scores") for name in ("with", "answers")),
    ("overwrite", "out database", "where rows of the same queries are replaced anyway"),
)
NO_FILE: tuple[Rule, ...] = (
    ("address", "out -", "which keeps the parts on this machine"),
    *((name, "out -", "which is not a file") for name in ("overwrite", "restart")),
)
#: The parameters of :func:`engine_options`.
ENGINE = ("engine", "workers", "address", "num_gpus", "copy_index", "chunk", "threads")


class _Out(click.ParamType[Any]):
    """The file of a result, or the URL of a database."""

    name = "file|url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and value.startswith(SCHEMES):
            return value
        return FILE.convert(value, param, ctx)


OUT = _Out()
table_option = click.option(
    "--table",
    metavar="NAME",
    help=f"For a database: the table of the hits, SCHEMA.NAME or NAME; created if absent.  [default: {TABLE}]",
)


def _place(out: Path | str, table: str | None) -> Path | HitsTable:
    """Return the file or the table of a result."""
    if isinstance(out, str):
        return HitsTable(out, table or TABLE)
    check_needs("table", table, "out", None, "the URL of a database, which has tables")
    return out


def engine_options(command: F) -> F:
    """Add the options that decide which processes make the parts."""
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
            help="Head of the Ray cluster.  [default: RAY_ADDRESS, else a new cluster on this machine]",
        ),
        click.option(
            "--num-gpus", type=click.FloatRange(min=0), help="GPUs per Ray actor; 0.5 puts two actors on a GPU."
        ),
        click.option("--copy-index", type=DIRECTORY, help="Folder on each Ray node's local disk to copy the index to."),
        chunk_option,
        threads_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def scoring_options(command: F) -> F:
    """Add the index, the queries, and the options that decide what is found for them."""
    options = (
        index_argument,
        click.option(
            "--queries",
            type=FILE,
            required=True,
            help="Rows of id, text, entities, vector: .jsonl or .parquet; - for JSON lines on standard input.",
        ),
        click.option("--vectors", type=FILE, help="One vector per query: .npy.  [default: made by the encoder]"),
        encoder_option,
        k_option,
        click.option(
            "--with",
            "extras",
            type=click.Choice(EXTRAS),
            multiple=True,
            help="Also write this of each hit; legs: its scores in the recipe's lists. May be given several times.",
        ),
        click.option(
            "--part-rows",
            type=click.IntRange(min=1),
            help="Queries per part; an interrupted run keeps its finished parts.  [default: 256 to 4096]",
        ),
        config_options,
        answering_options,
        case_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


class _Score(click.Command):
    """``hopfuse score``, whose stages are commands too: ``hopfuse score plan`` and so on."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        stage = STAGES.get(args[0]) if args else None
        if stage is None:
            return super().make_context(info_name, args, parent, **extra)
        return stage.make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Stages, as commands (hopfuse score STAGE --help)"):
            formatter.write_dl([(name, stage.get_short_help_str(80)) for name, stage in STAGES.items()])


@click.command(cls=_Score)
@scoring_options
@click.option(
    "--out",
    type=OUT,
    metavar="FILE|URL",
    required=True,
    help="The result: .jsonl, .parquet, a TREC run (.trec), .json for BEIR and ranx; - for JSON lines on stdout; or a "
    "database, postgresql://user@host/database (password from PGPASSWORD or ~/.pgpass).",
)
@table_option
@engine_options
@click.option(
    "--verify", "sample", type=click.IntRange(min=0), default=0, help="Number of parts to make twice and compare."
)
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")
@click.option("--restart", is_flag=True, help="Discard an unfinished run instead of resuming it.")
def score(
    directory: Path,
    queries: Path,
    out: Path | str,
    table: str | None,
    part_rows: int | None,
    sample: int,
    overwrite: bool,
    restart: bool,
    **options: Any,
) -> None:
    """Rank passages for every query in a file.

    If a query has no entities, names of the index are found in its text. With triple-hybrid, hits are entities, by
    name. All rows are checked before anything is written. An interrupted run resumes if it is started again with the
    same options: finished parts are kept in OUT.partial until OUT is complete. To run the stages on many machines, see
    docs/offline.md. The hits go to a database in one transaction, after all parts are made, which are in TABLE.partial
    until then; they replace those of the same queries.

    With a policy of facts.gate = "llm", --model decides which facts count. With --answers, the model answers each
    question from the first hits: answers.passages of the policy, at most --k. OUT has the answers as "answer", which
    hopfuse eval reads.

    What was not used of a query, such as the name of an entity that the index does not have, is noted: the number is
    printed, and a .jsonl has the notes. --strict stops at the first one.
    """
    start, place = time.monotonic(), _place(out, table)
    into = place if isinstance(place, HitsTable) else None
    kind = "jsonl" if isinstance(place, HitsTable) else part_kind(place)
    how = {name: options.pop(name) for name in ENGINE}
    runner, threads, chunk = _runner(**how), how["threads"], how["chunk"]
    alone = how["engine"] == "local" and how["workers"] == 1
    given = {**how, "overwrite": overwrite, "restart": restart, "out -": place == STDOUT, "out database": into}
    given |= {"with": options["extras"], "answers": options["answers"]}
    check_rules(given, excludes=(*NO_FILE, *NO_TABLE))
    if isinstance(place, HitsTable):
        place.check()
    elif place != STDOUT:
        check_outputs({"out": place}, input_files(queries, options), overwrite=overwrite)
    with query_path(queries) as path, _run_folder(place) as folder:
        if restart and folder.path.exists():
            with folder.lock(alone=True):
                folder.clear()
        plan, scorer = planned(
            folder,
            directory,
            path,
            options,
            kind=kind,
            names=not isinstance(place, HitsTable) and writes_names(place),
            part_rows=part_rows,
            stdin=queries == STDIN,
            threads=threads if alone else 1,
        )
        folder.create(plan, path if queries == STDIN else None)
        opening = (lambda plan, threads: scorer) if alone else open_scorer
        again = f"the same command{' without --restart' if restart else ''}" if place != STDOUT else ""
        made = _made(folder, range(plan.num_parts), opening, runner, goes_on=again, alone=True)
        if sample:
            _verified(folder, lambda plan, threads: scorer, sample, threads, chunk)
        merged = _written(folder.path, place)
        with folder.lock(alone=True):
            folder.remove()
    _note_notes(merged)
    note(_summary(made, merged, place, time.monotonic() - start))


@click.command()
@scoring_options
@click.option("--out", "folder", type=DIRECTORY, required=True, help="Folder for the plan and its parts.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(("jsonl", "parquet")),
    default="jsonl",
    show_default=True,
    help="Format of the parts: .jsonl is merged from jsonl, .parquet from parquet, the others from either.",
)
def plan(directory: Path, queries: Path, folder: Path, kind: str, part_rows: int | None, **options: Any) -> None:
    """Check all rows, and write a plan that any number of processes can run."""
    place = Folder(folder)
    with query_path(queries) as path:
        stdin = queries == STDIN
        found, _ = planned(place, directory, path, options, kind=kind, names=False, part_rows=part_rows, stdin=stdin)
        place.create(found, path if stdin else None)
    note(f"Planned {counted(found.rows, 'query')} in {counted(found.num_parts, 'part')}: hopfuse score run {folder}")


@click.command("run")
@folder_argument
@click.option("--shard", metavar="I/N", default="1/1", help="Make the I-th of N shares of the parts, counting from 1.")
@engine_options
def run_command(folder: Path, shard: str, **engine: Any) -> None:
    """Make the missing parts of a plan.

    Several processes, and machines that share the folder, may run this at once.
    """
    place, (number, shares), start = Folder(folder), _shard(shard), time.monotonic()
    parts = range(number - 1, place.plan.num_parts, shares)
    runner = _runner(**engine)
    again = "the same command"
    made = _made(place, parts, open_scorer, runner, goes_on=again, shard=(number, shares), alone=False)
    note(f"Made {counted(made.parts, 'part')} of {counted(made.rows, 'query')}{_rate(made, time.monotonic() - start)}")


@click.command("merge")
@folder_argument
@click.option("--out", type=OUT, metavar="FILE|URL", required=True, help="The result, as of hopfuse score.")
@table_option
@click.option("--tag", default="hopfuse", show_default=True, help="Tag of a TREC run.")
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")
def merge_command(folder: Path, out: Path | str, table: str | None, tag: str, overwrite: bool) -> None:
    """Merge the parts of a plan into one file or table; the folder is kept."""
    place = _place(out, table)
    database = place if isinstance(place, HitsTable) else None
    check_rules({"overwrite": overwrite, "out database": database}, excludes=NO_TABLE)
    if not isinstance(place, HitsTable) and place != STDOUT:
        check_outputs({"out": place}, {}, overwrite=overwrite)
    merged = _written(folder, place, tag=tag)
    note(
        f"Merged {counted(merged.parts, 'part')} of {counted(merged.rows, 'query')} into {place}; {merged.empty:,} "
        "without a hit"
    )
    _note_notes(merged)


@click.command("write")
@click.argument("file", type=FILE)
@click.option("--out", type=OUT, metavar="URL", required=True, help="The database, as of hopfuse score.")
@table_option
def write_command(file: Path, out: Path | str, table: str | None) -> None:
    """Write a finished result into a table.

    FILE is a .jsonl or .parquet of hopfuse score. The hits replace those of the same queries, in one transaction.
    """
    if not isinstance(out, str):
        raise InputError(
            "choice", "out", "{field} is {given!r}, which is not a database; give postgresql://...", given=str(out)
        )
    into = HitsTable(out, table or TABLE)
    note(f"Wrote {counted(write_file(file, into), 'hit')} into {into}")


@click.command("verify")
@folder_argument
@click.option(
    "--sample", type=click.IntRange(min=0), default=3, show_default=True, help="Number of parts to make again."
)
@chunk_option
@threads_option
def verify_command(folder: Path, sample: int, chunk: int, threads: int | None) -> None:
    """Check that all parts are complete and reproducible.

    Some of the parts are made again, and must have the same bytes.
    """
    checked = _verified(Folder(folder), open_scorer, sample, threads, chunk)
    what = f"part {checked[0]} was" if len(checked) == 1 else f"parts {', '.join(map(str, checked))} were"
    again = f"; {what} made again, with equal bytes" if checked else ""
    total = Folder(folder).plan.num_parts
    note(f"{folder} is complete, with {counted(total, 'part')}{again}")


STAGES: dict[str, click.Command] = {
    "plan": plan,
    "run": run_command,
    "merge": merge_command,
    "verify": verify_command,
    "write": write_command,
}


# ---- Shared by score and its stages ----------------------------------------------------------------------------------


def _written(folder: Path, out: Path | HitsTable, **how: Any) -> MergeCounts:
    """Write all parts into a file or a table."""
    return write_run(folder, out) if isinstance(out, HitsTable) else merge(folder, out, **how)


@contextmanager
def _run_folder(out: Path | HitsTable) -> Iterator[Folder]:
    """Yield the folder of a run; that of a run to standard output is temporary."""
    if isinstance(out, HitsTable):
        yield Folder(out.folder)
        return
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
) -> Callable[..., RunCounts]:
    """Return the function that makes parts: :func:`hopfuse.offline.run`, or Ray's."""
    given = {"address": address, "num_gpus": num_gpus, "copy_index": copy_index, "threads": threads}
    by_ray = engine == "ray"
    check_rules(
        {**given, "engine ray": by_ray}, OF_RAY, [("threads", "engine ray", "whose actors have one thread each")]
    )
    if not by_ray:
        return partial(run, workers=workers, threads=threads, chunk=chunk)
    return partial(ray.run, actors=workers, address=address, num_gpus=num_gpus or 0, copy_index=copy_index, chunk=chunk)


def _made(
    folder: Folder, parts: Sequence[int], opening: Any, runner: Callable[..., RunCounts], *, goes_on: str, **how: Any
) -> RunCounts:
    """Make parts; ``goes_on`` is the command that continues after an interruption, empty if nothing is kept."""
    plan = folder.plan
    total = sum(end - first for first, end in map(plan.row_range, parts))
    recipe = plan.scoring["recipe"]
    note(f"Scoring {counted(total, 'query')} by {recipe}, in {counted(len(parts), 'part')} in {folder.path}")
    with progress_bar() as bar:
        task = bar.add_task("Scoring", total=total)
        done = False

        def progress(rows: int) -> None:
            nonlocal done
            if rows and not done:
                note(f"Resuming after {rows:,} of {counted(total, 'query')}")
            done = True
            bar.advance(task, rows)

        try:
            return runner(folder.path, opening, progress=progress, **how)
        except KeyboardInterrupt:
            if goes_on:
                note(f"Stopped. The finished parts are kept: {goes_on} goes on from them")
            raise


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
        raise InputError(
            "syntax",
            "shard",
            "{field} is {given!r}; give a share and the number of shares, such as 2/8",
            given=text,
        )
    return int(number), int(shares)


def _summary(made: RunCounts, merged: MergeCounts, out: Path | HitsTable, seconds: float) -> str:
    kept = merged.parts - made.parts
    parts = counted(merged.parts, "part") + (f", {kept:,} of them kept from before" if kept else "")
    workers = f"; replaced {counted(made.replaced, 'worker')} that died" if made.replaced else ""
    empty, place = counted(merged.empty, "query"), "standard output" if out == STDOUT else out
    return (
        f"Scored {counted(merged.rows, 'query')} into {place}{_rate(made, seconds)}: {parts}; {empty} without a "
        f"hit{workers}; at most {_peak() / 1e6:,.0f} MB of memory in a process"
    )


def _note_notes(merged: MergeCounts) -> None:
    """Say how many queries have notes, and one of them."""
    if merged.noted:
        example = "" if merged.note is None else f", such as {merged.note}"
        note(f"{merged.noted:,} of {counted(merged.rows, 'query')} have notes{example}")


def _rate(made: RunCounts, seconds: float) -> str:
    minutes = f"{int(seconds // 60)} min {seconds % 60:.0f} s" if seconds >= 60 else f"{seconds:.1f} s"
    return f" in {minutes}" + (f" ({made.rows / seconds:,.0f} a second)" if made.rows else "")


def _peak() -> float:
    """Return the peak resident memory of this process or any child, in bytes."""
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return float(most) * (1 if sys.platform == "darwin" else 1024)
