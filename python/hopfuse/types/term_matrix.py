"""A sparse matrix of BM25 scores, by term and passage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.bm25 import BM25Weights, sum_columns, text_lengths
from .._arrays.rows import check_array, check_ascending, check_indptr, check_range, indptr_of_counts
from .._validation import check_as_long, check_choice, check_number, checked_texts
from ..errors import InputError
from ..text import RULE, check_rule

Entries = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
METHODS = ("lucene", "robertson", "atire")
"""The BM25 variants in which a term adds 0 to a passage that lacks it, so that the matrix is sparse."""


@dataclass(frozen=True, eq=False, repr=False)
class TermMatrix:
    """What each term adds to the score of each passage that has it, in compressed columns, and the tokenizer's options.

    This is the matrix of eager sparse scoring: the scores of a query are the sum of its terms' columns.
    :class:`hopfuse.lexical.BM25` builds and searches it, an :class:`hopfuse.Index` stores it.

    Parameters
    ----------
    terms : sequence of str, V entries
        Distinct, ascending by code point.
    indptr : ndarray of int64, shape (V + 1,)
        Term t has the entries ``indptr[t]`` .. ``indptr[t + 1] - 1``.
    passages : ndarray of int32, shape (Z,)
        Ascending within a term, 0 .. num_passages - 1.
    scores : ndarray of float32, shape (Z,)
        Finite and above 0, or at least 0 if ``counts`` is given. Arrays are referenced, not copied (they may be
        memory-mapped): do not change them.
    num_passages : int
    method : {"lucene", "robertson", "atire"}
    k1, b : float
        The parameters of the scores: k1 >= 0, b in [0, 1].
    stopwords : sequence of str
        Words that are not terms, in lower case, distinct, ascending.
    stemmer : str, optional
        The Snowball algorithm that turns words into terms. Default: terms are the words themselves.
    counts : ndarray of int32, shape (Z,), optional
        How often each entry's term occurs in its passage, at least 1. They allow the scores to be recomputed when
        passages are added or removed (:meth:`from_counts`). A score may then be 0, as ``"robertson"`` gives to common
        words.
    rule : int
        The number of the rule by which texts are folded and cut into words. Questions must also be read under it.

    Raises
    ------
    InputError
        Any of the above does not hold.

    References
    ----------
    Lù, BM25S: Orders of magnitude faster lexical search via eager sparse scoring, 2024, arXiv:2407.03618, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.types import TermMatrix
    >>> TermMatrix(
    ...     terms=["engine", "note"],
    ...     indptr=np.array([0, 2, 3]),
    ...     passages=np.array([0, 1, 0], np.int32),
    ...     scores=np.array([0.1, 0.1, 0.4], np.float32),
    ...     num_passages=2,
    ...     method="lucene",
    ...     k1=1.5,
    ...     b=0.75,
    ... )
    TermMatrix(terms=2, passages=2, entries=3, method='lucene', k1=1.5, b=0.75, stemmer=None)
    """

    terms: Sequence[str]
    indptr: NDArray[np.int64]
    passages: NDArray[np.int32]
    scores: NDArray[np.float32]
    num_passages: int
    method: str
    k1: float
    b: float
    stopwords: Sequence[str] = ()
    stemmer: str | None = None
    counts: NDArray[np.int32] | None = None
    rule: int = RULE
    #: Of a part, the numbers of its terms in the matrix that it is a part of.
    of_whole: NDArray[np.int64] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        check_options(self.method, self.k1, self.b)
        object.__setattr__(self, "rule", check_rule(self.rule, "terms"))
        for name in ("terms", "stopwords"):
            object.__setattr__(self, name, check_words(getattr(self, name), name))
        _check_entries(self)

    @classmethod
    def from_counts(
        cls,
        *,
        indptr: NDArray[np.int64],
        passages: NDArray[np.int32],
        counts: NDArray[np.int32],
        num_passages: int,
        method: str,
        k1: float,
        b: float,
        **rest: Any,
    ) -> TermMatrix:
        """Compute the BM25 scores of term counts; a passage's length is the sum of its counts.

        Parameters
        ----------
        indptr, passages, counts, num_passages, method, k1, b
            As in the class.
        **rest
            ``terms``, ``stopwords``, ``stemmer`` and ``rule``, as in the class.

        Raises
        ------
        InputError
            As in the class.

        Examples
        --------
        >>> import numpy as np
        >>> from hopfuse.types import TermMatrix
        >>> some = dict(indptr=np.array([0, 1]), passages=np.array([1], np.int32), counts=np.array([2], np.int32))
        >>> TermMatrix.from_counts(terms=["sea"], num_passages=2, method="lucene", k1=1.5, b=0.75, **some).scores
        array([0.29973933], dtype=float32)
        """
        check_options(method, k1, b)
        _check_columns(indptr, passages, counts, "counts", np.int32, num_passages)
        lengths = text_lengths(passages, counts, num_passages)
        weights = BM25Weights.of(np.diff(indptr), lengths, method=method, k1=k1, b=b)
        scores = weights.scores(indptr, passages, counts)
        options: dict[str, Any] = {"num_passages": num_passages, "method": method, "k1": k1, "b": b}
        return cls(indptr=indptr, passages=passages, scores=scores, counts=counts, **options, **rest)

    @property
    def num_terms(self) -> int:
        """V, the number of terms."""
        return len(self.terms)

    def places(self, terms: Sequence[str]) -> list[int]:
        """Return the places of those of some terms that the matrix has, in their order.

        Examples
        --------
        >>> from hopfuse.lexical import BM25
        >>> BM25.build(["A river.", "The sea."], stemmer=None).matrix.places(["sea", "lake", "river"])
        [1, 0]
        """
        return [self._places[term] for term in terms if term in self._places]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {term: place for place, term in enumerate(self.terms)}

    def column(self, term: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the passages that have a term, ascending, and its scores in them."""
        entries = slice(self.indptr[term], self.indptr[term + 1])
        return self.passages[entries], self.scores[entries]

    def sums(self, terms: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the passages whose scores sum to more than 0 over some terms, in any order, and the sums.

        Parameters
        ----------
        terms : sequence of int
            A term counts as often as it is given. Sums are float32, in the order of the terms.

        Examples
        --------
        >>> import numpy as np
        >>> from hopfuse.lexical import BM25
        >>> matrix = BM25.build(["A river.", "The sea.", "A river by the sea."], stemmer=None).matrix
        >>> passages, sums = matrix.sums([matrix.terms.index("sea")])
        >>> passages.tolist(), bool(sums[0] > sums[1])
        ([1, 2], True)
        """
        return sum_columns(self.indptr, self.passages, self.scores, np.array(terms, np.int64), self.num_passages)

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """The number of terms of each passage, with repetitions: float64, shape (P,).

        Raises
        ------
        InputError
            A matrix without counts.
        """
        return text_lengths(self.passages, self.required_counts(), self.num_passages)

    def part(self, rows: NDArray[np.int64]) -> TermMatrix:
        """Return the matrix of a subset of passages, numbered from 0, without the terms that none of them has.

        Parameters
        ----------
        rows : ndarray of int64
            Ascending.

        Raises
        ------
        InputError
            A matrix without counts.
        """
        place = np.full(self.num_passages, -1, np.int32)
        place[rows] = np.arange(rows.size)
        term, passages, counts = self.entries_of(place)
        frequency = np.bincount(term, minlength=self.num_terms)
        terms = np.flatnonzero(frequency)
        indptr = indptr_of_counts(frequency[terms])
        how: dict[str, Any] = {"method": self.method, "k1": self.k1, "b": self.b}
        weights = BM25Weights.of(frequency[terms], text_lengths(passages, counts, rows.size), **how)
        part = object.__new__(TermMatrix)  # of entries that are checked already; those of a frozen class
        vars(part).update(
            terms=tuple(self._strings[terms].tolist()),
            indptr=indptr,
            passages=passages,
            scores=weights.scores(indptr, passages, counts),
            num_passages=rows.size,
            stopwords=self.stopwords,
            stemmer=self.stemmer,
            counts=counts,
            rule=self.rule,
            of_whole=terms,
            **how,
        )
        return part

    @cached_property
    def _strings(self) -> NDArray[Any]:
        return np.array(self.terms, object)

    def entries_of(self, place: NDArray[np.int32]) -> Entries:
        """Return the entries of some passages, in order: their terms, the places of their passages, and their counts.

        Parameters
        ----------
        place : ndarray of int32, shape (num_passages,)
            The place of each of the passages, ascending, and -1 for others.

        Raises
        ------
        InputError
            A matrix without counts.
        """
        counts, found = self.required_counts(), place[self.passages]
        kept = np.flatnonzero(found >= 0)
        term = np.repeat(np.arange(self.num_terms, dtype=np.int32), np.diff(self.indptr))
        return term[kept], found[kept], np.ascontiguousarray(counts[kept], np.int32)

    def required_counts(self) -> NDArray[np.int32]:
        """Return the counts.

        Raises
        ------
        InputError
            A matrix without counts.
        """
        if self.counts is None:
            raise InputError(
                "missing",
                None,
                "the matrix of terms has no counts, from which scores of other passages are computed; build it again "
                "with BM25.build",
            )
        return self.counts

    def __repr__(self) -> str:
        return (
            f"TermMatrix(terms={self.num_terms}, passages={self.num_passages}, entries={self.indptr[-1]}, "
            f"method={self.method!r}, k1={self.k1:g}, b={self.b:g}, stemmer={self.stemmer!r})"
        )


def check_options(method: Any, k1: Any, b: Any) -> None:
    """Raise for an unknown BM25 variant or parameters out of range."""
    check_choice(method, "method", METHODS)
    check_number(k1, "k1", low=0.0)
    check_number(b, "b", low=0.0, high=1.0)


def check_words(given: Any, field: str) -> tuple[str, ...]:
    """Return strings as a tuple; they must ascend strictly."""
    words = tuple(checked_texts(given, field))
    for at, (before, word) in enumerate(pairwise(words), 1):
        if before >= word:
            raise InputError(
                "order",
                f"{field}[{at}]",
                "{field} is {given!r}, and {before!r} is before it; strings must ascend strictly",
                given=word,
                before=before,
            )
    return words


def _check_entries(matrix: TermMatrix) -> None:
    indptr, passages, scores = matrix.indptr, matrix.passages, matrix.scores
    _check_columns(indptr, passages, scores, "scores", np.float32, matrix.num_passages)
    if indptr.size != len(matrix.terms) + 1:
        raise InputError(
            "length",
            "indptr",
            "{field} has {given} entries; it must have {allowed}, one more than {@terms}",
            given=indptr.size,
            allowed=len(matrix.terms) + 1,
        )
    check_ascending(passages, "passages", indptr)
    if not (np.isfinite(scores) & (scores >= 0)).all() or (matrix.counts is None and not scores.all()):
        raise InputError(
            "range",
            "scores",
            "{field} must be finite and {allowed}",
            allowed="above 0" if matrix.counts is None else "at least 0",
        )
    if matrix.counts is not None:
        _check_columns(indptr, passages, matrix.counts, "counts", np.int32, matrix.num_passages)


def _check_columns(
    indptr: NDArray[Any], passages: NDArray[Any], values: NDArray[Any], name: str, dtype: Any, num_passages: int
) -> None:
    for what, array, kind in (("indptr", indptr, np.int64), ("passages", passages, np.int32), (name, values, dtype)):
        check_array(array, what, kind)
    check_as_long("passages", passages.size, name, values.size)
    check_indptr(indptr, passages.size)
    check_range(passages, "passages", num_passages)
    if name == "counts" and values.size and values.min() < 1:
        raise InputError("range", "counts", "{field} has {given}; counts must be at least 1", given=int(values.min()))
