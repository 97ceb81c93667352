"""A sparse matrix of the scores of terms in passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import ascends, check_array, check_indptr
from ..errors import InputError

METHODS = ("lucene", "robertson", "atire")
"""The variants of BM25 that give a passage without a word nothing for it, so that a sparse matrix holds them."""


@dataclass(frozen=True, eq=False, repr=False)
class TermMatrix:
    """The score that each term adds to the score of each passage that has it, by columns, and how texts become terms.

    The matrix of eager sparse scoring: a question's scores are the sum of the columns of its terms. Checked when it
    is made, in one pass. :class:`hopfuse.lexical.BM25` makes and searches it, an :class:`hopfuse.Index` keeps it.

    Parameters
    ----------
    terms : sequence of str, V entries
        Distinct, ascending by code points.
    indptr : ndarray of int64, shape (V + 1,)
        Term t has the entries ``indptr[t]`` .. ``indptr[t + 1] - 1``.
    passages : ndarray of int32, shape (Z,)
        Ascending within a term, 0 .. num_passages - 1.
    scores : ndarray of float32, shape (Z,)
        Finite, above 0. Arrays are referenced, not copied (they may be memory-mapped): do not change them.
    num_passages : int
    method : {"lucene", "robertson", "atire"}
    k1, b : float
        What the scores were computed with: k1 >= 0, b in [0, 1].
    stopwords : sequence of str
        Words that are no terms, lower case, distinct, ascending.
    stemmer : str, optional
        The Snowball algorithm that turns words into terms; words as they are where absent.

    Raises
    ------
    InputError
        Anything that is not as above.

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

    def __post_init__(self) -> None:
        check_options(self.method, self.k1, self.b)
        for name in ("terms", "stopwords"):
            words = tuple(getattr(self, name))
            check_words(words, name)
            object.__setattr__(self, name, words)
        _check_entries(self)

    def __repr__(self) -> str:
        return (
            f"TermMatrix(terms={len(self.terms)}, passages={self.num_passages}, entries={self.scores.size}, "
            f"method={self.method!r}, k1={self.k1:g}, b={self.b:g}, stemmer={self.stemmer!r})"
        )


def check_options(method: Any, k1: Any, b: Any) -> None:
    """Refuse what BM25 is not defined for."""
    if method not in METHODS:
        raise InputError(f"method is {method!r}; allowed: {', '.join(METHODS)}")
    for name, value, most in (("k1", k1, np.inf), ("b", b, 1.0)):
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not number or not (0 <= value <= most and np.isfinite(value)):
            allowed = "a finite number of at least 0" if most == np.inf else "in [0, 1]"
            raise InputError(f"{name} is {value!r}; it must be {allowed}")


def check_words(words: tuple[Any, ...], name: str) -> None:
    if not all(isinstance(word, str) for word in words):
        raise InputError(f"{name} are not all strings")
    for at, (before, word) in enumerate(pairwise(words), 1):
        if before >= word:
            raise InputError(f"{name} do not ascend at {at}: {word!r} follows {before!r}")


def _check_entries(matrix: TermMatrix) -> None:
    for name, dtype in (("indptr", np.int64), ("passages", np.int32), ("scores", np.float32)):
        check_array(getattr(matrix, name), name, dtype)
    indptr, passages, scores = matrix.indptr, matrix.passages, matrix.scores
    if indptr.size != len(matrix.terms) + 1 or passages.size != scores.size:
        raise InputError(
            f"{len(matrix.terms)} terms, {indptr.size} offsets, {passages.size} passages and {scores.size} scores "
            "do not fit together"
        )
    check_indptr(indptr, passages.size)
    if passages.size and (passages.min() < 0 or passages.max() >= matrix.num_passages):
        raise InputError(f"passages holds a row outside 0 .. {matrix.num_passages - 1}")
    if not ascends(passages, indptr):
        raise InputError("passages do not ascend within a term")
    if not (np.isfinite(scores) & (scores > 0)).all():
        raise InputError("scores has one that is not a finite number above 0")
