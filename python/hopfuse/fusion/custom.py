"""A fusion method in Python, for methods that have no kernel yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .base import FusionMethod, ScoredList, Scores


@dataclass(frozen=True)
class Custom(FusionMethod):
    """Scores by a Python function, which is called once a query, on the host: slow, for trying a method.

    ``hf.fuse(lists, method=function, **options)`` makes one. Weights are ones unless given. The consensus bonus, the
    prior and the order of ties are those of every method; scores are rounded to float32.

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
