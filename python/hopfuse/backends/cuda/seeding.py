"""Add the entities of hits to seeds, and choose hits that cover seeds, on a device."""

from __future__ import annotations

import numpy as np

from ..calls import CoverCall, EntitySeedCall, HitArrays
from .arguments import COVER, ENTITY_SEEDS, SEED_ROW
from .fusion import empty_hits
from .projection import device_incidence
from .runtime import DeviceArray, Runtime

_THREADS = 128
#: The most columns for entities in a recording, whose width is fixed; queries with more are run again without it.
MOST_PLACES = 1024


def add_entity_seeds(runtime: Runtime, call: EntitySeedCall) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Return nodes and weights, (B, S + places), and each query's status; places hold the most that k rows can have."""
    (batch, width), k = (int(side) for side in call.node.shape), int(call.ids.shape[1])
    places = k * int(np.diff(call.mentions.indptr).max(initial=0))
    if runtime.fixed:
        places = min(places, MOST_PLACES)
    there = device_incidence(runtime, call.mentions)
    often = runtime.upload(np.ascontiguousarray(call.frequency, np.int64) if call.frequency.size else np.zeros(1, int))
    stride = call.frequency.shape[1] if call.frequency.ndim == 2 else 0
    nodes, weights = (runtime.empty((batch, width + places), kind) for kind in (np.int64, np.float64))
    status = runtime.empty(batch, np.int32)
    held = runtime.empty(max(1, batch * places), np.int32), runtime.empty(max(1, batch * places), np.float64)
    if batch:
        arguments = ENTITY_SEEDS(
            seeds=SEED_ROW(node=call.node, weight=call.weight, width=width), ids=call.ids, counts=call.counts, k=k,
            indptr=there.indptr, indices=there.indices, weight=there.weights, frequency=often,
            frequency_stride=stride, rows=call.mentions.num_rows, mass=call.mass, places=places, held_node=held[0],
            held_value=held[1], out_node=nodes, out_weight=weights, status=status,
        )  # fmt: skip
        runtime.launch("add_entity_seeds_f64", batch, _THREADS, [arguments])
    return nodes, weights, status


def cover_seeds(runtime: Runtime, call: CoverCall) -> tuple[HitArrays, DeviceArray]:
    """Return ids, scores and counts of the chosen hits, and each query's status."""
    (batch, places), width = (int(side) for side in call.node.shape), int(call.ids.shape[1])
    there = device_incidence(runtime, call.mentions)
    hits, status = empty_hits(runtime, batch, call.k), runtime.empty(batch, np.int32)
    first, chosen = (runtime.empty(max(1, batch * size), np.int32) for size in (places, width))
    if batch:
        arguments = COVER(
            seeds=SEED_ROW(node=call.node, weight=call.weight, width=places), ids=call.ids, scores=call.scores,
            counts=call.counts, width=width, indptr=there.indptr, indices=there.indices, weight=there.weights,
            rows=call.mentions.num_rows, least=call.least, k=call.k, first=first, chosen=chosen,
            out_ids=hits["ids"], out_scores=hits["scores"], out_counts=hits["counts"], status=status,
        )  # fmt: skip
        runtime.launch("cover_seeds_f64", batch, _THREADS, [arguments])
    return hits, status
