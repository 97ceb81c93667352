"""Measure how much a ranking changes when a question is asked in another way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..evaluate.evaluation import Estimate, summarise
from ..evaluate.metrics import Values
from ..evaluate.qrels import Qrels, query_rows
from ..evaluate.runs import gold_ranks
from ..types import Hits
from .legs import check_persistence, overlap, rank_biased_overlap
from .rewriting import Rewriting

Search = Callable[[list[str], list[Sequence[str]] | None], Hits]

_NEAR = 1  # ranks
_VALUES = ("rbo", "jaccard", "first_gold_kept")


@dataclass(frozen=True, eq=False)
class RankStability:
    """Results of :func:`rank_stability`: a value per question, NaN for those that were not rewritten.

    Attributes
    ----------
    rbo : ndarray of float64, shape (B,)
        :func:`rank_biased_overlap` of both whole lists; NaN too where both are empty.
    jaccard : ndarray of float64, shape (B,)
        Passages among the first k of both lists, over those of either; NaN too where both are empty.
    first_gold_kept : ndarray of float64, shape (B,)
        1 where the best ranked gold passages of both lists are at most one rank apart, 0 where they are further apart
        or one list has none; NaN too where neither has one, and without judgements.
    num_changed : int
        Questions that were rewritten.
    """

    rbo: Values
    jaccard: Values
    first_gold_kept: Values
    num_changed: int

    def summary(self, rows: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_] | None = None) -> dict[str, Estimate]:
        """Return mean, number of questions and 95 % interval of each, over all or some (positions, or a mask).

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
    search: Search, rewriting: Rewriting, *, k: int = 10, p: float = 0.9, qrels: Qrels | None = None
) -> RankStability:
    """Search for questions and for their rewritten forms, and compare the lists.

    Parameters
    ----------
    search : callable (list of str, list of sequences of str or None) -> Hits
        From questions and their mentions (None where ``rewriting`` has none) to a row of hits for each, at least k
        wide. It is called twice, with the questions that were rewritten, in their order.
    rewriting : Rewriting
        B questions, as :func:`paraphrase` and :func:`substitute_aliases` make them.
    k : int, at least 1
        Passages that the Jaccard overlap reads; the others read whole lists.
    p : float, in (0, 1)
        Of the rank-biased overlap.
    qrels : Qrels, optional
        Judgements of the B questions, for their first gold passages.

    Returns
    -------
    RankStability

    Raises
    ------
    InputError
        No question that was rewritten, judgements of another number of questions, p outside (0, 1), another number of
        rows than questions, k below 1 or above a list's width.

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
        raise InputError(f"none of the {len(rewriting)} questions was rewritten; there is nothing to compare")
    if qrels is not None and len(qrels) != len(rewriting):
        raise InputError(f"{len(rewriting)} questions and judgements of {len(qrels)}; give those of the same questions")
    before, after = (_found(search, side, rewriting, rows.tolist()) for side in ("questions", "rewritten"))
    kept = np.full(rows.size, np.nan) if qrels is None else _first_gold_kept(before, after, qrels.take(rows))
    return RankStability(
        _spread(rank_biased_overlap(before, after, p=p), rows, len(rewriting)),
        _spread(overlap(before, after, k), rows, len(rewriting)),
        _spread(kept, rows, len(rewriting)),
        int(rows.size),
    )


def _found(search: Search, side: str, rewriting: Rewriting, rows: list[int]) -> Hits:
    questions = getattr(rewriting, side)
    mentions = rewriting.entities if side == "questions" else rewriting.rewritten_entities
    hits = search([questions[row] for row in rows], None if mentions is None else [mentions[row] for row in rows])
    if len(hits) != len(rows):
        raise InputError(f"search gave {len(hits)} rows for {len(rows)} questions; it must give one for each")
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
    """Return values of some questions among all, NaN elsewhere; read-only."""
    made = np.full(count, np.nan)
    made[rows] = values
    made.flags.writeable = False
    return made


def stability_rows(
    name: str, search: Search, rewritings: Mapping[str, Rewriting], *, k: int = 10, qrels: Qrels | None = None
) -> list[dict[str, Any]]:
    """Return a row for each way to rewrite the questions: how many were, and the means of :func:`rank_stability`.

    Parameters
    ----------
    name : str
        Of what searches, for the rows.
    search : callable
        As :func:`rank_stability` takes it.
    rewritings : mapping of str to Rewriting
        By what was done.
    k : int
    qrels : Qrels, optional

    Returns
    -------
    list of dict
        ``recipe``, ``rewriting``, ``questions`` that were rewritten, and the means; None where there is none.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.diagnose import Rewriting, stability_rows
    >>> def search(questions, entities):
    ...     return hf.Hits([[1, 2]] * len(questions), [[0.9, 0.1]] * len(questions))
    >>> (row,) = stability_rows("mine", search, {"paraphrases": Rewriting(["Who?"], ["Who, please?"])}, k=2)
    >>> row["questions"], row["rbo"], row["first_gold_kept"]
    (1, 1.0, None)
    """
    rows = []
    for kind, rewriting in rewritings.items():
        changed = int(rewriting.changed.sum())
        row: dict[str, Any] = {"recipe": name, "rewriting": kind, "questions": changed}
        found = rank_stability(search, rewriting, k=k, qrels=qrels).summary() if changed else {}
        means = {value: found[value].to_dict()["mean"] if found else None for value in _VALUES}
        rows.append(row | means)
    return rows
