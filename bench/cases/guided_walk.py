"""A whole GuidedWalk search, from vectors and entity names to the top 10, beside PhaseGraph on the same questions."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np

from .. import gate
from ..settings import Settings
from .base import ends, proof
from .phase_graph import DENSE_TOLERANCE, FUSED_TOLERANCE, GRAPH_TIE, PhaseGraphWhole
from .ranked import rankings, top_k

#: The best dense hit is among so many hits.
KEPT = 5


class GuidedWalkWhole(PhaseGraphWhole):
    """The index and the questions of PhaseGraph; ``options`` are those of the recipe."""

    ops = ("dense_topk_f32", "ppr_f32", "similarity_f32", "fuse_f32")

    def __init__(self, settings: Settings, **options: Any) -> None:
        self.options = options
        super().__init__(settings)

    def make(self, threads: int) -> Any:
        return hf.recipes.GuidedWalk(self.index, threads=threads, **self.options)

    def check(self, batch: int, ours: Any) -> dict[str, Any]:
        """Check each stage: the guided list from its restart, the dense list, then the fusion of the lists."""
        rows, index, config = ends(batch), self.index, self.recipe.config
        lists = {leg: hf.Hits(found.ids[rows], found.scores[rows]) for leg, found in ours.lists.items()}
        weights = np.ones((len(rows), index.graph.num_nodes))
        weights[:, : index.num_passages] = hf.reference.similarity_weights(
            self.vectors[rows], index.corpus, tau=config.decay(has_words=False), floor=config.floor
        )
        for at, row in enumerate(rows):
            held = ours.starts.weights[row] > 0
            parts = ours.starts.nodes[row, held].tolist(), ours.starts.weights[row, held].tolist()
            restart = dict(zip(*parts, strict=True))
            exact = np.zeros((1, index.graph.num_nodes))
            if restart:
                exact = hf.reference.ppr(
                    index.graph, [restart], damping=config.damping, node_weights=weights[at : at + 1]
                )
            expected = top_k(exact[:, : index.num_passages], config.graph_k, above=0.0)
            found = lists["guided"]
            gate.rankings(
                "guided list",
                gate.Rankings(found.ids[at : at + 1], found.scores[at : at + 1]),
                expected,
                GRAPH_TIE,
                1e-4,
            )
        exact_dense = hf.reference.dense_topk(self.vectors[rows], index.corpus, config.dense_k)
        gate.rankings("dense list", rankings(lists["dense"]), rankings(exact_dense), DENSE_TOLERANCE, DENSE_TOLERANCE)
        fused = self.fused(lists, ours.direct[rows], ours.hits.shape[1])
        hits = gate.Rankings(ours.hits.ids[rows], ours.hits.scores[rows])
        error = gate.rankings("hits", hits, rankings(fused), FUSED_TOLERANCE, FUSED_TOLERANCE)
        return proof(len(rows), error, FUSED_TOLERANCE)

    def fused(self, lists: dict[str, hf.Hits], direct: Any, k: int) -> hf.Hits:
        """Return the hits by each question's weight of direct retrieval, with its best dense hit in the first five."""
        constant, rows = self.recipe.config.rank_constant, []
        for b, weight in enumerate(direct.tolist()):
            sums: dict[int, float] = {}
            for leg, share in (("guided", 1.0 - 0.7 * weight), ("dense", max(weight, 0.001))):
                for rank, (passage, _) in enumerate(lists[leg].row(b), 1):
                    sums[passage] = sums.get(passage, 0.0) + share / (constant + rank)
            order = sorted(sums, key=lambda passage: (-sums[passage], passage))
            best = lists["dense"].row(b)[0][0]
            if best not in order[:KEPT]:
                sums[best] = sums[order[KEPT - 1]] * (1 + FUSED_TOLERANCE / 10)
                order = sorted(sums, key=lambda passage: (-sums[passage], passage))
            rows.append([(passage, sums[passage]) for passage in order[:k]])
        return hf.Hits.from_lists(rows)

    def compare(self, batch: int, ours: Any, theirs: gate.Rankings) -> dict[str, Any]:
        """Check that the other recipe has the same dense list, so it answered the same questions."""
        width = min(theirs.ids.shape[1], ours.lists["dense"].shape[1])
        first = gate.Rankings(theirs.ids[:, :width], theirs.scores[:, :width])
        error = gate.rankings("dense list of the peer", first, rankings(ours.lists["dense"].head(width)), 0.0, 0.0)
        return proof(batch, error, 0.0)
