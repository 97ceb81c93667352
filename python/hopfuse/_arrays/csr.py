"""Compressed rows of incoming edges, in a deterministic node order, from an edge list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


class Csr(NamedTuple):
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weight: NDArray[np.float32] | None
    edge_type: NDArray[np.uint8] | None
    node_of: NDArray[np.int32]
    internal_of: NDArray[np.int32]


def build_csr(
    n: int,
    directed: bool,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    weight: NDArray[np.float64],
    types: NDArray[np.uint8],
    num_types: int,
) -> Csr:
    """Merge parallel edges, choose the node order, and store every edge in the row of its target."""
    src, dst, w32, types = _merge(directed, src, dst, weight, types)
    node_of = np.arange(n, dtype=np.int32)  # the internal order is the caller's own
    internal_of = node_of.copy()
    row, col = internal_of[dst], internal_of[src]
    if not directed:
        mirror = row != col
        row, col = np.concatenate([row, col[mirror]]), np.concatenate([col, row[mirror]])
        w32, types = np.concatenate([w32, w32[mirror]]), np.concatenate([types, types[mirror]])
    order = np.lexsort((types, col, row))
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=n), out=indptr[1:])
    stored = w32[order]
    return Csr(
        indptr,
        col[order].astype(np.int32),
        None if (stored == 1).all() else stored,
        types[order] if num_types > 1 else None,
        node_of,
        internal_of,
    )


def out_degrees(n: int, num_types: int, csr: Csr) -> NDArray[np.float64]:
    """Weight out of each internal node by type: float64, summed in the stored order."""
    w = np.ones(csr.indices.size) if csr.weight is None else csr.weight.astype(np.float64)
    degree = np.zeros((n, num_types), np.float64)
    for t in range(num_types):
        of_type = slice(None) if csr.edge_type is None else csr.edge_type == t
        degree[:, t] = np.bincount(csr.indices[of_type], weights=w[of_type], minlength=n)
    return degree


def _merge(
    directed: bool,
    src: NDArray[np.int64],
    dst: NDArray[np.int64],
    weight: NDArray[np.float64],
    types: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], NDArray[np.uint8]]:
    if not directed:
        src, dst = np.minimum(src, dst), np.maximum(src, dst)
    order = np.lexsort((types, dst, src))  # stable: equal edges stay in input order
    src, dst, types, weight = src[order], dst[order], types[order], weight[order]
    first = np.ones(src.size, bool)
    first[1:] = (src[1:] != src[:-1]) | (dst[1:] != dst[:-1]) | (types[1:] != types[:-1])
    total = np.bincount(np.cumsum(first) - 1, weights=weight) if src.size else np.zeros(0)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        w32 = total.astype(np.float32)
    src, dst, types = src[first], dst[first], types[first]
    tiny = np.finfo(np.float32).tiny
    lost = (total > 0) & ~((w32 >= tiny) & np.isfinite(w32))
    if lost.any():
        at = int(np.flatnonzero(lost)[0])
        raise InputError(
            f"the summed weight {total[at]} of edge ({src[at]}, {dst[at]}) is outside float32's normal range "
            f"({tiny:.3g} .. {np.finfo(np.float32).max:.3g}); scale the weights (only their ratios matter)"
        )
    keep = w32 > 0
    return src[keep], dst[keep], w32[keep], types[keep]
