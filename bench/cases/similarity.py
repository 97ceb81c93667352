"""Weights of all passages by their cosine similarity to each question."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from .. import gate
from ..settings import Settings
from .base import Workload, ends, proof
from .data import unit_vectors

TAU, FLOOR = 1.0, 1e-4
#: L1 error over a query's weights, which sum to some tens: the rounding of cosines, relative to their spread.
TOLERANCE = 1e-3


class Similarity(Workload):
    """Passages in clusters, and questions near one of them, so that cosines are distributed like real ones."""

    ops = ("similarity_f32",)
    data = "synthetic"

    def __init__(self, settings: Settings) -> None:
        count, dim, groups = (500, 48, 20) if settings.quick else (10_000, 384, 200)
        self.batches = (1, 4) if settings.quick else (1, 32, 256)
        self.threads = settings.threads
        of = np.random.default_rng(3).integers(0, groups, count + max(self.batches))
        mixed = unit_vectors(groups, dim, seed=1)[of] + unit_vectors(of.size, dim, seed=2)
        unit = (mixed / np.linalg.norm(mixed, axis=1, keepdims=True)).astype(np.float32)
        self.vectors, self.queries = unit[:count], unit[count:]
        self.corpus = hf.Corpus.from_array(self.vectors, metric="cosine")
        self.sizes = {"passages": count, "dim": dim}

    def run(self, batch: int, turn: int) -> Any:
        return hf.similarity_weights(self.queries[:batch], self.corpus, tau=TAU, floor=FLOOR, threads=self.threads)

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        rows = ends(batch)
        exact = hf.reference.similarity_weights(self.queries[rows], self.corpus, tau=TAU, floor=FLOOR)
        error = gate.rows_l1("hopfuse against the oracle", ours[rows], exact, TOLERANCE)
        return proof(len(rows), error, TOLERANCE)

    def compare(self, batch: int, ours: Any, theirs: NDArray[Any]) -> dict[str, Any]:
        error = gate.rows_l1("the peer against hopfuse", theirs, ours, 2 * TOLERANCE)
        return proof(batch, error, 2 * TOLERANCE)
