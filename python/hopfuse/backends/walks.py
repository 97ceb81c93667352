"""Inputs of the walks of every backend: prepared graphs, and restarts by internal node, ascending and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .._arrays.convert import to_float64, to_numpy
from .._arrays.rows import indptr_of
from .._validation import check_real, check_shape, is_whole
from ..errors import InputError
from ..types import Graph, Seeds
from .node_weights import NodeWeights, columns_in

# ---- Prepared graphs: tables and layouts of the native module, each made once per graph ------------------------------


def prepared_graph(graph: Graph) -> _native.PreparedGraph:
    """Return the prepared form of a graph, which the graph keeps."""
    found: _native.PreparedGraph | None = graph.derived.get("prepared")
    if found is None:  # if another thread is faster, its form is kept
        found = graph.derived.setdefault("prepared", prepare(graph))
    return found


def prepare(graph: Graph, **sizes: int) -> _native.PreparedGraph:
    """Return a prepared form of a graph, in which tests may change ``sizes`` of tiles; nothing is computed yet."""
    return _native.PreparedGraph(
        directed=graph.directed,
        num_types=graph.num_edge_types,
        indptr=graph.indptr,
        indices=graph.indices,
        weight=graph.weight,
        edge_type=graph.edge_type,
        degree=graph.degree,
        node_of=graph.node_of,
        internal_of=graph.internal_of,
        **sizes,
    )


# ---- Restarts --------------------------------------------------------------------------------------------------------


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

    @classmethod
    def empty(cls, batch: int, entries: int) -> Restart:
        """Allocate rows with at most that many entries in all."""
        return cls(np.empty(batch + 1, np.int64), np.empty(entries, np.int32), np.empty(entries))


class Exclusions(Protocol):
    """Options of walks that exclude seeds, by internal node."""

    @property
    def allow(self) -> NDArray[np.uint8] | None: ...

    @property
    def node_weights(self) -> NodeWeights | None: ...


E = TypeVar("E", bound=Exclusions)


def read_restart(graph: Graph, restart: Any, may_be_empty: bool, options: Callable[[int], E]) -> tuple[Restart, E]:
    """Read restarts, check their seeds against the options of their walks, and return both.

    Parameters
    ----------
    restart : array (N,) or (B, N), scipy.sparse matrix (B, N), Seeds, list of {node: weight}, or GivenRestart
    may_be_empty : bool
        Whether a row may have no weight above 0.
    options : callable
        Returns the options of a batch of this size, once the form of the restarts is known to be right.

    Raises
    ------
    InputError
        Another form; a node outside the graph, a weight that is not finite or below 0, a row without a weight above 0,
        a row whose sum overflows float64, a seed that is excluded; the message names the row.
    """
    given: GivenRestart
    chosen: E | None = None
    if type(restart) is dict:
        restart = [restart]
    if type(restart) is list and restart and type(restart[0]) is dict:  # the usual form, mostly of plain numbers
        chosen = options(len(restart))
        plain = read_dicts(graph, restart, may_be_empty)
        if plain is not None:
            _check_seeds(graph, plain, chosen)
            return plain, chosen
    if isinstance(restart, GivenRestart):
        given = restart
    elif isinstance(restart, Seeds):
        batch, width = restart.nodes.shape
        indptr = np.arange(batch + 1, dtype=np.int64) * width
        given = GivenRestart(indptr, restart.nodes.reshape(-1), restart.weights.reshape(-1))
    elif hasattr(restart, "tocsr"):
        given = _from_sparse(graph, restart)
    elif isinstance(restart, Mapping):
        given = _from_mappings(graph, [restart])
    elif isinstance(restart, Sequence) and (not restart or all(isinstance(row, Mapping) for row in restart)):
        given = _from_mappings(graph, restart)
    else:
        array = restart if type(restart) is np.ndarray else to_numpy(restart, "restart")
        if array.dtype.kind != "f":
            check_real(array, "restart")
        forms = "one row per query; or pass a scipy.sparse matrix of this shape, or a list of {node: weight}"
        dense = array if array.ndim > 1 else np.atleast_2d(array)
        check_shape(dense.shape, "restart", ("B", graph.num_nodes), reason=forms)
        row, node = np.nonzero(dense)  # NaN counts as nonzero, so it is refused below
        given = GivenRestart(indptr_of(row, dense.shape[0]), node, to_float64(dense[row, node]))
    chosen = options(given.indptr.size - 1) if chosen is None else chosen
    made = Restart.empty(given.indptr.size - 1, given.node.size)
    wrong = _native.read_restarts(*given, graph.internal_of, may_be_empty, *made)
    if wrong is not None:
        raise _refused(graph, given, *wrong)
    held = int(made.indptr[-1])
    rows = made if held == made.node.size else Restart(made.indptr, made.node[:held], made.value[:held])
    _check_seeds(graph, rows, chosen)
    return rows, chosen


def _check_seeds(graph: Graph, rows: Restart, options: Exclusions) -> None:
    """Raise if the options of a walk exclude one of its seeds."""
    allow, weights = options.allow, options.node_weights
    if allow is None and (weights is None or weights.on_device):
        return
    row = np.repeat(np.arange(rows.indptr.size - 1), np.diff(rows.indptr))
    if allow is not None:
        allowed = allow[row if len(allow) > 1 else 0, rows.node]
        if not allowed.all():
            at = int(np.argmin(allowed))
            raise _excluded(int(row[at]), int(graph.node_of[rows.node[at]]), is_weightless=False)
    if weights is not None and not weights.on_device:
        column, weight = columns_in(graph, weights.node).of[rows.node], weights.other[row]
        own = column >= 0
        weight[own] = weights.weight[row[own], column[own]]
        if not weight.all():
            at = int(np.argmin(weight))
            raise _excluded(int(row[at]), int(graph.node_of[rows.node[at]]), is_weightless=True)


def read_dicts(graph: Graph, given: list[Any], may_be_empty: bool) -> Restart | None:
    """Read a list of dicts of plain Python numbers; None for anything else, and for what is to be refused."""
    size = 0
    for row in given:
        if type(row) is not dict:
            return None
        size += len(row)
    rows = Restart.empty(len(given), size)
    held = _native.read_dicts(given, graph.internal_of, may_be_empty, *rows)
    if held is None or held == size:
        return None if held is None else rows
    return Restart(rows.indptr, rows.node[:held], rows.value[:held])


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
    except OverflowError:
        raise InputError("finite", "restart", "{field} has a weight beyond float64; weights must be finite") from None
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
                raise _outside(graph, b, int(key))


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
        return _outside(graph, row, node)
    return InputError(
        "range",
        f"restart[{row}]",
        "{field} has the weight {given} at node {node}; weights must be finite and at least 0",
        given=float(given.value[at]),
        node=node,
    )


def _excluded(row: int, node: int, *, is_weightless: bool) -> InputError:
    if is_weightless:
        return InputError(
            "conflict",
            f"restart[{row}]",
            "{field} has the seed {node}, whose weight in {@node_weights} is 0 (one below 2^-100 of the largest counts "
            "as 0); drop the seed or raise the weight",
            node=node,
        )
    return InputError(
        "conflict",
        f"restart[{row}]",
        "{field} has the seed {node}, which {@allow} excludes; drop the seed or allow the node",
        node=node,
    )


def _outside(graph: Graph, row: int, node: int) -> InputError:
    """Return the error of a seed that is not a node of the graph."""
    return InputError(
        "unknown",
        f"restart[{row}]",
        "{field} has the seed {given}, which is outside the graph; nodes are {allowed}",
        given=node,
        allowed=f"0 .. {graph.num_nodes - 1}",
    )
