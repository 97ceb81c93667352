"""``hopfuse follow``: keep an index equal to the tables of the database that it was built from."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType

import click

from ... import Index
from ...errors import StoreError
from ...stores.places import check_followed
from ...stores.postgres import PostgresFollower, drop_slot
from ..checks import check_rules
from ..console import note
from ..options import encoder_for, encoder_option, index_argument


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
def follow(directory: Path, url: str, encoder: str | None, once: bool, drop: bool, poll: float) -> None:
    """Keep an index equal to the PostgreSQL tables it was built from.

    The index must have been built with --slot; it can be searched meanwhile. The command is the index's only writer
    and runs until SIGTERM or SIGINT; changes not yet committed are read again at the next start. A lost connection is
    reopened. A row that the index cannot hold stops it with an error: correct the row, and start again.
    """
    check_followed(url)
    if drop:
        check_rules(
            {"drop": drop, "once": once, "encoder": encoder},
            excludes=[("drop", ("once", "encoder"), "which are for following")],
        )
        note(f"Dropped the slot and the publication {drop_slot(directory, url)}")
        return
    model = encoder_for(Index.open(directory), encoder)
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    with PostgresFollower(directory, url, encoder=model) as follower:
        if once:
            seq = follower.step()
            note("Nothing has changed" if seq is None else f"The index is at seq {seq}")
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        follower.step()  # apply the backlog before announcing the start
        note(f"Following from {follower.position}")
        follower.run(stop, poll=poll, on_commit=_committed, on_wait=_waiting)


def _committed(seq: int) -> None:
    note(f"The index is at seq {seq}")


def _waiting(error: StoreError, seconds: float) -> None:
    note(f"{error}; the next try in {seconds:.1f} s")
