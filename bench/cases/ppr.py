"""Personalized PageRank of every node: the full (B, N) float32 result."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from .. import gate
from ..errors import GateError
from ..settings import Settings
from .base import Workload, ends, proof
from .data import knowledge_graph, seeds

DAMPING = 0.5
TOL = 1e-6
SEEDS = 5
#: hopfuse and the peer may each be TOL away from the exact answer; the rest is the rounding of a peer's float32.
PEER_TOLERANCE = 4 * TOL


class Ppr(Workload):
    """5 weighted seeds a query on the entities of the graph, damping 0.5, tol 1e-6."""

    ops = ("ppr_f32",)

    def __init__(self, settings: Settings) -> None:
        self.batches = (1, 4) if settings.quick else (1, 64)
        knowledge = knowledge_graph(settings.quick)
        self.data, self.graph, self.num_passages = knowledge.source, knowledge.graph, knowledge.num_passages
        self.damping, self.tol, self.threads = DAMPING, TOL, settings.threads
        self.restarts = seeds(self.graph, max(self.batches), SEEDS, first=self.num_passages)
        self.sizes = {"nodes": self.graph.num_nodes, "stored_entries": self.graph.num_stored, "seeds": SEEDS}

    def run(self, batch: int, turn: int) -> Any:
        return hf.ppr(self.graph, self.restarts[:batch], damping=DAMPING, tol=TOL, threads=self.threads)

    def finish(self, scores: NDArray[Any]) -> Any:
        """What a peer makes of its scores (queries, N), be they NumPy's or CuPy's: float32."""
        return scores.astype(np.float32, order="C", copy=False)

    def exact(self, rows: list[int]) -> NDArray[np.float64]:
        """The oracle's scores of some queries."""
        return hf.reference.ppr(self.graph, [self.restarts[b] for b in rows], damping=DAMPING)

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        if not ours.converged.all() or not (ours.bound <= TOL).all():
            raise GateError(f"hopfuse did not converge: bounds up to {ours.bound.max():.3g}")
        rows = ends(batch)
        error = gate.rows_l1("hopfuse against the oracle", ours.scores[rows], self.exact(rows), TOL)
        return proof(len(rows), error, TOL)

    def compare(self, batch: int, ours: Any, theirs: NDArray[np.float32]) -> dict[str, Any]:
        expected = ours.scores[: len(theirs)].astype(np.float64)
        error = gate.rows_l1("the peer against hopfuse", theirs, expected, PEER_TOLERANCE)
        return proof(len(theirs), error, PEER_TOLERANCE)
