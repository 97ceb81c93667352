"""Read the edges and facts of a source, which name passages by ids and entities by names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..io import tables
from ..io.tables import Table
from ..types.edge_statements import NO_PASSAGE, UNKNOWN
from .arrow_columns import Rows, arrow

#: The type of edges in batches without types, if other batches have types; also the default of Graph.from_edges.
UNTYPED = "edge"
_ENDS = ("src_passage", "src_entity", "dst_passage", "dst_entity")


class Nodes:
    """Find the rows of passages by id, and the nodes of entities by name."""

    def __init__(self, ids: Any, names: list[str]) -> None:
        self._ids, self.num_passages = ids, len(ids)
        self._names = arrow().array(names, arrow().large_string())

    def passages(self, rows: Rows, name: str) -> NDArray[np.int64]:
        """Return the row of each passage in a column; -1 for a null."""
        keys = rows.keys(name)
        if not len(self._ids):
            keys = keys.cast(self._ids.type) if not len(keys.drop_null()) else keys
        if keys.type != self._ids.type and len(keys.drop_null()):
            raise InputError(
                "type",
                name,
                "the column {column!r} has the type {given}, and the ids of passages have {allowed}; convert one",
                column=name,
                given=keys.type,
                allowed=self._ids.type,
            ).at(rows.what)
        return self._found(rows, name, keys, self._ids, "the id of a passage")

    def entities(self, rows: Rows, name: str) -> NDArray[np.int64]:
        """Return the node of each entity in a column; -1 for a null."""
        found = self._found(rows, name, rows.keys(name), self._names, "the exact name of an entity")
        return np.where(found < 0, found, found + self.num_passages)

    def _found(self, rows: Rows, name: str, keys: Any, known: Any, allowed: str) -> NDArray[np.int64]:
        pa = arrow()
        if keys.type != known.type:
            if len(keys.drop_null()):
                row = int(np.flatnonzero(keys.is_valid())[0])
                rows.refuse(row, name, keys[row].as_py(), allowed, "unknown")
            return np.full(len(rows), -1, np.int64)
        place = pa.compute.index_in(keys, value_set=known)
        found = np.asarray(pa.compute.fill_null(place, -1).to_numpy(zero_copy_only=False), np.int64)
        unknown = np.flatnonzero((found < 0) & np.asarray(keys.is_valid()))
        if unknown.size:
            row = int(unknown[0])
            rows.refuse(row, name, keys[row].as_py(), f"{allowed}: leave the row out, or add it", "unknown")
        return found


def read_edges(batches: Iterable[Rows], nodes: Nodes) -> Table:
    """Return the edges of a source as a table by nodes, with the passages that state them."""
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
        types.append(_shared_strings(rows.strings("type")) if "type" in rows.names else None)
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


def _end(rows: Rows, side: str, nodes: Nodes) -> NDArray[np.int64]:
    """Return the nodes of one end of the edges."""
    passage, entity = f"{side}_passage", f"{side}_entity"
    find: dict[str, Callable[[Rows, str], NDArray[np.int64]]] = {passage: nodes.passages, entity: nodes.entities}
    found = [find[name](rows, name) for name in (passage, entity) if name in rows.names]
    if not found:
        raise InputError(
            "missing",
            passage,
            "the columns are {given}; each end needs {passage!r} (an id) or {entity!r} (a name): rename the column (AS "
            "{passage})",
            given=rows.names,
            passage=passage,
            entity=entity,
        ).at("edges")
    given = np.sum([one >= 0 for one in found], axis=0)
    wrong = np.flatnonzero(given != 1)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            "conflict" if given[row] else "missing",
            passage if passage in rows.names else entity,
            "the row has {given} of {passage!r} and {entity!r}; each end is one of them: leave the row out",
            given="both" if given[row] else "none",
            passage=passage,
            entity=entity,
        ).at(rows.where(row))
    return found[0] if len(found) == 1 else np.maximum(found[0], found[1])


def read_facts(batches: Iterable[Rows], nodes: Nodes) -> Table:
    """Return the facts of a source as a table, with the rows of the passages that state them."""
    columns: dict[str, list[Any]] = {"head": [], "relation": [], "tail": []}
    passages: list[NDArray[np.int64]] = []
    count = 0
    for rows in batches:
        rows.check_names(("head", "relation", "tail", "passage"), ())
        for name, own in columns.items():
            own += _shared_strings(rows.strings(name))
        found = nodes.passages(rows, "passage")
        if (found < 0).any():
            rows.refuse(int(np.flatnonzero(found < 0)[0]), "passage", None, "the id of the passage that states it")
        passages.append(found)
        count += len(rows)
    return Table("facts", {**columns, "passage": _concatenated(passages)}, count, lambda row: f"facts row {row}")


def _shared_strings(column: Any) -> list[str]:
    """Return strings; equal ones are the same object."""
    coded = column.dictionary_encode()
    names = np.array([*coded.dictionary.to_pylist(), None], object)[:-1]
    shared: list[str] = names[coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)].tolist()
    return shared


def _weights(rows: Rows) -> NDArray[np.float64]:
    column = rows.column("weight")
    own = tables.weights(Table(rows.what, {"weight": _values(column)}, len(rows), rows.where), "weight")
    assert own is not None
    return own.copy()  # the batch is released


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
