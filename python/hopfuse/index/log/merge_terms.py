"""BM25's terms after changes, which share the counts of the generation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.bm25 import BM25Weights, sum_columns, text_lengths
from ..._arrays.rows import ascends, indptr_of_counts
from ...errors import InputError
from ...types import TermMatrix
from ...types.term_matrix import Entries
from ..file.sections import MadeSection, Section
from .delta import DeltaRows

#: Which parts of the entries a section is made of: passages (0) and counts (1).
_READ = {"lexical.passage": (0,), "lexical.score": (0, 1), "lexical.count": (1,)}
_PART = 1 << 17  # entries


class MergedTerms(TermMatrix):
    """The terms of the remaining passages of a generation, and of those that batches add.

    Each change of the number of passages changes all scores, and a new passage adds entries amid the others. Therefore
    neither is stored: a column is made from the generation's counts and the added ones when it is read, and so are the
    arrays of all columns. Rows are in the order of slots, so the added entries of a term follow the generation's.

    Parameters
    ----------
    place : ndarray of int64
        The row of each slot, -1 if it was deleted.

    Raises
    ------
    InputError
        The generation has no counts, or a batch counts a term twice in a passage.
    """

    def __init__(self, base: TermMatrix, delta: DeltaRows, place: NDArray[np.int64], num_passages: int) -> None:
        self._base, self._base_counts = base, base.required_counts()
        row = place[: base.num_passages].astype(np.int32)
        self._row = None if (row >= 0).all() else row  # without deletions, slots of the generation are rows
        lives = place[delta["lexical.passage"]] >= 0
        term, added, counts = (delta[f"lexical.{part}"][lives] for part in ("term", "passage", "count"))
        added = place[added].astype(np.int32)

        words = [*base.terms, *delta.new_terms]
        kept, new = np.zeros(len(words), np.int64), np.bincount(term, minlength=len(words))
        kept[: len(base.terms)] = self._frequency()
        number = np.array(sorted(np.flatnonzero(kept + new).tolist(), key=words.__getitem__), np.int64)
        rank = np.zeros(len(words), np.int64)
        rank[number] = np.arange(number.size)
        order = np.argsort(rank[term] * num_passages + added)
        self._added = added[order], counts[order]
        self._added_indptr = indptr_of_counts(new[number])
        if not ascends(self._added[0], self._added_indptr):
            raise InputError("duplicate", None, "a batch counts a term twice in a passage")
        # before each term, the terms of the generation that precede it; those without passages belong to the next one
        own = np.where(number < len(base.terms), number + 1, 0)
        self._begin = np.maximum.accumulate(np.concatenate([[0], own]))

        lengths = text_lengths(added, counts, num_passages)
        lengths[row[row >= 0]] += base.lengths[row >= 0]
        indptr = indptr_of_counts((kept + new)[number])
        self._weights = BM25Weights.of(np.diff(indptr), lengths, method=base.method, k1=base.k1, b=base.b)
        same = {name: getattr(base, name) for name in ("method", "k1", "b", "stopwords", "stemmer", "rule")}
        # the fields of a frozen class
        self.__dict__.update(terms=tuple(words[t] for t in number.tolist()), indptr=indptr, **same)
        self.__dict__.update(num_passages=num_passages)

    def column(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the passages that have a term, ascending, and its scores in them."""
        passages, counts = self._entries(term, term + 1)
        return passages, self._weights.scores(self.indptr[term : term + 2], passages, counts, term)

    def sums(self, terms: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return passages and sums of scores: see :meth:`hopfuse.types.TermMatrix.sums`; no other columns are made."""
        columns = [self.column(term) for term in terms]
        passages = np.concatenate([np.zeros(0, np.int32), *(found for found, _ in columns)])
        scores = np.concatenate([np.zeros(0, np.float32), *(values for _, values in columns)])
        indptr = indptr_of_counts([found.size for found, _ in columns])
        return sum_columns(indptr, passages, scores, np.arange(len(columns)), self.num_passages)

    @property
    def passages(self) -> NDArray[np.int32]:
        """Make and return the passage of each entry; it is not kept."""
        return self.sections()["lexical.passage"].whole()

    @property
    def counts(self) -> NDArray[np.int32]:
        """Make and return the count of each entry's term in its passage; it is not kept."""
        return self.sections()["lexical.count"].whole()

    @property
    def scores(self) -> NDArray[np.float32]:
        """Compute and return the score of each entry; it is not kept."""
        return self.sections()["lexical.score"].whole()

    def entries_of(self, place: NDArray[np.int32]) -> Entries:
        """Return the entries of some passages: see :meth:`hopfuse.types.TermMatrix.entries_of`; no others are made."""
        own = place[: self._base.num_passages]
        if self._row is not None:
            own = np.full(self._row.size, -1, np.int32)
            own[self._row >= 0] = place[self._row[self._row >= 0]]
        of, passages, counts = self._base.entries_of(own)
        # of the terms of the generation, as many are up to a term as up to the same one here
        here = np.searchsorted(self._begin[1:], np.arange(len(self._base.terms)), "right").astype(np.int32)
        row, more = self._added
        added = place[row]
        kept = np.flatnonzero(added >= 0)
        new = np.repeat(np.arange(len(self.terms), dtype=np.int32), np.diff(self._added_indptr))[kept]
        order = np.argsort(np.concatenate([here[of], new]), kind="stable")
        parts = (here[of], new), (passages, added[kept]), (counts, more[kept])
        terms, places, times = (np.concatenate(part)[order] for part in parts)
        return terms, places, times

    def sections(self) -> dict[str, Section]:
        """Return the sections of the entries, which are made in parts when they are read."""
        return {
            name: MadeSection(name, (int(self.indptr[-1]),), dtype, partial(self._parts, name))
            for name, dtype in zip(_READ, (np.int32, np.float32, np.int32), strict=True)
        }

    def _parts(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield a section in parts of whole terms."""
        for first, last in _parts_of(self.indptr):
            found = self._entries(first, last, _READ[name])
            if name == "lexical.score":
                passages, counts = found
                yield self._weights.scores(self.indptr[first : last + 1], passages, counts, first)
            else:
                yield found[0]

    def _entries(self, first: int, last: int, read: tuple[int, ...] = (0, 1)) -> tuple[NDArray[np.int32], ...]:
        """Return the passages that have each of some consecutive terms (0), and its counts in them (1)."""
        begin, end = self._base.indptr[self._begin[[first, last]]]
        own, new = self._of_base(begin, end, read), slice(*self._added_indptr[[first, last]])
        parts = [(a, self._added[which][new]) for a, which in zip(own, read, strict=True)]
        if last == first + 1:
            return tuple(map(np.concatenate, parts))
        added, size = np.diff(self._added_indptr[first : last + 1]), np.diff(self.indptr[first : last + 1])
        is_new = np.zeros(int(size.sum()), np.bool_)
        is_new[_last_places(size, added)] = True
        return tuple(_joined(is_new, *part) for part in parts)

    def _of_base(self, first: int, last: int, read: tuple[int, ...]) -> list[NDArray[np.int32]]:
        """Return the rows of remaining passages (0), and the counts (1), of some of the generation's entries."""
        own = [self._base.passages[first:last], self._base_counts[first:last]]
        if self._row is None:
            return [own[which] for which in read]
        own[0] = self._row[own[0]]
        lives = own[0] >= 0
        return [own[which][lives] for which in read]

    def _frequency(self) -> NDArray[np.int64]:
        """Return in how many of the remaining passages of the generation each of its terms occurs."""
        if self._row is None:
            return np.diff(self._base.indptr)
        indptr, kept = self._base.indptr, np.zeros(len(self._base.terms), np.int64)
        for first, last in _parts_of(indptr):
            lives = np.zeros(int(indptr[last] - indptr[first]) + 1, np.int64)
            np.cumsum(self._row[self._base.passages[indptr[first] : indptr[last]]] >= 0, out=lives[1:])
            kept[first:last] = np.diff(lives[indptr[first : last + 1] - indptr[first]])
        return kept


def _parts_of(indptr: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield parts (first, last) of consecutive terms, whose entries and intermediate arrays fit a core's cache."""
    bounds = np.searchsorted(indptr, np.arange(0, indptr[-1], _PART))
    return pairwise(np.unique([*bounds.tolist(), len(indptr) - 1]).tolist())


def _last_places(size: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of the last entries of consecutive rows of these sizes; ``count`` is their number in each."""
    ends = np.repeat(np.cumsum(size) - np.cumsum(count), count)
    return ends + np.arange(ends.size)


def _joined(is_new: NDArray[np.bool_], own: NDArray[np.int32], new: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return entries of the generation with new ones at some places."""
    joined = np.empty(is_new.size, np.int32)
    joined[~is_new] = own
    joined[is_new] = new
    return joined
