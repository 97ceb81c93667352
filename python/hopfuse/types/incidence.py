"""A sparse matrix of passages (rows) by nodes (columns), by which node scores are projected onto passages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arrays import native
from .._arrays.convert import to_numpy
from .._arrays.distinct import distinct
from .._arrays.rows import (
    check_array,
    check_ascending,
    check_indptr,
    check_range,
    entries_of,
    indptr_of,
    indptr_of_counts,
)
from .._validation import check_as_long, check_type, check_whole, wrong_array, wrong_value
from ..errors import InputError
from .derived import KeepsDerived
from .graph import Graph

MAX_SIZE = 2**31 - 1
"""The most rows and the most columns."""


@dataclass(frozen=True, eq=False, repr=False)
class Incidence(KeepsDerived):
    """A sparse matrix of P rows (passages) and N columns (nodes), in compressed rows. Immutable.

    Parameters
    ----------
    indptr : ndarray of int64, shape (P + 1,)
        Row p has the entries ``indptr[p]`` .. ``indptr[p + 1] - 1``.
    indices : ndarray of int32, shape (Z,)
        Columns, strictly ascending within a row. Arrays are referenced, not copied: do not change them.
    weights : ndarray of float32, shape (Z,), optional
        Finite, at least 0. Default: 1 each.
    num_columns : int
        N.

    Raises
    ------
    InputError
        Any of the above does not hold.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.Incidence.from_pairs([0, 0, 2], [1, 3, 1], num_rows=3, num_columns=4)
    Incidence(rows=3, columns=4, entries=3, weighted=False)
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32] | None = None
    num_columns: int = field(kw_only=True)
    derived: dict[str, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_columns", check_whole(self.num_columns, "num_columns", MAX_SIZE, least=0))
        _check_arrays(self)
        check_range(self.indices, "indices", self.num_columns)
        check_ascending(self.indices, "indices", self.indptr)
        if self.weights is not None:
            _check_weights(self.weights)

    @classmethod
    def from_pairs(
        cls, rows: ArrayLike, columns: ArrayLike, weights: ArrayLike | None = None, *, num_rows: int, num_columns: int
    ) -> Incidence:
        """Build an incidence from (row, column) pairs, in any order.

        Parameters
        ----------
        rows, columns : array_like of int, shape (Z,)
            Each pair occurs once.
        weights : array_like of float, shape (Z,), optional
            Weight of each pair, finite and at least 0, rounded to float32. Default: 1 each.
        num_rows, num_columns : int
            P and N, each at most 2³¹ - 1.

        Returns
        -------
        Incidence

        Raises
        ------
        InputError
            A row or column out of range, a repeated pair (the message names the first), weights that are negative, NaN
            or infinite.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Incidence.from_pairs([1, 0], [0, 2], [0.5, 2.0], num_rows=2, num_columns=3).indices
        array([2, 0], dtype=int32)
        """
        count = check_whole(num_rows, "num_rows", MAX_SIZE, least=0)
        width = check_whole(num_columns, "num_columns", MAX_SIZE, least=0)
        row, column = _numbers(rows, "rows", count), _numbers(columns, "columns", width)
        check_as_long("rows", row.size, "columns", column.size)
        given = None if weights is None else _read_weights(weights, row.size)
        order = np.lexsort((column, row))
        _refuse_twice(row, column, order)
        kept = None if given is None else given[order]
        return cls(indptr_of(row, count), column[order].astype(np.int32), kept, num_columns=width)

    @classmethod
    def from_graph(cls, graph: Graph, num_rows: int) -> Incidence:
        """Build the incidence of a graph's first nodes, the passages, and the later nodes that they are joined to.

        Parameters
        ----------
        graph : Graph
            Edges of any type and direction; a neighbour counts once.
        num_rows : int
            P: nodes 0 .. P-1 are the rows; all nodes are columns.

        Returns
        -------
        Incidence

        Raises
        ------
        InputError
            More rows than the graph has nodes.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Incidence.from_graph(hf.Graph.from_edges([0, 3, 2, 0], [2, 1, 3, 1]), 2).indices
        array([2, 3], dtype=int32)
        """
        check_type(graph, "graph", Graph, "a Graph")
        rows = check_whole(num_rows, "num_rows", graph.num_nodes, least=0)
        known: Incidence | None = graph.derived.get(f"incidence of {rows}")
        if known is not None:
            return known
        if not graph.directed and graph.keeps_order:  # each edge is in the rows of both ends, and rows are sorted
            return cls._of_rows(graph, rows)
        low, high = _joined_below(graph, rows)
        return cls._trusted(indptr_of(low, rows), high.astype(np.int32), None, graph.num_nodes)

    @classmethod
    def _of_rows(cls, graph: Graph, rows: int) -> Incidence:
        indptr, indices = np.empty(rows + 1, np.int64), np.empty(int(graph.indptr[rows]), np.int32)
        often = np.empty(graph.num_nodes, np.int64)
        count = native().joined_below(
            indptr=graph.indptr,
            indices=graph.indices,
            rows=rows,
            out_indptr=indptr,
            out_indices=indices,
            out_often=often,
        )
        made = cls._trusted(indptr, indices[:count], None, graph.num_nodes)
        made.derived["column_counts"] = often
        return made

    @classmethod
    def _trusted(
        cls,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        weights: NDArray[np.float32] | None,
        num_columns: int,
    ) -> Incidence:
        """Return the incidence of arrays that are known to be right, and are not checked."""
        made = object.__new__(cls)
        # the fields of a frozen class
        made.__dict__.update(indptr=indptr, indices=indices, weights=weights, num_columns=num_columns, derived={})
        return made

    @classmethod
    def kept_of(cls, graph: Graph, num_rows: int) -> Incidence:
        """Return what :meth:`from_graph` returns, and keep it with the graph for later calls.

        Examples
        --------
        >>> import hopfuse as hf
        >>> graph = hf.Graph.from_edges([0, 3, 2, 0], [2, 1, 3, 1])
        >>> hf.Incidence.kept_of(graph, 2) is hf.Incidence.from_graph(graph, 2)
        True
        """
        made = cls.from_graph(graph, num_rows)
        kept: Incidence = graph.derived.setdefault(f"incidence of {made.num_rows}", made)
        return kept

    @property
    def num_rows(self) -> int:
        """P."""
        return int(self.indptr.size - 1)

    def column_counts(self) -> NDArray[np.int64]:
        """Return the number of rows that hold each column, (N,); it is computed once.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Incidence.from_pairs([0, 0, 2], [1, 3, 1], num_rows=3, num_columns=4).column_counts()
        array([0, 2, 0, 1])
        """
        if "column_counts" not in self.derived:
            self.derived["column_counts"] = np.bincount(self.indices, minlength=self.num_columns)
        counts: NDArray[np.int64] = self.derived["column_counts"]
        return counts

    def reweighted(self, weights: NDArray[np.float32]) -> Incidence:
        """Return the incidence with other weights, float32, (Z,), finite and at least 0; nothing else is checked.

        Examples
        --------
        >>> import numpy as np, hopfuse as hf
        >>> pairs = hf.Incidence.from_pairs([0, 2], [1, 3], num_rows=3, num_columns=4)
        >>> pairs.reweighted(np.array([0.5, 2.0], np.float32)).weights
        array([0.5, 2. ], dtype=float32)
        """
        check_array(weights, "weights", np.float32)
        check_as_long("weights", weights.size, "indices", self.indices.size)
        _check_weights(weights)
        made = self._trusted(self.indptr, self.indices, weights, self.num_columns)
        if "column_counts" in self.derived:
            made.derived["column_counts"] = self.derived["column_counts"]
        return made

    def of_rows(self, rows: NDArray[np.int64], weights: NDArray[np.float32]) -> Incidence:
        """Return the incidence with only the entries of some rows; the other rows are empty.

        Parameters
        ----------
        rows : ndarray of int64
            Ascending.
        weights : ndarray of float32
            Other weights of these entries, in their order, finite and at least 0; nothing else is checked.

        Examples
        --------
        >>> import numpy as np, hopfuse as hf
        >>> pairs = hf.Incidence.from_pairs([0, 0, 2], [1, 3, 1], num_rows=3, num_columns=4)
        >>> some = pairs.of_rows(np.array([2]), np.array([0.5], np.float32))
        >>> some.indptr, some.indices, some.weights
        (array([0, 0, 0, 1]), array([1], dtype=int32), array([0.5], dtype=float32))
        """
        indices, count = entries_of(self.indptr, self.indices, rows)
        check_array(weights, "weights", np.float32)
        check_as_long("weights", weights.size, "indices", indices.size)
        _check_weights(weights)
        counts = np.zeros(self.num_rows, np.int64)
        counts[rows] = count
        return self._trusted(indptr_of_counts(counts), indices, weights, self.num_columns)

    def transposed(self) -> Incidence:
        """Return the transposed incidence: for each node, the passages that hold it.

        Returns
        -------
        Incidence

        Examples
        --------
        >>> import hopfuse as hf
        >>> pairs = hf.Incidence.from_pairs([0, 0, 2], [1, 3, 1], num_rows=3, num_columns=4).transposed()
        >>> pairs, pairs.indices
        (Incidence(rows=4, columns=3, entries=3, weighted=False), array([0, 2, 0], dtype=int32))
        """
        rows = np.repeat(np.arange(self.num_rows, dtype=np.int32), np.diff(self.indptr))
        order = np.argsort(self.indices, kind="stable")
        weights = None if self.weights is None else self.weights[order]
        indptr = indptr_of(self.indices[order], self.num_columns)
        return self._trusted(indptr, rows[order], weights, self.num_rows)

    def normalised(self) -> Incidence:
        """Return the incidence with each row's weights divided by their sum, so that a projected score is a mean.

        Sums are float64, over ascending columns; quotients are rounded to float32 once. Rows that are empty or sum to
        0 are unchanged.

        Returns
        -------
        Incidence

        Examples
        --------
        >>> import hopfuse as hf
        >>> pairs = hf.Incidence.from_pairs([0, 0, 2], [1, 3, 1], num_rows=3, num_columns=4)
        >>> pairs.normalised().weights
        array([0.5, 0.5, 1. ], dtype=float32)
        """
        length = np.diff(self.indptr)
        row = np.repeat(np.arange(self.num_rows), length)
        weights = np.ones(row.size) if self.weights is None else self.weights.astype(np.float64)
        total = np.bincount(row, weights, minlength=self.num_rows)[row]
        shares = np.divide(weights, total, out=weights.copy(), where=total > 0)
        return self.reweighted(shares.astype(np.float32))

    def __repr__(self) -> str:
        return (
            f"Incidence(rows={self.num_rows}, columns={self.num_columns}, entries={self.indices.size}, "
            f"weighted={self.weights is not None})"
        )


def _joined_below(graph: Graph, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct pairs (node < rows, neighbour >= rows) joined by an edge, ascending."""
    nodes = max(graph.num_nodes, 1)
    src, dst, _, _ = graph.edges()
    low, high = np.minimum(src, dst), np.maximum(src, dst)
    between = (low < rows) & (high >= rows)
    pairs = distinct(low[between] * nodes + high[between])
    return pairs // nodes, pairs % nodes


def _numbers(given: ArrayLike, name: str, limit: int) -> NDArray[np.int64]:
    array = to_numpy(given, name)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise wrong_array(array, name, "whole numbers of shape (Z,)")
    if array.size and (array.min() < 0 or array.max() >= limit):
        wrong = array.min() if array.min() < 0 else array.max()
        raise InputError(
            "range",
            name,
            "{field} hold {given}; with {size:@}{allowed} they are below that, and at least 0",
            given=int(wrong),
            size=f"num_{name}",
            allowed=limit,
        )
    return np.ascontiguousarray(array, np.int64)


def _read_weights(weights: ArrayLike, size: int) -> NDArray[np.float32]:
    array = to_numpy(weights, "weights")
    if array.shape != (size,) or array.dtype.kind not in "fiub":
        raise wrong_array(array, "weights", f"real numbers of shape ({size},)")
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = array.astype(np.float32)
    _check_weights(rounded)
    return rounded


def _check_weights(weights: NDArray[np.float32]) -> None:
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise wrong_value(float(weights[bad[0]]), f"weights[{bad[0]}]", "finite in float32 and at least 0")


def _refuse_twice(row: NDArray[np.int64], column: NDArray[np.int64], order: NDArray[np.int64]) -> None:
    """Raise for the first repeated pair; ``order`` is a stable sort, so equal pairs keep their input order."""
    r, c = row[order], column[order]
    again = np.flatnonzero((r[1:] == r[:-1]) & (c[1:] == c[:-1]))
    if again.size:
        first = again[np.argmin(order[again + 1])]
        raise InputError(
            "duplicate",
            "rows",
            "pairs {first} and {second} are both row {row}, column {column}; merge them, adding their weights",
            first=int(order[first]),
            second=int(order[first + 1]),
            row=int(r[first]),
            column=int(c[first]),
        )


def _check_arrays(incidence: Incidence) -> None:
    wanted = {"indptr": np.int64, "indices": np.int32, "weights": np.float32}
    for name, dtype in wanted.items():
        array = getattr(incidence, name)
        if name != "weights" or array is not None:
            check_array(array, name, dtype)
    entries = incidence.indices.size
    check_indptr(incidence.indptr, entries)
    if incidence.num_rows > MAX_SIZE:
        raise InputError(
            "limit",
            "indptr",
            "{field} has {given} rows; at most {allowed} are allowed",
            given=incidence.num_rows,
            allowed=MAX_SIZE,
        )
    if incidence.weights is not None:
        check_as_long("weights", incidence.weights.size, "indices", entries)
