"""The search that parts run: a dense list and a walk, fused, as one recording on a device."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hopfuse as hf
import numpy as np

from .card import BACKEND

Answer = list[np.ndarray[Any, Any]]
DIM, SEEDS = 32, 3
#: Vectors that are drawn at once.
DRAWN = 1 << 14


@dataclass(frozen=True)
class Inputs:
    """Sizes of a random graph, whose first nodes are the passages, and of a corpus; float32 or 16-bit vectors."""

    nodes: int = 900
    edges: int = 4_000
    passages: int = 600
    dim: int = DIM
    dtype: str = "float32"


class Search:
    """A graph and a corpus, the same in every process."""

    def __init__(self, inputs: Inputs = Inputs()) -> None:
        self.inputs, rng = inputs, np.random.default_rng(0)
        ends = rng.integers(0, inputs.nodes, (2, inputs.edges))
        self.graph = hf.Graph.from_edges(*ends[:, ends[0] != ends[1]], num_nodes=inputs.nodes)
        vectors = np.empty((inputs.passages, inputs.dim), inputs.dtype)
        for at in range(0, inputs.passages, DRAWN):
            part = vectors[at : at + DRAWN]
            part[...] = rng.standard_normal(part.shape, np.float32)
        self.corpus = hf.Corpus.from_array(vectors, storage=inputs.dtype)

    def questions(self, batch: int, seed: int = 1) -> list[np.ndarray[Any, Any]]:
        """Return the vectors, seeds and weights of some questions."""
        rng = np.random.default_rng(seed)
        nodes = np.stack([rng.choice(self.inputs.nodes, SEEDS, replace=False) for _ in range(batch)])
        return [rng.standard_normal((batch, self.inputs.dim), np.float32), nodes, np.ones((batch, SEEDS))]

    def core(self, backend: str = BACKEND) -> Callable[..., tuple[Any, ...]]:
        """Return the search as a function of vectors, nodes and weights."""
        candidates = np.arange(self.inputs.passages)

        def core(vectors: Any, nodes: Any, weights: Any) -> tuple[Any, ...]:
            on = {"backend": backend}
            dense = hf.dense_topk(vectors, self.corpus, 20, **on)
            walk = hf.ppr_topk(
                self.graph, hf.Seeds(nodes, weights), 10, candidates=candidates, stop="tol", empty="skip", **on
            )
            hits = hf.fuse([dense, walk], k=10, **on)
            return hits.ids, hits.scores, hits.counts

        return core

    def captured(self, backend: str = BACKEND) -> hf.Captured:
        """Return the search as a captured function, not recorded yet."""
        shapes = [((self.inputs.dim,), "float32"), ((SEEDS,), "int64"), ((SEEDS,), "float64")]
        return hf.capture(self.core(backend), shapes, backend=backend)

    def release(self) -> None:
        """Free the device memory of the graph and the corpus."""
        hf.free_device_memory(self.graph, backend=BACKEND)
        hf.free_device_memory(self.corpus, backend=BACKEND)


def digest(found: Any) -> str:
    """Return a hash of an answer's bytes."""
    return hashlib.sha256(b"".join(part.tobytes() for part in found)).hexdigest()


def same(found: Any, expected: Any) -> bool:
    """Return whether two answers have the same bytes."""
    return all(one.tobytes() == other.tobytes() for one, other in zip(found, expected, strict=True))
