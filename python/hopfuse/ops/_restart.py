"""Convert restart vectors of every accepted form to compressed rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.convert import to_float64, to_numpy
from .._arrays.rows import indptr_of
from .._validation import check_real, check_shape, is_whole
from ..backends.restarts import GivenRestart, Restart, order_restart, outside, read_dicts
from ..errors import InputError
from ..types import Graph, Seeds

__all__ = ["Restart", "read_restart"]


def read_restart(graph: Graph, restart: Any, may_be_empty: bool = False) -> Restart:
    """Read restarts from an (N,) or (B, N) array, a scipy.sparse (B, N) matrix, Seeds, or a list of {node: weight}."""
    if type(restart) is list or type(restart) is dict:
        rows = read_dicts(graph, restart if type(restart) is list else [restart], may_be_empty)
        if rows is not None:
            return rows
    if isinstance(restart, Mapping):
        restart = [restart]
    if isinstance(restart, Seeds):
        given = _from_seeds(restart)
    elif hasattr(restart, "tocsr"):
        given = _from_sparse(graph, restart)
    elif isinstance(restart, Sequence) and (not restart or all(isinstance(r, Mapping) for r in restart)):
        given = _from_mappings(graph, restart)
    else:
        given = _from_dense(graph, to_numpy(restart, "restart"))
    return order_restart(graph, given, may_be_empty)


def _from_dense(graph: Graph, array: NDArray[Any]) -> GivenRestart:
    check_real(array, "restart")
    rows = array if array.ndim == 2 else np.atleast_2d(array)
    forms = "one row per query; or pass a scipy.sparse matrix of this shape, or a list of {node: weight}"
    check_shape(rows.shape if array.ndim < 2 else array.shape, "restart", ("B", graph.num_nodes), reason=forms)
    row, node = np.nonzero(rows)  # NaN counts as nonzero, so order_restart refuses it
    return GivenRestart(indptr_of(row, rows.shape[0]), node, to_float64(rows[row, node]))


def _from_sparse(graph: Graph, matrix: Any) -> GivenRestart:
    check_shape(matrix.shape, "restart", ("B", graph.num_nodes))
    coo = matrix.tocoo()
    if coo is matrix:
        coo = coo.copy()
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
        coo.sum_duplicates()
    check_real(coo.data, "restart")
    by_row = np.argsort(coo.row, kind="stable")
    node = coo.col[by_row].astype(np.int64)
    return GivenRestart(indptr_of(coo.row, int(matrix.shape[0])), node, to_float64(coo.data[by_row]))


def _from_seeds(seeds: Seeds) -> GivenRestart:
    batch, width = seeds.nodes.shape
    indptr = np.arange(batch + 1, dtype=np.int64) * width
    return GivenRestart(indptr, seeds.nodes.reshape(-1), seeds.weights.reshape(-1))


def _from_mappings(graph: Graph, rows: Sequence[Mapping[Any, Any]]) -> GivenRestart:
    keys = [key for row in rows for key in row]
    for key in keys:
        if not is_whole(key) or not 0 <= key < graph.num_nodes:
            _refuse_key(graph, rows)
    try:
        with np.errstate(invalid="ignore"):  # a signalling NaN is refused below
            value = np.array([weight for row in rows for weight in row.values()], np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("type", "restart", "{field} has a weight that is not a number: {error}", error=error) from None
    indptr = np.array([0, *accumulate(map(len, rows))], np.int64)
    return GivenRestart(indptr, np.array(keys, np.int64), value)


def _refuse_key(graph: Graph, rows: Sequence[Mapping[Any, Any]]) -> None:
    for b, row in enumerate(rows):
        for key in row:
            if not is_whole(key):
                raise InputError(
                    "type",
                    f"restart[{b}]",
                    "{field} has the seed {given!r}; seeds must be node ids, whole numbers",
                    given=key,
                )
            if not 0 <= key < graph.num_nodes:
                raise outside(graph, b, int(key))
