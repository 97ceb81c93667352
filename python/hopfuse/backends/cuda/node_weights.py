"""Scale node weights on a device to the range that walks read; see kernels/cuda/node_weights_f32.cu."""

from __future__ import annotations

import numpy as np

from ..node_weights import NodeWeightCall, NodeWeights, columns_of
from .ppr_graph import device_graph
from .runtime import DeviceArray, Runtime, blocks

THREADS = 256
#: Nodes or columns of a query that one block reads.
PART = 4096


def order_weights(runtime: Runtime, call: NodeWeightCall, part: int = PART) -> tuple[NodeWeights, DeviceArray]:
    """Return the scaled weights and each query's status."""
    graph, allow = call.graph, call.allow
    batch, columns = (int(side) for side in call.weight.shape)
    status = runtime.empty(batch, np.int32)
    weight, other = runtime.empty((batch, columns), np.float32), runtime.empty(batch, np.float32)
    made = NodeWeights(weight, call.node, other, on_device=True)
    if not batch:
        return made, status
    runtime.copy(status, runtime.upload(np.ones(batch, np.int32)))  # a replay must not write to an uploaded constant
    there = device_graph(runtime, graph, call.per_type, counts_edges=True)
    largest = runtime.zeros((batch, 2), np.uint32)
    column = runtime.upload(columns_of(call.node, graph.num_nodes))
    allowed = None if allow is None else runtime.upload(allow)
    compared = [column, there.indptr, there.out.get("out_indptr"), allowed]
    compared += [np.int64(0 if allow is None or allow.shape[0] == 1 else graph.num_nodes), np.int64(graph.num_nodes)]
    given = [call.weight, np.int64(columns)]
    grid = blocks(graph.num_nodes, part) * batch
    runtime.launch("node_weights_largest", grid, THREADS, [*given, *compared, np.int64(part), largest])
    lightest = None if call.lightest is None else runtime.upload(call.lightest)
    read = [*given, np.int64(part), largest, lightest, weight, other, status]
    runtime.launch("node_weights_read", blocks(columns, part) * batch, THREADS, read)
    return made, status
