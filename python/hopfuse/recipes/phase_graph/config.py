"""The options of PhaseGraph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ...errors import InputError
from ...fusion import METHODS, Calibration, FusionMethod, resolve
from ...fusion.calibration import CALIBRATIONS, TIES, CalibrationName, Ties
from ...ops.fusion import KEEPS_SIGN, calibration_for
from .._parts.config import check_edge_weights, check_options, option

FLOAT32_MAX = float(np.finfo(np.float32).max)
#: Where an option is not given: the dense list's weight, Boltzmann's temperature, and the words' weight and length.
ALPHA, TEMPERATURE, LEXICAL_WEIGHT, LEXICAL_K = 0.2, 0.2, 0.05, 10


@dataclass(frozen=True, kw_only=True)
class PhaseGraphConfig:
    """Options of :class:`PhaseGraph`; the defaults are chosen on several sets of questions, not the :meth:`paper`'s.

    Parameters
    ----------
    alpha : float, optional
        Weight of the dense leg in [0, 1], 0.2 by default; the graph leg has 1 - alpha.
    dense_k, graph_k : int
        Pool caps: list lengths matter as much as alpha.
    damping : float
        Of the walk (:func:`hopfuse.ppr`).
    edge_weights : mapping of str to float, optional
        What edges of a type count in the walk, by its name in the index's graph; 1 where it is not named. ``{"synonym":
        0}`` leaves the links between synonyms out.
    method : str or :class:`hopfuse.fusion.FusionMethod`
        What fuses the pools: a name or an object of :mod:`hopfuse.fusion`. Weights are the legs': a method that reads
        none takes neither ``alpha`` nor ``lexical_weight``.
    calibration : str or :class:`hopfuse.fusion.Calibration`, optional
        What scores go through first; by default the method's own.
    temperature : "auto" or float > 0, optional
        Of Boltzmann distributions, where the method has them; "auto" is 2/3 of a list's mean energy. By default 0.2 of
        the method "boltzmann", else the method's own.
    ties : {"strict", "weak", "mean", "rank"}, optional
        Tie rule of the percentile ranks; "strict" by default.
    consensus : float
        Added to passages that are in two pools or more (0.5 to 1.5 in the paper; probabilities are far smaller).
    passage_seeds : float
        HippoRAG-2-style passage seeds: the restart mass on the dense pool (shares by min-max calibrated score)
        for each unit on entities. 0: entities only.
    lexical_weight : float, optional
        Weight of the lexical leg, at least 0, beside ``alpha`` and 1 - alpha; 0.05 by default. What serves depends on
        the questions: words lose where the graph alone is strong.
    lexical_k : int, optional
        Pool cap of the lexical leg, 10 by default.
    entity_threshold : float
        Cosine similarity from which the nearest entity by embedding counts as matched.
    dense_fallback : bool
        A question whose walk reaches no passage, as without a seed, has the dense hits above 0 as its graph list,
        so that its other legs weigh what they do elsewhere. Else that list is empty.

    Raises
    ------
    InputError
        A value out of its range, options that contradict each other.

    Examples
    --------
    >>> from hopfuse.recipes import PhaseGraphConfig
    >>> PhaseGraphConfig(alpha=0.4, method="rrf").weights(("dense", "graph"))
    {'dense': 0.4, 'graph': 0.6}
    """

    alpha: float | None = option(ALPHA, f"Weight of the dense list [{ALPHA}].", low=0, high=1, optional=True)
    dense_k: int = option(30, "Length of the dense list.", low=1)
    graph_k: int = option(100, "Length of the graph list.", low=1)
    damping: float = option(0.7, "Probability of walking on.", low=0, below=1)
    edge_weights: Mapping[str, float] | None = option(None, "Weight of the edges of a type in the walk.", own=True)
    method: str | FusionMethod = option("boltzmann", "What fuses the lists.", choices=tuple(METHODS), own=True)
    calibration: CalibrationName | Calibration | None = option(
        None, "What scores go through first [the method's own].", choices=CALIBRATIONS, own=True
    )
    temperature: float | Literal["auto"] | None = option(None, "Temperature of the method, where it has one.", own=True)
    ties: Ties | None = option("strict", "Ties of percentile ranks [strict].", choices=TIES, optional=True)
    consensus: float = option(0.0, "Bonus for being in two lists.", low=0, high=FLOAT32_MAX)
    passage_seeds: float = option(0.0, "Restart mass on the dense list for each unit on entities.", low=0)
    lexical_weight: float | None = option(
        LEXICAL_WEIGHT, f"Weight of the lexical list [{LEXICAL_WEIGHT}].", low=0, high=FLOAT32_MAX, optional=True
    )
    lexical_k: int | None = option(LEXICAL_K, f"Length of the lexical list [{LEXICAL_K}].", low=1, optional=True)
    entity_threshold: float = option(0.8, "Cosine from which the nearest entity counts.", low=-1, high=1)
    dense_fallback: bool = option(True, "Without a walk, the dense list is the graph's too.")

    def __post_init__(self) -> None:
        check_options(self)
        object.__setattr__(self, "edge_weights", check_edge_weights(self.edge_weights))
        given = [name for name in ("alpha", "lexical_weight") if getattr(self, name) is not None]
        if given and not self.fusion.weighted:
            raise InputError(f"fusion method {self.fusion.name!r} reads no weights; leave {' and '.join(given)} out")
        calibration_for(self.fusion, self.calibration, ties=self.ties)

    @classmethod
    def paper(cls) -> PhaseGraphConfig:
        """Return the paper's settings, with pools of 100 and 30: Boltzmann over percentile ranks, weights 0.7 and 0.3.

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
        """The method with its temperature."""
        temperature = TEMPERATURE if self.temperature is None and self.method == "boltzmann" else self.temperature
        return resolve(self.method, {} if temperature is None else {"temperature": temperature})

    @cached_property
    def rule(self) -> Calibration | None:
        """Return what scores go through before the method reads them; None where it reads ranks."""
        reads_ranks = self.fusion.calibrations == ()
        return None if reads_ranks else calibration_for(self.fusion, self.calibration, ties=self.ties)

    @property
    def refuses_negative(self) -> bool:
        """Return whether fusing refuses scores below 0, which only the host can look at."""
        return self.fusion.needs_nonnegative and self.rule is not None and self.rule.method in KEEPS_SIGN

    @property
    def adds_up(self) -> bool:
        """Return whether a fused score is the weighted sum of what the method makes of each list alone."""
        if self.fusion.name == "boltzmann":
            return not getattr(self.fusion, "wasserstein", 0.0)
        if self.fusion.name == "tsallis":
            return not isinstance(getattr(self.fusion, "q", None), tuple)
        return self.fusion.name in ("linear", "comb_sum", "rrf", "rbc")

    def fusing(self, legs: tuple[str, ...]) -> dict[str, Any]:
        """Return the arguments of :func:`hopfuse.fuse` for the lists of these legs."""
        return {
            "method": self.fusion,
            "calibration": self.rule,
            "weights": tuple(self.weights(legs).values()) if self.fusion.weighted else None,
            "consensus": self.consensus,
        }

    def weights(self, legs: tuple[str, ...]) -> dict[str, float]:
        """Return what each leg counts, where the method reads weights."""
        alpha = ALPHA if self.alpha is None else self.alpha
        lexical = LEXICAL_WEIGHT if self.lexical_weight is None else self.lexical_weight
        weights = {"dense": alpha, "graph": 1.0 - alpha, "lexical": lexical}
        return {leg: weights[leg] for leg in legs}
