"""Restarts in the form that every backend's walks read: by internal node, ascending and checked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..errors import InputError
from ..types import Graph


class GivenRestart(NamedTuple):
    """CSR rows of the caller's node ids, distinct within a row and in any order, with weights; -1 is padding."""

    indptr: NDArray[np.int64]
    node: NDArray[np.int64]
    value: NDArray[np.float64]


class Restart(NamedTuple):
    """CSR rows of internal nodes, ascending, with finite values > 0."""

    indptr: NDArray[np.int64]
    node: NDArray[np.int32]
    value: NDArray[np.float64]

    @property
    def batch(self) -> int:
        return self.indptr.size - 1


def order_restart(graph: Graph, given: GivenRestart, may_be_empty: bool) -> Restart:
    """Convert restarts to the form that walks read.

    Raises
    ------
    InputError
        A node outside the graph, a weight that is not finite or below 0, a row without a weight above 0 (unless
        ``may_be_empty``), a row whose sum overflows float64; the message names the row.
    """
    indptr, node, value = given
    rows = Restart(np.empty(indptr.size, np.int64), np.empty(node.size, np.int32), np.empty(node.size))
    wrong = _native.read_restarts(indptr, node, value, graph.internal_of, may_be_empty, *rows)
    if wrong is not None:
        raise _refused(graph, given, *wrong)
    held = int(rows.indptr[-1])
    return rows if held == node.size else Restart(rows.indptr, rows.node[:held], rows.value[:held])


def read_dicts(graph: Graph, given: list[Any], may_be_empty: bool) -> Restart | None:
    """Read a list of dicts of plain Python numbers; None for anything else, and for what is to be refused."""
    size = 0
    for row in given:
        if type(row) is not dict:
            return None
        size += len(row)
    rows = Restart(np.empty(len(given) + 1, np.int64), np.empty(size, np.int32), np.empty(size))
    held = _native.read_dicts(given, graph.internal_of, may_be_empty, *rows)
    if held is None or held == size:
        return rows if held == size else None
    return Restart(rows.indptr, rows.node[:held], rows.value[:held])


def _refused(graph: Graph, given: GivenRestart, fault: int, at: int) -> InputError:
    if fault == _native.RESTART_EMPTY_ROW:
        return InputError(
            "zero",
            f"restart[{at}]",
            "{field} is all zero; a query needs at least one seed with weight > 0 (leave such queries out of the "
            "batch, or use ppr_topk with empty='skip')",
        )
    if fault == _native.RESTART_SUM_BEYOND:
        return InputError("finite", f"restart[{at}]", "{field} has a sum that overflows float64; scale it down")
    row, node = int(np.searchsorted(given.indptr, at, side="right")) - 1, int(given.node[at])
    if fault == _native.RESTART_OUTSIDE:
        return outside(graph, row, node)
    return InputError(
        "range",
        f"restart[{row}]",
        "{field} has the weight {given} at node {node}; weights must be finite and at least 0",
        given=float(given.value[at]),
        node=node,
    )


def outside(graph: Graph, row: int, node: int) -> InputError:
    """Return the error of a seed that is not a node of the graph."""
    return InputError(
        "unknown",
        f"restart[{row}]",
        "{field} has the seed {given}, which is outside the graph; nodes are {allowed}",
        given=node,
        allowed=f"0 .. {graph.num_nodes - 1}",
    )
