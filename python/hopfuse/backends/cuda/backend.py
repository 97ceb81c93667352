"""The ops of a device, over a runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types import Corpus, Graph
from ..arguments import Evidence, PprQueries
from . import dense, fusion, ppr
from .runtime import Runtime


class DeviceBackend:
    """The CPU backend's ops, with the same bits, by the kernels of ``kernels/cuda``. ``threads`` are the host's."""

    unusable_reason: str | None = None

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._last: dict[str, dict[str, Any]] = {}

    def explain(self) -> dict[str, Any]:
        calls = {op: dict(call) for op, call in self._last.items()}
        return {**self.runtime.explain(), "last_calls": calls, "error": self.unusable_reason}

    def _record(self, op: str, **more: Any) -> None:
        self._last[op] = {"kernel": f"{op}_{self.runtime.name}", **more}

    def ppr(self, graph: Graph, queries: PprQueries, scores: NDArray[np.float32]) -> Evidence:
        evidence = ppr.ppr(self.runtime, graph, queries, scores)
        self._record("ppr_f32", queries=queries.damping.size)
        return evidence

    def ppr_topk(
        self, graph: Graph, queries: PprQueries, k: int, among: NDArray[np.int32] | None, stop_when_proven: bool
    ) -> tuple[dict[str, Any], Evidence]:
        hits, evidence = ppr.ppr_topk(self.runtime, graph, queries, k, among, stop_when_proven)
        self._record("ppr_f32", queries=queries.damping.size, proven=int(hits["proven"].sum()))
        return hits, evidence

    def dense_topk(
        self, queries: NDArray[np.float32], corpus: Corpus, k: int, *, threads: int, **allowed: Any
    ) -> dict[str, Any]:
        hits, rescored = dense.dense_topk(self.runtime, queries, corpus, k, **allowed)
        name = f"dense_topk_{'f32' if corpus.storage == 'float32' else 'f16'}"
        self._record(name, queries=queries.shape[0], rescored_rows=rescored)
        return hits

    def calibrate(
        self, scores: NDArray[np.float32], counts: NDArray[np.int64], *, method: str, ties: str, threads: int
    ) -> NDArray[np.float32]:
        out = fusion.calibrate(self.runtime, scores, counts, method=method, ties=ties)
        self._record("calibrate_f32", queries=scores.shape[0], method=method)
        return out

    def fuse(
        self,
        lists: list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]],
        *,
        method: str,
        threads: int,
        **options: Any,
    ) -> dict[str, Any]:
        hits = fusion.fuse(self.runtime, lists, method=method, **options)
        self._record("fuse_f32", queries=lists[0][0].shape[0], method=method, lists=len(lists))
        return hits
