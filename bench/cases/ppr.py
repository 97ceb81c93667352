"""Personalized PageRank of every node: the full (B, N) float32 result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from .. import gate, traffic
from ..errors import GateError
from ..settings import Settings
from .base import Workload, ends, proof
from .data import WalkGraph, knowledge_graph, seeds

DAMPING = 0.5
TOL = 1e-6
SEEDS = 5
#: hopfuse and the peer may each be TOL away from the exact answer; the rest is for the rounding of a peer's float32.
PEER_TOLERANCE = 4 * TOL
#: For more stored entries, the float64 residual is checked, because the oracle's series would take minutes.
SOLVED_STORED = 500_000


class Ppr(Workload):
    """5 weighted seeds per query on the entities of a graph, tol 1e-6.

    Attributes
    ----------
    restarts : list of dict, or another form that hopfuse takes
        Restarts of all queries.
    seeds : list of (nodes, weights)
        The same as arrays, a pair for each query, from which peers make their own form.
    """

    ops: tuple[str, ...] = ("ppr_f32",)

    def __init__(
        self,
        settings: Settings,
        load: Callable[[bool], WalkGraph] = knowledge_graph,
        damping: float = DAMPING,
        batches: tuple[int, ...] = (1, 64),
    ) -> None:
        self.batches = (1, 4) if settings.quick else batches
        loaded = load(settings.quick)
        self.data, self.graph, self.num_passages = loaded.source, loaded.graph, loaded.num_passages
        self.damping, self.tol, self.threads = damping, TOL, settings.threads
        rows = seeds(self.graph, max(self.batches), SEEDS, first=self.num_passages)
        self.restarts: Any = rows
        self.seeds = [(np.array(list(row), np.int64), np.array(list(row.values()))) for row in rows]
        self.sizes = {"nodes": self.graph.num_nodes, "stored_entries": self.graph.num_stored, "seeds": SEEDS}

    def run(self, batch: int, turn: int) -> Any:
        return self.walk(batch)

    def walk(self, batch: int, max_iter: int | None = None) -> Any:
        """Return hopfuse's result after at most ``max_iter`` passes."""
        return hf.ppr(
            self.graph,
            self.restart(batch),
            damping=self.damping,
            tol=self.tol,
            max_iter=max_iter,
            threads=self.threads,
        )

    def restart(self, batch: int) -> Any:
        """Return the first restarts, in a form that hopfuse takes."""
        return self.restarts[:batch]

    def finish(self, scores: NDArray[Any]) -> Any:
        """Return a peer's scores (queries, N), a NumPy or CuPy array, as float32."""
        return scores.astype(np.float32, order="C", copy=False)

    def restart_rows(self, rows: list[int]) -> NDArray[np.float64]:
        """Return the restarts of some queries as dense rows, for the oracle."""
        dense = np.zeros((len(rows), self.graph.num_nodes))
        for at, row in enumerate(rows):
            nodes, weights = self.seeds[row]
            dense[at, nodes] = weights
        return dense

    def exact(self, rows: list[int]) -> NDArray[np.float64]:
        """Return the oracle's scores of some queries."""
        return hf.reference.ppr(self.graph, self.restart_rows(rows), damping=self.damping)

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        if not ours.converged.all() or not (ours.bound <= TOL).all():
            raise GateError(f"hopfuse did not converge: bounds up to {ours.bound.max():.3g}")
        rows = ends(batch)
        if self.graph.num_stored <= SOLVED_STORED:
            error = gate.rows_l1("hopfuse against the oracle", ours.scores[rows], self.exact(rows), TOL)
        else:
            error = self._residual_error(rows, ours.scores[rows])
        return proof(len(rows), error, TOL)

    def _residual_error(self, rows: list[int], scores: NDArray[Any]) -> float:
        """Return the bound on the L1 error from the oracle's residual."""
        left = hf.reference.ppr_residual(self.graph, scores, self.restart_rows(rows), damping=self.damping)
        error = float(left.max()) / (1.0 - self.damping)
        if not error <= TOL:
            raise GateError(f"hopfuse against the oracle: off by up to {error:.3g} in L1, allowed {TOL:.3g}")
        return error

    def compare(self, batch: int, ours: Any, theirs: NDArray[np.float32]) -> dict[str, Any]:
        expected = ours.scores[: len(theirs)].astype(np.float64)
        error = gate.rows_l1("the peer against hopfuse", theirs, expected, PEER_TOLERANCE)
        return proof(len(theirs), error, PEER_TOLERANCE)

    def task(self) -> dict[str, Any]:
        src, dst, weight, _ = self.graph.edges()
        return {
            "op": "ppr",
            "edges": (src, dst, weight),
            "num_nodes": self.graph.num_nodes,
            "restarts": self.restarts,
            "options": {"damping": self.damping, "tol": self.tol},
        }

    def moved(self, batch: int, ours: Any) -> traffic.Traffic:
        return traffic.of_walk(self.graph, ours.iterations)
