"""Speed up the walk of a fast-graphrag memory by one line: ``accelerate(storage)``.

Run ``python examples/fast_graphrag_drop_in.py`` with hopfuse and fast-graphrag installed. It makes a graph in
fast-graphrag's own storage; that of a ``GraphRAG`` is ``rag.state_manager.graph_storage``.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import igraph
import numpy as np
from fast_graphrag._storage._gdb_igraph import IGraphStorage, IGraphStorageConfig
from fast_graphrag._types import TEntity, TRelation
from hopfuse.adapters.fast_graphrag import accelerate
from scipy.sparse import csr_matrix

NODES, QUESTIONS = 30_000, 5

random.seed(0)  # used by igraph
draw = np.random.default_rng(0)
storage: Any = IGraphStorage(IGraphStorageConfig(TEntity, TRelation))
storage._graph = igraph.Graph.Barabasi(NODES, 5)
questions = []  # scores of the entities for each question, which fast-graphrag passes to its storage
for _ in range(QUESTIONS):
    weights = np.zeros((1, NODES), np.float32)
    weights[0, draw.integers(0, NODES, 8)] = draw.random(8)
    questions.append(csr_matrix(weights))


async def answers() -> tuple[float, list[np.ndarray]]:
    """Return the milliseconds per question, and the scores of all entities."""
    start = time.perf_counter()
    scores = [(await storage.score_nodes(question)).toarray() for question in questions]
    return 1e3 * (time.perf_counter() - start) / QUESTIONS, scores


async def main() -> None:
    by_itself, expected = await answers()
    accelerate(storage)  # the one line
    await storage.score_nodes(questions[0])  # the graph is read at the first call
    by_hopfuse, scores = await answers()
    print(f"{QUESTIONS} questions over {NODES:,} entities, milliseconds per question")
    print(f"  fast-graphrag         {by_itself:8.2f}")
    print(f"  accelerate(storage)   {by_hopfuse:8.2f}   {by_itself / by_hopfuse:5.1f} times as fast")
    gaps = (abs(one - other).max() for one, other in zip(scores, expected, strict=True))
    print(f"Largest difference of a score: {max(gaps):.1e}")


asyncio.run(main())
