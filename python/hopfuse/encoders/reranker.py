"""The reranker protocol, and hits in a reranker's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .._validation import checked_texts, counted
from ..errors import InputError
from ..types import Hits


@runtime_checkable
class Reranker(Protocol):
    """An object that scores texts against a query, reading both together; higher is better.

    A class need not inherit from this one.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.encoders import Reranker
    >>> class SharedWords:
    ...     def score(self, queries, candidates):
    ...         pairs = zip(queries, candidates, strict=True)
    ...         return [np.array([len(set(q.split()) & set(t.split())) for t in row], np.float32) for q, row in pairs]
    >>> isinstance(SharedWords(), Reranker)
    True
    """

    def score(self, queries: Sequence[str], candidates: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Return a score for each of the n_b candidates of each of B queries: B arrays of float32, shape (n_b,)."""
        ...


def rerank(hits: Hits, queries: Sequence[str], texts: Sequence[str], reranker: Reranker, *, k: int) -> Hits:
    """Return the first k hits of each query in a reranker's order, with its scores.

    The reranker reads k texts for each query; later hits are dropped. The result can be returned, or fused with the
    original list (``hf.fuse([hits, reranked], ...)``).

    Parameters
    ----------
    hits : Hits
        B rows, ids 0 .. P - 1.
    queries : sequence of str, B entries
    texts : sequence of str, P entries
        The text of every passage.
    reranker : Reranker
    k : int, at least 1

    Returns
    -------
    Hits
        ids int64 and scores float32 of shape (B, min(k, width of hits)). Order: higher score, then lower id.

    Raises
    ------
    InputError
        Another number of queries than rows, one string as ``texts``, a hit without a text, k below 1, or scores of
        another shape or that are not finite in float32.

    References
    ----------
    Nogueira and Cho, Passage Re-ranking with BERT, arXiv:1901.04085 (2019).

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.encoders import rerank
    >>> class Lengths:
    ...     def score(self, queries, candidates):
    ...         return [np.array([len(text) for text in row], np.float32) for row in candidates]
    >>> hits = hf.Hits([[0, 2, 1]], [[0.9, 0.8, 0.1]])
    >>> rerank(hits, ["how long?"], ["a", "bb", "ccc"], Lengths(), k=2).row(0)
    [(2, 3.0), (0, 1.0)]
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError("range", "k", "{field} is {given!r}; it must be an integer, at least 1", given=k)
    asked = checked_texts(queries)
    if len(asked) != len(hits):
        raise InputError(
            "UNSORTED",
            None,
            "{count} for hits of {number}; give one question for each row",
            count=counted(len(asked), "query"),
            number=len(hits),
        )
    if isinstance(texts, str):
        raise InputError("UNSORTED", "texts", "{field} is one string; give a list with the text of every passage")
    first = hits.head(int(k))
    largest = int(first.ids.max(initial=-1))
    if largest >= len(texts):
        raise InputError(
            "UNSORTED",
            None,
            "passage {largest} is a hit of {number} texts; give the text of every passage",
            largest=largest,
            number=len(texts),
        )
    rows = [first.ids[b, :n].tolist() for b, n in enumerate(first.counts.tolist())]
    scored = reranker.score(asked, [[texts[i] for i in row] for row in rows])
    if len(scored) != len(rows):
        raise InputError(
            "UNSORTED",
            None,
            "the reranker scored {count} of {number}",
            count=counted(len(scored), "query"),
            number=len(rows),
        )
    scores = np.zeros(first.ids.shape, np.float32)
    for b, (row, found) in enumerate(zip(rows, scored, strict=True)):
        if np.shape(found) != (len(row),):
            raise InputError(
                "shape",
                None,
                "the reranker gave scores of shape {shape} for {number} texts of query {b}",
                shape=np.shape(found),
                number=len(row),
                b=b,
            )
        with np.errstate(over="ignore"):  # becomes infinite, which Hits refuses
            scores[b, : len(row)] = found
    return Hits(first.ids, scores, first.counts)
