"""Checks of a graph's arrays from a file: everything that kernels rely on.

Arrays are read in chunks; the largest temporary array has the size of ``degree``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError

_CHUNK = 1 << 20
_TINY = np.finfo(np.float32).tiny

Arrays = Mapping[str, NDArray[Any]]


def check_graph(arrays: Arrays) -> None:
    """Raise FormatError unless the arrays satisfy all invariants of :class:`hopfuse.Graph` except symmetry.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        As from ``Graph.to_arrays``, with consistent dtypes and shapes.
    """
    nodes = arrays["node_of"].size
    _check_indptr(arrays["indptr"], arrays["indices"].size)
    _check_permutation(arrays["node_of"], arrays["internal_of"])
    total = np.zeros(arrays["degree"].shape, np.float64)
    for first, last in _chunks(arrays["indices"].size):
        _check_entries(arrays, nodes, first, last)
        _add_degrees(total, arrays, first, last)
    if not np.array_equal(total, arrays["degree"]):
        row, kind = (int(x) for x in np.argwhere(total != arrays["degree"])[0])
        raise FormatError(
            "conflict",
            None,
            "{array}[{row}, {kind}] is {given}; the stored edges sum to {allowed}",
            array="degree",
            row=row,
            kind=kind,
            given=float(arrays["degree"][row, kind]),
            allowed=float(total[row, kind]),
        )


def check_symmetry(arrays: Arrays) -> None:
    """Raise FormatError unless every entry (v, u) has an equal entry (u, v); call :func:`check_graph` first."""
    indices = arrays["indices"]
    row_of = np.repeat(np.arange(arrays["node_of"].size, dtype=np.int32), np.diff(arrays["indptr"]))
    transposed = np.argsort(indices, kind="stable")  # by (column, row, type)
    equal = np.array_equal(row_of[transposed], indices) and np.array_equal(indices[transposed], row_of)
    for name in ("weight", "edge_type"):
        equal = equal and (name not in arrays or np.array_equal(arrays[name][transposed], arrays[name]))
    if not equal:
        raise FormatError(
            "conflict", None, "the graph is marked as undirected, but its stored entries are not symmetric"
        )


def _chunks(size: int) -> Iterator[tuple[int, int]]:
    for first in range(0, size, _CHUNK):
        yield first, min(first + _CHUNK, size)


def _check_indptr(indptr: NDArray[np.int64], nnz: int) -> None:
    if indptr[0] != 0 or indptr[-1] != nnz or (indptr[1:] < indptr[:-1]).any():
        raise FormatError(
            "order",
            None,
            "{array} does not ascend from 0 to {entries}, the number of stored entries",
            array="indptr",
            entries=nnz,
        )


def _check_permutation(node_of: NDArray[np.int32], internal_of: NDArray[np.int32]) -> None:
    nodes = node_of.size
    for first, last in _chunks(nodes):
        part = node_of[first:last]
        if part.min() < 0 or part.max() >= nodes:
            raise _outside("node_of", nodes)
        if (internal_of[part] != np.arange(first, last)).any():
            raise FormatError("order", None, "{array} and node_of are not inverse permutations", array="internal_of")


def _outside(array: str, size: int) -> FormatError:
    return FormatError("range", None, "{array} has a number outside 0 .. {last}", array=array, last=size - 1)


def _check_entries(arrays: Arrays, nodes: int, first: int, last: int) -> None:
    indices = arrays["indices"][first:last]
    if indices.min() < 0 or indices.max() >= nodes:
        raise _outside("indices", nodes)
    if "edge_type" in arrays and arrays["edge_type"][first:last].max() >= arrays["degree"].shape[1]:
        raise _outside("edge_type", arrays["degree"].shape[1])
    if "weight" in arrays:
        weight = arrays["weight"][first:last]
        if not ((weight >= _TINY) & np.isfinite(weight)).all():
            raise FormatError(
                "finite", None, "{array} has an entry that is not a positive, normal float32 number", array="weight"
            )
    _check_order(arrays, max(first - 1, 0), last)


def _check_order(arrays: Arrays, first: int, last: int) -> None:
    """Check that (source, type) ascends strictly within each row."""
    key = arrays["indices"][first:last].astype(np.int64) * 256
    if "edge_type" in arrays:
        key += arrays["edge_type"][first:last]
    ascends = key[1:] > key[:-1]
    indptr = arrays["indptr"]
    starts = indptr[np.searchsorted(indptr, first, "right") : np.searchsorted(indptr, last, "left")]
    ascends[starts - first - 1] = True
    if not ascends.all():
        at = first + 1 + int(np.flatnonzero(~ascends)[0])
        raise FormatError(
            "order",
            None,
            "{array} do not ascend within a row (by node, then type) at the stored entry {entry}",
            array="indices",
            entry=at,
        )


def _add_degrees(total: NDArray[np.float64], arrays: Arrays, first: int, last: int) -> None:
    """Add the entries in stored order, which defines the sums bit for bit."""
    key = arrays["indices"][first:last].astype(np.intp) * total.shape[1]
    if "edge_type" in arrays:
        key += arrays["edge_type"][first:last]
    weight = arrays["weight"][first:last].astype(np.float64) if "weight" in arrays else np.ones(last - first)
    np.add.at(total.reshape(-1), key, weight)
