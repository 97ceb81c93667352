"""Drawn inputs of the cases of the self-test."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import indptr_of_counts
from ..types import Graph
from .calls.dense import RowFilter
from .calls.ppr import NodeWeightCall
from .walk_queries import PprQueries
from .walks import Restart

__all__ = ["NODES", "draw_filter", "draw_hits", "draw_walks"]

NODES, HUB = 140, 7


def draw_walks(
    batch: int,
    *,
    weighted: bool = False,
    types: int = 1,
    directed: bool = False,
    per_type: bool = False,
    masks: int = 0,
    decades: float = 0.0,
    damping: float = 0.5,
    tol: float = 1e-6,
    nodes_in_all: int = NODES,
) -> tuple[Graph, PprQueries]:
    """Return a graph with a hub longer than a segment, self-loops and isolated nodes, and a batch of queries on it.

    The unweighted graph has no parallel edges, which would be summed to weights. If ``decades`` is given, half of the
    nodes have node weights spread over that many decades.
    """
    rng = np.random.default_rng(batch)
    plain = types == 1 and not weighted
    pairs = rng.integers(0, nodes_in_all - 10, (4 * nodes_in_all, 2))
    pairs = np.concatenate([pairs, [(node, HUB) for node in range(nodes_in_all - 10)]])
    src, dst = (np.unique(np.sort(pairs, axis=1), axis=0) if plain else pairs).T
    graph = Graph.from_edges(
        src,
        dst,
        None if plain else rng.random(src.size) + 0.01,
        num_nodes=nodes_in_all,
        directed=directed,
        edge_type=rng.integers(0, types, src.size) if types > 1 else None,
        edge_type_names=[f"type {t}" for t in range(types)] if types > 1 else None,
    )
    nodes = [np.sort(rng.choice(nodes_in_all - 10, 3, replace=False)).astype(np.int32) for _ in range(batch)]
    allowed = np.asarray(rng.random((masks, nodes_in_all)) < 0.7, np.uint8) if masks else None
    if allowed is not None:
        for query, seeds in enumerate(nodes):
            allowed[query % masks, seeds] = 1
    weights = None
    if types > 1:
        weights = rng.random((batch, types)) + 0.1
        weights /= weights.sum(axis=1, keepdims=True) if per_type else weights.max(axis=1, keepdims=True)
    restart = Restart(np.arange(batch + 1, dtype=np.int64) * 3, np.concatenate(nodes), rng.random(3 * batch) + 0.1)
    node_weights = None
    if decades:
        own = np.arange(0, nodes_in_all, 2, dtype=np.int32)
        drawn = 10.0 ** (-decades * rng.random((batch, own.size)))
        call = NodeWeightCall(graph, drawn, own, per_type=False, allow=allowed, lightest=None)
        node_weights = call.run_on_host()
    return graph, PprQueries(
        *restart,
        damping=np.where(np.arange(batch) % 4 == 3, 0.85, damping),
        edge_type_weights=weights,
        per_type=per_type,
        allow=allowed,
        tol=tol,
        max_iter=0,
        threads=1,
        node_weights=node_weights,
    )


def draw_filter(rng: np.random.Generator, kind: str | None, batch: int, rows: int, shared: bool) -> RowFilter:
    if kind is None:
        return RowFilter()
    chosen = rng.random((1 if shared else batch, rows)) < (0.05 if kind == "few ids" else 0.6)
    if kind == "mask":
        mask = chosen.astype(np.uint8)
        return RowFilter(mask=mask[0] if shared else mask, shared=shared)
    ids = np.nonzero(chosen)[1].astype(np.int64)
    return RowFilter(indptr=indptr_of_counts(chosen.sum(axis=1)), ids=ids, shared=shared)


def draw_hits(
    rng: np.random.Generator, batch: int, width: int, documents: int
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Draw sorted hits with ties; the lists of all queries but the first are partly empty."""
    ids = np.stack([rng.permutation(documents)[:width] for _ in range(batch)]).astype(np.int64)
    scores = np.sort(rng.integers(1, 40, ids.shape) / 8, axis=1)[:, ::-1].astype(np.float32)
    counts = rng.integers(0, width + 1, batch)
    counts[0] = width
    ids[np.arange(width) >= counts[:, None]] = -1
    scores[np.arange(width) >= counts[:, None]] = -np.inf
    return ids, scores, counts
