"""Exact inner-product search over float32 unit vectors."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np

from .. import gate, traffic
from ..machine import require_memory
from ..settings import Settings
from .base import Workload, ends, proof
from .data import unit_vectors

K = 10
#: Error of a float32 dot product of unit vectors, summed in any order.
TOLERANCE = 2e-6
#: At most four float32 copies of the vectors (two while they are made, hopfuse's, a peer's), and 8-bit codes.
BYTES_PER_VALUE = 4 * 4 + 1


class Dense(Workload):
    """Random unit vectors; each query is a corpus vector plus noise of equal length, so it has a near neighbour."""

    ops = ("dense_topk_f32",)
    data = "synthetic"

    def __init__(
        self, settings: Settings, count: int = 200_000, dim: int = 384, batches: tuple[int, ...] = (1, 8, 32, 256)
    ) -> None:
        count, dim = (2_000, 48) if settings.quick else (count, dim)
        require_memory(BYTES_PER_VALUE * count * dim)
        self.batches = (1, 4) if settings.quick else batches
        self.threads, self.k = settings.threads, K
        self.vectors = unit_vectors(count, dim, seed=1)
        mixed = self.vectors[: max(self.batches)] + unit_vectors(max(self.batches), dim, seed=2)
        self.queries = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
        self.corpus = hf.Corpus.from_array(self.vectors)
        self.sizes = {"vectors": count, "dim": dim, "k": K}

    def run(self, batch: int, turn: int) -> Any:
        return hf.dense_topk(self.queries[:batch], self.corpus, K, threads=self.threads)

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        rows = ends(batch)
        exact = hf.reference.dense_topk(self.queries[rows], self.corpus, K)
        found = gate.Rankings(ours.ids[rows], ours.scores[rows])
        expected = gate.Rankings(exact.ids, exact.scores)
        error = gate.rankings("hopfuse against the oracle", found, expected, TOLERANCE, TOLERANCE)
        return proof(len(rows), error, TOLERANCE)

    def compare(self, batch: int, ours: Any, theirs: gate.Rankings) -> dict[str, Any]:
        expected = gate.Rankings(ours.ids, ours.scores)
        error = gate.rankings("the peer against hopfuse", theirs, expected, 2 * TOLERANCE, 2 * TOLERANCE)
        return proof(batch, error, 2 * TOLERANCE)

    def task(self) -> dict[str, Any]:
        return {"op": "dense", "vectors": self.vectors, "queries": self.queries, "k": K}

    def moved(self, batch: int, ours: Any) -> traffic.Traffic:
        """Return the traffic of reading all 8-bit codes once per batch, and a product of each with every query."""
        return traffic.in_order(self.vectors.size, self.vectors.size * batch)


class RawArray(Dense):
    """The vectors as a plain array in every call, so nothing is kept between calls."""

    def __init__(self, settings: Settings, count: int = 200_000, dim: int = 384) -> None:
        super().__init__(settings, count, dim, batches=(1, 8, 32, 64, 256))

    def run(self, batch: int, turn: int) -> Any:
        return hf.dense_topk(self.queries[:batch], self.vectors, K, threads=self.threads)

    def moved(self, batch: int, ours: Any) -> None:
        """Return None: the bytes read depend on the batch."""


class FirstSearch(Dense):
    """Making a corpus of the vectors, and its first search."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, batches=(1,))

    def run(self, batch: int, turn: int) -> Any:
        corpus = hf.Corpus.from_array(self.vectors)
        return hf.dense_topk(self.queries[:batch], corpus, K, threads=self.threads)

    def moved(self, batch: int, ours: Any) -> None:
        """Return None: most of the time is spent on making the codes."""
