"""Build a graph from blocks of typed edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..types import Graph


class Edges(NamedTuple):
    """Edges of one type: pairs of nodes, shape (n, 2), and weights, shape (n,)."""

    name: str
    pairs: NDArray[np.int64]
    weight: NDArray[np.float64]


def graph_of(blocks: Sequence[Edges], num_nodes: int) -> Graph:
    """Return the undirected graph of some blocks; blocks with the same name have the same type.

    Examples
    --------
    >>> pair = np.array([[0, 1]])
    >>> graph_of([Edges("context", pair, np.ones(1)), Edges("word", pair, np.ones(1))], 2).edge_type_names
    ('context', 'word')
    """
    pairs = np.concatenate([block.pairs for block in blocks])
    number = {name: at for at, name in enumerate(dict.fromkeys(block.name for block in blocks))}
    return Graph.from_edges(
        pairs[:, 0],
        pairs[:, 1],
        np.concatenate([block.weight for block in blocks]),
        edge_type=np.concatenate([np.full(len(block.pairs), number[block.name]) for block in blocks]),
        edge_type_names=list(number),
        num_nodes=num_nodes,
        directed=False,
    )
