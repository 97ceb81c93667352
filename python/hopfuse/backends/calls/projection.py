"""Projection of scores of columns onto the rows of an incidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ...types import Incidence
from ..call import Answer, Array, Backend, Case, HitArrays, empty_hits, hits_of, named
from ..cpu import record
from ..faults import raise_fault

if TYPE_CHECKING:
    from ..cuda import DeviceOps


class ProjectCall(NamedTuple):
    """Project scores of columns onto rows, (B, P); ``scale`` is on the host."""

    incidence: Incidence
    scores: Array  # (B, N) float32
    scale: NDArray[np.float32] | None
    threads: int
    on_device: bool = False

    def run_on_host(self) -> NDArray[np.float32]:
        batch = self.scores.shape[0]
        out, status = np.empty((batch, self.incidence.num_rows), np.float32), np.ones(batch, np.int32)
        _native.project(**_arguments(self), status=status, out=out)
        _finish(self, status)
        return out

    def run_on_device(self, device: DeviceOps) -> Array:
        given = {"scores": self.scores, "scale": self.scale, "on_device": self.on_device}
        found = _native.device_project(device.queue(), device.incidence(self.incidence), **given)
        device.record("project_f32", queries=self.scores.shape[0], rows=self.incidence.num_rows)
        return found["scores"]


class ProjectTopkCall(NamedTuple):
    """Project scores of columns onto rows, of which the k best are the answer; ``scale`` is on the host."""

    incidence: Incidence
    scores: Array  # (B, N) float32
    scale: NDArray[np.float32] | None
    k: int
    threads: int
    on_device: bool = False

    def run_on_host(self) -> HitArrays:
        batch = self.scores.shape[0]
        hits, status = empty_hits(batch, self.k), np.ones(batch, np.int32)
        if self.k:
            _native.project_topk(**_arguments(self), status=status, **hits)
        _finish(self, status)
        return named(hits)

    def run_on_device(self, device: DeviceOps) -> HitArrays:
        given = {"scores": self.scores, "scale": self.scale, "k": self.k, "on_device": self.on_device}
        found = _native.device_project_topk(device.queue(), device.incidence(self.incidence), **given)
        device.record("project_f32", queries=self.scores.shape[0], rows=self.incidence.num_rows)
        return found


def _arguments(call: ProjectCall | ProjectTopkCall) -> dict[str, Any]:
    rows = {"indptr": call.incidence.indptr, "indices": call.incidence.indices, "weight": call.incidence.weights}
    return {**rows, "scale": call.scale, "scores": call.scores, "threads": call.threads}


def _finish(call: ProjectCall | ProjectTopkCall, status: NDArray[np.int32]) -> None:
    record("project_f32", call.threads, queries=status.size, rows=call.incidence.num_rows)
    raise_fault(status)


# ---- The self-test ---------------------------------------------------------------------------------------------------


def cases() -> Iterator[Case]:
    yield Case("project", _scores, is_quick=True)
    yield Case("project_topk", _best, is_quick=True)


def _scores(backend: Backend) -> Answer:
    return [backend.run(ProjectCall(*_drawn(), threads=1))]


def _best(backend: Backend) -> Answer:
    return hits_of(backend.run(ProjectTopkCall(*_drawn(), k=30, threads=1)))


def _drawn() -> tuple[Incidence, NDArray[np.float32], NDArray[np.float32]]:
    """Draw an incidence with empty rows, a row of all columns, ties and denormal weights, scores, and a scale."""
    rng = np.random.default_rng(10)
    rows, columns, batch = 300, 150, 11
    pairs = np.unique(np.concatenate([rng.integers(0, rows * columns, 900), 7 * columns + np.arange(columns)]))
    weights = rng.random(pairs.size) * 10.0 ** rng.integers(-42, 2, pairs.size)
    incidence = Incidence.from_pairs(*np.divmod(pairs, columns), weights, num_rows=rows, num_columns=columns)
    return (
        incidence,
        (rng.integers(-4, 9, (batch, columns)) / 8).astype(np.float32),
        rng.random(rows).astype(np.float32),
    )
