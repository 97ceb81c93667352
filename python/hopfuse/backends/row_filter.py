"""Filters of the rows of a corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import entries_of, indptr_of_counts
from .call import Array

if TYPE_CHECKING:
    from ..types.continued_corpus import CorpusPart


class RowFilter(NamedTuple):
    """A filter of rows: a mask (N,) or (B, N), or ascending ids in CSR rows, of which a shared filter has one."""

    mask: Array | None = None  # uint8
    indptr: Array | None = None  # int64
    ids: Array | None = None  # int64
    shared: bool = True

    @property
    def is_given(self) -> bool:
        """Whether it leaves rows out."""
        return self.mask is not None or self.indptr is not None

    def masks(self, n: int) -> NDArray[np.bool_]:
        """Return one mask for all queries, (1, N), or one per query, (B, N)."""
        if self.mask is not None:
            return np.atleast_2d(self.mask.view(np.bool_))
        assert self.indptr is not None
        masks = np.zeros((self.indptr.size - 1, n), np.bool_)
        masks[np.repeat(np.arange(len(masks)), np.diff(self.indptr)), self.ids] = True
        return masks

    def of(self, queries: NDArray[np.int64]) -> RowFilter:
        """Return the filter of a subset of the queries."""
        if self.shared:
            return self
        if self.mask is not None:
            return self._replace(mask=np.ascontiguousarray(self.mask[queries]))
        assert self.indptr is not None
        assert self.ids is not None
        ids, counts = entries_of(self.indptr, self.ids, queries)
        return self._replace(indptr=indptr_of_counts(counts), ids=ids)

    def of_segment(self, segment: CorpusPart) -> RowFilter:
        """Return the filter of a corpus as a filter of its segment, which also leaves out what was removed from it."""
        rows, place, size = segment.rows, segment.place, segment.corpus.num_vectors
        if self.indptr is not None:
            assert self.ids is not None
            own = (self.ids >= rows.start) & (self.ids < rows.stop)
            kept = self.ids[own] - rows.start
            before = np.concatenate([[0], np.cumsum(own)])
            return RowFilter(None, before[self.indptr], kept if place is None else place[kept], self.shared)
        if place is None:
            return self if self.mask is None else self._replace(mask=np.ascontiguousarray(self.mask[..., rows]))
        if self.mask is None:
            return RowFilter(segment.mask)
        mask = np.zeros((*self.mask.shape[:-1], size), np.uint8)
        mask[..., place] = self.mask[..., rows]
        return self._replace(mask=mask)
