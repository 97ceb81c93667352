"""Measure how much a ranking changes when questions are reworded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_length
from ..errors import InputError
from ..evaluate.evaluation import Estimate, summarise
from ..evaluate.metrics import Values
from ..evaluate.qrels import Qrels, query_rows
from ..evaluate.runs import gold_ranks, join_hits
from ..retriever import Retriever
from ..types import Hits
from .measures import check_persistence, overlap, rank_biased_overlap
from .rankings import Questions
from .rewriting import Rewriting

Search = Callable[[list[str], list[Sequence[str]] | None], Hits]

_NEAR = 1  # ranks
_VALUES = ("rbo", "jaccard", "first_gold_kept")


@dataclass(frozen=True, eq=False)
class RankStability:
    """Results of :func:`rank_stability`: a value per question, NaN for questions that were not rewritten.

    Attributes
    ----------
    rbo : ndarray of float64, shape (B,)
        :func:`rank_biased_overlap` of the whole lists; also NaN if both are empty.
    jaccard : ndarray of float64, shape (B,)
        :func:`overlap` of the first k passages; also NaN if both lists are empty.
    first_gold_kept : ndarray of float64, shape (B,)
        1 if the best ranked gold passages of both lists are at most one rank apart, 0 if they are further apart or
        only one list has one; also NaN if neither has one, or without judgements.
    num_changed : int
        Number of questions that were rewritten.
    """

    rbo: Values
    jaccard: Values
    first_gold_kept: Values
    num_changed: int

    def summary(self, rows: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_] | None = None) -> dict[str, Estimate]:
        """Return the mean of each measure with its 95 % interval, over all questions or ``rows`` (positions or a mask).

        Examples
        --------
        >>> import numpy as np
        >>> from hopfuse.diagnose import RankStability
        >>> one = RankStability(np.array([0.5, np.nan]), np.ones(2), np.ones(2), 1)
        >>> one.summary()["rbo"].mean, one.summary([1])["rbo"].n
        (0.5, 0)
        """
        chosen = slice(None) if rows is None else query_rows(rows, self.rbo.size)
        return {
            "rbo": summarise(self.rbo[chosen], binary=False),
            "jaccard": summarise(self.jaccard[chosen], binary=False),
            "first_gold_kept": summarise(self.first_gold_kept[chosen], binary=True),
        }


def rank_stability(
    search: Search | Retriever, rewriting: Rewriting, *, k: int = 10, p: float = 0.9, qrels: Qrels | None = None
) -> RankStability:
    """Search for questions and for their rewritten forms, and compare the two lists of each.

    Parameters
    ----------
    search : Retriever, or callable (list of str, list of sequences of str or None) -> Hits
        A retriever searches for k passages. A function takes questions and their mentions (None if ``rewriting`` has
        none), and returns a row of hits for each, at least k wide. It is called twice: with the questions that were
        rewritten, and with their rewritten forms.
    rewriting : Rewriting
        B questions, for instance from :func:`paraphrase` or :func:`substitute_aliases`.
    k : int, at least 1
        Number of passages for the Jaccard overlap; the other measures read whole lists.
    p : float, in (0, 1)
        Parameter of the rank-biased overlap.
    qrels : Qrels, optional
        Judgements of the B questions, for their first gold passages.

    Returns
    -------
    RankStability

    Raises
    ------
    InputError
        No question was rewritten, there are not as many judgements, or rows of hits, as questions, p is outside (0, 1),
        or k is below 1 or above the width of a list.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import Rewriting, rank_stability
    >>> def search(questions, entities):
    ...     return hf.Hits([[1, 2] if "author" in q else [2, 1] for q in questions], [[0.9, 0.1]] * len(questions))
    >>> found = rank_stability(search, Rewriting(["Who wrote it?"], ["Who is its author?"]), k=2, p=0.5)
    >>> found.rbo, found.jaccard
    (array([0.5]), array([1.]))
    """
    check_persistence(p)
    rows = np.flatnonzero(rewriting.changed)
    if rows.size == 0:
        raise InputError("empty", "rewriting", "{field} changes no question; give one that changes some")
    if qrels is not None:
        check_length(len(qrels), "qrels", len(rewriting), "question")
    asks = _searching(search, k) if isinstance(search, Retriever) else search
    before, after = (_found(asks, side, rewriting, rows.tolist()) for side in ("questions", "rewritten"))
    kept = np.full(rows.size, np.nan) if qrels is None else _first_gold_kept(before, after, qrels.take(rows))
    return RankStability(
        _spread(rank_biased_overlap(before, after, p=p), rows, len(rewriting)),
        _spread(overlap(before, after, k), rows, len(rewriting)),
        _spread(kept, rows, len(rewriting)),
        int(rows.size),
    )


def _searching(retriever: Retriever, k: int) -> Search:
    return lambda questions, mentions: join_hits(
        [part.by(retriever, k).hits for part in Questions(questions, entities=mentions).batches()]
    )


def _found(search: Search, side: str, rewriting: Rewriting, rows: list[int]) -> Hits:
    questions = getattr(rewriting, side)
    mentions = rewriting.entities if side == "questions" else rewriting.rewritten_entities
    hits = search([questions[row] for row in rows], None if mentions is None else [mentions[row] for row in rows])
    check_length(len(hits), "search", len(rows), "question")
    return hits


def _first_gold_kept(before: Hits, after: Hits, qrels: Qrels) -> Values:
    values = np.full(len(qrels), np.nan)
    for row in range(len(qrels)):
        ranks = [_first_gold(hits, qrels, row) for hits in (before, after)]
        found = [rank for rank in ranks if rank is not None]
        if found:
            values[row] = len(found) == len(ranks) and abs(found[0] - found[1]) <= _NEAR
    return values


def _first_gold(hits: Hits, qrels: Qrels, row: int) -> int | None:
    return min((rank for rank in gold_ranks(hits, qrels, row).values() if rank is not None), default=None)


def _spread(values: Values, rows: NDArray[np.int64], count: int) -> Values:
    """Return a read-only array of all questions with values at ``rows`` and NaN elsewhere."""
    made = np.full(count, np.nan)
    made[rows] = values
    made.flags.writeable = False
    return made


def stability_rows(
    retriever: Retriever, rewritings: Mapping[str, Rewriting], *, k: int = 10, qrels: Qrels | None = None
) -> list[dict[str, Any]]:
    """Return a row for each rewriting, with the number of questions changed and the means of :func:`rank_stability`.

    Parameters
    ----------
    retriever : Retriever
    rewritings : mapping of str to Rewriting
        By name.
    k : int
    qrels : Qrels, optional

    Returns
    -------
    list of dict
        ``recipe``, ``rewriting``, ``questions`` (the number rewritten), and the means, None if there are none.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import Rewriting, stability_rows
    >>> retriever = hf.Retriever(hf.Index.from_texts(["The sea.", "A river."]))
    >>> (row,) = stability_rows(retriever, {"paraphrases": Rewriting(["The sea?"], ["Which sea?"])}, k=1)
    >>> row["questions"], row["rbo"], row["first_gold_kept"]
    (1, 1.0, None)
    """
    rows = []
    for kind, rewriting in rewritings.items():
        changed = int(rewriting.changed.sum())
        row: dict[str, Any] = {"recipe": retriever.recipe.name, "rewriting": kind, "questions": changed}
        found = rank_stability(retriever, rewriting, k=k, qrels=qrels).summary() if changed else {}
        means = {value: found[value].to_dict()["mean"] if found else None for value in _VALUES}
        rows.append(row | means)
    return rows
