"""Edge statements: one row for each time an edge is stated, with the passage that states it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import check_array
from .._validation import check_as_long, wrong_array
from ..errors import InputError
from .graph import Graph

#: The edge is stated by no passage: it exists wherever both its ends do.
NO_PASSAGE = -1
#: It is not known whether a passage states the edge, or which.
UNKNOWN = -2


@dataclass(frozen=True, eq=False)
class EdgeStatements:
    """The statements of a graph's edges, in order, and the passages that make them.

    Parameters
    ----------
    ends : ndarray of int32, shape (I, 2)
        Source and target nodes.
    types : ndarray of uint8, shape (I,)
    weights : ndarray of float64, shape (I,)
        Above 0. The weight of an edge is the sum over its statements, in order.
    passages : ndarray of int32, shape (I,)
        Rows 0 .. P - 1; -1 if no passage states the edge (a dictionary's synonyms, say); -2 if it is not known.

    Raises
    ------
    InputError
        Arrays of other dtypes or lengths, a passage below -2, a weight that is not above 0, a negative node.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.types import EdgeStatements
    >>> EdgeStatements(np.array([[2, 3]], np.int32), np.zeros(1, np.uint8), np.ones(1), np.array([0], np.int32))
    EdgeStatements(1 edges)
    """

    ends: NDArray[np.int32]
    types: NDArray[np.uint8]
    weights: NDArray[np.float64]
    passages: NDArray[np.int32]

    def __post_init__(self) -> None:
        check_array(self.types, "types", np.uint8)
        check_array(self.weights, "weights", np.float64)
        check_array(self.passages, "passages", np.int32)
        size = self.types.size
        if self.ends.dtype != np.int32 or self.ends.shape != (size, 2):
            raise wrong_array(self.ends, "ends", f"int32({size}, 2)")
        check_as_long("weights", self.weights.size, "types", size)
        check_as_long("passages", self.passages.size, "types", size)
        limits = {"passages": (self.passages >= UNKNOWN, "at least -2"), "weights": (self.weights > 0, "above 0")}
        for name, (is_right, allowed) in (limits | {"ends": (self.ends >= 0, "at least 0")}).items():
            if not is_right.all():
                raise InputError("range", name, "{field} must be {allowed}", allowed=allowed)

    @classmethod
    def of_no_passage(cls, graph: Graph) -> EdgeStatements:
        """Return the edges of a graph as stated by no passage: each exists wherever both its ends do.

        Use it for edges that come from names or prior knowledge, such as synonyms and hierarchies, not from texts.

        Examples
        --------
        >>> import hopfuse as hf
        >>> hf.types.EdgeStatements.of_no_passage(hf.Graph.from_edges([0, 0], [1, 1])).passages
        array([-1], dtype=int32)
        """
        src, dst, weight, kind = graph.edges()
        ends = np.stack([src, dst], axis=1).astype(np.int32)
        return cls(ends, kind, weight.astype(np.float64), np.full(kind.size, NO_PASSAGE, np.int32))

    def graph(self, like: Graph, num_nodes: int | None = None) -> Graph:
        """Return the graph of these edges, with the edge types, direction and (by default) node count of ``like``.

        Examples
        --------
        >>> import numpy as np, hopfuse as hf
        >>> graph = hf.Graph.from_edges([0, 0], [1, 1])
        >>> parts = (np.zeros(2, np.uint8), np.ones(2), np.full(2, -1, np.int32))
        >>> hf.types.EdgeStatements(np.array([[0, 1], [0, 1]], np.int32), *parts).graph(graph).weight
        array([2., 2.], dtype=float32)
        """
        return Graph.from_edges(
            self.ends[:, 0],
            self.ends[:, 1],
            self.weights,
            num_nodes=like.num_nodes if num_nodes is None else num_nodes,
            directed=like.directed,
            edge_type=self.types,
            edge_type_names=like.edge_type_names,
        )

    def __len__(self) -> int:
        return int(self.types.size)

    def __repr__(self) -> str:
        return f"EdgeStatements({len(self)} edges)"
