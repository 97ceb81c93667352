"""The weights of passages' entities as second seeds of a guided walk."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..._arrays.distinct import distinct
from ..._arrays.rows import entries_of
from ...index import Index
from ...ops.seeding import add_entity_seeds
from ...types import Hits, Incidence, Seeds


class SecondShares:
    """The weights of each passage's entities as second seeds, (P, N): all passages give the same mass.

    An entity of a single passage leads only back to it, and is left out where the passage has others; a word of the
    texts is not. The weights of a passage are made when it is among the hits of a search: a change of an index changes
    those of many passages.

    """

    def __init__(self, mentions: Incidence, index: Index) -> None:
        self._mentions, self._index = mentions, index
        self._latest: tuple[NDArray[np.int64], Incidence] | None = None

    @property
    def frequency(self) -> NDArray[np.int64]:
        """The number of passages that mention each node, (N,)."""
        return self._mentions.column_counts()

    @cached_property
    def whole(self) -> Incidence:
        """The weights of all passages."""
        return self._of(np.arange(self._mentions.num_rows))

    def of(self, hits: Hits) -> Incidence:
        """Return the weights of hits on the host; the rows of other passages are empty."""
        held = np.arange(hits.ids.shape[1]) < np.asarray(hits.counts)[:, None]
        passages, latest = distinct(np.asarray(hits.ids)[held]), self._latest
        if latest is None or not np.array_equal(latest[0], passages):
            latest = self._latest = passages, self._of(passages)
        return latest[1]

    def _of(self, passages: NDArray[np.int64]) -> Incidence:
        held, index = self._mentions, self._index
        nodes, count = entries_of(held.indptr, held.indices, passages)
        of, often = np.repeat(np.arange(passages.size), count), self.frequency[nodes]
        end = index.num_passages + (index.num_entities if index.words is None else index.words.first)
        leads = (often > 1) | (nodes >= end)
        has_other = np.bincount(of, leads, minlength=passages.size) > 0
        worth = (leads | ~has_other[of]).astype(np.float64)
        mass = np.bincount(of, worth / often, minlength=passages.size)[of]
        weights = np.divide(worth, mass, out=np.zeros(of.size), where=mass > 0).astype(np.float32)
        return held.of_rows(passages, weights)


def add_second_seeds(
    seeds: Seeds, hits: Hits, shares: Incidence | SecondShares, mass: float, *, backend: str = "auto"
) -> Seeds:
    """Return the seeds with the entities of hits (:func:`hopfuse.add_entity_seeds`)."""
    if isinstance(shares, Incidence):
        return add_entity_seeds(seeds, hits, shares, mass, backend=backend)
    return add_entity_seeds(seeds, hits, shares.of(hits), mass, frequency=shares.frequency, backend=backend)
