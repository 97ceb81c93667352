"""The options of PhaseGraph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..._validation import FLOAT32_MAX
from ...errors import InputError
from ...fusion import METHODS, Calibration, FusionMethod, resolve
from ...fusion.calibration import CALIBRATIONS, TIES, CalibrationName, Ties
from ...ops.fusion import KEEPS_SIGN, calibration_for
from .._parts.config import check_edge_weights, check_options, option, with_options
from .._parts.direct import list_weights

#: Defaults: temperature of "boltzmann", length of the lexical list, and, where one of the weights is given for all
#: questions, the weights of the dense and the lexical list.
TEMPERATURE, LEXICAL_K, ALPHA, LEXICAL_WEIGHT = 0.1, 100, 0.2, 0.2


@with_options
@dataclass(frozen=True, kw_only=True)
class PhaseGraphConfig:
    """Options of :class:`PhaseGraph`. The defaults were chosen on several sets of questions; see also :meth:`paper`.

    Raises
    ------
    InputError
        A value out of its range, or options that contradict each other.

    Examples
    --------
    >>> from hopfuse.recipes import PhaseGraphConfig
    >>> import numpy as np
    >>> PhaseGraphConfig(alpha=0.4, method="rrf").weights(("dense", "graph"), np.zeros(1))
    {'dense': array([0.4]), 'graph': array([0.6])}
    """

    alpha: float | None = option(
        ALPHA,
        "Weight of the dense list; the graph list's is 1 - alpha [by question].\n"
        "By default each question's rarest name says how far it is left to vectors and words, by a w from 0 to 1: the "
        "graph list's weight is 1 - w and the dense list's 0.6 + 0.4 w; with a lexical list, the dense list's is "
        "0.4 + 0.6 w and the lexical list's 0.2 + 0.6 w. "
        f"With this or ``lexical_weight``, all questions have the same weights, where alpha is {ALPHA:g} unless given.",
        low=0,
        high=1,
        optional=True,
    )
    dense_k: int = option(100, "Length of the dense list.", low=1)
    graph_k: int = option(100, "Length of the graph list.", low=1)
    damping: float = option(0.7, "Probability of walking on.", low=0, below=1)
    edge_weights: Mapping[str, float] | None = option(
        None,
        "Weight of the edges of a type in the walk.\n"
        "By the type's name in the index's graph; types that are not named have weight 1. ``{'synonym': 0}`` leaves "
        "out the links between synonyms.",
        own=True,
    )
    method: str | FusionMethod = option(
        "boltzmann",
        "Fusion method.\n"
        "A name or an object of :mod:`hopfuse.fusion`. One without weights takes neither alpha nor lexical_weight.",
        choices=tuple(METHODS),
        own=True,
    )
    calibration: CalibrationName | Calibration | None = option(
        None, "Calibration of the scores before fusion [the method's own].", choices=CALIBRATIONS, own=True
    )
    temperature: float | Literal["auto"] | None = option(
        None,
        "Temperature, for methods that have one.\n"
        f'Above 0, or "auto": 2/3 of a list\'s mean energy. By default {TEMPERATURE:g} for "boltzmann", else the '
        "method's own.",
        own=True,
    )
    ties: Ties | None = option("strict", "Tie rule of percentile ranks [strict].", choices=TIES, optional=True)
    consensus: float = option(
        0.0,
        "Bonus for being in two lists.\n0.5 to 1.5 in the paper; probabilities are far smaller.",
        low=0,
        high=FLOAT32_MAX,
    )
    passage_seeds: float = option(
        0.0,
        "Restart mass on the dense list, relative to 1 on entities.\n"
        "Passages share it in proportion to their min-max calibrated scores, as in HippoRAG 2. At 0 only entities are "
        "seeds.",
        low=0,
    )
    lexical_weight: float | None = option(
        LEXICAL_WEIGHT,
        "Weight of the lexical list [by question].\n"
        "Beside alpha and 1 - alpha. If given, it is the same for all questions, as with ``alpha``; if only alpha is, "
        f"it is {LEXICAL_WEIGHT:g}.",
        low=0,
        high=FLOAT32_MAX,
        optional=True,
    )
    lexical_k: int | None = option(LEXICAL_K, f"Length of the lexical list [{LEXICAL_K}].", low=1, optional=True)
    entity_threshold: float = option(0.8, "Smallest cosine at which the nearest entity is a match.", low=-1, high=1)
    dense_fallback: bool = option(
        True,
        "If a walk finds nothing, the dense list replaces its list.\n"
        "A walk reaches no passage without a seed, for example. Dense hits with positive scores are then the graph "
        "list, so that the other lists keep their relative weights.",
    )

    def __post_init__(self) -> None:
        check_options(self)
        object.__setattr__(self, "edge_weights", check_edge_weights(self.edge_weights))
        for name in ("alpha", "lexical_weight"):
            if getattr(self, name) is not None and not self.fusion.weighted:
                raise InputError(
                    "unused",
                    name,
                    "{field} is given, and fusion method {method!r} reads no weights; leave it out",
                    method=self.fusion.name,
                )
        calibration_for(self.fusion, self.calibration, ties=self.ties)

    @classmethod
    def paper(cls) -> PhaseGraphConfig:
        """Return the paper's settings: Boltzmann over percentile ranks, weights 0.7 and 0.3, lists of 100 and 30.

        Examples
        --------
        >>> from hopfuse.recipes import PhaseGraphConfig
        >>> PhaseGraphConfig.paper().alpha, PhaseGraphConfig.paper().fusion.name
        (0.7, 'boltzmann')
        """
        return cls(
            alpha=0.7,
            dense_k=100,
            graph_k=30,
            damping=0.5,
            method="boltzmann",
            temperature="auto",
            ties="strict",
            dense_fallback=False,
        )

    @cached_property
    def fusion(self) -> FusionMethod:
        """The fusion method with its temperature."""
        temperature = TEMPERATURE if self.temperature is None and self.method == "boltzmann" else self.temperature
        return resolve(self.method, {} if temperature is None else {"temperature": temperature})

    @cached_property
    def rule(self) -> Calibration | None:
        """Return the calibration of the scores, or None for a method that reads ranks."""
        reads_ranks = self.fusion.calibrations == ()
        return None if reads_ranks else calibration_for(self.fusion, self.calibration, ties=self.ties)

    @property
    def refuses_negative(self) -> bool:
        """Return whether the fusion refuses negative scores, which only the host checks."""
        return self.fusion.needs_nonnegative and self.rule is not None and self.rule.method in KEEPS_SIGN

    @property
    def adds_up(self) -> bool:
        """Return whether a fused score is the weighted sum of the scores from fusing each list by itself."""
        return self.fusion.adds_up

    @property
    def by_question(self) -> bool:
        """Return whether each question's rarest name gives the lists' weights."""
        return self.fusion.weighted and self.alpha is None and self.lexical_weight is None

    def fusing(self, legs: tuple[str, ...], direct: NDArray[np.float64] | None = None) -> dict[str, Any]:
        """Return the arguments of :func:`hopfuse.fuse` for the lists of these legs.

        Without ``direct``, all questions have the same weights.
        """
        weights = self.weights(legs, np.zeros(1) if direct is None else direct)
        stacked = np.stack(list(weights.values()), axis=1)
        return {
            "method": self.fusion,
            "calibration": self.rule,
            "weights": (stacked[0] if direct is None else stacked) if self.fusion.weighted else None,
            "consensus": self.consensus,
        }

    def weights(self, legs: tuple[str, ...], direct: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return the weight of each list for each question, (B,), for a method that reads weights.

        Parameters
        ----------
        legs : tuple of str
        direct : ndarray of float64 (B,)
            How far each question is left to vectors and words, in [0, 1]. Read if no weights are given.
        """
        if self.by_question:
            return list_weights(legs, direct)
        alpha = ALPHA if self.alpha is None else self.alpha
        lexical = LEXICAL_WEIGHT if self.lexical_weight is None else self.lexical_weight
        weights = {"dense": alpha, "graph": 1.0 - alpha, "lexical": lexical}
        return {leg: np.full(direct.shape, weights[leg]) for leg in legs}
