"""Sørensen-Dice coefficients of texts and labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import _native
from ...types import LabelSets
from ..call import Answer, Backend, Case
from ..cpu import record

if TYPE_CHECKING:
    from ..cuda import DeviceOps


class DiceCall(NamedTuple):
    """Score texts with their candidates, (Z,), always on the host; text b has indptr[b] .. indptr[b + 1] - 1."""

    labels: LabelSets
    query_indptr: NDArray[np.int64]
    query_units: NDArray[np.int32]
    candidates: NDArray[np.int32]  # (Z, P)
    indptr: NDArray[np.int64]  # (B + 1,)
    threads: int

    def run_on_host(self) -> NDArray[np.float32]:
        labels, batch = self.labels, self.indptr.size - 1
        scores = np.empty(self.candidates.shape[0], np.float32)
        threads = max(1, min(self.threads, batch))  # one thread per query; each allocates a byte per unit
        _native.dice(
            label_indptr=labels.indptr,
            label_units=labels.members,
            units=len(labels.vocabulary),
            query_indptr=self.query_indptr,
            query_units=self.query_units,
            indptr=self.indptr,
            candidates=self.candidates,
            threads=threads,
            scores=scores,
        )
        record("dice_f32", threads, queries=batch, candidates=scores.size)
        return scores

    def run_on_device(self, device: DeviceOps) -> NDArray[np.float32]:
        indptr, members = self.labels.indptr, self.labels.members
        there = device.runtime.resident(self.labels, lambda queue: _native.device_labels(queue, indptr, members))
        scores = _native.device_dice(
            device.queue(),
            there,
            query_indptr=self.query_indptr,
            query_units=self.query_units,
            indptr=self.indptr,
            candidates=self.candidates,
        )
        device.record("dice_f32", queries=self.indptr.size - 1, candidates=self.candidates.shape[0])
        return scores


# ---- The self-test ---------------------------------------------------------------------------------------------------


def cases() -> Iterator[Case]:
    yield Case("dice", _drawn, is_quick=True)


def _drawn(backend: Backend) -> Answer:
    """Score labels of all lengths from 0, texts with elements that no label has, and queries without candidates."""
    rng = np.random.default_rng(9)
    labels = LabelSets.from_labels([_text(rng, length) for length in rng.integers(0, 40, 50)])
    sets = labels.sets_of([_text(rng, length) + " é€" for length in (0, 5, 30, 30, 200)])
    candidates = rng.integers(0, len(labels), (700, 3)).astype(np.int32)
    return [backend.run(DiceCall(labels, *sets, candidates, np.array([0, 0, 1, 300, 300, 700]), threads=1))]


def _text(rng: np.random.Generator, length: int) -> str:
    return "".join(rng.choice(list("abcde "), length))
