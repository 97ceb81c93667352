"""Add hits and their entities to seeds, choose hits that cover seeds, and boost weights of hits, on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..types import Incidence
from .calls import BoostCall, CoverCall, EntitySeedCall, HitArrays, PassageSeedCall


def add_passage_seeds(call: PassageSeedCall) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return nodes and weights, (B, S + k), the same bits as kernels/cuda/add_passage_seeds.cu."""
    made = _empty_seeds(call.node, call.ids.shape[1])
    _native.add_passage_seeds(
        **_seeds(call), **_hits(call), scores=np.ascontiguousarray(call.scores), mass=call.mass, **made
    )
    return made["out_node"], made["out_weight"]


def add_entity_seeds(call: EntitySeedCall) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return nodes and weights, (B, S + W), the same bits as kernels/cuda/add_entity_seeds.cu.

    W is the largest number of entries in the rows of a query's hits. Each entry has a column, ordered by rank and then
    by node. A node that is a seed or has an earlier column adds to that one and leaves its own empty. All sums are
    float64, in column order.
    """
    hits, rows = _hits(call), call.mentions
    made = _empty_seeds(call.node, _native.most_entries(**hits, indptr=rows.indptr))
    often = np.ascontiguousarray(np.atleast_2d(call.frequency), np.int64)
    _native.add_entity_seeds(**_seeds(call), **hits, **_mentions(rows), frequency=often, mass=call.mass, **made)
    return made["out_node"], made["out_weight"]


def cover_seeds(call: CoverCall) -> HitArrays:
    """Return ids, scores and counts, (B, k), the same bits as kernels/cuda/cover_seeds.cu."""
    batch = len(call.node)
    chosen: HitArrays = {
        "ids": np.empty((batch, call.k), np.int64),
        "scores": np.empty((batch, call.k), np.float32),
        "counts": np.empty(batch, np.int64),
    }
    _native.cover_seeds(
        **_seeds(call),
        **_hits(call),
        scores=np.ascontiguousarray(call.scores),
        **_mentions(call.mentions),
        least=call.least,
        **{f"out_{name}": array for name, array in chosen.items()},
    )
    return chosen


def boost_weights(call: BoostCall) -> NDArray[np.float32]:
    """Return boosted weights, (B, N), the same bits as kernels/cuda/boost_weights_f32.cu."""
    boosted = np.array(call.weights, np.float32, order="C")
    _native.boost_weights(
        weights=boosted, **_hits(call), scores=np.ascontiguousarray(call.scores), strength=call.strength
    )
    return boosted


def _seeds(call: PassageSeedCall | EntitySeedCall | CoverCall) -> dict[str, Any]:
    return {"node": np.ascontiguousarray(call.node), "weight": np.ascontiguousarray(call.weight)}


def _hits(call: PassageSeedCall | EntitySeedCall | CoverCall | BoostCall) -> dict[str, Any]:
    return {"ids": np.ascontiguousarray(call.ids), "counts": np.ascontiguousarray(call.counts)}


def _mentions(rows: Incidence) -> dict[str, Any]:
    return {"indptr": rows.indptr, "indices": rows.indices, "weights": rows.weights}


def _empty_seeds(node: NDArray[np.int64], more: int) -> dict[str, Any]:
    """Allocate seeds with more columns, under the names of the bindings' arguments."""
    shape = len(node), node.shape[1] + more
    return {"out_node": np.empty(shape, np.int64), "out_weight": np.empty(shape)}
