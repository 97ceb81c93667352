"""What a system gave for the queries of a set of judgements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..types import Hits
from ._checks import chosen_rows
from .answer_support import Texts


@dataclass(frozen=True, eq=False)
class Run:
    """Ranked lists and, where the system answers, its answers.

    Parameters
    ----------
    hits : Hits
        B rows, in the order of the judgements' queries.
    answers : sequence of str or None, B entries, optional
        The system's answer to each query; None where it gave none.
    texts : sequence of str, or mapping of int to str, optional
        The text of each passage, by its id, for ``answer_supported@k``.
    baseline : Hits, B rows, optional
        What the run is compared with, for ``distractor_suppression@k``; :func:`evaluate` gives its own.

    Raises
    ------
    InputError
        Another number of answers, or of the baseline's rows, than rows of hits.

    Attributes
    ----------
    num_missing : int
        Queries that the run's file did not have; their lists are empty.
    num_unjudged : int
        Queries of the run's file that have no judgements; they are left out.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Run
    >>> Run(hf.Hits([[3, 1]], [[0.9, 0.2]]), answers=["Ada Lovelace"])
    Run(queries=1, k=2, answers=1)
    """

    hits: Hits
    answers: Sequence[str | None] | None = None
    num_missing: int = 0
    num_unjudged: int = 0
    texts: Texts | None = None
    baseline: Hits | None = None

    def __post_init__(self) -> None:
        if self.answers is not None and len(self.answers) != len(self.hits):
            raise InputError(
                f"{len(self.answers)} answers for {len(self.hits)} rows of hits; give one per query, or None"
            )
        if self.baseline is not None and not isinstance(self.baseline, Hits):
            raise InputError(f"the baseline is a {type(self.baseline).__name__}; give Hits, of a Run its hits")
        if self.baseline is not None and len(self.baseline) != len(self.hits):
            raise InputError(
                f"the baseline has {len(self.baseline)} rows and the run {len(self.hits)}; give the same queries' rows"
            )

    def take(self, rows: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_]) -> Run:
        """The run on some queries, in the order of ``rows`` (positions, or a mask of shape (B,)).

        Examples
        --------
        >>> import hopfuse as hf
        >>> from hopfuse.evaluate import Run
        >>> len(Run(hf.Hits([[3], [1]], [[0.9], [0.2]])).take([1]))
        1
        """
        chosen = chosen_rows(rows, len(self))
        answers = None if self.answers is None else [self.answers[row] for row in chosen.tolist()]
        baseline = None if self.baseline is None else _taken(self.baseline, chosen)
        return Run(_taken(self.hits, chosen), answers, self.num_missing, self.num_unjudged, self.texts, baseline)

    def __len__(self) -> int:
        return len(self.hits)

    def __repr__(self) -> str:
        answered = "" if self.answers is None else f", answers={sum(a is not None for a in self.answers)}"
        return f"Run(queries={len(self)}, k={self.hits.shape[1]}{answered})"


def _taken(hits: Hits, rows: NDArray[np.int64]) -> Hits:
    return Hits._trusted(hits.ids[rows], hits.scores[rows], hits.counts[rows])
