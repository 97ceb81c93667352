"""Read a source batch by batch into the parts of an index; texts and vectors go through temporary files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..io import tables
from ..io.source import Source
from ..io.tables import Table
from ..types import Corpus
from ..types.corpus import Metric, Storage, refusal
from .arrow_columns import Rows, arrow, first_repeated, joined, own_copy, string_parts
from .parts.metadata_build import check_types, metadata_arrays
from .parts.passages import LABELS, Label, coded_arrays
from .source_links import Nodes, read_edges, read_facts
from .spool import Spool

Arrays = dict[str, NDArray[Any]]


class ReadSource(NamedTuple):
    """The tables of a source, as :func:`hopfuse.index.build.build_parts` takes them."""

    arrays: Arrays
    """The sections ``passage.*`` except vectors, and ``metadata.*``."""
    corpus: Corpus | None
    entities: list[str] | None
    aliases: dict[int, list[str]]
    entity_corpus: Corpus | None
    edges: Table | None
    facts: Table | None


def read_source(
    source: Source, *, metadata_types: Any, metric: Metric, storage: Storage, scratch: Path | None
) -> ReadSource:
    """Read one snapshot of a source.

    Raises
    ------
    InputError
        A row that :class:`hopfuse.io.source.Snapshot` does not allow; the message names table, row and column.
    StoreError
        The store fails.
    OSError
        The disk has no room for the texts and vectors.
    """
    with source.snapshot() as snapshot:
        passage_batches = snapshot.passages()
        if passage_batches is None:
            raise InputError(
                "missing",
                "passages",
                "{field} is a store without a table of passages; an index needs one, even without rows",
            )
        passages = _Passages(metric, storage, scratch)
        names: list[str] | None = None
        aliases: dict[int, list[str]] = {}
        entity_corpus = None
        edges = facts = None
        try:
            for rows in _rows(passage_batches, "passages"):
                passages.add(rows)
            ids = passages.ids()
            entity_batches = snapshot.entities()
            if entity_batches is not None:
                names, aliases, entity_corpus = _entities(_rows(entity_batches, "entities"), metric, storage, scratch)
            edge_batches = snapshot.edges()
            if edge_batches is not None:
                edges = read_edges(_rows(edge_batches, "edges"), Nodes(ids, names or []))
            fact_batches = snapshot.facts()
            if fact_batches is not None:
                facts = read_facts(_rows(fact_batches, "facts"), Nodes(ids, []))
            return ReadSource(
                passages.arrays(metadata_types), passages.vectors.corpus(), names, aliases, entity_corpus, edges, facts
            )
        finally:
            passages.close()


def _rows(batches: Iterable[Any], what: str) -> Iterator[Rows]:
    """Yield batches, each with the number of its first row in the table."""
    first = 0
    for batch in batches:
        rows = Rows(batch, what, first)
        yield rows
        first += len(rows)


class _Vectors:
    """Vectors that are checked batch by batch and written to a temporary file."""

    def __init__(self, metric: Metric, storage: Storage, scratch: Path | None) -> None:
        self._metric, self._storage, self._scratch = metric, storage, scratch
        self._spool: Spool | None = None
        self._dim: int | None = None
        self._dtype: np.dtype[Any] | None = None
        self._count = 0

    def add(self, rows: Rows) -> None:
        """Check the vectors of a batch, round them to the storage type, and write them."""
        if (self._spool is None) != ("vector" not in rows.names) and rows.first:
            raise InputError(
                "conflict",
                "vector",
                "a batch with other columns begins here; all batches of a table must have the same",
            ).at(rows.where(0))
        if "vector" not in rows.names:
            return
        values = rows.vectors("vector", self._dim)
        if self._spool is None:
            self._spool = Spool(self._scratch)
        if not len(rows) and not values.shape[1]:
            return
        if self._dtype is not None and self._storage == "int8":
            values = values.astype(self._dtype, copy=False)  # the precision of the first batch
        made = Corpus.unchecked(np.ascontiguousarray(values), metric=self._metric, storage=self._storage)
        wrong = made.unscorable()
        if wrong is not None:
            raise refusal(wrong, rows.label("vector")).at(rows.where(wrong.row))
        self._dim, self._dtype = made.dim, made.vectors.dtype
        self._spool.append(made.vectors)
        self._count += len(rows)

    def corpus(self) -> Corpus | None:
        """Return the vectors, memory-mapped, or None if there are none."""
        if self._spool is None:
            return None
        if self._dim is None or self._dtype is None:
            self._spool.close()
            return None
        vectors = self._spool.mapped(self._dtype, (self._count, self._dim))
        return Corpus(vectors, self._metric, self._storage)

    def close(self) -> None:
        """Close the file, if it is not mapped."""
        if self._spool is not None:
            self._spool.close()


class _Passages:
    """The columns of passages; texts, titles and vectors go to temporary files."""

    def __init__(self, metric: Metric, storage: Storage, scratch: Path | None) -> None:
        self.vectors = _Vectors(metric, storage, scratch)
        self._texts, self._titles = Spool(scratch), Spool(scratch)
        self._lengths: dict[str, list[NDArray[Any]]] = {"text": [], "title": [], "words": []}
        self._ids: list[Any] = []
        self._labels = {label: _Labels(label) for label in LABELS}
        self._metadata: list[Any] | None = None
        self._kinds: dict[str, str] = {}
        self._joined: Any = None
        self._count = 0

    def add(self, rows: Rows) -> None:
        """Check a batch and keep it."""
        rows.check_names(("id", "text"), ("title", "document", "language", "vector", "metadata"))
        ids = rows.keys("id")
        if ids.null_count:
            rows.refuse(int(np.flatnonzero(ids.is_null())[0]), "id", None, "a string or an integer of 64 bits")
        if self._ids and ids.type != self._ids[0].type and len(rows):
            raise InputError(
                "type",
                "id",
                "the id {given!r} and that of row 0 are of two types; ids must be all strings or all integers: convert "
                "them",
                given=ids[0].as_py(),
            ).at(rows.where(0))
        self._ids.append(own_copy(ids))
        texts = rows.strings("text")
        lengths, data = string_parts(texts)
        self._texts.append(data)
        self._lengths["text"].append(lengths)
        self._lengths["words"].append(np.array([len(text.split()) for text in texts.to_pylist()], np.int32))
        lengths = np.zeros(len(rows), np.int64)
        if "title" in rows.names:
            lengths, data = string_parts(rows.strings("title", default=""))
            self._titles.append(data)
        self._lengths["title"].append(lengths)
        for labels in self._labels.values():
            labels.add(rows)
        self._add_metadata(rows)
        self.vectors.add(rows)
        self._count += len(rows)

    def _add_metadata(self, rows: Rows) -> None:
        if "metadata" in rows.names:
            self._kinds |= _kinds_of(rows.column("metadata").type)
            own = Table(rows.what, {"metadata": rows.column("metadata").to_pylist()}, len(rows), rows.where)
            values = [dict(row) if isinstance(row, list) else row for row in own.columns["metadata"]]  # a map
            own = Table(rows.what, {"metadata": values}, len(rows), rows.where)
            self._metadata = [None] * rows.first if self._metadata is None else self._metadata
            self._metadata += tables.objects(own, "metadata")
        elif self._metadata is not None:
            self._metadata += [None] * len(rows)

    def ids(self) -> Any:
        """Return the ids of all batches as one Arrow column."""
        if not self._ids:
            raise InputError(
                "missing", "passages", "{field} has no batch; give one without rows, which states the columns"
            )
        kind = next((ids.type for ids in self._ids if len(ids)), self._ids[0].type)
        self._joined = joined([ids for ids in self._ids if ids.type == kind])
        repeated = first_repeated(self._joined)
        if repeated is not None:
            row, earlier = repeated
            raise InputError(
                "duplicate",
                "id",
                "the id {given!r} is also that of row {earlier}; ids must be distinct: SELECT DISTINCT ON (id), or use "
                "another column",
                given=self._joined[row].as_py(),
                earlier=earlier,
            ).at(f"passages row {row}")
        self._ids = []
        return self._joined

    def arrays(self, metadata_types: Any) -> Arrays:
        """Return the sections."""
        made: Arrays = {}
        if arrow().types.is_integer(self._joined.type) or not len(self._joined):
            made["passage.id.number"] = np.asarray(self._joined.to_numpy(zero_copy_only=False), np.int64).copy()
        else:
            lengths, data = string_parts(self._joined)
            made |= {"passage.id.offsets": _offsets([lengths]), "passage.id.bytes": data.copy()}
        for name, spool in (("title", self._titles), ("text", self._texts)):
            offsets = _offsets(self._lengths[name])
            made[f"passage.{name}.offsets"] = offsets
            made[f"passage.{name}.bytes"] = spool.mapped(np.uint8, (int(offsets[-1]),))
        made["passage.length"] = np.concatenate([np.zeros(0, np.int32), *self._lengths["words"]])
        for labels in self._labels.values():
            made |= labels.arrays()
        rows = [None] * self._count if self._metadata is None else self._metadata
        return made | metadata_arrays(rows, self._types(metadata_types), lambda row: f"passages row {row}")

    def _types(self, given: Any) -> dict[str, str]:
        """Return the types of metadata columns: the given ones, and Arrow's types for columns without values."""
        used = {name for row in self._metadata or () for name, value in (row or {}).items() if value is not None}
        known = {name: kind for name, kind in self._kinds.items() if name not in used}
        return {**check_types(given), **{name: kind for name, kind in known.items() if name not in (given or {})}}

    def close(self) -> None:
        """Close the files that are not mapped."""
        for one in (self._texts, self._titles, self.vectors):
            one.close()


class _Labels:
    """The documents or the languages of passages, as numbers of distinct ones."""

    def __init__(self, label: Label) -> None:
        self._label = label
        self._codes: list[NDArray[np.int32]] = []
        self._number: dict[str | int, int] = {}

    def add(self, rows: Rows) -> None:
        """Check the labels of a batch and keep them."""
        name = self._label.what
        if name not in rows.names:
            self._codes.append(np.full(len(rows), -1, np.int32))
            return
        coded = rows.keys(name).dictionary_encode()
        codes = np.asarray(coded.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
        given = coded.dictionary.to_pylist()
        first = {code: row for row, code in reversed(list(enumerate(codes.tolist())))} if given else {}
        known = Table(name, {name: given}, len(given), lambda at: f"{rows.where(first[at])}: {rows.label(name)}")
        values = self._label.read(known, name)
        numbers = [-1 if value is None else self._number.setdefault(value, len(self._number)) for value in values]
        self._codes.append(np.array([*numbers, -1], np.int32)[codes])
        if len({type(value) for value in self._number}) > 1:
            raise InputError(
                "type",
                name,
                "a batch with {column!r} of another type begins here; all must be strings, or integers: convert one",
                column=rows.label(name),
            ).at(rows.where(0))

    def arrays(self) -> Arrays:
        """Return the sections."""
        return coded_arrays(self._label, np.concatenate([np.zeros(0, np.int32), *self._codes]), list(self._number))


def _kinds_of(kind: Any) -> dict[str, str]:
    """Return the metadata types of a struct's fields, for the Arrow types that have one."""
    types = arrow().types
    checks: dict[str, Callable[[Any], bool]] = {
        "bool": types.is_boolean,
        "int64": types.is_integer,
        "float64": types.is_floating,
        "string": lambda one: types.is_string(one) or types.is_large_string(one),
        "timestamp": types.is_timestamp,
        "strings": lambda one: types.is_list(one) and types.is_string(one.value_type),
    }
    fields = kind if types.is_struct(kind) else ()
    return {field.name: name for field in fields for name, check in checks.items() if check(field.type)}


def _entities(
    batches: Iterable[Rows], metric: Metric, storage: Storage, scratch: Path | None
) -> tuple[list[str], dict[int, list[str]], Corpus | None]:
    vectors = _Vectors(metric, storage, scratch)
    columns: list[Any] = []
    aliases: dict[int, list[str]] = {}
    try:
        for rows in batches:
            rows.check_names(("name",), ("vector", "aliases"))
            columns.append(own_copy(rows.strings("name")))
            vectors.add(rows)
            if "aliases" in rows.names:
                for row, own in enumerate(rows.column("aliases").to_pylist()):
                    if own is None:
                        continue
                    if not isinstance(own, list) or not all(isinstance(alias, str) for alias in own):
                        rows.refuse(row, "aliases", own, "a list of strings")
                    aliases[rows.first + row] = own
        names = joined(columns) if columns else None
        repeated = None if names is None else first_repeated(names)
        if names is not None and repeated is not None:
            row, earlier = repeated
            raise InputError(
                "duplicate",
                "name",
                "the name {given!r} is also that of row {earlier}; edges and facts refer to entities by name, so names "
                "must be distinct",
                given=names[row].as_py(),
                earlier=earlier,
            ).at(f"entities row {row}")
        return [] if names is None else names.to_pylist(), aliases, vectors.corpus()
    finally:
        vectors.close()


def _offsets(lengths: list[NDArray[Any]]) -> NDArray[np.int64]:
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]), dtype=np.int64)
