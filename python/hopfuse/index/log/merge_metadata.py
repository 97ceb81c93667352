"""Metadata after changes: columns of remaining and added passages; new columns come last."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..file.sections import Section
from ..parts.metadata import Metadata, MetadataColumn
from ..parts.metadata_build import metadata_rows
from .delta import DeltaRows
from .delta_metadata import missing
from .metadata import Values

Codes = NDArray[np.int32]


def merge_metadata(delta: DeltaRows, passages: NDArray[np.int64]) -> dict[str, NDArray[Any] | Section]:
    """Return the sections ``metadata.*`` of the passages of ascending slots, or none without columns."""
    metadata, counts = delta.base.metadata, (delta.before.passages, delta.after.passages - delta.before.passages)
    types = dict(metadata.types) | {name: values.type for name, values in delta.metadata.items()}
    if not types:
        return {}
    strings, own, added = _joined_strings(metadata, delta.metadata_strings)
    columns = {}
    for name, kind in types.items():
        parts = [
            _coded(_base_values(metadata[name]) if name in metadata else _nothing(kind, counts[0]), own),
            _coded(delta.metadata.get(name) or _nothing(kind, counts[1]), added),
        ]
        present, data, items = (np.concatenate(part) for part in list(zip(*parts, strict=True))[1:])
        if kind == "strings":
            data = np.concatenate([[0], np.cumsum(data)]).astype(np.int64)
        columns[name] = MetadataColumn(name, kind, present, data, items, strings)  # type: ignore[arg-type]
    return metadata_rows(columns, passages)


def _joined_strings(metadata: Metadata, added: list[str]) -> tuple[list[str], Codes, Codes]:
    """Return all strings, ascending, and the place in them of each of the generation's and of the added ones."""
    own = list(next(iter(metadata.values())).strings) if metadata else []
    new = sorted(text for text in added if not _is_among(text, own))
    before = [bisect_left(own, text) for text in new]
    strings = np.insert(np.array(own, object), before, np.array(new, object)).tolist() if new else own
    places = np.arange(len(own)) + np.searchsorted(before, np.arange(len(own)), side="right")
    return strings, places.astype(np.int32), np.array([bisect_left(strings, text) for text in added], np.int32)


def _is_among(text: str, ascending: list[str]) -> bool:
    place = bisect_left(ascending, text)
    return place < len(ascending) and ascending[place] == text


def _base_values(column: MetadataColumn) -> Values:
    data = np.diff(column.data) if column.type == "strings" else column.data
    return Values(column.type, column.present, data, column.items)


def _nothing(kind: str, count: int) -> Values:
    return Values(kind, np.zeros(count, np.bool_), missing(kind, count), np.zeros(0, np.int32))


def _coded(values: Values, codes: Codes) -> Values:
    """Return values with codes of all strings."""
    if values.type == "string" and codes.size:
        return values._replace(data=np.where(values.data < 0, -1, codes[np.maximum(values.data, 0)]).astype(np.int32))
    return values._replace(items=codes[values.items]) if values.type == "strings" else values
