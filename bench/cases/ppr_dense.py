"""Walks that restart from every passage."""

from __future__ import annotations

from typing import Any

import hopfuse as hf
import numpy as np

from ..settings import Settings
from .data import KnowledgeGraph, knowledge_graph
from .hipporag import passage_weights
from .ppr import Ppr


class DenseRestarts(Ppr):
    """5 weighted entities per query and, as in HippoRAG 2, every passage weighted by its similarity."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        knowledge = knowledge_graph(settings.quick)
        passages = np.arange(self.num_passages)
        self.seeds = [
            (np.concatenate([nodes, passages]), np.concatenate([weights, passage_weights(similar)]))
            for (nodes, weights), similar in zip(self.seeds, _similarities(knowledge, len(self.seeds)), strict=True)
        ]
        self.restarts = {batch: _packed(self.seeds[:batch]) for batch in self.batches}
        self.sizes["seeds"] += self.num_passages

    def restart(self, batch: int) -> hf.Seeds:
        return self.restarts[batch]


def _similarities(knowledge: KnowledgeGraph, queries: int) -> Any:
    return knowledge.query_vectors[:queries].astype(np.float32) @ knowledge.vectors.astype(np.float32).T


def _packed(rows: list[Any]) -> hf.Seeds:
    return hf.Seeds(*(np.stack(parts) for parts in zip(*rows, strict=True)))
