"""Projection of node scores onto the passages that mention them."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from .. import gate
from ..settings import Settings
from .base import Workload, ends, proof

#: L1 error over all passages, whose scores sum to about 1, with thirty roundings each.
TOLERANCE = 2e-6


class Projection(Workload):
    """Passages mention 12 nodes on average, with weights; the scores of a query sum to 1, like those of a walk."""

    ops = ("project_f32",)
    data = "synthetic"

    def __init__(self, settings: Settings) -> None:
        passages, nodes, pairs = (500, 3_000, 6_000) if settings.quick else (10_000, 60_000, 120_000)
        self.batches = (1, 4) if settings.quick else (1, 32, 256)
        self.threads = settings.threads
        rng = np.random.default_rng(12)
        row, column = np.divmod(np.unique(rng.integers(0, passages * nodes, pairs)), nodes)
        weights = rng.uniform(0.1, 1.0, row.size)
        self.incidence = hf.Incidence.from_pairs(row, column, weights, num_rows=passages, num_columns=nodes)
        scores = rng.random((max(self.batches), nodes), dtype=np.float32)
        self.scores = scores / scores.sum(axis=1, keepdims=True)
        self.sizes = {"passages": passages, "nodes": nodes, "entries": int(row.size)}

    def run(self, batch: int, turn: int) -> Any:
        return hf.project(self.scores[:batch], self.incidence, threads=self.threads)

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        rows = ends(batch)
        exact = hf.reference.project(self.scores[rows], self.incidence)
        error = gate.rows_l1("hopfuse against the oracle", ours[rows], exact, TOLERANCE)
        return proof(len(rows), error, TOLERANCE)

    def compare(self, batch: int, ours: Any, theirs: NDArray[Any]) -> dict[str, Any]:
        error = gate.rows_l1("the peer against hopfuse", theirs, ours, 2 * TOLERANCE)
        return proof(batch, error, 2 * TOLERANCE)
