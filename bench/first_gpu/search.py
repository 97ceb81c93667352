"""The search that parts run: a dense list and a walk, fused, as one recording on a device."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np

from .card import BACKEND

Answer = list[np.ndarray[Any, Any]]
NODES, PASSAGES, EDGES, DIM, SEEDS = 900, 600, 4_000, 32, 3


class Search:
    """A graph and a corpus, the same in every process."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        ends = rng.integers(0, NODES, (2, EDGES))
        self.graph = hf.Graph.from_edges(*ends[:, ends[0] != ends[1]], num_nodes=NODES)
        self.corpus = hf.Corpus.from_array(rng.standard_normal((PASSAGES, DIM)).astype(np.float32))

    def questions(self, batch: int, seed: int = 1) -> list[np.ndarray[Any, Any]]:
        """Return the vectors, seeds and weights of some questions."""
        rng = np.random.default_rng(seed)
        nodes = np.stack([rng.choice(NODES, SEEDS, replace=False) for _ in range(batch)])
        return [rng.standard_normal((batch, DIM)).astype(np.float32), nodes, np.ones((batch, SEEDS))]

    def captured(self, backend: str = BACKEND) -> hf.Captured:
        """Return the search as a captured function, not recorded yet."""

        def core(vectors: Any, nodes: Any, weights: Any) -> tuple[Any, ...]:
            on = {"backend": backend}
            dense = hf.dense_topk(vectors, self.corpus, 20, **on)
            walk = hf.ppr_topk(
                self.graph, hf.Seeds(nodes, weights), 10, candidates=np.arange(PASSAGES), stop="tol", empty="skip", **on
            )
            hits = hf.fuse([dense, walk], k=10, **on)
            return hits.ids, hits.scores, hits.counts

        shapes = [((DIM,), "float32"), ((SEEDS,), "int64"), ((SEEDS,), "float64")]
        return hf.capture(core, shapes, backend=backend)

    def release(self) -> None:
        """Free the device memory of the graph and the corpus."""
        hf.free_device_memory(self.graph, backend=BACKEND)
        hf.free_device_memory(self.corpus, backend=BACKEND)


def same(found: Any, expected: Any) -> bool:
    """Return whether two answers have the same bytes."""
    return all(one.tobytes() == other.tobytes() for one, other in zip(found, expected, strict=True))
