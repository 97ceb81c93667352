"""Bodies of requests, as JSON or as an Arrow stream."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_length, check_list, check_type
from ..errors import InputError
from .results import FoundIds, padded

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
#: What a search takes as ``allow``.
_FILTERS = (
    "ids of passages, conditions such as {'year__ge': 2020}, or a list with one of these or None for each question"
)
#: Key in the schema's metadata for the fields of a JSON body other than the queries.
KEY = b"hopfuse"


@dataclass(frozen=True, eq=False)
class Questions:
    """The columns of a batch of questions, each None or of the same length.

    Attributes
    ----------
    texts : list of str, optional
    vectors : ndarray of float32, shape (B, d), optional
    entities : list of (list or None), optional
    allow : list of (list, mapping or None), optional
    """

    texts: list[Any] | None
    vectors: NDArray[np.float32] | None
    entities: list[Any] | None
    allow: list[Any] | None

    @classmethod
    def of(cls, texts: Any, vectors: Any, entities: Any, allow: Any) -> Questions:
        """Return the questions from the arguments of a search.

        Raises
        ------
        InputError
            All columns are missing, or their lengths differ.
        """
        columns: dict[str, Any] = {
            "queries": [texts] if isinstance(texts, str) else None if texts is None else _listed(texts, "queries"),
            "vectors": None if vectors is None else np.atleast_2d(np.asarray(vectors, "<f4")),
            "entities": None if entities is None else _listed(entities, "entities"),
        }
        lengths = {name: len(column) for name, column in columns.items() if column is not None}
        if not lengths or len(set(lengths.values())) != 1:
            raise InputError(
                "length",
                "queries",
                "{field}, {@vectors} and {@entities} must have an entry for each question; given: {counts}",
                given=lengths or "none",
                counts=", ".join(f"{count:,} {name}" for name, count in lengths.items()) or "none",
            )
        given = {"texts": columns["queries"], "vectors": columns["vectors"], "entities": columns["entities"]}
        return cls(**given, allow=_allowed(allow, next(iter(lengths.values()))))

    def as_json(self) -> list[dict[str, Any]]:
        """Return an object for each question, without missing fields."""
        columns = {
            "text": self.texts,
            "vector_base64": None if self.vectors is None else [encoded(row) for row in self.vectors],
            "entities": self.entities,
            "allow": self.allow,
        }
        given = {name: column for name, column in columns.items() if column is not None}
        rows = zip(*given.values(), strict=True)
        return [{name: one for name, one in zip(given, row, strict=True) if one is not None} for row in rows]

    def as_table(self) -> Any:
        """Return a pyarrow table; None if pyarrow is not installed, or a column would have values of several types."""
        try:
            pa = import_module("pyarrow")
            import_module("pyarrow.ipc")
        except ModuleNotFoundError:
            return None
        columns: dict[str, Any] = {}
        if self.texts is not None:
            columns["text"] = pa.array(self.texts, pa.string())
        if self.vectors is not None:
            flat = pa.array(np.ascontiguousarray(self.vectors).ravel())
            columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, self.vectors.shape[1])
        for name, lists in (("entities", self.entities), ("allow", self.allow)):
            if lists is None:
                continue
            kinds = {type(one) for row in lists if row is not None for one in row}
            if any(isinstance(row, Mapping) for row in lists) or not (kinds <= {str} or kinds <= {int}):
                return None
            columns[name] = pa.array(lists, pa.list_(pa.int64() if kinds == {int} else pa.string()))
        return pa.table(columns)


def as_stream(table: Any, settings: Mapping[str, Any]) -> bytes:
    """Return a table as an Arrow IPC stream, with the other fields of a search in the schema's metadata."""
    pa = import_module("pyarrow")
    sink, stated = pa.BufferOutputStream(), table.replace_schema_metadata({KEY: json.dumps(settings).encode()})
    with pa.ipc.new_stream(sink, stated.schema) as writer:
        writer.write_table(stated)
    return bytes(sink.getvalue())


def read_stream(content: bytes) -> FoundIds:
    """Return the ids and scores of an Arrow response."""
    table = import_module("pyarrow").ipc.open_stream(content).read_all()
    about = json.loads(table.schema.metadata[KEY])
    scores = table.column("score").combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return padded(table.column("id").to_pylist(), scores, about)


def encoded(vector: Any) -> str:
    """Return a vector as base64 of little-endian float32 values."""
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


def with_vector(row: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return a passage or an entity with its vector as base64."""
    given = dict(check_type(row, field, Mapping, "a mapping"))
    vector = given.pop("vector", None)
    return given if vector is None else {**given, "vector_base64": encoded(vector)}


def _listed(values: Any, name: str) -> list[Any]:
    if isinstance(values, str):
        raise InputError("type", name, "{field} is one string; pass a list: [{given!r}]", given=values)
    return [list(one) if isinstance(one, tuple) else one for one in values]


def _allowed(allow: Any, count: int) -> list[Any] | None:
    """Return one filter for each question."""
    if allow is None:
        return None
    is_filter = isinstance(allow, Mapping)
    listed = [] if is_filter else check_list(allow, "allow", _FILTERS)
    is_one = is_filter or not any(one is None or isinstance(one, list | tuple | Mapping) for one in listed)
    each: Sequence[Any] = [allow if is_filter else listed] * count if is_one else listed
    check_length(len(each), "allow", count, "question")
    return [one if one is None or isinstance(one, Mapping) else _ids(one) for one in each]


def _ids(given: Any) -> list[Any]:
    """Return ids of passages as a list."""
    ids = check_list(given, "allow", _FILTERS)
    for one in ids:
        check_type(one, "allow", (str, int), _FILTERS)
    return ids
