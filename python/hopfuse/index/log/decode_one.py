"""Read a small batch of a log: most changes are one batch of a few rows, and are read right after they are made.

A batch is accepted here by plain numbers, without the arrays over many batches that ``decode`` needs. What is not
accepted is read there, which says what is wrong.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..file.format import DTYPES, ENTRY, dtype_of
from ..parts.metadata_log import read_one
from ..schema import ADDED, ARRAYS, DOCUMENTS, EDGE_TYPES, EITHER, LANGUAGES, RELATIONS, STATES, VECTOR, Array
from .records import COUNT, LEAST_WEIGHT, MOST_WEIGHT, LogRecord, LogRecords, Slots

#: Bytes of a batch up to which Python's numbers are faster than arrays.
SMALL = 1 << 16
_VECTORS = ("float32", "float16", "bfloat16")


class _Expected(NamedTuple):
    """What an array of a batch must be, by its name."""

    name: str
    array: Array
    dtypes: dict[int, np.dtype[Any]]
    """By the code of the dtype."""


def _expected(name: str, array: Array) -> _Expected:
    names = _VECTORS if array.dtype == VECTOR else (array.dtype,)
    return _Expected(name, array, {DTYPES.index(one): dtype_of(one).newbyteorder("<") for one in names})


_EXPECTED = {name.encode().ljust(32, b"\0"): _expected(name, array) for name, array in ARRAYS.items()}
_GROUP_SIZES = {
    group: sum(array.group == group for array in ARRAYS.values()) for group in {one.group for one in ARRAYS.values()}
}
_LISTS = (EDGE_TYPES, RELATIONS, DOCUMENTS, LANGUAGES)
#: Strings by the name of their arrays.
_STRINGS = [name.removesuffix(".offsets") for name in ARRAYS if name.endswith(".offsets")]
#: Offsets by their arrays, and what they are offsets in.
_OFFSETS = {name: f"{name.removesuffix('.offsets')}.bytes" for name in ARRAYS if name.endswith(".offsets")} | {
    "lexical.indptr": "lexical.passage"
}


def read_one_batch(payload: bytes | memoryview, before: Slots) -> LogRecords | None:
    """Return a small batch as ``decode.read_records`` does, or None if it is large or anything in it is wrong."""
    if not COUNT.size <= len(payload) <= SMALL:
        return None
    sizes: dict[str, int] = {}
    arrays = _arrays(payload, sizes)
    if arrays is None or not _are_together(arrays):
        return None
    strings: dict[str, list[str]] = {}
    for name in arrays.keys() & _OFFSETS.keys():
        if not _check_offsets(name, arrays, strings):
            return None
    counts = _counts(arrays)
    if not _check_numbers(arrays, counts, sizes, before) or sizes.get(STATES.what, 1) != STATES.count:
        return None
    return _records(arrays, counts, strings, before)


def of_record(record: LogRecord) -> LogRecords:
    """Return a record that this process made as ``decode.read_records`` returns it when it is read."""
    arrays = dict(record.arrays)
    strings = {name: record.strings(name) for name in _STRINGS if f"{name}.offsets" in arrays}
    records = _records(arrays, _counts(arrays), strings, record.before)
    assert records is not None
    return records


def _counts(arrays: dict[str, NDArray[Any]]) -> dict[str, int]:
    """Return the number of rows of each array; for offsets the number of strings."""
    return {name: len(array) - (name in _OFFSETS) for name, array in arrays.items()}


def _records(
    arrays: dict[str, NDArray[Any]], counts: dict[str, int], strings: dict[str, list[str]], before: Slots
) -> LogRecords | None:
    """Return the joined form of one batch, or None if its metadata is not valid."""
    rows = dict(zip(counts, np.array([*counts.values()], np.int64)[:, None], strict=True))
    records = LogRecords({name: arrays[name] for name in ARRAYS if name in arrays}, rows, [], before, 1, strings)
    if "metadata.type" in arrays:
        metadata = read_one(arrays, strings, counts.get("passage.length", 0))
        if metadata is None:
            return None
        records.metadata.append(metadata)
    return records


def _arrays(payload: bytes | memoryview, sizes: dict[str, int]) -> dict[str, NDArray[Any]] | None:
    """Return the arrays, of the right dtypes and shapes, and note what their sizes count; None if one is wrong."""
    count, zero = COUNT.unpack_from(payload)
    at = COUNT.size + ENTRY.size * count
    if zero or at > len(payload):
        return None
    arrays, data = dict[str, NDArray[Any]](), np.frombuffer(payload, np.uint8)
    for raw, code, ndim, rows, columns, offset, length in ENTRY.iter_unpack(payload[COUNT.size : at]):
        expected = _EXPECTED.get(raw)
        dtype = None if expected is None else expected.dtypes.get(code)
        if expected is None or dtype is None or expected.name in arrays or ndim != len(expected.array.sizes):
            return None
        if (offset, length) != (at, rows * (columns if ndim == 2 else 1) * dtype.itemsize) or (ndim == 1 and columns):
            return None
        if at + length > len(payload):
            return None
        for size, found in zip(expected.array.sizes, (rows, columns), strict=False):
            if isinstance(size, int):
                right = size
            elif size.what:
                right = sizes.setdefault(size.what, found - size.more) + size.more
            else:
                right = found
            if found != right or found < 0:
                return None
        array = data[at : at + length].view(dtype)
        arrays[expected.name] = array if ndim == 1 else array.reshape(rows, columns)
        at += length + -length % 8
    return arrays if at == len(payload) else None


def _are_together(arrays: dict[str, NDArray[Any]]) -> bool:
    """Return whether arrays that belong together are present together, and one of those of which one is."""
    groups: dict[str, int] = {}
    for name in arrays:
        group = ARRAYS[name].group
        groups[group] = groups.get(group, 0) + 1
    groups.pop("", None)
    return all(_GROUP_SIZES[group] == found for group, found in groups.items()) and all(
        (one in arrays) + (other in arrays) == (name in arrays) for name, (one, other) in EITHER.items()
    )


def _check_offsets(name: str, arrays: dict[str, NDArray[Any]], strings: dict[str, list[str]]) -> bool:
    """Return whether offsets ascend over their rows, and are those of strings; these are kept."""
    ends, data = arrays[name].tolist(), arrays[_OFFSETS[name]]
    if not ends or ends[0] or ends[-1] != len(data) or any(a > b for a, b in pairwise(ends)):
        return False
    if name.endswith(".offsets"):
        whole = data.tobytes()
        try:
            strings[name.removesuffix(".offsets")] = [whole[a:b].decode() for a, b in pairwise(ends)]
        except UnicodeDecodeError:
            return False
    return True


def _check_numbers(
    arrays: dict[str, NDArray[Any]], counts: dict[str, int], sizes: dict[str, int], before: Slots
) -> bool:
    """Return whether slots, places and counts are in their ranges."""
    bounds = {size.what: sizes.get(size.what, 0) for size in _LISTS}
    for (size, name), old in zip(ADDED.items(), before, strict=True):
        what, new = size.what, counts.get(name, 0)
        bounds |= {
            f"new {what}": new,
            what: old + new,
            f"old {what}": old,
            f"-{what}": -old - new,
            f"-old {what}": -old,
        }
    for name, array in arrays.items():
        numbers = ARRAYS[name].numbers
        if not numbers or not array.size:
            continue
        columns = [array.tolist()] if array.ndim == 1 else [*zip(*array.tolist(), strict=True)]
        for own, column in zip(numbers, columns, strict=True):
            least, most = (bounds[end] if isinstance(end, str) else end for end in (own.least, own.most))
            if min(column) < least or max(column) >= most:
                return False
    weights = arrays["edge.weight"].tolist() if "edge.weight" in arrays else ()
    return all(LEAST_WEIGHT <= weight <= MOST_WEIGHT for weight in weights)
