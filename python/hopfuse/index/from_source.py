"""Read a source into what an index is built from: texts and vectors by way of temporary files, batch by batch."""

from __future__ import annotations

import re
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
from ..types.corpus import Metric, Storage
from ..types.edge_statements import NO_PASSAGE, UNKNOWN
from .arrow_columns import Rows, arrow, first_repeated, joined, own_copy, string_parts
from .metadata_build import check_types, metadata_arrays
from .spool import Spool

Arrays = dict[str, NDArray[Any]]

#: The type of edges in batches without types, beside others with types; Graph.from_edges calls it so, too.
UNTYPED = "edge"
_ENDS = ("src_passage", "src_entity", "dst_passage", "dst_entity")


class ReadSource(NamedTuple):
    """The tables of a source, as :func:`hopfuse.index.build.build_parts` takes them."""

    arrays: Arrays
    """The sections ``passage.*`` but for vectors, and ``metadata.*``."""
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
        given = snapshot.passages()
        if given is None:
            raise InputError("the source has no passages; an index needs them, if only a table without rows")
        passages = _Passages(metric, storage, scratch)
        names: list[str] | None = None
        aliases: dict[int, list[str]] = {}
        entity_corpus = None
        edges = facts = None
        try:
            for rows in _rows(given, "passages"):
                passages.add(rows)
            ids = passages.ids()
            listed = snapshot.entities()
            if listed is not None:
                names, aliases, entity_corpus = _entities(_rows(listed, "entities"), metric, storage, scratch)
            stated = snapshot.edges()
            if stated is not None:
                edges = _edges(_rows(stated, "edges"), _Nodes(ids, names or []))
            told = snapshot.facts()
            if told is not None:
                facts = _facts(_rows(told, "facts"), _Nodes(ids, []))
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
    """Vectors on their way into a file, checked batch by batch."""

    def __init__(self, what: str, metric: Metric, storage: Storage, scratch: Path | None) -> None:
        self._what, self._metric, self._storage = what, metric, storage
        self._scratch = scratch
        self._spool: Spool | None = None
        self._dim: int | None = None
        self._dtype: np.dtype[Any] | None = None
        self._count = 0

    def add(self, rows: Rows) -> None:
        """Check the vectors of a batch, round them to the storage, and write them."""
        if (self._spool is None) != ("vector" not in rows.names) and rows.first:
            raise InputError(f"{rows.where(0)} begins a batch with other columns; give all batches of a table the same")
        if "vector" not in rows.names:
            return
        values = rows.vectors("vector", self._dim)
        if self._spool is None:
            self._spool = Spool(self._scratch)
        if not len(rows) and not values.shape[1]:
            return
        if self._dtype is not None and self._storage == "int8":
            values = values.astype(self._dtype, copy=False)  # the precision of the first batch
        try:
            made = Corpus.unchecked(np.ascontiguousarray(values), metric=self._metric, storage=self._storage).checked()
        except InputError as error:
            found = re.match(r"row (\d+) of X (.*)", str(error))
            where = rows.where(int(found[1])) if found else f"{self._what} from row {rows.first} on"
            raise InputError(f"{where}: {rows.label('vector')} {found[2] if found else error}") from None
        self._dim, self._dtype = made.dim, made.vectors.dtype
        self._spool.append(made.vectors)
        self._count += len(rows)

    def corpus(self) -> Corpus | None:
        """Return the vectors, mapped; None where there are none."""
        if self._spool is None:
            return None
        if self._dim is None or self._dtype is None:
            self._spool.close()
            return None
        vectors = self._spool.mapped(self._dtype, (self._count, self._dim))
        return Corpus(vectors, self._metric, self._storage)

    def close(self) -> None:
        """Let go of the file, if it is not mapped."""
        if self._spool is not None:
            self._spool.close()


class _Passages:
    """The columns of passages, the long ones on their way into files."""

    def __init__(self, metric: Metric, storage: Storage, scratch: Path | None) -> None:
        self.vectors = _Vectors("passages", metric, storage, scratch)
        self._texts, self._titles = Spool(scratch), Spool(scratch)
        self._lengths: dict[str, list[NDArray[Any]]] = {"text": [], "title": [], "words": []}
        self._ids: list[Any] = []
        self._metadata: list[Any] | None = None
        self._kinds: dict[str, str] = {}
        self._joined: Any = None
        self._count = 0

    def add(self, rows: Rows) -> None:
        """Check a batch, and keep it."""
        rows.check_names(("id", "text"), ("title", "vector", "metadata"))
        ids = rows.keys("id")
        if ids.null_count:
            rows.refuse(int(np.flatnonzero(ids.is_null())[0]), "id", None, "a string or an integer of 64 bits")
        if self._ids and ids.type != self._ids[0].type and len(rows):
            raise InputError(
                f"{rows.where(0)} has the id {ids[0].as_py()!r}, row 0 has one of another type; ids are all strings or "
                "all integers: convert one kind"
            )
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
        """Return the ids as one column of Arrow, once all batches are there."""
        if not self._ids:
            raise InputError("passages have no batch; give one without rows, which says the columns")
        kind = next((ids.type for ids in self._ids if len(ids)), self._ids[0].type)
        self._joined = joined([ids for ids in self._ids if ids.type == kind])
        repeated = first_repeated(self._joined)
        if repeated is not None:
            row, earlier = repeated
            raise InputError(
                f"passages row {row}: id {self._joined[row].as_py()!r} is also that of passages row {earlier}; ids are "
                "distinct: SELECT DISTINCT ON (id), or another column"
            )
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
        rows = [None] * self._count if self._metadata is None else self._metadata
        return made | metadata_arrays(rows, self._types(metadata_types), lambda row: f"passages row {row}")

    def _types(self, given: Any) -> dict[str, str]:
        """Return the types of columns of the metadata: those that are given, and of those without values Arrow's."""
        used = {name for row in self._metadata or () for name, value in (row or {}).items() if value is not None}
        known = {name: kind for name, kind in self._kinds.items() if name not in used}
        return {**check_types(given), **{name: kind for name, kind in known.items() if name not in (given or {})}}

    def close(self) -> None:
        """Let go of files that are not mapped."""
        for one in (self._texts, self._titles, self.vectors):
            one.close()


def _kinds_of(kind: Any) -> dict[str, str]:
    """Return the types of metadata of a struct's fields, as far as Arrow's types say them."""
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
    vectors = _Vectors("entities", metric, storage, scratch)
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
                f"entities row {row}: name {names[row].as_py()!r} is also that of entities row {earlier}; edges and "
                "facts name entities, so names are distinct"
            )
        return [] if names is None else names.to_pylist(), aliases, vectors.corpus()
    finally:
        vectors.close()


class _Nodes:
    """Rows of passages by id, and nodes of entities by name."""

    def __init__(self, ids: Any, names: list[str]) -> None:
        self._ids, self.num_passages = ids, len(ids)
        self._names = arrow().array(names, arrow().large_string())

    def passages(self, rows: Rows, name: str) -> NDArray[np.int64]:
        """Return the row of each passage of a column; -1 for a null."""
        keys = rows.keys(name)
        if not len(self._ids):
            keys = keys.cast(self._ids.type) if not len(keys.drop_null()) else keys
        if keys.type != self._ids.type and len(keys.drop_null()):
            raise InputError(
                f"{rows.what} has {name!r} of the type {keys.type}, ids of passages are {self._ids.type}; convert one"
            )
        return self._found(rows, name, keys, self._ids, "the id of no passage")

    def entities(self, rows: Rows, name: str) -> NDArray[np.int64]:
        """Return the node of each entity of a column; -1 for a null."""
        found = self._found(rows, name, rows.keys(name), self._names, "the name of no entity, letter by letter")
        return np.where(found < 0, found, found + self.num_passages)

    def _found(self, rows: Rows, name: str, keys: Any, known: Any, wrong: str) -> NDArray[np.int64]:
        pa = arrow()
        if keys.type != known.type:
            if len(keys.drop_null()):
                row = int(np.flatnonzero(keys.is_valid())[0])
                raise InputError(f"{rows.where(row)} has {name} = {keys[row].as_py()!r}, {wrong}")
            return np.full(len(rows), -1, np.int64)
        place = pa.compute.index_in(keys, value_set=known)
        found = np.asarray(pa.compute.fill_null(place, -1).to_numpy(zero_copy_only=False), np.int64)
        unknown = np.flatnonzero((found < 0) & np.asarray(keys.is_valid()))
        if unknown.size:
            row = int(unknown[0])
            raise InputError(
                f"{rows.where(row)} has {name} = {keys[row].as_py()!r}, {wrong}; leave the row out, or add "
                "what it names"
            )
        return found


def _edges(batches: Iterable[Rows], nodes: _Nodes) -> Table:
    src: list[NDArray[np.int64]] = []
    dst: list[NDArray[np.int64]] = []
    types: list[list[str] | None] = []
    weights: list[NDArray[np.float64] | None] = []
    stated: list[NDArray[np.int64] | None] = []
    counts: list[int] = []
    for rows in batches:
        if "src" in rows.names or "dst" in rows.names:
            rows.check_names(("src", "dst"), ("type", "weight", "passage"))
            ends = [_integers(rows, name) for name in ("src", "dst")]
            passage = _integers(rows, "passage") if "passage" in rows.names else None
            if passage is not None and (passage < NO_PASSAGE).any():
                row = int(np.flatnonzero(passage < NO_PASSAGE)[0])
                rows.refuse(row, "passage", passage[row], "a row of the passages, -1 or null")
        else:
            rows.check_names((), (*_ENDS, "type", "weight", "passage"))
            ends = [_end(rows, side, nodes) for side in ("src", "dst")]
            passage = nodes.passages(rows, "passage") if "passage" in rows.names else None
        src.append(ends[0])
        dst.append(ends[1])
        types.append(_shared(rows.strings("type")) if "type" in rows.names else None)
        weights.append(_weights(rows) if "weight" in rows.names else None)
        stated.append(passage)
        counts.append(len(rows))
    columns: dict[str, Any] = {"src": _concatenated(src), "dst": _concatenated(dst)}
    if any(types):
        columns["type"] = [name for own, count in zip(types, counts, strict=True) for name in own or [UNTYPED] * count]
    if any(one is not None for one in weights):
        columns["weight"] = np.concatenate(
            [np.ones(count) if own is None else own for own, count in zip(weights, counts, strict=True)]
        )
    if any(one is not None for one in stated):
        between = [(a >= nodes.num_passages) & (b >= nodes.num_passages) for a, b in zip(src, dst, strict=True)]
        columns["passage"] = np.concatenate(
            [
                np.where(entities, UNKNOWN, NO_PASSAGE) if own is None else own
                for own, entities in zip(stated, between, strict=True)
            ]
        ).tolist()
    return Table("edges", columns, sum(counts), lambda row: f"edges row {row}")


def _end(rows: Rows, side: str, nodes: _Nodes) -> NDArray[np.int64]:
    """Return the nodes of one end of the edges."""
    passage, entity = f"{side}_passage", f"{side}_entity"
    find: dict[str, Callable[[Rows, str], NDArray[np.int64]]] = {passage: nodes.passages, entity: nodes.entities}
    found = [find[name](rows, name) for name in (passage, entity) if name in rows.names]
    if not found:
        raise InputError(
            f"edges have the columns {rows.names}; each end needs {passage!r}, an id, or {entity!r}, a name: call "
            f"it so (AS {passage})"
        )
    given = np.sum([one >= 0 for one in found], axis=0)
    wrong = np.flatnonzero(given != 1)
    if wrong.size:
        row = int(wrong[0])
        has = f"both {passage} and {entity}" if given[row] else f"no {passage if passage in rows.names else entity}"
        raise InputError(f"{rows.where(row)} has {has}; each end is a passage or an entity: leave the row out")
    return found[0] if len(found) == 1 else np.maximum(found[0], found[1])


def _facts(batches: Iterable[Rows], nodes: _Nodes) -> Table:
    columns: dict[str, list[Any]] = {"head": [], "relation": [], "tail": []}
    passages: list[NDArray[np.int64]] = []
    count = 0
    for rows in batches:
        rows.check_names(("head", "relation", "tail", "passage"), ())
        for name, own in columns.items():
            own += _shared(rows.strings(name))
        found = nodes.passages(rows, "passage")
        if (found < 0).any():
            rows.refuse(int(np.flatnonzero(found < 0)[0]), "passage", None, "the id of the passage that states it")
        passages.append(found)
        count += len(rows)
    return Table("facts", {**columns, "passage": _concatenated(passages)}, count, lambda row: f"facts row {row}")


def _shared(column: Any) -> list[str]:
    """Return strings of which equal ones are one object."""
    coded = column.dictionary_encode()
    names = np.array([*coded.dictionary.to_pylist(), None], object)[:-1]
    shared: list[str] = names[coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)].tolist()
    return shared


def _weights(rows: Rows) -> NDArray[np.float64]:
    column = rows.column("weight")
    own = tables.weights(Table(rows.what, {"weight": _values(column)}, len(rows), rows.where), "weight")
    assert own is not None
    return own.copy()  # of a batch that is let go


def _integers(rows: Rows, name: str) -> NDArray[np.int64]:
    own = Table(rows.what, {name: _values(rows.column(name))}, len(rows), rows.where)
    given = tables.integers_or_none(own, name)
    return np.array([NO_PASSAGE if one is None else one for one in given], np.int64)


def _values(column: Any) -> Any:
    types = arrow().types
    number = types.is_integer(column.type) or types.is_floating(column.type)
    return column.to_numpy(zero_copy_only=False) if number and column.null_count == 0 else column.to_pylist()


def _concatenated(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _offsets(lengths: list[NDArray[Any]]) -> NDArray[np.int64]:
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]), dtype=np.int64)
