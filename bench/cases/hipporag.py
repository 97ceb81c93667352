"""HippoRAG 2's retrieval from a question's vector and phrases to ranked passages, without its language model.

"From RAG to Memory" (arXiv 2502.14802), section 3.4: a walk with damping 0.5 restarts from the phrases linked to the
question and from all passages, weighted by 0.05 times their similarity to the question scaled to [0, 1]. Passages are
ranked by their scores in the walk.
"""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np
from numpy.typing import NDArray

from .. import gate
from ..settings import Settings
from .base import Workload, ends, proof
from .data import knowledge_graph, seeds
from .ranked import top_k

DAMPING, TOL, PHRASES, K = 0.5, 1e-6, 5, 10
#: Weight of a passage in the restart, relative to phrases.
PASSAGE_WEIGHT = 0.05
#: Errors of PRPACK, of hopfuse, and of the float32 similarities in the restart.
TOLERANCE = 4 * TOL


def passage_weights(similar: NDArray[Any]) -> NDArray[np.float64]:
    """Return 0.05 (s - min) / (max - min)."""
    low, high = float(similar.min()), float(similar.max())
    return PASSAGE_WEIGHT * (similar.astype(np.float64) - low) / (high - low)


class HippoRag(Workload):
    """The best 10 passages for the questions' vectors and 5 weighted entities each, in the place of linked phrases."""

    ops = ("dense_topk_f32", "ppr_f32")

    def __init__(self, settings: Settings) -> None:
        knowledge = knowledge_graph(settings.quick)
        self.batches = (1, 4) if settings.quick else (1, 32)
        self.data, self.graph, self.num_passages = knowledge.source, knowledge.graph, knowledge.num_passages
        self.damping, self.k, self.threads = DAMPING, K, settings.threads
        self.vectors = np.ascontiguousarray(knowledge.vectors, np.float32)
        self.queries = np.ascontiguousarray(knowledge.query_vectors, np.float32)
        self.corpus, self.passages = hf.Corpus.from_array(self.vectors), np.arange(self.num_passages)
        rows = seeds(self.graph, max(self.batches), PHRASES, first=self.num_passages)
        self.phrases = hf.Seeds.from_rows(rows)
        self.sizes = {
            "passages": self.num_passages,
            "nodes": self.graph.num_nodes,
            "stored_entries": self.graph.num_stored,
            "dim": int(self.vectors.shape[1]),
            "phrases": PHRASES,
            "k": K,
        }

    def run(self, batch: int, turn: int) -> Any:
        found = hf.dense_topk(self.queries[:batch], self.corpus, self.num_passages, threads=self.threads)
        similar = hf.calibrate(found, "min_max", threads=self.threads)
        restart = hf.Seeds(
            np.concatenate([self.phrases.nodes[:batch], similar.ids], axis=1),
            np.concatenate([self.phrases.weights[:batch], PASSAGE_WEIGHT * similar.scores], axis=1),
        )
        return hf.ppr_topk(
            self.graph, restart, K, candidates=self.passages, damping=DAMPING, tol=TOL, threads=self.threads
        )

    def restart(self, query: int) -> NDArray[np.float64]:
        """Return a query's restart (N,), as in the paper."""
        restart = np.zeros(self.graph.num_nodes)
        restart[: self.num_passages] = passage_weights(self.vectors @ self.queries[query])
        restart[self.phrases.nodes[query]] = self.phrases.weights[query]
        return restart

    def finish(self, scores: NDArray[Any]) -> gate.Rankings:
        """Return the ranked passages of the scores of all nodes (queries, N)."""
        return top_k(scores[:, : self.num_passages], K, above=0.0)

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        rows = ends(batch)
        exact = hf.reference.ppr(self.graph, np.stack([self.restart(row) for row in rows]), damping=DAMPING)
        found = gate.Rankings(ours.ids[rows], ours.scores[rows])
        error = gate.rankings("hopfuse against the oracle", found, self.finish(exact), TOL, TOL)
        return proof(len(rows), error, TOL)

    def compare(self, batch: int, ours: Any, theirs: gate.Rankings) -> dict[str, Any]:
        n = len(theirs.ids)
        found = gate.Rankings(ours.ids[:n], ours.scores[:n])
        error = gate.rankings("the peer against hopfuse", found, theirs, TOLERANCE, TOLERANCE)
        return proof(n, error, TOLERANCE)
