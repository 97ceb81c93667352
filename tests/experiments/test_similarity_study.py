"""The study of tau's unit: its walk is the library's, the right unit loses nothing, and the page has its tables."""

from __future__ import annotations

import hopfuse as hf
import numpy as np
from cases import random_graph
from numpy.typing import NDArray
from scipy.sparse import coo_array

from experiments import similarity, walks
from experiments.similarity import TEMPERATURES, UNITS, Encoder, Measured, Walks, study, walked


def test_its_walk_is_the_librarys_with_node_weights() -> None:
    rng = np.random.default_rng(0)
    nodes, passages, batch = 120, 70, 6
    graph = random_graph(rng, nodes, 900, hub=100)
    matrix = dense_matrix(graph)
    restarts = np.zeros((batch, nodes), np.float32)
    restarts[np.arange(batch), 100] = 1
    cosines = rng.uniform(-0.2, 0.9, (batch, passages)).astype(np.float32)
    z = np.maximum(np.exp((cosines - cosines.max(axis=1, keepdims=True)) / 0.1), walks.FLOOR)
    scores = hf.ppr(graph, restarts, damping=0.5, node_weights=z, weighted_nodes=np.arange(passages)).scores
    best = np.argsort(-scores[:, :passages], axis=1)[:, : similarity.K]
    given = Walks(matrix, restarts.T.copy(), [row.tolist() for row in best], np.arange(batch), np.zeros(batch, bool))
    assert (walked(given, cosines, 0.1) == 1).all()


def dense_matrix(graph: hf.Graph) -> object:
    """Return its weights by the caller's nodes."""
    length = np.diff(graph.indptr)
    row, column = np.repeat(graph.node_of, length), graph.node_of[graph.indices]
    data = np.ones(column.size, np.float32) if graph.weight is None else graph.weight
    return coo_array((data, (row, column)), shape=(graph.num_nodes, graph.num_nodes)).tocsr()


def measured(spread: NDArray[np.float32], best: float) -> Measured:
    """Return recall that is highest at a temperature of ``best`` times a question's spread."""
    at = np.log2(best * spread[:, None] / TEMPERATURES)
    spreads = {name: spread if name == "standard deviation" else np.ones_like(spread) for name in UNITS}
    return Measured(1 - np.abs(at) / 10, spreads, np.arange(spread.size) % 2 == 0)


def test_the_unit_that_fits_loses_nothing_and_has_its_tau() -> None:
    rng = np.random.default_rng(1)
    narrow, wide = (rng.uniform(0.8, 1.25, 40).astype(np.float32) * spread for spread in (0.03, 0.3))
    found = study({"a": Encoder({"f": measured(narrow, 1.5)}), "b": Encoder({"f": measured(wide, 1.5)})})
    fits, other = found["units"]["standard deviation"], found["units"]["1: the cosine itself"]
    assert abs(np.log2(fits["tau"] / 1.5)) < 0.2
    assert max(fits["test"].values()) <= 0
    assert min(other["test"].values()) > 10
    assert found["questions"] == {"f": [20, 20]}
