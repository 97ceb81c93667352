"""Build an index that can be followed, together with its replication slot."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ...errors import InputError, StoreError
from ...index import Index
from ..applying import KnownRows
from .connection import connect, database_errors
from .pgoutput import position_of, position_text
from .queries import describe
from .slot import Slot, check_followable, shape_of
from .source import PostgresSource

STORE = "postgresql"


class FollowState:
    """What an index stores about its source: the queries, the slot, the position in the log, and the tables' shapes."""

    def __init__(
        self, slot: str, position: int, queries: Mapping[str, Sequence[str]], shape: Mapping[str, str]
    ) -> None:
        self.slot, self.position, self.queries, self.shape = slot, position, queries, shape

    @classmethod
    def of(cls, text: str | None, directory: Path) -> FollowState:
        """Read the state from its text in an index."""
        if text is None:
            raise InputError(
                "unsupported",
                "directory",
                "{field} {given} was not built to be followed; build it by hopfuse build --from postgresql://... "
                "--slot NAME",
                given=str(directory),
            )
        try:
            known = json.loads(text)
            if known["store"] != STORE:
                raise ValueError(known["store"])
            return cls(known["slot"], position_of(known["position"]), known["queries"], known["shape"])
        except (ValueError, KeyError, TypeError):
            raise InputError(
                "version",
                "directory",
                "{field} {given} follows another store than PostgreSQL, or was built by another hopfuse; build it anew",
                given=str(directory),
            ) from None

    def text(self, position: int, shape: Mapping[str, str]) -> str:
        """Return the text of the state at another position."""
        found = {"store": STORE, "slot": self.slot, "position": position_text(position)}
        return json.dumps({**found, "queries": self.queries, "shape": shape}, ensure_ascii=False)


@contextmanager
def followed(source: PostgresSource, slot: str, build: Callable[[PostgresSource], Index]) -> Iterator[Index]:
    """Build an index that can be followed. The slot is created first, so that no change is missed.

    Save the index in the ``with`` block. If the build or the block fails, slot and publication are dropped.

    Parameters
    ----------
    source : PostgresSource
    slot : str
        Name of the new replication slot and publication.
    build : callable
        Builds the index of the source.

    Raises
    ------
    InputError
        A query's table cannot be followed; the message says what to alter.

    Examples
    --------
    >>> from hopfuse.stores.postgres import PostgresSource, followed
    >>> source = PostgresSource("postgresql:///news", passages="SELECT id, text FROM chunks")  # doctest: +SKIP
    >>> with followed(source, "news", hf.Index.build) as index:  # doctest: +SKIP
    ...     index.save("news")
    """
    with connect(source.url) as connection:
        queries = describe(connection, source.url, source.queries)
        tables = check_followable(connection, source.url, queries)
        created = Slot(connection, source.url, slot)
        position = created.create(tables)
        try:
            with database_errors(source.url, f"slot {slot}", "slot"):
                shape = shape_of(lambda query: connection.execute(query).fetchone() or (), tables)
            index = build(source)
            KnownRows(index)
            yield index.with_source(FollowState(slot, position, source.queries, shape).text(position, shape))
        except BaseException:
            with suppress(StoreError):
                created.drop()
            raise


def drop_slot(directory: str | os.PathLike[str], url: str) -> str:
    """Drop the slot and the publication of an index, which can then not be followed; return their name."""
    state = FollowState.of(Index.open(directory).source, Path(directory))
    with connect(url) as connection:
        Slot(connection, url, state.slot).drop()
    return state.slot
