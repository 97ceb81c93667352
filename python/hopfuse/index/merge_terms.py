"""BM25's terms after changes, which share the counts of the generation."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from .._arrays.bm25 import BM25Weights, text_lengths
from .._arrays.rows import ascends, indptr_of_counts
from ..errors import InputError
from ..types import TermMatrix
from .delta import DeltaRows
from .sections import MadeSection, Section

Entries = tuple[NDArray[np.int32], NDArray[np.int32]]


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
        self._added_indptr, self._kept = indptr_of_counts(new[number]), kept[number]
        if not ascends(self._added[0], self._added_indptr):
            raise InputError("a batch counts a term twice in a passage")
        self._number = np.where(number < len(base.terms), number, -1)

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
        passages, counts = self._entries(term)
        return passages, self._weights.scores(np.array([0, passages.size]), passages, counts, term)

    @property
    def passages(self) -> NDArray[np.int32]:
        """The passage of each entry, made anew."""
        return self._whole(0)

    @property
    def counts(self) -> NDArray[np.int32]:
        """How often each entry's term occurs in its passage, made anew."""
        return self._whole(1)

    @property
    def scores(self) -> NDArray[np.float32]:
        """The score of each entry, computed anew."""
        return self._weights.scores(self.indptr, self.passages, self.counts)

    def sections(self) -> dict[str, Section]:
        """Return the sections of the entries, which are made when they are read."""
        parts = (("passage", np.int32, "passages"), ("score", np.float32, "scores"), ("count", np.int32, "counts"))
        return {
            f"lexical.{name}": MadeSection(
                f"lexical.{name}", (int(self.indptr[-1]),), dtype, partial(getattr, self, of)
            )
            for name, dtype, of in parts
        }

    def _entries(self, term: int) -> Entries:
        """Return the passages that have a term, and its counts in them."""
        number = self._number[term]
        own = slice(*self._base.indptr[number : number + 2]) if number >= 0 else slice(0)
        new = slice(*self._added_indptr[term : term + 2])
        passages, counts = self._of_base(own)
        return np.concatenate([passages, self._added[0][new]]), np.concatenate([counts, self._added[1][new]])

    def _of_base(self, part: slice) -> Entries:
        """Return the rows of remaining passages, and the counts, of some of the generation's entries."""
        passages, counts = self._base.passages[part], self._base_counts[part]
        if self._row is None:
            return passages, counts
        rows = self._row[passages]
        lives = rows >= 0
        return rows[lives], counts[lives]

    def _whole(self, column: int) -> NDArray[np.int32]:
        """Return the passages or the counts of all entries."""
        behind = np.repeat(np.cumsum(self._kept), np.diff(self._added_indptr))
        return np.insert(self._of_base(slice(None))[column], behind, self._added[column])

    def _frequency(self) -> NDArray[np.int64]:
        """Return in how many of the remaining passages of the generation each of its terms occurs."""
        if self._row is None:
            return np.diff(self._base.indptr)
        lives = np.cumsum(self._row[self._base.passages] >= 0)
        return np.diff(np.concatenate([[0], lives])[self._base.indptr])
