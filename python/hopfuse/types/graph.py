"""A weighted, typed graph, validated and laid out once when it is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._arrays.convert import to_float64, to_numpy
from .._arrays.csr import Change, Csr, build_csr, continued_csr, out_degrees
from .._arrays.rows import indptr_of_counts
from .._validation import (
    as_int64,
    check_as_long,
    check_flag,
    check_list,
    check_names,
    check_whole,
    counted,
    wrong_array,
    wrong_type,
    wrong_value,
)
from ..errors import InputError
from .derived import KeepsDerived

MAX_NODES = 2**31 - 1
MAX_EDGE_TYPES = 256
#: Without num_nodes, a graph of E edges may have FREE_NODES + NODES_PER_EDGE * E nodes.
FREE_NODES, NODES_PER_EDGE = 1_000_000, 16
#: Half the largest float32, because degrees are multiplied by type weights, which are scaled below 2.
MAX_DEGREE = float(np.finfo(np.float32).max) / 2


@dataclass(frozen=True, eq=False)
class Graph(KeepsDerived):
    """A weighted, typed graph, laid out for batched Personalized PageRank. Immutable.

    Build it with :meth:`from_edges` or :meth:`from_scipy`. The arrays below use *internal* node
    numbers, a deterministic permutation of the caller's ids that is stored with the graph; every
    public function takes and returns the caller's ids.

    Attributes
    ----------
    num_nodes : int
        N; node ids are 0 .. N-1.
    directed : bool
    edge_type_names : tuple of str
        T names; type t is an index into them. An untyped graph has the one type ``"edge"``.
    indptr : ndarray of int64, shape (N + 1,)
        Row v of the stored entries: edges *into* internal node v.
    indices : ndarray of int32, shape (nnz,)
        Source node of each stored entry, ascending within a row (then ascending type).
        An undirected edge is stored in both rows, a self-loop once.
    weight : ndarray of float32, shape (nnz,), or None
        Weight of each stored entry; None if all are 1.
    edge_type : ndarray of uint8, shape (nnz,), or None
        Type of each stored entry; None if there is only one type.
    degree : ndarray of float64, shape (N, T)
        Summed weight of the edges out of each internal node, by type.
    node_of : ndarray of int32, shape (N,)
        The caller's id of each internal node.
    internal_of : ndarray of int32, shape (N,)
        The internal node of each of the caller's ids.
    """

    num_nodes: int
    directed: bool
    edge_type_names: tuple[str, ...]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weight: NDArray[np.float32] | None
    edge_type: NDArray[np.uint8] | None
    degree: NDArray[np.float64]
    node_of: NDArray[np.int32]
    internal_of: NDArray[np.int32]
    derived: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def num_stored(self) -> int:
        """The number of stored entries (nnz), all of which a pass reads."""
        return int(self.indices.size)

    @property
    def num_edge_types(self) -> int:
        """T, the number of edge types."""
        return len(self.edge_type_names)

    @property
    def keeps_order(self) -> bool:
        """Whether internal node numbers equal the caller's ids; computed once."""
        if "keeps_order" not in self.derived:
            self.derived["keeps_order"] = bool((self.node_of == np.arange(self.num_nodes)).all())
        return bool(self.derived["keeps_order"])

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"Graph({kind}, nodes={self.num_nodes}, stored={self.num_stored}, types={list(self.edge_type_names)})"

    @classmethod
    def _maker(cls, *given: Any) -> str:
        data = given[0]
        shape: tuple[int, ...] = getattr(data, "shape", ())
        if hasattr(data, "tocsr"):
            return "Graph.from_scipy(A, directed=...)"
        if len(shape) == 2 and shape[0] == shape[1] > 3:
            return "Graph.from_scipy(scipy.sparse.csr_array(A), directed=...)"
        if type(data).__module__.split(".")[0] == "igraph":
            return "hopfuse.adapters.igraph.from_igraph(graph)"
        if len(given) > 1 or len(shape) == 1 or hasattr(data, "edges"):
            return "Graph.from_edges(src, dst), with the two ends of every edge as numbers of nodes"
        return "Graph.from_edges(*zip(*edges)) for a list of edges, or Graph.from_scipy(A, directed=...) for a matrix"

    @classmethod
    def from_edges(
        cls,
        src: ArrayLike,
        dst: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        num_nodes: int | None = None,
        directed: bool = False,
        edge_type: ArrayLike | None = None,
        edge_type_names: Sequence[str] | None = None,
    ) -> Graph:
        """Build a graph from an edge list.

        Parallel edges of the same type are summed in float64, in input order; so are (a, b) and (b, a) of an
        undirected graph. A self-loop counts once. Edges of weight 0 are dropped.

        Parameters
        ----------
        src, dst : array_like of int, shape (E,)
            End points, 0 .. N-1; a directed edge goes from src to dst.
        weight : array_like of float, shape (E,), optional
            Weights >= 0, stored as float32. Default: 1 each.
        num_nodes : int, optional
            N; by default one more than the largest id. N is then limited to 1,000,000 + 16 E, so that one wrong id
            does not exhaust memory (a node takes at least 24 bytes).
        directed : bool
        edge_type : array_like of int, shape (E,), optional
            Type of each edge, 0 .. T-1.
        edge_type_names : sequence of str, optional
            T distinct names. Default: ``"type0"``, ``"type1"``, ...

        Raises
        ------
        InputError
            Ids outside the graph; weights that are negative, NaN, infinite or outside float32's
            range; shapes that differ; types without a name.

        Examples
        --------
        >>> import hopfuse as hf
        >>> g = hf.Graph.from_edges([0, 1, 1], [1, 2, 0], [1.0, 2.0, 0.5])
        >>> g
        Graph(undirected, nodes=3, stored=4, types=['edge'])
        """
        check_flag(directed, "directed")
        s, d = _ids(src, "src"), _ids(dst, "dst")
        check_as_long("src", s.size, "dst", d.size)
        n = _num_nodes(s, d, num_nodes)
        w = _weights(weight, s.size)
        types, names = _types(edge_type, edge_type_names, s.size)
        return cls._from_triplets(n, directed, s, d, w, types, names)

    @classmethod
    def from_scipy(cls, A: Any, *, directed: bool) -> Graph:
        """Build a graph from a square SciPy sparse matrix; ``A[i, j]`` is the edge i -> j.

        Parameters
        ----------
        A : scipy.sparse matrix or array, shape (N, N)
            Weights >= 0. Duplicates of a COO matrix are summed.
        directed : bool
            If False, A must be symmetric, and each pair (i, j), (j, i) is one edge.

        Raises
        ------
        InputError
            A matrix that is not square, or not symmetric with ``directed=False`` (the message names a pair).

        Examples
        --------
        >>> import scipy.sparse as sp, hopfuse as hf
        >>> hf.Graph.from_scipy(sp.csr_array([[0, 2], [2, 0]]), directed=False)
        Graph(undirected, nodes=2, stored=2, types=['edge'])
        """
        if not hasattr(A, "tocsr") or len(getattr(A, "shape", ())) != 2:
            raise wrong_type(A, "A", "a sparse matrix of SciPy: scipy.sparse.csr_array(A)")
        if A.shape[0] != A.shape[1]:
            raise InputError(
                "shape", "A", "{field} has the shape {given}; an adjacency matrix must be square", given=A.shape
            )
        check_flag(directed, "directed")
        coo = A.tocoo()
        weight = _weights(coo.data, coo.data.size, "A.data")
        src, dst = coo.row.astype(np.int64), coo.col.astype(np.int64)
        if not directed:
            csr = A.astype(np.float64).tocsr()
            if not csr.has_canonical_format:
                csr = csr.copy()
                csr.sum_duplicates()
            gap = abs(csr - csr.T).tocoo()
            if (gap.data != 0).any():
                at = int(np.flatnonzero(gap.data != 0)[0])
                i, j = int(gap.row[at]), int(gap.col[at])
                raise InputError(
                    "conflict",
                    "directed",
                    "{field}=False needs a symmetric matrix, but A[{row}, {column}] is {given} and "
                    "A[{column}, {row}] is {mirrored}; pass {field}=True, or symmetrise it: A + A.T",
                    row=i,
                    column=j,
                    given=float(csr[i, j]),
                    mirrored=float(csr[j, i]),
                )
            keep = src <= dst
            src, dst, weight = src[keep], dst[keep], weight[keep]
        n = _num_nodes(src, dst, int(A.shape[0]))
        return cls._from_triplets(n, directed, src, dst, weight, np.zeros(src.size, np.uint8), ("edge",))

    @classmethod
    def _from_triplets(
        cls,
        n: int,
        directed: bool,
        src: NDArray[Any],
        dst: NDArray[Any],
        weight: NDArray[Any],
        types: NDArray[np.uint8],
        names: tuple[str, ...],
    ) -> Graph:
        csr = build_csr(n, directed, src, dst, weight, types, len(names))
        return cls._of_csr(csr, directed, names)

    @classmethod
    def _of_csr(cls, csr: Csr, directed: bool, names: tuple[str, ...]) -> Graph:
        n = csr.node_of.size
        degree = out_degrees(n, len(names), csr)
        _check_degrees(degree, csr.node_of)
        return cls(
            n, directed, names, csr.indptr, csr.indices, csr.weight, csr.edge_type, degree, csr.node_of, csr.internal_of
        )

    def continued(self, change: Change) -> Graph:
        """Return the graph after a change of some nodes and edges, equal in every bit to one built of all its edges.

        It takes the time of one copy of the arrays. The graph is to have the caller's own node order (``keeps_order``).

        Parameters
        ----------
        change : Change
            The new nodes of all nodes, and the statements of the edges that change. An edge between two nodes that
            remain is given with all its statements.

        Raises
        ------
        InputError
            As :meth:`from_edges`, for the edges that change.

        Examples
        --------
        >>> import numpy as np, hopfuse as hf
        >>> from hopfuse._arrays.csr import Change
        >>> node, ends, none = np.array([0, 2], np.int32), (np.array([1]), np.array([2])), np.zeros(0, np.int64)
        >>> one = np.zeros(1, np.uint8)
        >>> change = Change(node, 3, ends, np.ones(1), one, (none, none, none.astype(np.uint8)))
        >>> hf.Graph.from_edges([0], [1]).continued(change).edges()[:2]
        (array([0, 1]), array([2, 2]))
        """
        before = Csr(self.indptr, self.indices, self.weight, self.edge_type, self.node_of, self.internal_of)
        made = continued_csr(before, self.degree, self.counts_of_types(), self.directed, change)
        _check_degrees(made.degree[made.changed], made.changed)
        graph = Graph(
            change.num_nodes,
            self.directed,
            self.edge_type_names,
            *(made.csr.indptr, made.csr.indices, made.csr.weight, made.csr.edge_type),
            made.degree,
            *(made.csr.node_of, made.csr.internal_of),
        )
        graph.derived.update(keeps_order=True, counts_of_types=made.edges)
        return graph

    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], NDArray[np.uint8]]:
        """Return (src, dst, weight, type) of the merged edges, in the caller's ids; undirected edges once."""
        row = np.repeat(np.arange(self.num_nodes, dtype=np.int64), np.diff(self.indptr))
        col = self.indices.astype(np.int64)
        keep = np.ones(row.size, bool) if self.directed else row >= col
        w = np.ones(row.size, np.float32) if self.weight is None else self.weight
        t = np.zeros(row.size, np.uint8) if self.edge_type is None else self.edge_type
        node = self.node_of.astype(np.int64)
        return node[col[keep]], node[row[keep]], w[keep], t[keep]

    def induced(self, nodes: NDArray[np.int64]) -> Graph:
        """Return the graph of some nodes and the edges between them, equal to one that is built of these edges.

        Parameters
        ----------
        nodes : ndarray of int64
            Ascending; they are numbered from 0 in the new graph.

        Examples
        --------
        >>> import numpy as np, hopfuse as hf
        >>> some = hf.Graph.from_edges([0, 1, 1], [1, 2, 3]).induced(np.array([1, 3]))
        >>> some, some.edges()[:2]
        (Graph(undirected, nodes=2, stored=2, types=['edge']), (array([0]), array([1])))
        """
        if not self.keeps_order:
            place = np.full(self.num_nodes, -1, np.int64)
            place[nodes] = np.arange(nodes.size)
            src, dst, weight, kind = self.edges()
            kept = (place[src] >= 0) & (place[dst] >= 0)
            names, ends = self.edge_type_names, (place[src[kept]], place[dst[kept]])
            how: dict[str, Any] = {"directed": self.directed, "edge_type_names": names, "num_nodes": nodes.size}
            return Graph.from_edges(*ends, weight[kept], edge_type=kind[kept], **how)
        number = np.full(self.num_nodes, -1, np.int32)
        number[nodes] = np.arange(nodes.size, dtype=np.int32)
        of, rows = self._rows_of(nodes)
        row, col = number[rows], number[self.indices if of is None else self.indices[of]]
        inside = np.flatnonzero((row >= 0) & (col >= 0))
        row, col, entries = row[inside], col[inside], inside if of is None else of[inside]
        weights = None if self.weight is None else self.weight[entries]
        csr = Csr(
            indptr_of_counts(np.bincount(row, minlength=nodes.size)),
            col,
            None if weights is None or (weights == 1).all() else weights,
            None if self.edge_type is None else self.edge_type[entries],
            np.arange(nodes.size, dtype=np.int32),
            np.arange(nodes.size, dtype=np.int32),
        )
        return Graph._of_csr(csr, self.directed, self.edge_type_names)

    def _rows_of(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64] | None, NDArray[Any]]:
        """Return the stored entries in the rows of some nodes, and their rows; if these are many, None and all rows."""
        if 2 * nodes.size > self.num_nodes:
            return None, np.repeat(np.arange(self.num_nodes, dtype=np.int32), np.diff(self.indptr))
        count = self.indptr[nodes + 1] - self.indptr[nodes]
        begin = indptr_of_counts(count)
        return np.arange(begin[-1]) + np.repeat(self.indptr[nodes] - begin[:-1], count), np.repeat(nodes, count)

    def counts_of_types(self) -> NDArray[np.int64]:
        """Return the number of merged edges of each type; undirected edges count once.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.Graph.from_edges([0, 1], [1, 0]).counts_of_types()
        array([1])
        """
        if "counts_of_types" not in self.derived:
            self.derived["counts_of_types"] = self._counts_of_types()
        found: NDArray[np.int64] = self.derived["counts_of_types"]
        return found.copy()

    def _counts_of_types(self) -> NDArray[np.int64]:
        row = np.repeat(np.arange(self.num_nodes, dtype=np.int32), np.diff(self.indptr))
        keep = np.ones(row.size, np.bool_) if self.directed else row >= self.indices
        if self.edge_type is None:
            return np.array([np.count_nonzero(keep)] + [0] * (self.num_edge_types - 1), np.int64)
        return np.bincount(self.edge_type[keep], minlength=self.num_edge_types).astype(np.int64)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the graph's arrays by name, for storage; see :meth:`from_arrays`."""
        arrays: dict[str, NDArray[Any]] = {
            "indptr": self.indptr,
            "indices": self.indices,
            "degree": self.degree,
            "node_of": self.node_of,
            "internal_of": self.internal_of,
        }
        if self.weight is not None:
            arrays["weight"] = self.weight
        if self.edge_type is not None:
            arrays["edge_type"] = self.edge_type
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], *, directed: bool, edge_type_names: Sequence[str]
    ) -> Graph:
        """Return a graph of the arrays that :meth:`to_arrays` returned, without a copy (they may be memory-mapped).

        Only shapes and dtypes are checked; the caller must have verified the contents, by checksums for example.
        """
        names = tuple(edge_type_names)
        n = int(arrays["node_of"].shape[0])
        nnz = int(arrays["indices"].shape[0])
        expect = {
            "indptr": (np.int64, (n + 1,)),
            "indices": (np.int32, (nnz,)),
            "degree": (np.float64, (n, len(names))),
            "node_of": (np.int32, (n,)),
            "internal_of": (np.int32, (n,)),
            "weight": (np.float32, (nnz,)),
            "edge_type": (np.uint8, (nnz,)),
        }
        for name, array in arrays.items():
            check_names([name], "arrays", expect)
            dtype, shape = expect[name]
            if array.dtype != dtype or array.shape != shape:
                raise wrong_array(array, f"arrays[{name!r}]", f"{np.dtype(dtype)}{shape}")
        if n and int(arrays["indptr"][-1]) != nnz:
            raise InputError(
                "length",
                "arrays['indptr']",
                "{field} ends at {given}, but there are {allowed} stored entries",
                given=int(arrays["indptr"][-1]),
                allowed=nnz,
            )
        return cls(
            n,
            directed,
            names,
            arrays["indptr"],
            arrays["indices"],
            arrays.get("weight"),
            arrays.get("edge_type"),
            arrays["degree"],
            arrays["node_of"],
            arrays["internal_of"],
        )


def _ids(values: ArrayLike, name: str) -> NDArray[Any]:
    array = to_numpy(values, name)
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise wrong_array(array, name, "a one-dimensional array of integers")
    return array if array.dtype == np.int32 else as_int64(array, name)


def _num_nodes(src: NDArray[Any], dst: NDArray[Any], given: int | None) -> int:
    largest = int(max(src.max(initial=-1), dst.max(initial=-1)))
    smallest = int(min(src.min(initial=0), dst.min(initial=0)))
    field = "src" if (src.min(initial=0) if smallest < 0 else src.max(initial=-1)) in (smallest, largest) else "dst"
    if smallest < 0:
        raise InputError("range", field, "{field} has the node {given}; nodes are at least 0", given=smallest)
    if given is None:
        n = largest + 1
        check_node_count(n, src.size, field, largest, "num_nodes")
    n = check_whole(largest + 1 if given is None else given, "num_nodes", MAX_NODES, least=0)
    if largest >= n:
        raise InputError(
            "unknown",
            field,
            "{field} has the node {given}, which is outside the graph of {@num_nodes}{nodes}",
            given=largest,
            nodes=n,
        )
    return n


def check_node_count(nodes: int, edges: int, field: str, largest: int, option: str, noun: str = "node") -> None:
    """Raise if the number of nodes, inferred from the largest id, is implausible for the number of edges.

    A million nodes cost only some MiB, and a graph whose nodes mostly have edges has far fewer than 16 per edge. Beyond
    that, a wrong id is the likelier reason.
    """
    limit = FREE_NODES + NODES_PER_EDGE * edges
    if nodes > limit:
        raise InputError(
            "limit",
            field,
            "{field} has the node {given}, which implies {implied} for {edges}; without {option:@} at most {allowed:,} "
            "are allowed ({free:,} and {more} for each edge): correct the node, or give {option:@}",
            given=largest,
            implied=counted(nodes, noun),
            edges=counted(edges, "edge"),
            option=option,
            allowed=limit,
            free=FREE_NODES,
            more=NODES_PER_EDGE,
        )


def _check_degrees(degree: NDArray[np.float64], node_of: NDArray[np.int32]) -> None:
    heavy = np.flatnonzero(degree.sum(axis=1) > MAX_DEGREE)
    if heavy.size:
        raise InputError(
            "limit",
            "weight",
            "the edges of node {node} have the total weight {given}; at most {allowed:.3g} is allowed: scale {field} "
            "(only its ratios matter)",
            node=int(node_of[heavy[0]]),
            given=float(degree[heavy[0]].sum()),
            allowed=MAX_DEGREE,
        )


def _weights(weight: ArrayLike | None, size: int, field: str = "weight") -> NDArray[Any]:
    """Return float32 weights unchanged and others as float64, so that parallel edges are summed before rounding."""
    if weight is None:
        return np.ones(size, np.float32)
    w = to_numpy(weight, field)
    if w.size == 0 and size == 0:
        return np.zeros(0, np.float32)
    if w.dtype.kind not in "fiub" or w.shape != (size,):
        raise wrong_array(w, field, f"real numbers of shape ({size},), one for each edge")
    w = w if w.dtype == np.float32 else to_float64(w)
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise wrong_value(float(w[at]), f"{field}[{at}]", "finite and at least 0")
    return w


def _types(
    edge_type: ArrayLike | None, names: Sequence[str] | None, size: int
) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    if names is not None:
        names = check_list(names, "edge_type_names", "a list of names, one for each type")
    if edge_type is None:
        if names is not None and len(names) != 1:
            raise InputError(
                "unused",
                "edge_type_names",
                "{field} has {count}, but there is no {@edge_type}; give it too",
                count=counted(len(names), "name"),
            )
        return np.zeros(size, np.uint8), tuple(names) if names is not None else ("edge",)
    t = to_numpy(edge_type, "edge_type")
    if t.shape != (size,) or (size and t.dtype.kind not in "iu"):
        raise wrong_array(t, "edge_type", f"integers of shape ({size},), one for each edge")
    count = len(names) if names is not None else int(t.max(initial=0)) + 1
    if not 1 <= count <= MAX_EDGE_TYPES:
        raise InputError(
            "limit",
            "edge_type",
            "{field} has {given} types; 1 to {allowed} are allowed",
            given=count,
            allowed=MAX_EDGE_TYPES,
        )
    if size and (int(t.min()) < 0 or int(t.max()) >= count):
        raise InputError(
            "range",
            "edge_type",
            "{field} runs from {first} to {last}; with {names} it is 0 .. {allowed}",
            first=int(t.min()),
            last=int(t.max()),
            names=counted(count, "name"),
            allowed=count - 1,
        )
    tuple_names = tuple(str(x) for x in names) if names is not None else tuple(f"type{i}" for i in range(count))
    if len(set(tuple_names)) != count:
        raise InputError(
            "duplicate",
            "edge_type_names",
            "{field} {given} repeat a name; names must be distinct",
            given=list(tuple_names),
        )
    return t.astype(np.uint8), tuple_names
