"""Condorcet fusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import UnitWeights


@dataclass(frozen=True, kw_only=True)
class Condorcet(UnitWeights):
    """score = the number of documents that it beats by weighted majority, plus half the number of ties (Copeland).

    A document beats another if the lists that rank it higher have a larger total weight than those that rank it lower.
    A list ranks the documents that it holds above those that it lacks, and does not rank two that it lacks. Majorities
    need not be transitive: documents of a cycle, in which ties count in both directions, are ordered by how many others
    they beat, then by id. Otherwise the order is that of Condorcet fusion, where the order within a cycle depends on
    the sort's starting point (Montague & Aslam, CIKM 2002). Weights are rounded to float32 once and then summed
    exactly, so that equal votes tie. Default weights: 1 each.

    Only ranks matter, so a calibration is an error. The cost of a query is the square of its union's size times the
    number of lists.

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
