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


def estimate(
    graph: Graph | None, corpus: Corpus | None, *, batch: int, k: int, seeds: int, proves: bool, like: int | None
) -> dict[str, int]:
    """Return the resident bytes of ``graph`` and ``corpus``, and by its name the most that a call takes besides.

    ``like`` is the number of the device; without it, the estimate is of one on which calls take the most.
    """
    device = DeviceOps(Runtime(_native.Device.counting(like), "dry"))
    counted = device.runtime.device
    sizes = dict.fromkeys(("graph", "corpus", "ppr", "ppr_topk", "dense_topk"), 0)
    calls: list[tuple[str, Graph | Corpus, dict[str, Callable[[], Any]]]] = []
    if graph is not None:
        walks = {
            "ppr": lambda: _scores(device, graph, batch, seeds),
            "ppr_topk": lambda: _walk(device, graph, batch, k, seeds, proves),
        }
        calls.append(("graph", graph, walks))
    if corpus is not None:
        calls.append(("corpus", corpus, {"dense_topk": lambda: _search(device, corpus, batch, k)}))
    for name, held, made in calls:
        before = counted.used_bytes()
        try:
            for op, call in made.items():
                counted.reset_peak()
                call()
                sizes[name] = counted.used_bytes() - before
                sizes[op] = counted.peak_bytes() - counted.used_bytes()
        finally:
            release(device.runtime, held)
    return sizes


def _queries(device: DeviceOps, batch: int, seeds: int) -> PprQueries:
    empty = device.runtime.empty
    rows = DeviceSeeds(empty((batch, seeds), np.int64), empty((batch, seeds), np.float64), True)
    none = np.zeros(batch + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    return PprQueries(*none, np.full(batch, 0.5), seeds=rows)


def _scores(device: DeviceOps, graph: Graph, batch: int, seeds: int) -> None:
    device.ppr(graph, _queries(device, batch, seeds), np.empty((batch, graph.num_nodes), np.float32))


def _walk(device: DeviceOps, graph: Graph, batch: int, k: int, seeds: int, proves: bool) -> None:
    device.ppr_topk(graph, _queries(device, batch, seeds), NodeRanking(k, None, stop_when_proven=proves))


def _search(device: DeviceOps, corpus: Corpus, batch: int, k: int) -> None:
    queries = device.runtime.empty((batch, corpus.dim), np.float32)
    device.dense_topk(DenseCall(queries, corpus, k, RowFilter(), threads=1, on_device=True))
