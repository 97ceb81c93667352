"""``nx.pagerank`` from the second call on: NetworkX's own, over a SciPy matrix, and by its backend hopfuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .rows import Row, compared


def rows(sizes: tuple[int, ...] = (10_000, 100_000), turns: int = 5) -> Iterator[Row]:
    """Yield rows for undirected and directed weighted graphs with about 5 edges a node."""
    import networkx as nx

    nx.config.warnings_to_ignore.add("cache")
    draw = np.random.default_rng(0)
    for nodes in sizes:
        graphs = {
            "undirected": nx.barabasi_albert_graph(nodes, 5, seed=1),
            "directed": nx.gnm_random_graph(nodes, 5 * nodes, seed=1, directed=True),
        }
        for kind, graph in graphs.items():
            weights = draw.uniform(0.5, 1.5, graph.number_of_edges()).tolist()
            nx.set_edge_attributes(graph, dict(zip(graph.edges, weights, strict=True)), "weight")
            restart = {int(node): 1.0 for node in draw.integers(0, nodes, 3)}
            for what, options in (
                ("", {}),
                (", personalised", {"personalization": restart}),
                # N tol = 1e-6 is the accuracy that hopfuse computes in any case.
                (", personalised, tol=1e-6/N", {"personalization": restart, "tol": 1e-6 / nodes, "max_iter": 1000}),
            ):
                yield compared(
                    f"NetworkX, {kind}, {nodes:,} nodes{what}",
                    lambda graph=graph, options=options: nx.pagerank(graph, **options),  # type: ignore[misc]
                    lambda graph=graph, options=options: nx.pagerank(graph, backend="hopfuse", **options),  # type: ignore[misc]
                    _difference,
                    most=nodes * options.get("tol", 1e-6) / 0.15,
                    turns=turns,
                )


def _difference(own: dict[Any, float], ours: dict[Any, float]) -> float:
    """Return the L1 distance, which NetworkX's tol bounds."""
    return sum(abs(own[node] - ours[node]) for node in own)
