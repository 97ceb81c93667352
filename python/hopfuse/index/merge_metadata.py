"""Metadata after changes: columns of remaining and added passages; new columns come last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .batch import Batch
from .contents import Contents
from .metadata import STORES, Metadata, MetadataColumn
from .metadata_build import DTYPES, metadata_rows


def merge_metadata(base: Contents, batches: Sequence[Batch], passages: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Return the sections ``metadata.*`` of the passages of ascending slots, or none without columns."""
    parts = [(base.metadata, base.num_passages)]
    for batch in batches:
        count = batch.after.passages - batch.before.passages
        parts.append((Metadata(batch.sections("metadata."), count), count))
    types: dict[str, str] = {}
    for metadata, _ in parts:
        for name, kind in metadata.types.items():
            if types.setdefault(name, kind) != kind:
                raise FormatError(f"the log has metadata {name!r} of type {kind}; it is {types[name]} before")
    if not types:
        return {}
    values = {id(metadata): _strings(metadata) for metadata, _ in parts}
    strings = sorted(set().union(*values.values()))
    number = {text: at for at, text in enumerate(strings)}
    place = {key: np.array([number[text] for text in own], np.int64) for key, own in values.items()}
    columns = {}
    for name, kind in types.items():
        pieces = [_piece(metadata, name, kind, count, place[id(metadata)]) for metadata, count in parts]
        columns[name] = _joined(name, kind, pieces, strings)
    return metadata_rows(columns, passages)


_Piece = tuple[NDArray[np.bool_], NDArray[Any], NDArray[np.int32]]


def _strings(metadata: Metadata) -> list[str]:
    return list(next(iter(metadata.values())).strings) if metadata else []


def _piece(metadata: Metadata, name: str, kind: str, count: int, place: NDArray[np.int64]) -> _Piece:
    """Return the mask of present values, the values (for lists their lengths), and the items, with merged codes."""
    if name not in metadata:
        data = np.full(count, -1 if kind == "string" else 0, np.int64 if kind == "strings" else DTYPES[STORES[kind]])
        return np.zeros(count, np.bool_), data, np.zeros(0, np.int32)
    column = metadata[name]
    if kind == "strings":
        return column.present, np.diff(column.data), place[column.items].astype(np.int32)
    data = column.data
    if kind == "string":
        data = np.where(data < 0, -1, place[np.maximum(data, 0)] if place.size else -1).astype(np.int32)
    return column.present, data, np.zeros(0, np.int32)


def _joined(name: str, kind: str, pieces: Sequence[_Piece], strings: Any) -> MetadataColumn:
    present, data, items = (np.concatenate(part) for part in zip(*pieces, strict=True))
    if kind == "strings":
        data = np.concatenate([[0], np.cumsum(data)]).astype(np.int64)
    return MetadataColumn(name, kind, present, data, items, strings)
