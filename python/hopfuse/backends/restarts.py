"""Restarts by internal node, as every backend's walks read them, checked where they are copied."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import InputError
from ..types import Graph


class GivenRestart(NamedTuple):
    """CSR rows of the caller's nodes with their weights, in any order and none twice in a row; node -1 is padding."""

    indptr: NDArray[np.int64]
    node: NDArray[np.int64]
    value: NDArray[np.float64]


class Restart(NamedTuple):
    """CSR rows by internal node, ascending; every value > 0 and finite."""

    indptr: NDArray[np.int64]
    node: NDArray[np.int32]
    value: NDArray[np.float64]

    @property
    def batch(self) -> int:
        return self.indptr.size - 1


def order_restart(graph: Graph, given: GivenRestart, may_be_empty: bool) -> Restart:
    """Return rows as walks read them.

    Raises
    ------
    InputError
        A node outside the graph, a weight that is not finite and at least 0, a row without one above 0 unless it may be
        empty, a row that sums beyond float64; the row is named.
    """
    indptr, node, value = given
    rows = Restart(np.empty(indptr.size, np.int64), np.empty(node.size, np.int32), np.empty(node.size))
    wrong = _native.read_restarts(indptr, node, value, graph.internal_of, may_be_empty, *rows)
    if wrong is not None:
        raise InputError(_said(graph, given, *wrong))
    held = int(rows.indptr[-1])
    return rows if held == node.size else Restart(rows.indptr, rows.node[:held], rows.value[:held])


def _said(graph: Graph, given: GivenRestart, fault: int, at: int) -> str:
    if fault == _native.RESTART_EMPTY_ROW:
        return (
            f"restart row {at} is all zero; a query needs at least one seed with weight > 0 "
            "(leave such a query out of the batch; ppr_topk has empty='skip')"
        )
    if fault == _native.RESTART_SUM_BEYOND:
        return f"restart row {at} sums beyond float64; scale it down"
    row, node = int(np.searchsorted(given.indptr, at, side="right")) - 1, given.node[at]
    if fault == _native.RESTART_OUTSIDE:
        return f"restart row {row} has seed {node}, which is outside the graph (ids are 0 .. {graph.num_nodes - 1})"
    return f"restart row {row} has weight {given.value[at]} at node {node}; weights are finite and at least 0"
