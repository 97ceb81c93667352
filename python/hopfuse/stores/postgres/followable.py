"""Build an index that can be followed, together with its replication slot."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ...errors import InputError, StoreError
from ...index import Index
from ..applying import KnownRows
from ..failures import Failure, Failures
from .connection import connect, database_errors
from .pgoutput import position_of, position_text
from .queries import describe
from .slot import Slot, check_followable, shape_of
from .source import PostgresSource

STORE = "postgresql"


class FollowState:
    """What an index stores about its source: the queries, the slot, the position in the log, and the tables' shapes."""

    def __init__(
        self,
        slot: str,
        position: int,
        queries: Mapping[str, Sequence[str]],
        shape: Mapping[str, str],
        failures: Failures,
    ) -> None:
        self.slot, self.position, self.queries, self.shape = slot, position, queries, shape
        self.failures = failures

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
            failures = Failures.of_data(known.get("failures", {}))
            return cls(known["slot"], position_of(known["position"]), known["queries"], known["shape"], failures)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(
                "version",
                "directory",
                "{field} {given} follows another store than PostgreSQL, or was built by another hopfuse; build it anew",
                given=str(directory),
            ) from None

    def at(self, position: int, shape: Mapping[str, str], failures: Failures) -> FollowState:
        """Return the state at another position."""
        return FollowState(self.slot, position, self.queries, shape, failures)

    def reads(self, index: Index) -> bool:
        """Return whether readers made the graph, since the tables have only passages."""
        return index.graph is not None and not any(self.queries.get(name) for name in ("entities", "edges", "facts"))

    @property
    def text(self) -> str:
        """The state as an index stores it."""
        found: dict[str, Any] = {"store": STORE, "slot": self.slot, "position": position_text(self.position)}
        found |= {"queries": self.queries, "shape": self.shape}
        return json.dumps(found | ({"failures": self.failures.data()} if self.failures else {}), ensure_ascii=False)


def failures_of(index: Index) -> list[Failure]:
    """Return what an index that follows tables lacks of their rows; nothing for any other index.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.stores.postgres import failures_of
    >>> failures_of(hf.Index.build([{"text": "Ada wrote."}]))
    []
    """
    try:
        return [] if index.source is None else list(FollowState.of(index.source, Path()).failures)
    except InputError:  # it follows something else
        return []


@contextmanager
def followed(
    source: PostgresSource,
    slot: str,
    build: Callable[[PostgresSource], Index],
    failures: Callable[[], Iterable[Failure]] = tuple,
) -> Iterator[Index]:
    """Build an index that can be followed. The slot is created first, so that no change is missed.

    Save the index in the ``with`` block. If the build or the block fails, slot and publication are dropped.

    Parameters
    ----------
    source : PostgresSource
    slot : str
        Name of the new replication slot and publication.
    build : callable
        Builds the index of the source. Its readers make the graph if there is no query of edges.
    failures : callable, optional
        Called after the build: what the index lacks of the rows.

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
            state = FollowState(slot, position, source.queries, shape, Failures(failures()))
            KnownRows(index, reads=state.reads(index))
            yield index.with_source(state.text)
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
