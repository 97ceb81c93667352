"""Entities of one name, told apart by how much their passages are like the question."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...index import Index
from ...ops.dense import dense_topk
from ...types import Corpus, Incidence

SPREAD = 0.05
"""A cosine so much below the best is worth 1 / e of it."""
FLOOR = 0.01
"""The factor of the least alike entity, and of one without passages."""

Namesakes = tuple[int, tuple[int, ...]]
"""The number of a question, and several entities that a name in it may mean."""


class PassageLikeness:
    """The likeness of entities to questions, by the passages that they are in, which are read when first needed."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._read: tuple[Corpus, Incidence] | None = None

    def of(
        self,
        namesakes: Sequence[Namesakes],
        vectors: NDArray[Any] | None,
        threads: int | None,
    ) -> list[dict[int, float]]:
        """Return for each name how much its entities are like the question: 1 for the one with the best passage.

        The others: exp((cosine - best) / ``SPREAD``), but at least ``FLOOR``. All are 1 where there are no vectors.

        Parameters
        ----------
        namesakes : sequence of (question, entities)
        vectors : ndarray (B, d) or None
            The questions', in the passages' space.
        threads : int, optional
        """
        if not namesakes or vectors is None or self._index.corpus is None or self._index.graph is None:
            return [dict.fromkeys(entities, 1.0) for _, entities in namesakes]
        corpus, passages = self._parts(self._index.corpus)
        asked = [(query, entity) for query, entities in namesakes for entity in entities]
        rows = [_row(passages, self._index.num_passages + entity) for _, entity in asked]
        best = dense_topk(vectors[[query for query, _ in asked]], corpus, 1, allow=rows, threads=threads)
        cosines = iter(best.scores[:, 0].tolist())  # -inf for an entity without passages
        return [_worth({entity: next(cosines) for entity in entities}) for _, entities in namesakes]

    def _parts(self, corpus: Corpus) -> tuple[Corpus, Incidence]:
        if self._read is None:
            assert self._index.graph is not None
            entities = Incidence.from_graph(self._index.graph, self._index.num_passages)
            self._read = corpus.with_metric("cosine"), entities.transposed()
        return self._read


def _row(rows: Incidence, at: int) -> NDArray[np.int32]:
    return rows.indices[rows.indptr[at] : rows.indptr[at + 1]]


def _worth(cosines: dict[int, float]) -> dict[int, float]:
    best = max(cosines.values())
    if best == -np.inf:
        return dict.fromkeys(cosines, 1.0)
    return {entity: max(FLOOR, exp((cosine - best) / SPREAD)) for entity, cosine in cosines.items()}
