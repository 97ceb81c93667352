"""Sources of an index whose rows are in a database: a snapshot of it, as Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable


class Snapshot(Protocol):
    """A state of a store: each method returns record batches of pyarrow in the order of the rows, or None.

    All are of the same state, if the store can give one. Every call reads anew. Batches of one table have the same
    columns and types; one of no rows still says which. Values may be null where it is said.

    ============= ======================================================================================================
    passages      ``id`` (string or integer, distinct), ``text`` (string); optionally ``title`` (string or null),
                  ``vector`` (fixed-size list of float16, float32 or float64) and ``metadata`` (struct, map, a JSON
                  object as string, or null)
    entities      ``name`` (string, distinct); optionally ``vector`` and ``aliases`` (list of string, or null)
    edges         two ends: ``src_passage`` (an id) or ``src_entity`` (a name), ``dst_passage`` or ``dst_entity``;
                  optionally ``type`` (string), ``weight`` (number) and ``passage`` (the id of the one that states the
                  edge, or null). If both columns of an end are there, one of them is null in each row. Edges whose
                  ends have other columns come in batches of their own. Instead of ends there may be ``src`` and
                  ``dst``, nodes as in the files of :meth:`hopfuse.Index.build`.
    facts         ``head``, ``relation``, ``tail`` (strings; head and tail are names of entities), ``passage`` (an id)
    ============= ======================================================================================================

    A table that is None is not there: an index without edges has no graph. A table without rows is there, and takes
    rows later. Strings may be of any of Arrow's types of strings, integers of any width.
    """

    def passages(self) -> Iterable[Any] | None:
        """Return the passages; None is refused."""
        ...

    def entities(self) -> Iterable[Any] | None:
        """Return the entities."""
        ...

    def edges(self) -> Iterable[Any] | None:
        """Return the edges, which have no direction."""
        ...

    def facts(self) -> Iterable[Any] | None:
        """Return the statements of facts."""
        ...


@runtime_checkable
class Source(Protocol):
    """A store to build an index from: :meth:`hopfuse.Index.build` and ``hopfuse build --from`` take it.

    Examples
    --------
    >>> from hopfuse.io.source import Source
    >>> from hopfuse.stores import ArrowSource
    >>> isinstance(ArrowSource(passages=[]), Source)
    True
    """

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Return the state of the store that its ``with`` block reads.

        Raises
        ------
        StoreError
            The store cannot be reached, or fails; the message says which, and the fix.
        """
        ...
