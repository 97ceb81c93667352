"""Rank passages by BM25."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.filters import read_filter
from .._arrays.rows import PartNumbers, indptr_of
from .._validation import check_k, check_type, checked_texts
from ..types import Hits, TermMatrix
from ..types.hits import pad_rows
from ..types.term_matrix import check_options
from ._tokenizer import Tokenizer, bm25s, listed_stopwords, stemmer_named


class BM25:
    """Rank passages by the words that they share with a question.

    Build it from texts with :meth:`build`, or from the matrix in an index: ``BM25(index.lexical)``. Questions are read
    by the rule of the matrix; :class:`Tokenizer` says what a term is.

    A passage's score is Σ_t idf(t) · tf / (tf + k1·(1 − b + b·L/L̄)) over the question's terms, each as often as it
    occurs there. Here tf is the count of the term in the passage, L the passage's length in terms and L̄ the mean
    length. With N passages, of which df have the term, idf(t) is ln(1 + (N − df + ½)/(df + ½)) for ``"lucene"``,
    max(ln((N − df + ½)/(df + ½)), 0) for ``"robertson"``, and ln(N/df) for ``"atire"``. The last one also multiplies tf
    by k1 + 1. Scores of terms are rounded to float32 at build and summed in float32 in the order of the question's
    terms, so results depend only on the question and the passages.

    Parameters
    ----------
    matrix : TermMatrix

    Attributes
    ----------
    matrix : TermMatrix
        Can be stored with :meth:`hopfuse.Index.with_lexical`.

    Raises
    ------
    InputError
        Not a TermMatrix; in particular None, which an index without a lexical part has.
    MissingExtraError
        ``bm25s`` is not installed, or ``PyStemmer`` if the matrix has a stemmer.

    References
    ----------
    Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009, equation 3.15. Lù, BM25S,
    2024, arXiv:2407.03618. The variants: Kamphuis et al., Which BM25 Do You Mean?, ECIR 2020, table 1.

    Examples
    --------
    >>> from hopfuse.lexical import BM25
    >>> bm25 = BM25.build(["Ada wrote notes on the Engine.", "Babbage built engines.", "The sea."])
    >>> bm25.search(["Who built an engine?", "What?"], k=2).ids
    array([[ 1,  0],
           [-1, -1]])
    """

    def __init__(self, matrix: TermMatrix) -> None:
        check_type(matrix, "matrix", TermMatrix, "a TermMatrix: BM25.build(texts).matrix, or that of an index")
        self.matrix = matrix
        self._tokenizer = Tokenizer(matrix.stopwords, matrix.stemmer, matrix.rule)
        self._whole = matrix  # which has the terms' numbers
        self._numbers: PartNumbers | None = None  # of a part: those of the terms in it
        bm25s()  # raises now, not at the first search

    @classmethod
    def build(
        cls,
        texts: Sequence[str],
        *,
        k1: float = 1.5,
        b: float = 0.75,
        method: str = "lucene",
        stopwords: str | Sequence[str] | None = "english",
        stemmer: str | None = "english",
    ) -> BM25:
        """Count the terms of every passage and compute their scores.

        Parameters
        ----------
        texts : sequence of str, P entries
            The texts of passages 0 .. P-1. To search titles too, put each before its text.
        k1 : float, at least 0
            Term frequency saturation: the larger, the more repetitions of a term count.
        b : float in [0, 1]
            Strength of length normalisation.
        method : {"lucene", "robertson", "atire"}
            The variant, named as by Kamphuis et al. BM25L and BM25+ are not offered, because they also score passages
            without any of the question's words, so their matrix is not sparse.
        stopwords : str, sequence of str, or None
            A language, or the words themselves (:func:`listed_stopwords`). With stop words, words of a question that
            only ask do not count either, in the language of the question (:func:`hopfuse.text.question_words`).
        stemmer : str, optional
            A Snowball algorithm of PyStemmer, or a language.

        Returns
        -------
        BM25

        Raises
        ------
        InputError
            Texts that are not strings, or an invalid option.
        MissingExtraError
            ``bm25s`` is not installed, or ``PyStemmer`` if a stemmer is given.

        Examples
        --------
        >>> from hopfuse.lexical import BM25
        >>> BM25.build(["One flew over the nest.", "Two flew home."], stemmer=None).matrix.terms
        ('flew', 'home', 'nest', 'one', 'over', 'two')
        """
        check_options(method, k1, b)
        words, stemmer = listed_stopwords(stopwords), stemmer_named(stemmer)
        rows = Tokenizer(words, stemmer).terms_of(checked_texts(texts))
        terms = sorted({term for row in rows for term in row})
        indptr, passages, counts = _postings(rows, terms)
        return cls(
            TermMatrix.from_counts(
                terms=terms,
                indptr=indptr,
                passages=passages,
                counts=counts,
                num_passages=len(rows),
                method=method,
                k1=float(k1),
                b=float(b),
                stopwords=words,
                stemmer=stemmer,
            )
        )

    @property
    def num_passages(self) -> int:
        """The number of passages, P."""
        return self.matrix.num_passages

    def search(self, questions: Sequence[str], k: int, *, allow: Any = None) -> Hits:
        """Return the k best passages for each question, among those that share a word with it.

        Parameters
        ----------
        questions : sequence of str, B entries
            A question that shares no word with any passage gets an empty list.
        k : int
            At least 0; it may exceed P.
        allow : array_like of bool (P,) or (B, P), of int (M,) or (B, M), or B id lists, optional
            Passages that may be hits, for all questions or per question.

        Returns
        -------
        Hits
            ids int64 and scores float32, (B, min(k, P)), and counts (B,). Order: higher score, then lower id; the rest
            of a row is padding.

        Raises
        ------
        InputError
            Questions that are not strings, k below 0, an ``allow`` of another shape.

        Examples
        --------
        >>> from hopfuse.lexical import BM25
        >>> bm25 = BM25.build(["A river.", "The sea.", "A river by the sea."])
        >>> bm25.search(["What is the sea?"], k=3).ids
        array([[ 1,  2, -1]])
        >>> bm25.search(["What is the sea?"], k=3, allow=[0, 2]).ids
        array([[ 2, -1, -1]])
        """
        k = min(check_k(k), self.num_passages)
        rows = self._tokenizer.terms_of_questions(checked_texts(questions))
        allowed: Sequence[NDArray[np.bool_] | None] | NDArray[np.bool_] = [None] * len(rows)
        if allow is not None:
            masks = read_filter(allow, len(rows), self.num_passages, "allow").to_masks(self.num_passages)
            allowed = np.broadcast_to(masks, (len(rows), self.num_passages))
        each = zip(rows, allowed, strict=True)
        return pad_rows([self._best(self._known(terms), k, mask) for terms, mask in each], k)

    def part(self, rows: NDArray[np.int64], *, matrix: TermMatrix | None = None) -> BM25:
        """Return BM25 over a subset of passages, numbered from 0, as if built from their texts.

        Parameters
        ----------
        rows : ndarray of int64
            Ascending.
        matrix : TermMatrix, optional
            The matrix of these rows, if it is made already: :meth:`hopfuse.types.TermMatrix.part`.

        Raises
        ------
        InputError
            The matrix has no counts.

        Examples
        --------
        >>> import numpy as np
        >>> from hopfuse.lexical import BM25
        >>> bm25 = BM25.build(["A river.", "The sea.", "A river by the sea."])
        >>> bm25.part(np.array([0, 2])).search(["sea"], k=1).ids
        array([[1]])
        """
        matrix = self.matrix.part(rows) if matrix is None else matrix
        terms = matrix.of_whole
        if terms is None:
            return BM25(matrix)
        made = BM25.__new__(BM25)
        made.matrix, made._tokenizer = matrix, self._tokenizer
        made._whole, made._numbers = self._whole, PartNumbers(terms, self._numbers)
        return made

    def continued(self, kept: NDArray[np.int64], rows: NDArray[np.int64], texts: Sequence[str]) -> BM25:
        """Return BM25 over other passages of which these are some, as if built from all texts; only new ones are read.

        Parameters
        ----------
        kept : ndarray of int64, shape (P,)
            The number of each passage among the others, ascending, and -1 for those that are not there.
        rows : ndarray of int64
            The numbers of the passages that are new.
        texts : sequence of str
            Their texts.

        Raises
        ------
        InputError
            The matrix has no counts.

        Examples
        --------
        >>> import numpy as np
        >>> from hopfuse.lexical import BM25
        >>> bm25 = BM25.build(["A river.", "The sea."])
        >>> bm25.continued(np.array([-1, 0]), np.array([1]), ["A sea of sand."]).search(["sea"], k=2).ids
        array([[0, 1]])
        """
        old = self.matrix
        term, passages, counts = old.entries_of(kept.astype(np.int32))
        number = {name: t for t, name in enumerate(old.terms)} if rows.size else {}
        fresh = [
            (number.setdefault(name, len(number)), row, count)
            for row, names in zip(rows.tolist(), self._tokenizer.terms_of(list(texts)), strict=True)
            for name, count in Counter(names).items()
        ]
        names = np.array([*old.terms, *list(number)[len(old.terms) :]], object)
        columns = np.array(fresh, np.int64).reshape(-1, 3).T
        term = np.concatenate([term, columns[0]])
        passages, counts = (np.concatenate(both) for both in ((passages, columns[1]), (counts, columns[2])))
        used = np.flatnonzero(np.bincount(term, minlength=names.size))
        used = used[np.argsort(names[used], kind="stable")]
        rank = np.zeros(names.size, np.int64)
        rank[used] = np.arange(used.size)
        order = np.lexsort((passages, rank[term]))
        how = {name: getattr(old, name) for name in ("method", "k1", "b", "stopwords", "stemmer", "rule")}
        return BM25(
            TermMatrix.from_counts(
                terms=names[used].tolist(),
                indptr=indptr_of(rank[term], used.size),
                passages=passages[order].astype(np.int32),
                counts=counts[order].astype(np.int32),
                num_passages=int(np.count_nonzero(kept >= 0)) + rows.size,
                **how,
            )
        )

    def _known(self, terms: Sequence[str]) -> list[int]:
        """Return the numbers of the terms that the matrix has."""
        numbers = self._whole.places(terms)
        return numbers if self._numbers is None else self._numbers.of(numbers)

    def _best(self, terms: list[int], k: int, allowed: NDArray[np.bool_] | None) -> tuple[Any, Any]:
        """Return the k best passages with a score above 0: higher score first, then lower id."""
        if not (terms and k):
            return (), ()
        rows, scores = self.matrix.sums(terms)
        if allowed is not None:
            kept = np.flatnonzero(allowed[rows])
            rows, scores = rows[kept], scores[kept]
        rank = scores.view(np.int32).astype(np.int64)  # the bits of positive numbers have their order
        rank <<= 32
        rank -= rows
        if rows.size > k:
            rank = np.partition(rank, rows.size - k)[rows.size - k :]
        rank.sort()
        rank = rank[::-1]
        best = -rank & 0xFFFFFFFF
        return best, ((rank + best) >> 32).astype(np.int32).view(np.float32)

    def __repr__(self) -> str:
        return f"BM25({self.matrix!r})"


def _postings(
    rows: list[list[str]], terms: list[str]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return the counts of terms in passages as compressed columns: indptr, passages, counts."""
    number = {term: t for t, term in enumerate(terms)}
    term = np.array([number[term] for row in rows for term in row], np.int64)
    passage = np.repeat(np.arange(len(rows)), np.array([len(row) for row in rows], np.int64))
    entries, counts = np.unique(term * max(len(rows), 1) + passage, return_counts=True)
    columns, passages = np.divmod(entries, max(len(rows), 1))
    return indptr_of(columns, len(terms)), passages.astype(np.int32), counts.astype(np.int32)
