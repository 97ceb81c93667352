"""The protocol by which a database provides the rows of an index, as Arrow record batches of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable


class Snapshot(Protocol):
    """A state of a store. Each method returns pyarrow record batches in the order of the rows, or None.

    All tables are from the same state, if the store supports that. Every call reads again. Read a table to its end
    before the next, since a store may have a single connection. All batches of a table have the same columns and types,
    which an empty batch states too. Values may be null only where noted.

    ============= ======================================================================================================
    passages      ``id`` (string or integer, distinct), ``text`` (string); optionally ``title`` (string or null),
                  ``document`` (string, integer or null), ``language`` (a BCP 47 tag, or null), ``vector`` (fixed-size
                  list of float16, float32 or float64) and ``metadata`` (struct, map, a JSON object as string, or null)
    entities      ``name`` (string, distinct); optionally ``vector`` and ``aliases`` (list of string, or null)
    edges         two ends: ``src_passage`` (an id) or ``src_entity`` (a name), ``dst_passage`` or ``dst_entity``;
                  optionally ``type`` (string), ``weight`` (number) and ``passage`` (the id of the passage that states
                  the edge, or null). If a batch has both columns of an end, one of them is null in each row. Batches
                  may differ in the columns of their ends. Instead, a batch may have ``src`` and ``dst``, nodes as in
                  the files of :meth:`hopfuse.Index.build`.
    facts         ``head``, ``relation``, ``tail`` (strings; head and tail are names of entities), ``passage`` (an id)
    ============= ======================================================================================================

    None means that there is no such table: an index without a table of edges has no graph. A table without rows exists,
    and can take rows later. Any of Arrow's string types and integer widths is allowed.
    """

    def passages(self) -> Iterable[Any] | None:
        """Return the passages, which must not be None."""
        ...

    def entities(self) -> Iterable[Any] | None:
        """Return the entities."""
        ...

    def edges(self) -> Iterable[Any] | None:
        """Return the edges, which are undirected."""
        ...

    def facts(self) -> Iterable[Any] | None:
        """Return the statements of facts."""
        ...


@runtime_checkable
class Source(Protocol):
    """A store that :meth:`hopfuse.Index.build` and ``hopfuse build --from`` can build an index from.

    A source gives snapshots only. PostgreSQL is the one store whose changes are followed
    (:class:`hopfuse.stores.postgres.PostgresFollower`, ``hopfuse follow``); an index of any other is built anew.

    Examples
    --------
    >>> from hopfuse.io.source import Source
    >>> from hopfuse.stores import ArrowSource
    >>> isinstance(ArrowSource(passages=[]), Source)
    True
    """

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Return a context manager for a snapshot of the store.

        Raises
        ------
        StoreError
            The store cannot be reached, or fails; the message states the cause and the fix.
        """
        ...
