"""Estimate device memory by running the ops on a device that only counts allocations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _native
from ...types import Corpus, Graph
from ..calls import DenseCall, DeviceSeeds, NodeRanking, PprQueries, RowFilter
from .device_ops import DeviceOps
from .residents import release
from .runtime import Runtime


def estimate(graph: Graph | None, corpus: Corpus | None, *, batch: int, k: int, seeds: int) -> dict[str, int]:
    """Return the resident bytes of ``graph`` and ``corpus``, and the largest ``workspace`` of a call."""
    device = DeviceOps(Runtime(_native.Device.counting(), "dry"))
    counted = device.runtime.device
    sizes = {"graph": 0, "corpus": 0, "workspace": 0}
    calls: list[tuple[str, Graph | Corpus, Callable[[], Any]]] = []
    if graph is not None:
        calls.append(("graph", graph, lambda: _walk(device, graph, batch, k, seeds)))
    if corpus is not None:
        calls.append(("corpus", corpus, lambda: _search(device, corpus, batch, k)))
    for name, held, call in calls:
        before = counted.used_bytes()
        counted.reset_peak()
        try:
            call()
            sizes[name] = counted.used_bytes() - before
            sizes["workspace"] = max(sizes["workspace"], counted.peak_bytes() - counted.used_bytes())
        finally:
            release(device.runtime, held)
    return sizes


def _walk(device: DeviceOps, graph: Graph, batch: int, k: int, seeds: int) -> None:
    empty = device.runtime.empty
    rows = DeviceSeeds(empty((batch, seeds), np.int64), empty((batch, seeds), np.float64), True)
    none = np.zeros(batch + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    queries = PprQueries(*none, np.full(batch, 0.5), seeds=rows)
    device.ppr_topk(graph, queries, NodeRanking(k, None, stop_when_proven=True))  # refinement takes the most memory


def _search(device: DeviceOps, corpus: Corpus, batch: int, k: int) -> None:
    queries = device.runtime.empty((batch, corpus.dim), np.float32)
    device.dense_topk(DenseCall(queries, corpus, k, RowFilter(), threads=1, on_device=True))
