"""Ising mean-field reranking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import _native
from ..call import Answer, Backend, Case, HitArrays, ScoredList, empty_hits, hits_of, named
from ..cpu import record

if TYPE_CHECKING:
    from ...types import Graph
    from ..cuda import DeviceOps


class IsingModel(NamedTuple):
    """The checked parameters of kernels/include/hopfuse/ising.h."""

    coupling: float
    temperature: float
    relaxation: float
    steps: int
    blend: float


class IsingCall(NamedTuple):
    """Rerank candidates by their mean field; the answer has the k best of each query."""

    graph: Graph
    hits: ScoredList
    model: IsingModel
    k: int
    threads: int
    on_device: bool = False

    def run_on_host(self) -> HitArrays:
        graph, (ids, scores, counts) = self.graph, self.hits
        batch = ids.shape[0]
        hits = empty_hits(batch, self.k)
        rows: dict[str, Any] = {name: getattr(graph, name) for name in ("indptr", "indices", "weight", "internal_of")}
        threads = max(1, min(self.threads, batch))
        _native.ising(**rows, ids=ids, scores=scores, counts=counts, **self.model._asdict(), threads=threads, **hits)
        record("ising_f32", threads, queries=batch, candidates=int(counts.sum()))
        return named(hits)

    def run_on_device(self, device: DeviceOps) -> HitArrays:
        ids, scores, counts = self.hits
        best = _native.device_ising(
            device.queue(),
            device.rows(self.graph),
            ids=ids,
            scores=scores,
            counts=counts,
            **self.model._asdict(),
            k=self.k,
            on_device=self.on_device,
        )
        device.record("ising_f32", queries=ids.shape[0])
        return best


# ---- The self-test ---------------------------------------------------------------------------------------------------


def cases() -> Iterator[Case]:
    yield _case("ising", is_quick=True, weighted=True)
    yield _case("ising typed, below the critical temperature", types=3, temperature=0.5)


def _case(name: str, *, is_quick: bool = False, temperature: float = 2.0, **options: Any) -> Case:
    from ..selftest_data import NODES, draw_hits, draw_walks

    def run(backend: Backend) -> Answer:
        graph, _ = draw_walks(3, **options)
        hits = draw_hits(np.random.default_rng(9), 5, 70, NODES)
        model = IsingModel(coupling=1.0, temperature=temperature, relaxation=0.5, steps=10, blend=0.25)
        return hits_of(backend.run(IsingCall(graph, hits, model, k=30, threads=1)))

    return Case(name, run, is_quick)
