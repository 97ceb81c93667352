"""Float64 oracle of ising_rerank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_k
from ..errors import InputError
from ..types import Graph
from .calibration import calibrate
from .ranking import Ranking, best

__all__ = ["ising_rerank", "mean_field", "shared_neighbours"]


def ising_rerank(
    hits: Any,
    graph: Graph,
    *,
    coupling: float = 1.0,
    temperature: float = 2.0,
    relaxation: float = 0.5,
    steps: int = 20,
    blend: float = 0.25,
    k: int | None = None,
) -> Ranking:
    """Rank each query's candidates by (1 - blend) h + blend m, with m the mean field over their shared neighbours.

    h = 2 u - 1 with u the min-max scores, and 0 if all scores are equal. m is :func:`mean_field`, started at
    tanh(h / T), over :func:`shared_neighbours`.

    Parameters
    ----------
    hits : Hits or Ranking (B, n)
        Nodes of the graph, best first.
    graph : Graph
        Undirected.
    coupling, temperature, relaxation, steps, blend
        J, T, λ, the number of steps, b.
    k : int, optional
        Default: n.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> import hopfuse as hf
    >>> graph = hf.Graph.from_edges([0, 1, 3, 2], [4, 4, 4, 5])
    >>> hits = hf.Hits([[0, 1, 2, 3]], [[0.9, 0.8, 0.41, 0.4]])
    >>> hf.reference.ising_rerank(hits, graph).ids
    array([[0, 1, 3, 2]])
    """
    size = int(hits.ids.shape[1]) if k is None else min(check_k(k), int(hits.ids.shape[1]))
    field = 2.0 * calibrate(hits, "min_max", single=0.5, equal=0.5).scores - 1.0
    ranked = []
    for query, count in enumerate(hits.counts):
        ids = np.asarray(hits.ids[query, :count], np.int64)
        h = np.asarray(field[query, :count], np.float64)
        m = mean_field(
            h,
            shared_neighbours(graph, ids),
            coupling=coupling,
            temperature=temperature,
            relaxation=relaxation,
            steps=steps,
        )
        ranked.append(best(ids, (1.0 - blend) * h + blend * m, size))
    return Ranking.from_rows(ranked, size)


def shared_neighbours(graph: Graph, nodes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return A_ij = S_ij / sum_k S_ik, (n, n), with S_ij = sum_e w_ie w_je for i != j, else 0; zero rows stay 0.

    Examples
    --------
    Node 0 shares 3 and 4 with node 1, and 4 with node 2:

    >>> import hopfuse as hf, numpy as np
    >>> graph = hf.Graph.from_edges([0, 0, 1, 1, 2], [3, 4, 3, 4, 4])
    >>> shared_neighbours(graph, np.array([0, 1, 2])).round(3)
    array([[0.   , 0.667, 0.333],
           [0.667, 0.   , 0.333],
           [0.5  , 0.5  , 0.   ]])
    """
    if graph.directed:
        raise InputError("unsupported", "graph", "{field} is directed; shared neighbours need an undirected one")
    joined = [_neighbours(graph, int(node)) for node in nodes]
    shared = np.zeros((nodes.size, nodes.size))
    for i, mine in enumerate(joined):
        for j, theirs in enumerate(joined):
            if i != j:
                shared[i, j] = sum(weight * theirs[node] for node, weight in mine.items() if node in theirs)
    total = shared.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(shared, total, out=np.zeros_like(shared), where=total > 0))


def _neighbours(graph: Graph, node: int) -> dict[int, float]:
    """Return the neighbours of a node, with the total weight of the edges to each."""
    row = int(graph.internal_of[node])
    joined: dict[int, float] = {}
    for entry in range(int(graph.indptr[row]), int(graph.indptr[row + 1])):
        other = int(graph.node_of[graph.indices[entry]])
        joined[other] = joined.get(other, 0.0) + (1.0 if graph.weight is None else float(graph.weight[entry]))
    return joined


def mean_field(
    h: NDArray[np.float64],
    couplings: NDArray[np.float64],
    *,
    coupling: float,
    temperature: float,
    relaxation: float,
    steps: int,
    start: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the magnetisations m, (n,), after ``steps`` steps m ← (1 - λ) m + λ tanh((h + J A m)/T).

    Parameters
    ----------
    h : (n,)
        The field.
    couplings : (n, n)
        A.
    coupling, temperature, relaxation, steps
        J, T, λ, the number of steps.
    start : (n,), optional
        Default: tanh(h / T).

    References
    ----------
    Opper & Saad (eds.), Advanced Mean Field Methods, MIT Press 2001, chapter 2.

    Examples
    --------
    Two spins without a field: above T = J their magnetisation vanishes, below it they sustain each other.

    >>> import numpy as np
    >>> pair = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> options = {"coupling": 1.0, "relaxation": 1.0, "steps": 500, "start": np.ones(2)}
    >>> mean_field(np.zeros(2), pair, temperature=1.25, **options).round(3)
    array([0., 0.])
    >>> mean_field(np.zeros(2), pair, temperature=0.8, **options).round(3)
    array([0.71, 0.71])
    """
    m = np.tanh(h / temperature) if start is None else start
    for _ in range(steps):
        m = (1.0 - relaxation) * m + relaxation * np.tanh((h + coupling * (couplings @ m)) / temperature)
    return np.asarray(m, np.float64)
