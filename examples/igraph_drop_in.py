"""Speed up code that calls igraph's personalized_pagerank in a loop: by one line, or by one call for all questions.

Run ``python examples/igraph_drop_in.py`` with hopfuse and igraph installed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import igraph
import numpy as np
from hopfuse.adapters.igraph import accelerate, personalized_pagerank_batch

NODES, QUESTIONS = 30_000, 32
OPTIONS = {"damping": 0.5, "weights": "weight"}


def timed(run: Callable[[], Any]) -> tuple[float, np.ndarray]:
    """Return the milliseconds per question, and the scores."""
    start = time.perf_counter()
    scores = run()
    return 1e3 * (time.perf_counter() - start) / QUESTIONS, np.asarray(scores)


random.seed(0)  # used by igraph
draw = np.random.default_rng(0)
graph = igraph.Graph.Barabasi(NODES, 5)
graph.es["weight"] = draw.uniform(0.5, 1.5, graph.ecount()).tolist()
questions = draw.integers(0, NODES, (QUESTIONS, 3)).tolist()  # three restart vertices each


def loop() -> list[list[float]]:
    """Call igraph's method for each question."""
    return [graph.personalized_pagerank(reset_vertices=vertices, **OPTIONS) for vertices in questions]


by_igraph, expected = timed(loop)

accelerate(graph)  # the one line: the loop stays as it is
graph.personalized_pagerank(reset_vertices=[0], **OPTIONS)  # the graph is read at the first call
by_loop, scores = timed(loop)

restarts = [dict.fromkeys(vertices, 1.0) for vertices in questions]
by_batch, together = timed(lambda: personalized_pagerank_batch(graph, restarts, **OPTIONS))

print(f"{QUESTIONS} questions over {graph.vcount():,} nodes and {graph.ecount():,} edges, milliseconds per question")
print(f"  igraph, in a loop     {by_igraph:8.2f}")
print(f"  accelerate(graph)     {by_loop:8.2f}   {by_igraph / by_loop:5.1f} times as fast")
print(f"  all in one call       {by_batch:8.2f}   {by_igraph / by_batch:5.1f} times as fast")
print(f"Largest difference of a score: {max(abs(scores - expected).max(), abs(together - expected).max()):.1e}")
