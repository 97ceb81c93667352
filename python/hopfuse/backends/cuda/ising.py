"""Ising mean-field reranking on a device: one launch with as many blocks as the workspace allows."""

from __future__ import annotations

import numpy as np

from ..calls import HitArrays, IsingCall
from .arguments import ISING
from .fusion import empty_hits, no_hits
from .ppr_graph import device_graph
from .runtime import DeviceArray, Runtime

_THREADS, _WARP = 256, 32
#: The most global memory, in bytes, for all blocks together, unless one block needs more.
WORKSPACE_BYTES = 256 * 2**20


def ising(runtime: Runtime, call: IsingCall) -> tuple[HitArrays, DeviceArray]:
    """Return ids, scores and counts of the k best candidates, and each query's status."""
    (ids, scores, counts), model, k = call.hits, call.model, call.k
    batch, width = (int(side) for side in ids.shape)
    if not (batch and width):
        return no_hits(runtime, batch, k), runtime.upload(np.ones(batch, np.int32))
    best = empty_hits(runtime, batch, k)
    status = runtime.empty(batch, np.int32)
    rows = device_graph(runtime, call.graph, per_type=False, counts_edges=False)
    threads = min(_THREADS, _WARP * width)
    coupling, shared = width * width, width * (threads // _WARP)
    at_once = min(batch, max(1, WORKSPACE_BYTES // (4 * coupling + 8 * shared)))
    coupling_room = runtime.empty(at_once * coupling, np.float32)
    shared_room = runtime.empty(at_once * shared, np.float64)
    arguments = ISING(
        batch=batch, width=width, ids=ids, scores=scores, counts=counts,
        num_nodes=rows.num_nodes, indptr=rows.indptr, indices=rows.indices, weight=rows.weight,
        internal_of=rows.internal_of, coupling=model.coupling, temperature=model.temperature,
        relaxation=model.relaxation, steps=model.steps, blend=model.blend,
        k=k, out_ids=best["ids"], out_scores=best["scores"], out_counts=best["counts"], status=status,
        coupling_room=coupling_room, shared_room=shared_room,
    )  # fmt: skip
    runtime.launch("ising_f32", at_once, threads, [arguments], shared=3 * 4 * width)
    return best, status
