"""``hopfuse add``, ``delete``, ``merge``, ``compact``, ``snapshot``, ``log`` and ``follow``: changes to an index."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial, reduce
from itertools import starmap
from operator import and_
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.progress import Progress, TaskID

from .. import Corpus, Index
from .._validation import check_length, check_unused, counted
from ..encoders import Encoder
from ..errors import EndpointError, InputError, StoreError
from ..index.contents import check_encodable, text_to_index
from ..io.files import read_npy
from ..io.readers import read_table
from ..io.source import ORDERED
from ..report import ProgressLines, printable
from ..stores.places import check_followed
from ..stores.postgres import PostgresFollower, drop_slot
from .build_rules import FACT_READERS, check_reader, may_refuse
from .console import json_text, note, progress_bar
from .filters import read_condition
from .options import FILE, check_rules, encoder_for, encoder_option, index_argument
from .outputs import FACTS, VECTOR, FailedFile, FailureList, RefusedPassages
from .readers import added_reader, edges_between, fact_reader_options, make_fact_reader


@click.command()
@index_argument
@click.argument("passages", type=FILE)
@click.option("--replace", is_flag=True, help="Replace the passages with these ids; all must be in the index.")
@click.option("--vectors", type=FILE, help="One vector per passage: .npy.")
@encoder_option
@click.option(
    "--reader",
    type=click.Choice(sorted(FACT_READERS, reverse=True)),
    help="Find entities and facts in PASSAGES; use the reader that the index was built with.",
)
@fact_reader_options
@click.option("--batch", type=click.IntRange(min=1), default=1000, show_default=True, help="Passages per commit.")
def add(
    directory: Path,
    passages: Path,
    replace: bool,
    vectors: Path | None,
    encoder: str | None,
    batch: int,
    **reading: Any,
) -> None:
    """Add passages to an index, or replace some.

    PASSAGES has rows of id, title, text, document, language and metadata: .jsonl, .tsv or .parquet; also position, if
    the index was built with --reader. The index's own encoder makes their vectors, BM25 is updated, and words are read
    as they were at the build. The index can be searched meanwhile. Each batch is on disk before the next one begins, so
    an interrupted run keeps its finished batches. To add edges between entities, use Python: Index.open(...,
    writable=True).
    """
    index = Index.open(directory)
    if index.dim is None:
        check_unused("vectors", vectors, "the index has no vectors of passages")
    given_here = {**reading, "passages": passages, "vectors": vectors, "encoder": encoder}
    reader = added_reader(index, given_here)
    failed = FailedFile(reading["failed"], {"passages": passages, "vectors": vectors})
    model = _encoder(index, encoder, vectors, names_are_read=reader.reads)
    table = read_table(passages, ORDERED)
    reader.expect(table.num_rows)
    rows = [table.row(at) for at in range(table.num_rows)]
    refused = RefusedPassages(reading["skip_failed"], len(rows)) if may_refuse(given_here) else None
    given = None if vectors is None else read_npy(vectors, "vectors")
    if given is not None:
        check_length(len(given), "vectors", len(rows), "passage")
        Corpus.from_array(given, metric=index.metric)  # refuses a bad row by its number
    elif index.dim is not None and model is not None:
        _check_words(model, rows)
    joined = edges_between(rows, batch) if reader.reads and {"id", "document"} <= set(table.columns) else {}
    with Index.open(directory, writable=True, encoder=model) as live, progress_bar() as progress:
        task = progress.add_task("Replacing passages" if replace else "Adding passages", total=len(rows))
        for first in range(0, len(rows), batch):
            part = slice(first, first + batch)
            try:
                with live.change() as change:
                    call = change.replace_passages if replace else change.add_passages
                    if refused is not None:
                        refused.first = first
                    own = None if given is None else given[part]
                    call(table.part(first, first + batch), vectors=own, failed=refused)
                    if reader.reads:
                        reached = partial(_reached, progress, task, first)
                        memory = reader.read(rows[part], reached)
                        change.add_memory(memory)
                    if first // batch in joined:
                        change.add_edges(joined[first // batch])
            except (InputError, EndpointError) as error:
                raise error.at(f"after {counted(first, 'passage')} added" if first else None) from None
            without = {FACTS: memory.failures if reader.reads else {}}
            if refused is not None:
                without[VECTOR] = {at - first: why for at, why in refused.reasons.items() if at >= first}
            failed.add([row["id"] for row in rows[part]], without, table.part(first, first + batch).row)
            progress.update(task, completed=first + len(rows[part]))
        seq = live.refresh().seq
    note(f"{counted(len(rows), 'passage')} {'replaced' if replace else 'added'}; the index is at seq {seq}")
    failed.report("To read them again, give that file with --replace")


def _check_words(encoder: Encoder, rows: Sequence[dict[str, Any]]) -> None:
    """Refuse a passage without words before any is added; rows that are not of strings are refused as they are read."""
    known = [row for row in rows if isinstance(row.get("text"), str) and isinstance(row.get("title") or "", str)]
    check_encodable(
        encoder,
        [text_to_index(row.get("title") or "", row["text"]) for row in known],
        [row.get("id") for row in known],
    )


def _encoder(index: Index, name: str | None, vectors: Path | None, *, names_are_read: bool) -> Encoder | None:
    """Return the encoder of what is added, or None if nothing needs one."""
    of_entities = names_are_read and index.info()["entity_dim"] is not None
    if index.dim is None and not of_entities:
        check_unused("encoder", name, "the index has no vectors")
        return None
    return None if name is None and vectors is not None and not of_entities else encoder_for(index, name)


def _reached(progress: Progress | ProgressLines, task: TaskID, first: int, done: int, _: int) -> None:
    progress.update(task, completed=first + done)


@click.command()
@index_argument
@click.argument("ids", nargs=-1)
@click.option(
    "--where",
    metavar="COLUMN__OPERATOR=VALUE",
    multiple=True,
    help="Delete the passages whose metadata matches: user=ada, year__lt=2020. May be given several times; a passage "
    "must match them all.",
)
@click.option("--document", help="Delete the passages of this document.")
@click.option("--entities", is_flag=True, help="IDS are names of entities instead.")
@click.option("--dry-run", is_flag=True, help="Count what would be deleted, and change nothing.")
def delete(
    directory: Path, ids: Sequence[str], where: Sequence[str], document: str | None, entities: bool, dry_run: bool
) -> None:
    """Delete passages, and the edges and facts that they state.

    Give one of IDS, which are ids of passages, --where and --document. Names and words that a reader found go with the
    last passage that has them; those stated by a user stay. `hopfuse compact` then removes what was deleted from the
    files. The index can be searched meanwhile.
    """
    check_rules(
        {"entities": entities, "where": where, "document": document},
        excludes=[("entities", ("where", "document"), "which are of passages")],
    )
    with Index.open(directory, writable=True) as live:
        change = live.change()
        if entities:
            if not ids:
                raise InputError("missing", "ids", "{field} are missing; give names of entities")
            change.delete_entities(ids)
        else:
            allowed = [read_condition(one, live.index) for one in where]
            change.delete_passages(
                _ids(live.index.passage_ids, ids, "ids") if ids else None,
                where=reduce(and_, allowed) if allowed else None,
                document=None if document is None else _ids(live.index.documents.values, [document], "document")[0],
            )
        found = change.preview()
        if not dry_run:
            change.commit()
    names = ("passage", "name", "word", "fact")
    *most, last = [counted(count, name) for count, name in zip(found, names, strict=True)]
    said = f"{', '.join(most)} and {last}"
    if dry_run:
        click.echo(f"{said} would be deleted")
    else:
        note(f"{said} deleted; the index is at seq {change.seq}")


@click.command("merge")
@index_argument
@click.argument("entity")
@click.argument("merge", metavar="OTHERS...", nargs=-1, required=True)
def merge_command(directory: Path, entity: str, merge: Sequence[str]) -> None:
    """Merge entities into ENTITY, by their names.

    The names and aliases of OTHERS become aliases of ENTITY, and their edges and facts its own. `hopfuse diagnose
    --names` lists entities that may be one. The index can be searched meanwhile.
    """
    with Index.open(directory, writable=True) as live, live.change() as change:
        change.merge_entities({entity: merge})
    note(f"{counted(len(set(merge)), 'entity')} merged into {entity!r}; the index is at seq {change.seq}")


@click.command()
@index_argument
def compact(directory: Path) -> None:
    """Write an index's changes into a new generation.

    The index can be searched meanwhile.
    """
    with Index.open(directory, writable=True) as live:
        generation = live.compact()
    note(f"Saved generation {generation} in {directory}, at seq {live.seq}")


@click.command()
@index_argument
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
def snapshot(directory: Path, out: Path) -> None:
    """Copy an index to the directory OUT, as it is now.

    The index can be changed and searched meanwhile; the copy is one state of it, with its seq, and verified. If the
    command is interrupted, OUT keeps the copy before: run it again. Servers of OUT change to the new copy.
    """
    seq = Index.open(directory).copy_to(out)
    note(f"Saved a copy in {out}, at seq {seq}")


@click.command("log")
@index_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one line per batch.")
def log_command(directory: Path, as_json: bool) -> None:
    """List the changes since the last generation, one line per batch."""
    live = Index.open(directory, live=True)
    history = live.history()
    for batch in history:
        row = {"seq": batch["seq"], "time": _time(batch["time"]), **batch["counts"]}
        if as_json:
            click.echo(json_text(row).replace("\n", " "))
        else:
            click.echo(
                printable("  ".join([f"{row['seq']:>8}", row["time"], *starmap(_change, batch["counts"].items())]))
            )
    if not history:
        note(f"No changes since generation {live.index.generation}")


#: What is counted in a history, one of it.
_NOUNS = ("passage", "entity", "stated entity", "alias", "edge", "fact", "statement of facts")
_SINGULAR = {counted(2, noun).partition(" ")[2]: noun for noun in _NOUNS}


def _change(kind: str, count: int) -> str:
    """Return how many rows of a kind a batch added or, if negative, deleted."""
    what = kind.removeprefix("deleted ")
    return f"{count:+,} {_SINGULAR[what] if abs(count) == 1 else what}"


def _ids(known: Sequence[Any], ids: Sequence[str], field: str) -> list[Any]:
    """Return ids, or names of documents, as the index has them, ``known``: text, or integers."""
    if not len(known) or isinstance(known[0], str):
        return list(ids)
    wrong = [id for id in ids if not id.removeprefix("-").isdecimal()]
    if wrong:
        raise InputError(
            "type", field, "{field}: {given!r} is not one of the index's, which are integers", given=wrong[0]
        )
    return [int(id) for id in ids]


def _time(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="seconds")


@click.command()
@index_argument
@click.option(
    "--from",
    "url",
    metavar="URL",
    required=True,
    help="The database that the index was built from: postgresql://user@host/database; password from PGPASSWORD or "
    "~/.pgpass.",
)
@encoder_option
@click.option(
    "--reader",
    type=click.Choice(sorted(FACT_READERS, reverse=True)),
    help="Find entities and facts in the passages; use the reader that the index was built with.",
)
@partial(fact_reader_options, share="100")
@click.option("--once", is_flag=True, help="Stop when the index has what is committed now.")
@click.option(
    "--drop", is_flag=True, help="Drop the replication slot and its publication: the index can no longer follow."
)
@click.option(
    "--poll",
    type=click.FloatRange(min=0.001),
    default=0.1,
    show_default=True,
    help="Seconds between reads of the server's log; a NOTIFY of the slot's name starts one at once.",
)
def follow(directory: Path, url: str, encoder: str | None, once: bool, drop: bool, poll: float, **reading: Any) -> None:
    """Keep an index equal to the PostgreSQL tables it was built from.

    The index must have been built with --slot; it can be searched meanwhile. The command is the index's only writer
    and runs until SIGTERM or SIGINT; changes not yet committed are read again at the next start. A lost connection is
    reopened. Words are read as they were at the build.

    A row that the index cannot hold, such as one without a vector, is left out until it changes; `hopfuse info` lists
    such rows, and --failed. With --skip-failed, the command ends if they are more than this share of the passages.
    """
    check_followed(url)
    reader = reading["reader"]
    given = {**reading, "reader": () if reader is None else (reader,), "language": None, "tagger": None, "store": True}
    check_reader(given)
    if drop:
        check_rules(
            {"drop": drop, "once": once, "encoder": encoder, "reader": reader},
            excludes=[("drop", ("once", "encoder", "reader"), "which are for following")],
        )
        note(f"Dropped the slot and the publication {drop_slot(directory, url)}")
        return
    model = encoder_for(Index.open(directory), encoder)
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    share = 100.0 if reading["skip_failed"] is None else reading["skip_failed"]
    facts = None if reader is None else make_fact_reader({**given, "skip_failed": None})
    failed = FailureList(reading["failed"])
    with PostgresFollower(directory, url, encoder=model, reader=facts, skip_failed=share) as follower:
        failed.begin(follower.failures)

        def committed(seq: int) -> None:
            note(f"The index is at seq {seq}")
            failed.update(follower.failures)

        if once:
            seq = follower.step()
            if seq is None:
                note("Nothing has changed")
            else:
                committed(seq)
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        if (seq := follower.step()) is not None:  # apply the backlog before announcing the start
            committed(seq)
        note(f"Following from {follower.position}")
        follower.run(stop, poll=poll, on_commit=committed, on_wait=_waiting)


def _waiting(error: StoreError, seconds: float) -> None:
    note(f"{error}; the next try in {seconds:.1f} s")
