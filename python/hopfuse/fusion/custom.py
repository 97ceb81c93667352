"""Fusion by formula: the definition of every method, and how a method in Python runs that has no kernel yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import FLOAT32_MAX, is_real
from ..errors import InputError
from .base import FusionMethod, ScoredList, Scores, held_by


@dataclass(frozen=True)
class Custom(FusionMethod):
    """Scores by a Python function, which is called once a query, on the host: slow, for trying a method.

    ``hf.fuse(lists, method=function, **options)`` makes one. Weights are ones unless given. The consensus bonus, the
    prior and the order of ties are as for every method; scores are rounded to float32.

    Parameters
    ----------
    function : callable
        ``function(lists, weights, **options)`` returns ``{id: score}``. ``lists`` are L :class:`ScoredList` of
        calibrated scores, best first, ``weights`` an array (L,) float64. A document without a score is left out.
    options : mapping
        Keywords of the function.

    Examples
    --------
    >>> import hopfuse as hf
    >>> def shared(lists, weights, *, least):
    ...     best = {}
    ...     for one, weight in zip(lists, weights):
    ...         for document, score in zip(one.ids.tolist(), one.scores.tolist()):
    ...             best.setdefault(document, []).append(weight * score)
    ...     return {document: min(own) for document, own in best.items() if len(own) >= least}
    >>> a, b = hf.Hits([[0, 1]], [[3.0, 1.0]]), hf.Hits([[1, 2]], [[0.9, 0.1]])
    >>> hf.fuse([a, b], method=shared, calibration="min_max", least=2, k=3).row(0)
    [(1, 0.0)]
    """

    function: Callable[..., Scores]
    options: Mapping[str, Any] = field(default_factory=dict)

    name: ClassVar[str] = "custom"
    kernel: ClassVar[str | None] = None

    def default_weights(self, num_lists: int) -> tuple[float, ...]:
        return (1.0,) * num_lists

    def formula(self, lists: Sequence[ScoredList], weights: Any) -> Scores:
        return self.function(lists, weights, **self.options)


def fused_by_formula(
    method: FusionMethod,
    lists: Sequence[ScoredList],
    weights: Any,
    consensus: float,
    factors: NDArray[Any],
    query: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the documents of one query and their scores in float64, in any order.

    A score is the method's, plus ``consensus`` if at least two lists hold the document, times its factor of the prior.

    Parameters
    ----------
    lists : sequence of ScoredList
        The calibrated lists of the query.
    weights : array (L,)
    factors : array (N,)
        The factors of documents 0 .. N - 1; those of others are 1.
    query : int
        Its row, for errors.

    Raises
    ------
    InputError
        A score is not finite in float32, or the formula returned something else than scores of documents in the lists.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.fusion import RRF, ScoredList, fused_by_formula
    >>> lists = [ScoredList(np.array([1, 2]), np.ones(2)), ScoredList(np.array([2]), np.ones(1))]
    >>> fused_by_formula(RRF(rank_constant=1), lists, [1.0, 1.0], 0.5, np.ones(0), 0)
    (array([1, 2]), array([0.5       , 1.33333333]))
    """
    held = held_by(lists)
    found = _checked(method.formula(lists, weights), held, query)
    documents = np.array(list(found), np.int64)
    scores = np.array([score + consensus if held[document] >= 2 else score for document, score in found.items()], float)
    known = documents < factors.size
    scores[known] *= factors[documents[known]]
    beyond = np.flatnonzero(~(np.abs(scores) <= FLOAT32_MAX))
    if beyond.size:
        raise InputError(
            "finite",
            "method",
            "{field} gives document {given} of query {row} the score {score}, with consensus and prior; scores must be "
            "finite in float32",
            given=int(documents[beyond[0]]),
            row=query,
            score=float(scores[beyond[0]]),
        )
    return documents, scores


def _checked(found: Any, held: Mapping[int, int], query: int) -> Scores:
    """Return what a formula has returned, as plain numbers."""
    if not isinstance(found, Mapping):
        raise InputError(
            "type",
            "method",
            "{field} returned {given} for query {row}; it must be a mapping from ids to scores",
            given=type(found).__name__,
            row=query,
        )
    for document, score in found.items():
        if document not in held:
            raise InputError(
                "unknown",
                "method",
                "{field} gives {given!r} a score in query {row}, which is in none of its lists",
                given=document,
                row=query,
            )
        if not is_real(score) or not abs(score) <= FLOAT32_MAX:
            raise InputError(
                "finite",
                "method",
                "{field} gives document {document} of query {row} the score {given!r}; scores are finite float32",
                document=document,
                row=query,
                given=score,
            )
    return {document: float(score) for document, score in found.items()}
