"""Passages by the entities that a recipe found: a recipe of entities beside recipes of passages."""

from __future__ import annotations

import numpy as np

from .. import Hits, Incidence, Index, project_topk

#: Entities whose scores go to the passages that mention them.
ENTITIES = 100


class Mentioned:
    """Ranks an index's passages by the sum of the scores of the entities that they mention, of the best ones."""

    def __init__(self, index: Index, threads: int | None) -> None:
        assert index.graph is not None
        self.index, self.threads = index, threads
        self.entities = min(ENTITIES, max(1, index.num_entities))
        self._mentions = Incidence.from_graph(index.graph, index.num_passages)

    def passages(self, found: Hits, k: int) -> Hits:
        """The k best passages of each question; scores of entities below 0 count as 0."""
        batch, passages = found.ids.shape[0], self.index.num_passages
        scores = np.zeros((batch, self._mentions.num_columns), np.float32)
        for b in range(batch):
            held = found.ids[b, : found.counts[b]]
            scores[b, passages + held] = np.maximum(found.scores[b, : held.size], 0)
        return project_topk(scores, self._mentions, k, threads=self.threads)
