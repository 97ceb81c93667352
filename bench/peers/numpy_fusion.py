"""Boltzmann fusion in vectorised float64 NumPy, all queries at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cases.fusion import Fusion
from ..cases.ranked import top_k
from ..gate import Rankings
from .base import ONE, Peer


class NumpyFusion(Peer):
    """Percentile ranks and softmax by row; documents are merged by sorting each row."""

    packages = ("numpy",)
    remark = "whole-batch array operations, one thread"
    runs_on = ONE

    def __init__(self, workload: Fusion, threads: int) -> None:
        self.workload = workload

    def run(self, batch: int) -> Rankings:
        lists, weights = self.workload.lists, self.workload.weights
        ids = np.concatenate([hits.ids for hits in lists], axis=1)
        mass = np.concatenate(
            [weight * _boltzmann(hits.scores) for hits, weight in zip(lists, weights, strict=True)], axis=1
        )
        order = np.argsort(ids, axis=1, kind="stable")
        ids, mass = np.take_along_axis(ids, order, axis=1), np.take_along_axis(mass, order, axis=1)
        again = ids[:, 1:] == ids[:, :-1]  # at most two lists hold a document
        mass[:, :-1] += np.where(again, mass[:, 1:], 0.0)
        mass[:, 1:][again] = -np.inf
        best = top_k(mass, self.workload.k)
        return Rankings(np.take_along_axis(ids, best.ids, axis=1), best.scores)


def _boltzmann(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Return the probabilities of full rows of descending scores: strict percentile ranks, T = 2/3 mean energy."""
    n = scores.shape[1]
    rank = np.broadcast_to(np.arange(n), scores.shape)
    ends_tie = np.ones(scores.shape, bool)
    ends_tie[:, :-1] = scores[:, 1:] < scores[:, :-1]
    last_of_tie = np.minimum.accumulate(np.where(ends_tie, rank, n)[:, ::-1], axis=1)[:, ::-1]
    energy = -np.log((n - 1 - last_of_tie) / n + 1e-9)
    logits = -energy / (energy.mean(axis=1, keepdims=True) * 2.0 / 3.0)
    mass = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))
