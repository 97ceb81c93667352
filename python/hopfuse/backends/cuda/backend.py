"""The ops of a device, over a runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types import Corpus, Graph, Incidence, LabelSets
from ..arguments import Evidence, IsingModel, PprQueries
from .device_ops import DeviceOps
from .runtime import DeviceArray, Runtime


class DeviceBackend:
    """The CPU backend's ops, with the same bits, by the kernels of ``kernels/cuda``. ``threads`` are the host's.

    Arrays are the host's, up and down in each call; :attr:`device` has the same for arrays on the device.
    """

    unusable_reason: str | None = None

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.device = runtime, DeviceOps(runtime)

    def explain(self) -> dict[str, Any]:
        calls = {op: dict(call) for op, call in list(self.device.last.items())}
        return {**self.runtime.explain(), "last_calls": calls, "error": self.unusable_reason}

    def ppr(self, graph: Graph, queries: PprQueries, scores: NDArray[np.float32]) -> Evidence:
        answers = self.device.ppr(graph, queries, scores, on_host=True)
        return Evidence(**self._download(answers.evidence()))

    def ppr_topk(
        self, graph: Graph, queries: PprQueries, k: int, among: NDArray[np.int32] | None, stop_when_proven: bool
    ) -> tuple[dict[str, Any], Evidence]:
        answers = self.device.ppr_topk(graph, queries, k, among, stop_when_proven)
        hits = self._download(answers.hits())
        self.device.last["ppr_f32"]["proven"] = int(hits["proven"].sum())
        return hits, Evidence(**self._download(answers.evidence()))

    def dense_topk(
        self, queries: NDArray[np.float32], corpus: Corpus, k: int, *, threads: int, **allowed: Any
    ) -> dict[str, Any]:
        return self._download(self.device.dense_topk(self.runtime.upload(queries), corpus, k, **allowed))

    def calibrate(
        self, scores: NDArray[np.float32], counts: NDArray[np.int64], *, threads: int, **options: Any
    ) -> NDArray[np.float32]:
        upload = self.runtime.upload
        return self.runtime.download(self.device.calibrate(upload(scores), upload(counts), **options))

    def fuse(
        self,
        lists: list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]],
        *,
        method: str,
        threads: int,
        **options: Any,
    ) -> dict[str, Any]:
        upload = self.runtime.upload
        uploaded = [(upload(ids), upload(scores), upload(counts)) for ids, scores, counts in lists]
        return self._download(self.device.fuse(uploaded, method=method, **options))

    def ising(
        self,
        graph: Graph,
        hits: tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]],
        model: IsingModel,
        *,
        k: int,
        threads: int,
    ) -> dict[str, Any]:
        ids, scores, counts = (self.runtime.upload(array) for array in hits)
        return self._download(self.device.ising(graph, (ids, scores, counts), model, k=k))

    def dice(
        self,
        labels: LabelSets,
        query_indptr: NDArray[np.int64],
        query_units: NDArray[np.int32],
        candidates: NDArray[np.int32],
        indptr: NDArray[np.int64],
        *,
        threads: int,
    ) -> NDArray[np.float32]:
        return self.runtime.download(self.device.dice(labels, query_indptr, query_units, candidates, indptr))

    def project(
        self, incidence: Incidence, scores: NDArray[np.float32], scale: NDArray[np.float32] | None, *, threads: int
    ) -> NDArray[np.float32]:
        return self.runtime.download(self.device.project(incidence, self.runtime.upload(scores), scale))

    def project_topk(
        self,
        incidence: Incidence,
        scores: NDArray[np.float32],
        scale: NDArray[np.float32] | None,
        k: int,
        *,
        threads: int,
    ) -> dict[str, Any]:
        return self._download(self.device.project_topk(incidence, self.runtime.upload(scores), scale, k))

    def _download(self, arrays: dict[str, DeviceArray]) -> dict[str, Any]:
        return {name: self.runtime.download(array) for name, array in arrays.items()}
