"""Add hits and their entities to seeds on the CPU, in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import entries_of
from .calls import EntitySeedCall, SeedCall


def add_passage_seeds(call: SeedCall) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return nodes and weights, (B, S + k), the same bits as kernels/cuda/add_passage_seeds.cu."""
    node, weight, ids, scores, counts, mass, _ = call
    held = np.arange(ids.shape[1]) < counts[:, None]
    score = np.where(held & (scores > 0), scores.astype(np.float64), 0.0)
    own = _over(weight, _sum(weight))
    share = _over(mass * score, _sum(score))
    same = (ids[:, :, None] == node[:, None, :]) & (node >= 0)[:, None, :] & (score > 0)[:, :, None]
    for j in range(ids.shape[1]):  # in the same order as the kernel
        own = np.where(same[:, j], own + share[:, j, None], own)
    is_new = (score > 0) & ~same.any(axis=2)
    nodes = np.concatenate([node, np.where(is_new, ids, -1)], axis=1)
    return nodes, np.concatenate([own, np.where(is_new, share, 0.0)], axis=1)


def add_entity_seeds(call: EntitySeedCall) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return nodes and weights, (B, S + W), the same bits as kernels/cuda/add_entity_seeds.cu.

    W is the largest number of entries in the rows of a query's hits. Each entry has a column, ordered by rank and then
    by node. A node that is a seed or has an earlier column adds to that one and leaves its own empty. All sums are
    float64, in column order.
    """
    rows, batch = call.mentions, len(call.node)
    query, at = np.nonzero(np.arange(call.ids.shape[1]) < call.counts[:, None])
    passages = call.ids[query, at]
    held, count = entries_of(rows.indptr, rows.indices, passages)
    of, rank, node = np.repeat(query, count), np.repeat(at + 1, count), held.astype(np.int64)
    often = call.frequency[node] if call.frequency.ndim == 1 else call.frequency[of, node]
    worth = np.ones(node.size)
    if rows.weights is not None:
        worth = entries_of(rows.indptr, rows.weights, passages)[0].astype(np.float64)
    value = np.divide(worth, rank * often, out=np.zeros(node.size), where=often > 0)
    _, first, same = np.unique(of * rows.num_columns + node, return_index=True, return_inverse=True)
    own, other = _sum(call.weight), np.bincount(of, value, minlength=batch)[:, None]
    has_own, has_other = (own > 0) & np.isfinite(own), other > 0
    weights = np.where(has_own & has_other, 1.0 - call.mass, 1.0) * _over(call.weight, own)
    to = of[first]
    share = np.bincount(same, value, minlength=first.size) * np.where(has_own, call.mass, 1.0)[to, 0]
    share = np.divide(share, other[to, 0], out=np.zeros(first.size), where=has_other[to, 0])
    known, seed = np.nonzero(call.node[to] == node[first, None])
    weights[to[known], seed] += share[known]
    new, shape = share > 0, (batch, int(np.bincount(of, minlength=1).max()))
    new[known] = False
    places = to[new], (first - np.searchsorted(of, to))[new]
    nodes, shares = np.full(shape, -1, np.int64), np.zeros(shape)
    nodes[places], shares[places] = node[first][new], share[new]
    return np.concatenate([call.node, nodes], axis=1), np.concatenate([weights, shares], axis=1)


def _sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sums from left to right, (B, 1)."""
    if not values.shape[1]:
        return np.zeros((values.shape[0], 1))
    with np.errstate(over="ignore"):  # the walk refuses a sum that overflows
        return np.cumsum(values, axis=1)[:, -1:]


def _over(values: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(values, total, out=values.copy(), where=(total > 0) & np.isfinite(total))
