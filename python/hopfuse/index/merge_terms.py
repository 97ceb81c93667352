"""BM25's terms after changes, which share the counts of the generation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.bm25 import BM25Weights, text_lengths
from .._arrays.rows import ascends, indptr_of_counts
from ..errors import InputError
from ..types import TermMatrix
from .delta import DeltaRows
from .sections import MadeSection, Section

Entries = tuple[NDArray[np.int32], ...]
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
        if base.counts is None:
            raise InputError("the lexical part has no counts; build it again with BM25.build")
        self._base, self._base_counts = base, base.counts
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
        order = np.lexsort((added, rank[term]))
        self._added = added[order], counts[order]
        self._added_indptr = indptr_of_counts(new[number])
        if not ascends(self._added[0], self._added_indptr):
            raise InputError("a batch counts a term twice in a passage")
        # before each term, the terms of the generation that precede it; those without passages belong to the next one
        own = np.where(number < len(base.terms), number + 1, 0)
        self._begin = np.maximum.accumulate(np.concatenate([[0], own]))

        lengths = text_lengths(added, counts, num_passages)
        lengths[row[row >= 0]] += base.lengths[row >= 0]
        indptr = indptr_of_counts((kept + new)[number])
        self._weights = BM25Weights.of(np.diff(indptr), lengths, method=base.method, k1=base.k1, b=base.b)
        same = {name: getattr(base, name) for name in ("method", "k1", "b", "stopwords", "stemmer")}
        # the fields of a frozen class
        self.__dict__.update(terms=tuple(words[t] for t in number.tolist()), indptr=indptr, **same)
        self.__dict__.update(num_passages=num_passages)

    def column(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the passages that have a term, ascending, and its scores in them."""
        passages, counts = self._entries(term, term + 1)
        return passages, self._weights.scores(self.indptr[term : term + 2], passages, counts, term)

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

    def sections(self) -> dict[str, Section]:
        """Return the sections of the entries, which are made in parts when they are read."""
        return {
            name: MadeSection(name, (int(self.indptr[-1]),), dtype, partial(self._parts, name))
            for name, dtype in (
                ("lexical.passage", np.int32),
                ("lexical.score", np.float32),
                ("lexical.count", np.int32),
            )
        }

    def _parts(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield a section in parts of whole terms, whose intermediate arrays fit a core's cache."""
        bounds = np.searchsorted(self.indptr, np.arange(0, self.indptr[-1], _PART))
        for first, last in pairwise(np.unique([*bounds.tolist(), len(self.terms)]).tolist()):
            passages, counts = self._entries(first, last)
            if name == "lexical.score":
                yield self._weights.scores(self.indptr[first : last + 1], passages, counts, first)
            else:
                yield passages if name == "lexical.passage" else counts

    def _entries(self, first: int, last: int) -> Entries:
        """Return the passages that have each of some consecutive terms, and its counts in them."""
        own = self._of_base(slice(*self._base.indptr[self._begin[[first, last]]]))
        new = slice(*self._added_indptr[[first, last]])
        if last == first + 1:
            return tuple(np.concatenate([a, b[new]]) for a, b in zip(own, self._added, strict=True))
        added = np.diff(self._added_indptr[first : last + 1])
        behind = np.repeat(np.cumsum(np.diff(self.indptr[first : last + 1]) - added), added)
        return tuple(np.insert(a, behind, b[new]) for a, b in zip(own, self._added, strict=True))

    def _of_base(self, part: slice) -> Entries:
        """Return the rows of remaining passages, and the counts, of some of the generation's entries."""
        passages, counts = self._base.passages[part], self._base_counts[part]
        if self._row is None:
            return passages, counts
        rows = self._row[passages]
        lives = rows >= 0
        return rows[lives], counts[lives]

    def _frequency(self) -> NDArray[np.int64]:
        """Return in how many of the remaining passages of the generation each of its terms occurs."""
        if self._row is None:
            return np.diff(self._base.indptr)
        lives = np.cumsum(self._row[self._base.passages] >= 0)
        return np.diff(np.concatenate([[0], lives])[self._base.indptr])
