"""Condorcet fusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import UnitWeights


@dataclass(frozen=True, kw_only=True)
class Condorcet(UnitWeights):
    """score = documents of the union that it wins against, by weighted majority, and half of those that it ties with.

    Of two documents the first wins where the lists that rank it above the other weigh more than those that rank it
    below. A list ranks what it holds, by position, above what it lacks, and says nothing of two that it lacks.
    Majorities need not be transitive: documents of a cycle, in which a tie counts both ways, are ordered by how many
    others they win against (Copeland), and by their ids where that is equal. Otherwise the order is the one of
    Condorcet fusion, whose sort leaves the order within a cycle to where it starts (Montague & Aslam, CIKM 2002).
    Weights are rounded to float32 once, then added up exactly, so that equal votes tie. Default weights: 1 each; a
    list of weight 0 says nothing.

    Scores play no part, so a calibration is an error. A query costs the square of its union's size, times the number
    of lists.

    Examples
    --------
    >>> import hopfuse as hf
    >>> a, b = hf.Hits([[0, 1, 2]], [[3.0, 2.0, 1.0]]), hf.Hits([[1, 2, 0]], [[3.0, 2.0, 1.0]])
    >>> hf.fuse([a, b, hf.Hits([[0]], [[1.0]])], method="condorcet", k=3).row(0)
    [(0, 2.0), (1, 1.0), (2, 0.0)]
    """

    name: ClassVar[str] = "condorcet"
    default_calibration: ClassVar[str] = "none"
    calibrations: ClassVar[tuple[str, ...] | None] = ()
