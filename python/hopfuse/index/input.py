"""The arguments of Index.build as one object, and the tables that they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from .._validation import check_choice, check_excludes, check_length, check_list, check_needs, check_type
from ..encoders import open_encoder
from ..encoders.protocol import encodes_passages
from ..errors import InputError
from ..io.readers import read_batches
from ..io.source import EDGES, ENTITIES, PASSAGES, STATEMENTS, Source, stored_batches
from ..io.tables import Table
from ..types import Facts, Graph
from .contents import Contents
from .file.format import METRICS, STORAGES
from .left_out import LeftOut
from .spool import Buffer, Memory, Spool

#: What a reader makes, and what a store has itself.
_MADE = ("graph", "statements", "entities", "aliases", "facts", "words")
#: What gives an index vectors.
_VECTORS = ("vectors", "encoder", "entity_vectors")
#: Reads a table by its name in batches; None if there is no such table.
Read = Callable[[str], Iterator[Table] | None]


class Choice(NamedTuple):
    """An argument with few values, from which its check and its option of ``hopfuse build`` are made."""

    default: str
    allowed: tuple[str, ...]
    help: str
    others: str | tuple[str, ...]
    """Of which one must be given, in the command line."""
    reason: str
    """What it is to them: the end of a sentence."""
    of_table: bool = False
    """Whether it describes a table of the caller's, which readers and stores make themselves."""


#: The arguments with few values, by name.
CHOICES = {
    "fact_ends": Choice(
        "name",
        ("name", "node"),
        "What heads and tails of --facts are: names of entities, or nodes P .. N-1.",
        "facts",
        "whose heads and tails it describes",
        of_table=True,
    ),
    "metric": Choice("ip", METRICS, "Inner product or cosine.", _VECTORS, "which it describes"),
    "storage": Choice("float32", STORAGES, "Stored type of the vectors.", _VECTORS, "which it describes"),
}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Inputs:
    """The arguments of :meth:`hopfuse.Index.build`, which describes them."""

    passages: Any = None
    reader: Any = None
    language: Any = None
    lexical: Any = None
    synonyms: Any = None
    metadata_types: Any = None
    vectors: Any = None
    graph: Any = None
    statements: Any = None
    entities: Any = None
    aliases: Any = None
    entity_vectors: Any = None
    facts: Any = None
    fact_ends: Any = CHOICES["fact_ends"].default
    words: Any = None
    encoder: Any = None
    metric: Any = CHOICES["metric"].default
    storage: Any = CHOICES["storage"].default
    scratch: Any = None
    failed: Any = None
    left_out: Any = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Inputs:
        """Return checked arguments by name; an encoder that is given by its name is opened."""
        given = {one.name: arguments[one.name] for one in fields(cls)}
        if given["passages"] is None:
            raise InputError("missing", "passages", "there is nothing to build from: give {field}")
        if isinstance(given["encoder"], str):
            given["encoder"] = open_encoder(given["encoder"])
        made = cls(**given)
        made._check()
        return made

    @property
    def encodes_names(self) -> bool:
        """Whether ``entity_vectors`` is an encoder."""
        return encodes_passages(self.entity_vectors)

    @property
    def source(self) -> Source | None:
        """The store of which the index is built."""
        is_store = isinstance(self.passages, Source) and not isinstance(self.passages, Contents)
        return self.passages if is_store else None

    def of_passages(self, passages: Contents) -> Inputs:
        """Return the arguments with an index of the store's passages in place of the store."""
        return replace(self, passages=passages, metadata_types=None, scratch=None, left_out=None)

    def some(self, *names: str) -> dict[str, Any]:
        """Return some arguments by name."""
        return {name: getattr(self, name) for name in names}

    def _check(self) -> None:
        """Refuse arguments that do not go together, and options, before anything large is read."""
        made = self.some(*_MADE)
        for name, one in CHOICES.items():
            if one.of_table:
                made[name] = None if getattr(self, name) == one.default else getattr(self, name)
        made["entity_vectors"] = None if self.encodes_names else self.entity_vectors
        source = self.source
        check_needs("scratch", self.scratch, "passages", source, "a store, which needs temporary files")
        check_needs("left_out", self.left_out, "passages", source, "a store, whose rows it leaves out")
        if self.left_out is not None:
            check_type(self.left_out, "left_out", LeftOut, "a LeftOut")
        if self.reader is not None:
            _check_alone(made, "reader", "which makes its own")
            if source is not None:
                _check_alone({"vectors": self.vectors}, "passages", "a store, which provides it")
            return
        check_needs("language", self.language, "reader", None, "whose words it is for")
        check_needs("synonyms", self.synonyms, "reader", None, "which finds the names that it joins")
        if source is not None:
            _check_alone({"vectors": self.vectors, **made}, "passages", "a store, which provides it")
        elif self.encodes_names:
            check_needs("entity_vectors", self.entity_vectors, "entities", self.entities, "whose names it encodes")
        for name, one in CHOICES.items():
            check_choice(getattr(self, name), name, one.allowed)

    # ---- Tables ----

    @contextmanager
    def tables(self) -> Iterator[Read]:
        """Return a context that gives the tables ``passages``, ``entities``, ``edges`` and ``facts``.

        Raises
        ------
        StoreError
            The store fails.
        """
        if self.source is None:
            yield self._given
            return
        with self.source.snapshot() as snapshot:

            def stored(table: str) -> Iterator[Table] | None:
                batches = getattr(snapshot, table)()
                return None if batches is None else stored_batches(batches, table)

            yield stored

    def _given(self, table: str) -> Iterator[Table] | None:
        if table == "entities" and isinstance(self.entities, list | tuple):
            names = list(self.entities)
            if all(isinstance(name, str) for name in names):
                return iter([Table(table, {"name": names}, len(names), f"{table}[{{}}]".format)])
        given, spec = {
            "passages": (self.passages, PASSAGES),
            "entities": (self.entities, ENTITIES),
            "edges": (None if isinstance(self.graph, Graph) else self.graph, EDGES),
            "facts": (None if isinstance(self.facts, Facts) else self.facts, STATEMENTS),
        }[table]
        return None if given is None else read_batches(given, spec)

    @contextmanager
    def buffers(self) -> Iterator[Callable[[], Buffer]]:
        """Return a context that makes buffers: temporary files for a store, which may exceed memory."""
        with ExitStack() as stack:

            def make() -> Buffer:
                folder = None if self.scratch is None else Path(self.scratch)
                made = Memory() if self.source is None else Spool(folder)
                stack.callback(made.close)
                return made

            yield make


def _check_alone(given: Mapping[str, Any], other: str, reason: str) -> None:
    """Refuse arguments that are given beside another one."""
    for name, value in given.items():
        check_excludes(name, value, other, True, reason)


def rows_of_texts(texts: Any, ids: Any, titles: Any) -> list[dict[str, Any]]:
    """Return the rows of passages for the arguments of :meth:`hopfuse.Index.from_texts`."""
    listed = check_list(texts, "texts", "a list of strings, or of mappings with 'text'")
    rows = [{"text": text} if isinstance(text, str) else text for text in listed]
    for name, field, values in (("id", "ids", ids), ("title", "titles", titles)):
        if values is None:
            continue
        listed = check_list(values, field)
        check_length(len(listed), field, len(rows), "text")
        for at, row in enumerate(rows):
            if isinstance(row, Mapping):
                if name in row:
                    raise InputError(
                        "conflict",
                        f"texts[{at}]",
                        "{field} has {key} {given!r} of its own; leave {other:@} out",
                        key=name,
                        given=row[name],
                        other=field,
                    )
                rows[at] = {**row, name: listed[at]}
    return rows
