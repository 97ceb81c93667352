"""The options of TripleHybrid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...types.label_sets import UNITS, Unit
from .._parts.config import check_options, option, with_options

Mode = Literal["hybrid", "graph", "vector", "lexical"]
MODES: tuple[Mode, ...] = ("hybrid", "graph", "vector", "lexical")
Scale = Literal["none", "min_max", "max"]
SCALES: tuple[Scale, ...] = ("none", "min_max", "max")
"""Calibrations with scores of at most 1, to which the bias can be added in float32."""


@with_options
@dataclass(frozen=True, kw_only=True)
class TripleHybridConfig:
    """Options of :class:`TripleHybrid`.

    Raises
    ------
    InputError
        A value outside its range.
    """

    mode: Mode = option("hybrid", "The ranking: the union of both lists, or one list.", choices=MODES)
    seeds: int = option(10, "Best entities by vector, from whose facts the search starts.", low=1)
    hops: int = option(
        1,
        "The number of facts between a seed and an entity, at most.\n"
        "Each hop after the first adds the facts of the entities reached before.",
        low=1,
    )
    unit: Unit = option("bigrams", "Units that Dice coefficients compare (:class:`hopfuse.LabelSets`).", choices=UNITS)
    repeats: bool = option(False, "Compare multisets, so that repeated bigrams or words count.")
    vector_k: int = option(100, "Length of the list by vector.", low=1)
    graph_k: int = option(100, "Length of the list by facts.", low=1)
    calibration: Scale = option(
        "min_max",
        "Scale of both lists before the maximum.\n"
        "The published method has none: it compares cosines with Dice coefficients, so an encoder whose cosines are "
        "all large hides the graph.",
        choices=SCALES,
    )

    def __post_init__(self) -> None:
        check_options(self)

    @classmethod
    def paper(cls) -> TripleHybridConfig:
        """Return the settings of the published method, which compares raw scores.

        Examples
        --------
        >>> from hopfuse.recipes import TripleHybridConfig
        >>> TripleHybridConfig.paper().calibration
        'none'
        """
        return cls(calibration="none")

    @property
    def unread(self) -> dict[str, str]:
        """Return the options that the mode does not use, each with the reason."""
        facts = () if self.reads_facts else ("seeds", "hops", "unit", "repeats")
        union = () if self.mode == "hybrid" else ("vector_k", "graph_k", "calibration")
        return dict.fromkeys((*facts, *union), f"mode is {self.mode}")

    @property
    def reads_vectors(self) -> bool:
        """Return whether the mode compares vectors."""
        return self.mode != "lexical"

    @property
    def reads_facts(self) -> bool:
        """Return whether the mode follows facts."""
        return self.mode in ("hybrid", "graph")
