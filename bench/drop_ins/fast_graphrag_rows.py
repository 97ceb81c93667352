"""fast-graphrag's ``score_nodes``, one question per call: its own, and after ``accelerate(storage)``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
from hopfuse.adapters.fast_graphrag import accelerate

from .rows import Row, compared


def rows(nodes: int = 30_000, turns: int = 9) -> Iterator[Row]:
    """Yield a row for a graph with about 5 edges a node."""
    own, ours = storage(nodes), accelerate(storage(nodes))
    weights = some_weights(nodes)
    yield compared(
        f"fast-graphrag, {nodes:,} nodes",
        lambda: asyncio.run(own.score_nodes(weights)),
        lambda: asyncio.run(ours.score_nodes(weights)),
        lambda one, other: float(abs(one - other).max()),
        most=1e-6,
        turns=turns,
    )


def storage(nodes: int) -> Any:
    """Return a new storage with a random graph, the same each time."""
    import igraph
    from fast_graphrag._storage._gdb_igraph import IGraphStorage, IGraphStorageConfig
    from fast_graphrag._types import TEntity, TRelation

    made = IGraphStorage(IGraphStorageConfig(TEntity, TRelation))
    draw = np.random.default_rng(0)
    made._graph = igraph.Graph(nodes, draw.integers(0, nodes, (5 * nodes, 2)).tolist())
    return made


def some_weights(nodes: int) -> Any:
    """Return the weights of a question, at eight nodes, (1, N)."""
    from scipy.sparse import csr_matrix

    weights = np.zeros((1, nodes), np.float32)
    weights[0, np.random.default_rng(1).integers(0, nodes, 8)] = 0.5
    return csr_matrix(weights)
