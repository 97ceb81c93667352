"""The options of TripleHybrid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...types.label_sets import UNITS, Unit
from .._parts.config import check_options, option

Mode = Literal["hybrid", "graph", "vector", "lexical"]
MODES: tuple[Mode, ...] = ("hybrid", "graph", "vector", "lexical")
Scale = Literal["none", "min_max", "max"]
SCALES: tuple[Scale, ...] = ("none", "min_max", "max")
"""Calibrations whose scores are at most 1, so that the bias survives float32."""


@dataclass(frozen=True, kw_only=True)
class TripleHybridConfig:
    """The options of :class:`TripleHybrid`. Immutable, checked when made.

    Attributes
    ----------
    mode : {"hybrid", "graph", "vector", "lexical"}
        What is ranked: the union of the vectors' and the graph's lists, or one list alone.
    seeds : int
        The best entities by vector start from their facts.
    hops : int
        1: facts with a seed at one end; above that, those of the entities reached, too.
    unit : {"bigrams", "words"}
        What Dice compares (:class:`hopfuse.LabelSets`).
    repeats : bool
        Multisets, as APOC's ``sorensenDiceSimilarity`` has them.
    vector_k, graph_k : int
        List lengths of the hybrid.
    calibration : {"none", "min_max", "max"}
        What each list's scores go through before the maximum (:func:`hopfuse.calibrate`). The method has "none":
        cosines and Dice coefficients are then compared as they are, and an encoder whose cosines are all large hides
        the graph.

    Raises
    ------
    InputError
        A value outside its range.
    """

    mode: Mode = option("hybrid", "What is ranked: the union of both lists, or one list.", choices=MODES)
    seeds: int = option(10, "The best entities by vector start from their facts.", low=1)
    hops: int = option(1, "How many facts away from a seed an entity may be.", low=1)
    unit: Unit = option("bigrams", "What Dice coefficients compare.", choices=UNITS)
    repeats: bool = option(False, "Compare multisets, so that repeated bigrams or words count.")
    vector_k: int = option(100, "Length of the list by vector.", low=1)
    graph_k: int = option(100, "Length of the list by facts.", low=1)
    calibration: Scale = option("min_max", "Scale of both lists before the maximum.", choices=SCALES)

    def __post_init__(self) -> None:
        check_options(self)

    @classmethod
    def paper(cls) -> TripleHybridConfig:
        """Return the method's own settings: scores compared as they are.

        Examples
        --------
        >>> from hopfuse.recipes import TripleHybridConfig
        >>> TripleHybridConfig.paper().calibration
        'none'
        """
        return cls(calibration="none")

    @property
    def unread(self) -> frozenset[str]:
        """Return the options that play no part in the mode."""
        union = {"vector_k", "graph_k", "calibration"}
        facts = set() if self.reads_facts else {"seeds", "hops", "unit", "repeats"}
        return frozenset(facts if self.mode == "hybrid" else facts | union)

    @property
    def reads_vectors(self) -> bool:
        """Return whether the mode compares vectors."""
        return self.mode != "lexical"

    @property
    def reads_facts(self) -> bool:
        """Return whether the mode follows facts."""
        return self.mode in ("hybrid", "graph")
