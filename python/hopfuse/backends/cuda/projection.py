"""Projection of scores on a device, where the incidence is resident; one thread per row and four queries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...types import Incidence
from ..calls import ProjectCall
from .arguments import PROJECT_ROWS, Arguments
from .residents import resident, upload_some
from .runtime import DeviceArray, Runtime, blocks
from .selection import Selection, Sizes, TopkHits

_CHECK_THREADS, _THREADS, _QUERIES_PER_ROW = 256, 128, 4


class Entries(NamedTuple):
    """An incidence on a device."""

    runtime: Runtime  # kept alive so that its id is not reused
    indptr: DeviceArray
    indices: DeviceArray
    weights: DeviceArray | None


def device_incidence(runtime: Runtime, incidence: Incidence) -> Entries:
    """Return the incidence on the device; its first use uploads it."""
    indptr, indices, weights = incidence.indptr, incidence.indices, incidence.weights

    def make() -> Entries:
        there = None if weights is None else upload_some(runtime, weights)
        return Entries(runtime, runtime.upload(indptr), upload_some(runtime, indices), there)

    return resident(runtime, incidence, (indptr, indices, weights), "the incidence", make)


def project(runtime: Runtime, call: ProjectCall) -> tuple[DeviceArray, DeviceArray]:
    """Return the scores of the rows, (B, P), and each query's status."""
    scores = call.scores
    batch = int(scores.shape[0])
    rows = call.incidence.num_rows
    out, status = runtime.empty((batch, rows), np.float32), _check(runtime, scores)
    if batch and rows:
        arguments = [_rows(runtime, call), _readable(runtime, scores), np.int64(batch), status, out]
        runtime.launch("project_f32", _grid(rows, batch), _THREADS, arguments)
    return out, status


def project_topk(runtime: Runtime, call: ProjectCall, sizes: Sizes | None = None) -> TopkHits:
    """Return the k best rows of each query."""
    scores, k, sizes = call.scores, call.k, sizes or Sizes()
    batch, rows = int(scores.shape[0]), call.incidence.num_rows
    kept = min(k, rows)
    if not (batch and kept):
        return TopkHits.without_hits(runtime, batch, k)._replace(status=_check(runtime, scores))
    hits, status = TopkHits.empty(runtime, batch, k), _check(runtime, scores)
    given = _rows(runtime, call)
    for begin, end in sizes.batches(batch, kept, rows):
        chosen = _Queries(runtime, given, scores[begin:end], status[begin:end])
        Selection(runtime, sizes, kept, chosen.status, hits.rows(begin, end)).of_all(rows, chosen.make_keys)
    return hits


class _Queries(NamedTuple):
    """Queries projected together, and the incidence."""

    runtime: Runtime
    rows: Arguments
    scores: DeviceArray
    status: DeviceArray

    def make_keys(self, first: int, count: int, out: Arguments) -> None:
        batch = int(self.scores.shape[0])
        arguments = [self.rows, _readable(self.runtime, self.scores), np.int64(batch), self.status]
        arguments += [np.int64(first), np.int64(count), out]
        self.runtime.launch("project_keys_u64", _grid(out.values["columns"], batch), _THREADS, arguments)


def _check(runtime: Runtime, scores: DeviceArray) -> DeviceArray:
    """Check the scores; return each query's status."""
    batch, columns = (int(side) for side in scores.shape)
    status = runtime.empty(batch, np.int32)
    if batch:
        arguments = [_readable(runtime, scores), np.int64(columns), status]
        runtime.launch("project_check_f32", batch, _CHECK_THREADS, arguments)
    return status


def _rows(runtime: Runtime, call: ProjectCall) -> Arguments:
    there, scale = device_incidence(runtime, call.incidence), call.scale
    return PROJECT_ROWS(
        rows=call.incidence.num_rows, columns=int(call.scores.shape[1]), indptr=there.indptr, indices=there.indices,
        weight=there.weights, scale=None if scale is None else upload_some(runtime, scale),
    )  # fmt: skip


def _grid(rows: int, batch: int) -> int:
    return blocks(rows, _THREADS) * blocks(batch, _QUERIES_PER_ROW)


def _readable(runtime: Runtime, scores: DeviceArray) -> DeviceArray:
    """Return the scores, or a dummy array if they are empty, because kernels need an address."""
    return scores if scores.size else runtime.zeros(1, np.float32)
