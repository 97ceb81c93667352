"""The tables of an index, from files or from a database, which gives them as Arrow record batches of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from .readers import of_batch
from .tables import Spec, Table, check_columns

#: BEIR's name of the column of ids.
_BEIR = {"_id": "id"}
#: Where the other columns of passages belong.
METADATA_ADVICE = "what filters name belongs under 'metadata', such as {'metadata': {'user': 'ada'}}"
PASSAGES = Spec(
    "passages",
    ("text",),
    ("title", "id", "document", "language", "metadata"),
    ("id", "text", "title"),
    others=True,
    aliases=_BEIR,
    ignored=("position",),
    advice=METADATA_ADVICE,
)
#: Passages for a reader, which joins those that follow each other.
ORDERED = replace(PASSAGES, optional=(*PASSAGES.optional, "position"), ignored=())
METADATA = Spec(
    "metadata",
    ("metadata",),
    ("id",),
    ("id", "metadata"),
    others=True,
    aliases=_BEIR,
    ignored=("text", "title", "document", "language", "position"),
    advice=METADATA_ADVICE,
)
ENTITIES = Spec("entities", ("name",), ("stated",), ("name",), others=True)
EDGES = Spec(
    "graph", ("src", "dst"), ("type", "weight", "passage"), ("src", "dst", "type", "weight", "passage"), others=False
)
STATEMENTS = Spec(
    "facts", ("head", "relation", "tail", "passage"), (), ("head", "relation", "tail", "passage"), others=False
)

#: The tables of a snapshot.
STORED = {
    "passages": Spec(
        "passages",
        ("id", "text"),
        ("title", "document", "language", "vector", "metadata"),
        (),
        others=False,
        stated=True,
        key="id",
        advice=METADATA_ADVICE,
    ),
    "entities": Spec("entities", ("name",), ("vector", "aliases"), (), others=False, stated=True, key="name"),
    "edges": Spec(
        "edges",
        (),
        ("src_passage", "src_entity", "dst_passage", "dst_entity", "type", "weight", "passage"),
        (),
        others=False,
        stated=True,
    ),
    "facts": replace(STATEMENTS, stated=True),
}
#: Edges of a snapshot between nodes.
_NODE_EDGES = replace(EDGES, what="edges", stated=True)


class Snapshot(Protocol):
    """A state of a store. Each method returns pyarrow record batches in the order of the rows, or None.

    All tables are from the same state, if the store supports that. Every call reads again. Read a table to its end
    before the next, since a store may have a single connection. All batches of a table have the same columns and types,
    which even an empty batch states. Values may be null only where noted.

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


def stored_batches(batches: Iterable[Any], table: str) -> Iterator[Table]:
    """Yield the record batches of a table of a snapshot; an error names a row by its number and its id or name."""
    first = 0
    for batch in batches:
        names = list(batch.schema.names)
        spec = _NODE_EDGES if table == "edges" and {"src", "dst"} & set(names) else STORED[table]
        check_columns(names, table, spec.required, spec.known, others=False, advice=spec.advice)
        own = {one.name: one.metadata[b"column"].decode() for one in batch.schema if b"column" in (one.metadata or {})}
        yield replace(of_batch(batch, spec, first, f"{table} row {{}}".format, names), labels=own)
        first += batch.num_rows
