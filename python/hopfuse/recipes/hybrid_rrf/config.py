"""The options of HybridRRF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..._validation import check_length, check_number, wrong_type
from ...fusion import RRF, Calibration, Prior
from .._parts.config import check_options, option, with_options
from .._parts.direct import list_weights

Fusion = Literal["rrf", "convex"]
LEGS = ("lexical", "dense", "graph", "exact")


@with_options
@dataclass(frozen=True, kw_only=True)
class HybridRRFConfig:
    """Options of :class:`HybridRRF`. The defaults were chosen on several sets of questions; see also :meth:`adr`.

    Raises
    ------
    InputError
        A value out of its range.

    Examples
    --------
    >>> from hopfuse.recipes import HybridRRFConfig
    >>> import numpy as np
    >>> HybridRRFConfig(weights=(1, 1, 0.5)).leg_weights(("lexical", "graph"), np.zeros(1))
    {'lexical': array([1.]), 'graph': array([0.5])}
    """

    walk: bool = option(
        True,
        "Walk the graph, if there is one.\n"
        "Without it the lists are those of words and vectors, whatever the index has; see also "
        ":class:`PlainHybridConfig`.",
    )
    weights: Sequence[float] | None = option(
        (1.0, 1.0, 1.0),
        "Weights of the lexical, dense and graph lists [by question].\n"
        "By default each question's rarest name says how far it is left to words and vectors, by a w from 0 to 1: the "
        "graph list's weight is 1 - w, the dense list's 0.4 + 0.6 w and the lexical list's 0.2 + 0.6 w. Vectors "
        "without words have 0.6 + 0.4 w, and words without vectors 0.75 + 0.25 w. Given weights are the same for all "
        "questions.",
        optional=True,
        own=True,
    )
    rank_constant: float = option(5.0, "RRF's k.", low=0)
    lexical_k: int = option(100, "Length of the lexical list.", low=1)
    dense_k: int = option(100, "Length of the dense list.", low=1)
    graph_k: int = option(30, "Length of the graph list.", low=1)
    importance: Any = option(
        None,
        "Importance of each passage, in [0, 1].\n"
        "A :class:`hopfuse.fusion.Prior` or an array (P,), NaN where unknown. A fused score is multiplied by "
        "0.7 + 0.3 importance, or by 1 if that is unknown.",
        own=True,
    )
    exact_bonus: float = option(
        0.0,
        "Weight of the list of passages whose title the question names.\n"
        "Whole titles, the longest first. At 0 there is no such list.",
        low=0,
    )
    fusion: Fusion = option(
        "rrf",
        "Add reciprocal ranks, or scores.\n"
        "Convex adds calibrated scores with the same weights (TM2C2). A score is scaled from the smallest that its leg "
        "can give to the largest of its list: -1 for vectors, which are then compared by cosine whatever the index's "
        "metric, and 0 for the other legs.",
        choices=("rrf", "convex"),
    )
    damping: float = option(0.7, "Probability of walking on.", low=0, below=1)
    entity_threshold: float = option(0.8, "Smallest cosine at which the nearest entity is a match.", low=-1, high=1)
    dense_fallback: bool = option(
        True,
        "If a walk finds nothing, the dense list replaces its list.\n"
        "A walk reaches no passage without a seed, for example. Dense hits with positive scores are then the graph "
        "list, so that the other lists keep their relative weights.",
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.weights is not None:
            object.__setattr__(self, "weights", _three(self.weights))
        object.__setattr__(self, "rank_constant", RRF(rank_constant=self.rank_constant).rank_constant)
        if self.importance is not None and not isinstance(self.importance, Prior):
            object.__setattr__(self, "importance", Prior(self.importance))

    @classmethod
    def adr(cls) -> HybridRRFConfig:
        """Return the published settings of the recipe: weights 1, 1 and 0.35, k = 60.

        Examples
        --------
        >>> from hopfuse.recipes import HybridRRFConfig
        >>> HybridRRFConfig.adr().weights
        (1.0, 1.0, 0.35)
        """
        return cls(
            weights=(1.0, 1.0, 0.35),
            rank_constant=60.0,
            lexical_k=100,
            dense_k=100,
            graph_k=30,
            damping=0.5,
            dense_fallback=False,
        )

    @property
    def unread(self) -> dict[str, str]:
        """Return the options that the others make irrelevant, each with the reason."""
        unread = {"rank_constant": "fusion is convex"} if self.fusion == "convex" else {}
        if not self.walk:
            unread |= dict.fromkeys(("graph_k", "damping", "entity_threshold", "dense_fallback"), "walk is false")
        return unread

    @property
    def by_question(self) -> bool:
        """Return whether each question's rarest name gives the lists' weights."""
        return self.weights is None

    def fusing(self, legs: Sequence[str], direct: NDArray[np.float64]) -> dict[str, Any]:
        """Return the arguments of :func:`hopfuse.fuse` for the lists of these legs (:meth:`leg_weights`)."""
        weights = np.stack(list(self.leg_weights(legs, direct).values()), axis=1)
        how: dict[str, Any] = {"weights": weights, "prior": self.importance}
        if self.fusion == "rrf":
            return {**how, "method": RRF(rank_constant=self.rank_constant)}
        least = tuple(-1.0 if leg == "dense" else 0.0 for leg in legs)
        return {**how, "method": "linear", "calibration": Calibration("theoretical_min_max", lower=least)}

    def leg_weights(self, legs: Sequence[str], direct: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return the weight of each list for each question, (B,).

        Parameters
        ----------
        legs : sequence of str
        direct : ndarray of float64 (B,)
            How far each question is left to words and vectors, in [0, 1]. Read if no weights are given.
        """
        exact = {"exact": np.full(direct.shape, self.exact_bonus)}
        if self.weights is None:
            weights = list_weights([leg for leg in legs if leg != "exact"], direct) | exact
        else:
            weights = {leg: np.full(direct.shape, one) for leg, one in zip(LEGS, self.weights, strict=False)} | exact
        return {leg: weights[leg] for leg in legs}


@with_options
@dataclass(frozen=True, kw_only=True)
class PlainHybridConfig(HybridRRFConfig):
    """Options of :class:`PlainHybrid`: those of :class:`HybridRRFConfig` with other defaults, which other systems have.

    Raises
    ------
    InputError
        A value out of its range.

    Examples
    --------
    >>> from hopfuse.recipes import PlainHybridConfig
    >>> config = PlainHybridConfig()
    >>> config.walk, config.weights, config.rank_constant
    (False, (1.0, 1.0, 1.0), 60.0)
    """

    walk: bool = option(False, "Walk the graph, if there is one.")
    weights: Sequence[float] = option(
        (1.0, 1.0, 1.0), "Weights of the lexical, dense and graph lists, the same for all questions.", own=True
    )
    rank_constant: float = option(60.0, "RRF's k.", low=0)


def _three(weights: Any) -> tuple[float, ...]:
    if isinstance(weights, str) or not isinstance(weights, Iterable):
        raise wrong_type(weights, "weights", "three numbers, for the lexical, dense and graph lists")
    given = tuple(weights)
    check_length(len(given), "weights", 3, "list")
    return tuple(check_number(weight, f"weights[{at}]", low=0) for at, weight in enumerate(given))
