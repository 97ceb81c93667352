"""Add hits and their entities to seeds, and choose hits that cover seeds, on the CPU, in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import entries_of
from ..types.hits import PAD_ID, PAD_SCORE
from .calls import CoverCall, EntitySeedCall, HitArrays, SeedCall


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


def cover_seeds(call: CoverCall) -> HitArrays:
    """Return ids, scores and counts, (B, k), the same bits as kernels/cuda/cover_seeds.cu.

    A hit's turn is the rank of the heaviest seed that it is the first to mention, and -1 for the first hit. The hits
    with the k lowest turns are chosen.
    """
    (batch, places), (width, k), rows = call.node.shape, (call.ids.shape[1], call.k), call.mentions
    weight = np.where(call.node >= 0, call.weight, 0.0)
    order = np.lexsort((call.node, -weight))
    weight, node = np.take_along_axis(weight, order, axis=1), np.take_along_axis(call.node, order, axis=1)
    heavy = (weight > 0) & (weight >= call.least * weight[:, :1]) & (node < rows.num_columns)
    query, rank = np.nonzero(heavy)
    first = _first_mentions(call, query, query * rows.num_columns + node[query, rank])
    turn = np.full((batch, width), places)
    turn[:, :1] = np.where(call.counts > 0, -1, places)[:, None]
    known = first < width
    np.minimum.at(turn, (query[known], first[known]), rank[known])
    chosen = (turn < places) & (turn <= np.sort(turn, axis=1)[:, k - 1 : k])
    at, counts = np.argsort(~chosen, axis=1, kind="stable")[:, :k], np.count_nonzero(chosen, axis=1)
    held = np.arange(k) < counts[:, None]
    ids = np.where(held, np.take_along_axis(call.ids, at, axis=1), PAD_ID)
    return {
        "ids": ids,
        "scores": np.where(held, np.take_along_axis(call.scores, at, axis=1), PAD_SCORE),
        "counts": counts,
    }


def _first_mentions(call: CoverCall, query: NDArray[np.int64], seed: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of the first hit that mentions each seed, or W; ``seed`` is query * N + node."""
    rows, width = call.mentions, call.ids.shape[1]
    of, at = np.nonzero(np.arange(width) < call.counts[:, None])
    passages = call.ids[of, at]
    columns, count = entries_of(rows.indptr, rows.indices, passages)
    entry = np.repeat(of * rows.num_columns, count) + columns
    by_seed = np.argsort(seed)
    ascending = np.append(seed[by_seed], np.iinfo(np.int64).max)
    found = np.searchsorted(ascending, entry)
    mentions = ascending[found] == entry
    if rows.weights is not None:
        mentions &= entries_of(rows.indptr, rows.weights, passages)[0] > 0
    first = np.full(seed.size, width)
    np.minimum.at(first, by_seed[found[mentions]], np.repeat(at, count)[mentions])
    return first


def _sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sums from left to right, (B, 1)."""
    if not values.shape[1]:
        return np.zeros((values.shape[0], 1))
    with np.errstate(over="ignore"):  # the walk refuses a sum that overflows
        return np.cumsum(values, axis=1)[:, -1:]


def _over(values: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(values, total, out=values.copy(), where=(total > 0) & np.isfinite(total))
