"""Bytes that a graph, a corpus and the calls on them take on a device, before any is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...types import Corpus, Graph
from ..arguments import DeviceSeeds, PprQueries
from .device_ops import DeviceOps
from .dry_runtime import DryRuntime
from .residents import release


def estimate(graph: Graph | None, corpus: Corpus | None, *, batch: int, k: int, seeds: int) -> dict[str, int]:
    """``graph`` and ``corpus``: what stays there. ``workspace``: the most that a call takes beside, for a while."""
    runtime = DryRuntime()
    device = DeviceOps(runtime)
    sizes = {"graph": 0, "corpus": 0, "workspace": 0}
    calls: list[tuple[str, Graph | Corpus, Callable[[], Any]]] = []
    if graph is not None:
        calls.append(("graph", graph, lambda: _walk(device, graph, batch, k, seeds)))
    if corpus is not None:
        calls.append(("corpus", corpus, lambda: _search(device, corpus, batch, k)))
    for name, held, call in calls:
        before = runtime.memory.used
        try:
            with device.watching():
                call()
            sizes[name] = runtime.memory.used - before
            sizes["workspace"] = max(sizes["workspace"], runtime.memory.most - runtime.memory.used)
        finally:
            release(runtime, held)
        runtime.memory.most = runtime.memory.used
    return sizes


def _walk(device: DeviceOps, graph: Graph, batch: int, k: int, seeds: int) -> None:
    empty = device.runtime.empty
    rows = DeviceSeeds(empty((batch, seeds), np.int64), empty((batch, seeds), np.float64), True)
    queries = PprQueries(
        np.zeros(batch + 1, np.int64),
        np.zeros(0, np.int32),
        np.zeros(0),
        damping=np.full(batch, 0.5),
        edge_type_weights=None,
        per_type=False,
        allowed=None,
        tol=1e-6,
        max_iter=0,
        threads=1,
        seeds=rows,
    )
    device.ppr_topk(graph, queries, k, None, True)  # and refined, which takes most


def _search(device: DeviceOps, corpus: Corpus, batch: int, k: int) -> None:
    queries = device.runtime.empty((batch, corpus.dim), np.float32)
    device.dense_topk(queries, corpus, k, mask=None, indptr=None, ids=None, shared=True)
