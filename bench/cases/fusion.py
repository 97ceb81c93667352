"""Boltzmann fusion of two lists a query."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np

from .. import gate
from ..settings import Settings
from .base import Workload, proof

K = 10
WEIGHTS = (0.7, 0.3)
#: Scores are sums of float32 probabilities of a list of 1,000: about 1e-3 each.
TOLERANCE = 1e-8
ORACLE_QUERIES = 20


class Fusion(Workload):
    """Percentile ranks, automatic temperature, weights (0.7, 0.3), top 10; two lists share a third of their ids."""

    ops = ("fuse_f32",)
    data = "synthetic"

    def __init__(self, settings: Settings) -> None:
        queries, length = (20, 50) if settings.quick else (1_000, 1_000)
        self.batches, self.threads = (queries,), settings.threads
        self.k, self.weights = K, WEIGHTS
        rng = np.random.default_rng(3)
        self.lists = [_lists(rng, queries, length) for _ in WEIGHTS]
        self.sizes = {"lists": len(WEIGHTS), "documents_in_a_list": length, "k": K}

    def run(self, batch: int, turn: int) -> Any:
        return hf.fuse(self.lists, weights=WEIGHTS, k=K, threads=self.threads)

    def first(self, queries: int) -> list[hf.Hits]:
        """Both lists of the first queries."""
        return [hf.Hits(hits.ids[:queries], hits.scores[:queries]) for hits in self.lists]

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        n = min(batch, ORACLE_QUERIES)
        exact = hf.reference.fuse(self.first(n), weights=WEIGHTS, k=K)
        return self._agree("hopfuse against the oracle", ours, gate.Rankings(exact.ids, exact.scores))

    def compare(self, batch: int, ours: Any, theirs: gate.Rankings) -> dict[str, Any]:
        return self._agree("the peer against hopfuse", ours, theirs)

    def _agree(self, what: str, ours: Any, expected: gate.Rankings) -> dict[str, Any]:
        n = len(expected.ids)
        found = gate.Rankings(ours.ids[:n], ours.scores[:n])
        return proof(n, gate.rankings(what, found, expected, TOLERANCE, TOLERANCE), TOLERANCE)


def _lists(rng: np.random.Generator, queries: int, length: int) -> hf.Hits:
    """Distinct documents of 3 x length, with normal scores."""
    ids = np.argsort(rng.random((queries, 3 * length)), axis=1)[:, :length]
    return hf.Hits(ids, rng.standard_normal((queries, length), dtype=np.float32))
