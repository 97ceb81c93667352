"""The best passages by Personalized PageRank, with their set or order proven."""

from __future__ import annotations

from typing import Any, Literal

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from .. import gate
from ..settings import Settings
from .base import ends, proof
from .ppr import PEER_TOLERANCE, TOL, Ppr
from .ranked import top_k


class PprTopk(Ppr):
    """The graph and the queries of ``Ppr``; the best passages instead of all scores."""

    def __init__(self, settings: Settings, k: int = 100, prove: Literal["order", "set"] = "order") -> None:
        super().__init__(settings)
        self.prove = prove
        self.k = 10 if settings.quick else k
        self.passages = np.arange(self.num_passages)
        self.sizes["k"] = self.k

    def run(self, batch: int, turn: int) -> Any:
        return hf.ppr_topk(
            self.graph,
            self.restart(batch),
            self.k,
            candidates=self.passages,
            damping=self.damping,
            tol=self.tol,
            prove=self.prove,
            threads=self.threads,
        )

    def finish(self, scores: NDArray[Any]) -> gate.Rankings:
        """Return the best passages by a peer's scores (queries, N)."""
        return top_k(scores[:, : self.num_passages], self.k, above=0.0)

    def task(self) -> dict[str, Any]:
        task = super().task()
        options = {"k": self.k, "candidates": self.passages, "prove": self.prove, **task["options"]}
        return task | {"op": "ppr_topk", "options": options}

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        rows = ends(batch)
        exact = self.exact(rows)
        expected = self.finish(exact)
        found = gate.Rankings(ours.ids[rows], ours.scores[rows])
        if self.prove == "set":
            found = _in_order(found, exact)
        tie = np.where(ours.proven[rows], 1e-12, TOL)
        allowed = _bounds(ours)[rows] + 1e-12
        error = gate.rankings("hopfuse against the oracle", found, expected, tie, allowed)
        return proof(len(rows), error, float(allowed.max())) | {"proven": float(ours.proven.mean())}

    def compare(self, batch: int, ours: Any, theirs: gate.Rankings) -> dict[str, Any]:
        n = len(theirs.ids)
        allowed = _bounds(ours)[:n] + PEER_TOLERANCE
        found = gate.Rankings(ours.ids[:n], ours.scores[:n])
        error = gate.rankings("the peer against hopfuse", found, theirs, PEER_TOLERANCE, allowed)
        return proof(n, error, float(allowed.max()))


def _in_order(found: gate.Rankings, exact: NDArray[np.float64]) -> gate.Rankings:
    """Return the same hits ordered by exact score, because only the set is proven, not the order."""
    scores = np.where(found.ids >= 0, np.take_along_axis(exact, np.maximum(found.ids, 0), axis=1), -np.inf)
    order = np.lexsort((found.ids, -scores), axis=1)
    return gate.Rankings(*(np.take_along_axis(array, order, axis=1) for array in found))


def _bounds(hits: Any) -> NDArray[np.float64]:
    """Return the largest error bound of each row's valid scores."""
    valid = np.arange(hits.ids.shape[1]) < hits.counts[:, None]
    return np.where(valid, hits.score_bounds, 0.0).max(axis=1, initial=0.0).astype(np.float64)
