"""Weigh passages by similarity on a device: canonical cosines, their exact sums, then the weights."""

from __future__ import annotations

import numpy as np

from ..calls import RowFilter, SimilarityCall
from .arguments import QUERIES, TILE_MASK
from .dense import QUERIES_PER_ROW, ROWS_PER_BLOCK, THREADS, check_queries, resident, upload_filter
from .runtime import DeviceArray, Runtime, blocks

#: Passages of a query that one block sums or weighs.
PART = 4096


def similarity_weights(runtime: Runtime, call: SimilarityCall, part: int = PART) -> tuple[DeviceArray, DeviceArray]:
    """Return weights (B, N) and each query's status."""
    queries, n = call.queries, call.corpus.num_vectors
    batch = int(queries.shape[0])
    weights = runtime.empty((batch, n), np.float32)
    norms, status = runtime.empty_all([((batch,), np.float32), ((batch,), np.int32)])
    if not batch:
        return weights, status
    check_queries(runtime, queries, True, norms, status)
    if not n:
        return weights, status
    rows, mask = resident(runtime, call.corpus), _mask(runtime, call.allow, n)
    largest, sums = runtime.zeros(batch, np.uint32), runtime.zeros((batch, 4), np.uint64)
    given = QUERIES(data=queries, norm=norms, batch=batch, dim=rows.dim, cosine=True)
    allowed = TILE_MASK(bytes=mask, stride=0 if call.allow.shared else n, first=0)
    arguments = [rows.vectors, rows.norms, np.int64(n), given, allowed, weights, largest]
    grid = blocks(n, ROWS_PER_BLOCK) * blocks(batch, QUERIES_PER_ROW)
    runtime.launch(f"similarity_cosines_{rows.suffix}", grid, THREADS, arguments)
    grid, passages = blocks(n, part) * batch, [weights, np.int64(n), np.int64(part), largest, sums]
    runtime.launch("similarity_sums_f32", grid, THREADS, passages)
    limits = [np.float64(call.tau), np.float32(call.floor)]
    runtime.launch("similarity_weights_f32", grid, THREADS, [*passages, *limits])
    return weights, status


def _mask(runtime: Runtime, allow: RowFilter, n: int) -> DeviceArray | None:
    """Return the mask of allowed passages, (N,) or (B, N) bytes, or None for all."""
    there = upload_filter(runtime, allow)
    if there.indptr is None:
        return there.mask
    lists = int(there.indptr.shape[0]) - 1
    mask = runtime.empty(lists * n, np.uint8)
    runtime.launch("dense_mask_ids", lists, THREADS, [there.indptr, there.ids, np.int64(0), np.int32(n), mask])
    return mask
