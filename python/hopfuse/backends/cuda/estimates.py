"""The memory that a graph, a corpus and calls take on a device."""

from __future__ import annotations

from collections.abc import Callable
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from ... import _native
from ..._validation import check_whole
from ...types import Corpus, Graph
from ..calls.dense import DenseCall, RowFilter
from ..calls.ppr import PprCall, PprTopkCall
from ..driver import no_driver
from ..walk_queries import DeviceSeeds, NodeRanking, PprQueries
from .device_ops import DeviceOps
from .runtime import Runtime


def estimate(
    graph: Graph | None, corpus: Corpus | None, *, batch: int, k: int, seeds: int, proves: bool, device: int | None
) -> dict[str, int]:
    """Return the resident bytes of ``graph`` and ``corpus``, and by its name the most that a call takes besides.

    The calls run on a device that only counts allocations, like the one with the number ``device``: by default the one
    that a call of this thread would use or, without a driver, one on which calls take the most.
    """
    ops = DeviceOps(Runtime(_native.Device.counting(_counted_like(device)), "dry"))
    counted = ops.runtime.device
    sizes = dict.fromkeys(("graph", "corpus", "ppr", "ppr_topk", "dense_topk"), 0)
    calls: list[tuple[str, Graph | Corpus, dict[str, Callable[[], Any]]]] = []
    if graph is not None:
        walks = {
            "ppr": lambda: _scores(ops, graph, batch, seeds),
            "ppr_topk": lambda: _walk(ops, graph, batch, k, seeds, proves),
        }
        calls.append(("graph", graph, walks))
    if corpus is not None:
        calls.append(("corpus", corpus, {"dense_topk": lambda: _search(ops, corpus, batch, k)}))
    for name, held, made in calls:
        before = counted.used_bytes()
        try:
            for op, call in made.items():
                counted.reset_peak()
                call()
                sizes[name] = counted.used_bytes() - before
                sizes[op] = counted.peak_bytes() - counted.used_bytes()
        finally:
            ops.runtime.release(held)
    return sizes


def _counted_like(device: int | None) -> int | None:
    missing = no_driver()
    if missing is None:
        chosen = _native.current_device() or 0
        return chosen if device is None else check_whole(device, "device", _native.count_devices() - 1, least=0)
    if device is not None:
        raise missing
    return None


def _queries(device: DeviceOps, batch: int, seeds: int) -> PprQueries:
    empty = device.runtime.empty
    rows = DeviceSeeds(empty((batch, seeds), np.int64), empty((batch, seeds), np.float64), True)
    none = np.zeros(batch + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    return PprQueries(*none, np.full(batch, 0.5), seeds=rows)


def _scores(device: DeviceOps, graph: Graph, batch: int, seeds: int) -> None:
    with TemporaryFile() as file:  # counting writes no scores, so the file takes no space
        scores = np.asarray(np.memmap(file, np.float32, "w+", shape=(batch, graph.num_nodes)))
        device.run(PprCall(graph, _queries(device, batch, seeds), scores))


def _walk(device: DeviceOps, graph: Graph, batch: int, k: int, seeds: int, proves: bool) -> None:
    ranking = NodeRanking(k, None, stop_when_proven=proves)
    device.run(PprTopkCall(graph, _queries(device, batch, seeds), ranking))


def _search(device: DeviceOps, corpus: Corpus, batch: int, k: int) -> None:
    queries = device.runtime.empty((batch, corpus.dim), np.float32)
    device.run(DenseCall(queries, corpus, k, RowFilter(), threads=1, on_device=True))
