"""The connected components of a graph: where a walk can get to."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..types import Graph


def connected_components(graph: Graph) -> NDArray[np.int64]:
    """The smallest node id in each node's component; edges count in both directions.

    Every tree of a forest is hooked onto the smallest neighbouring root and flattened, until no edge joins
    two trees: about log N rounds over the edges.

    Parameters
    ----------
    graph : Graph
        N nodes.

    Returns
    -------
    ndarray of int64, shape (N,)
        By the caller's node ids.

    References
    ----------
    Shiloach and Vishkin, J. Algorithms 3 (1982).

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import connected_components
    >>> connected_components(hf.Graph.from_edges([0, 3], [2, 4], num_nodes=6))
    array([0, 1, 0, 3, 3, 5])
    """
    head = graph.node_of[np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))].astype(np.int64)
    tail = graph.node_of[graph.indices].astype(np.int64)
    root = np.arange(graph.num_nodes, dtype=np.int64)
    while True:
        a, b = root[head], root[tail]
        if (a == b).all():
            return root
        low = np.minimum(a, b)
        np.minimum.at(root, a, low)
        np.minimum.at(root, b, low)
        while (root != root[root]).any():
            root = root[root]
