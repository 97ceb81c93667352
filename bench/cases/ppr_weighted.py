"""Personalized PageRank of every node with node weights per query, beside the same walk without weights."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from .. import gate
from ..settings import Settings
from .base import proof
from .ppr import Ppr


class WeightedPpr(Ppr):
    """The graph and queries of ``Ppr``, with weights exp of similarities spread like a question's, at least 1e-4."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, batches=(1, 32))
        self.passages = np.arange(self.num_passages)
        likeness = np.random.default_rng(12).normal(0.0, 0.08, (max(self.batches), self.num_passages))
        likeness -= likeness.max(axis=1, keepdims=True)
        self.weights = np.maximum(np.exp(likeness / 0.1), 1e-4).astype(np.float32)

    def walk(self, batch: int, max_iter: int | None = None) -> Any:
        return self._walk(self.weights[:batch], max_iter)

    def exact(self, rows: list[int]) -> NDArray[np.float64]:
        return hf.reference.ppr(
            self.graph,
            self.restart_rows(rows),
            damping=self.damping,
            node_weights=self.weights[rows],
            weighted_nodes=self.passages,
        )

    def compare(self, batch: int, ours: Any, theirs: NDArray[np.float32]) -> dict[str, Any]:
        """Check that the walk without weights equals that with all weights 1, bit for bit."""
        ones = self._walk(np.ones_like(self.weights[:batch]))
        error = gate.rows_l1("the peer against weights of 1", theirs, ones.scores.astype(np.float64), 0.0)
        return proof(batch, error, 0.0)

    def _walk(self, weights: NDArray[np.float32], max_iter: int | None = None) -> Any:
        return hf.ppr(
            self.graph,
            self.restart(len(weights)),
            damping=self.damping,
            tol=self.tol,
            max_iter=max_iter,
            node_weights=weights,
            weighted_nodes=self.passages,
            threads=self.threads,
        )
