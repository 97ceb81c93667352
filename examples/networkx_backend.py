"""Speed up code that calls ``networkx.pagerank`` by one line of configuration.

Run ``python examples/networkx_backend.py`` with hopfuse, networkx and scipy installed.
"""

from __future__ import annotations

import random
import time

import networkx as nx

NODES, QUESTIONS = 10_000, 5

random.seed(0)
graph = nx.barabasi_albert_graph(NODES, 5, seed=0)
for _, _, data in graph.edges(data=True):
    data["weight"] = random.uniform(0.5, 1.5)
questions = [dict.fromkeys(random.sample(range(NODES), 3), 1.0) for _ in range(QUESTIONS)]


def answers() -> tuple[float, list[dict[int, float]]]:
    """Return the milliseconds per question, and the scores: the existing code."""
    start = time.perf_counter()
    scores = [nx.pagerank(graph, alpha=0.5, personalization=question, tol=1e-10) for question in questions]
    return 1e3 * (time.perf_counter() - start) / QUESTIONS, scores


by_networkx, expected = answers()

nx.config.backend_priority = ["hopfuse"]  # the one line; or the environment's NETWORKX_BACKEND_PRIORITY=hopfuse
nx.config.warnings_to_ignore.add("cache")  # NetworkX warns that it caches converted graphs
nx.pagerank(graph)  # the graph is converted at the first call
by_hopfuse, scores = answers()

print(f"{QUESTIONS} questions over {NODES:,} nodes and {graph.number_of_edges():,} edges, milliseconds per question")
print(f"  networkx              {by_networkx:8.2f}")
print(f"  its backend hopfuse   {by_hopfuse:8.2f}   {by_networkx / by_hopfuse:5.1f} times as fast")
gaps = (abs(one[v] - other[v]) for one, other in zip(scores, expected, strict=True) for v in graph)
print(f"Largest difference of a score: {max(gaps):.1e}")
