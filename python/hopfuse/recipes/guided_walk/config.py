"""The options of GuidedWalk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ...fusion import RRF
from .._parts.config import check_edge_weights, check_options, option

FLOAT32_MAX = float(np.finfo(np.float32).max)
FirstAnswer = Literal["fused", "dense"]


@dataclass(frozen=True, kw_only=True)
class GuidedWalkConfig:
    """Options of :class:`GuidedWalk`.

    Parameters
    ----------
    first : {"fused", "dense"}
        The first answer, whose passages give the second seeds: the dense list and the plain walk's by reciprocal ranks,
        or the dense list alone, which saves a walk.
    second_top : int
        So many of the best passages of an answer give seeds.
    second_mass : float
        Share of the restart that second seeds get beside the question's own, in [0, 1]. A question without seeds of its
        own starts at second seeds alone.
    depth : int
        So often seeds are read off an answer, each time for a guided walk: the first one, then that of the walk before.
    tau, floor : float
        Of the passages' weights (:func:`hopfuse.similarity_weights`): by what fall of similarity, in units of the
        question's own spread, a weight falls e-fold, and the least weight.
    dense_k, graph_k : int
        Lengths of the dense list and of both walks' lists.
    rank_constant : float
        RRF's k, of the first answer and of the hits.
    damping : float
        Of both walks (:func:`hopfuse.ppr`).
    edge_weights : mapping of str to float, optional
        What edges of a type count in the walks, by its name in the index's graph; 1 where it is not named.
    dense_weight : float
        Weight of the dense list in the hits, above 0, beside 1 of the guided walk's. One below
        (rank_constant + 1) / (rank_constant + graph_k)² only adds what the walk did not find, after what it found.
    lexical_weight : float, optional
        Weight of the lexical leg in the hits, at least 0.
    lexical_k : int, optional
        Length of the lexical list, 100 by default.
    entity_threshold : float
        Cosine similarity from which the nearest entity by embedding counts as matched.

    Raises
    ------
    InputError
        A value out of its range.

    Examples
    --------
    >>> from hopfuse.recipes import GuidedWalkConfig
    >>> GuidedWalkConfig(dense_weight=0.5).weights(("guided", "dense"))
    {'guided': 1.0, 'dense': 0.5}
    """

    first: FirstAnswer = option("fused", "The answer that second seeds are read off.", choices=("fused", "dense"))
    second_top: int = option(1, "Passages of an answer that give second seeds.", low=1)
    second_mass: float = option(0.7, "Share of the restart at second seeds.", low=0, high=1)
    depth: int = option(1, "How often seeds are read off an answer.", low=1)
    tau: float = option(1.4, "Fall of similarity, in its spread, by which a weight falls e-fold.", low=1e-4, high=1e4)
    floor: float = option(0.01, "Least weight of a passage.", low=1e-30, high=1)
    dense_k: int = option(100, "Length of the dense list.", low=1)
    graph_k: int = option(30, "Length of the walks' lists.", low=1)
    rank_constant: float = option(10.0, "RRF's k.", low=0)
    damping: float = option(0.6, "Probability of walking on.", low=0, below=1)
    edge_weights: Mapping[str, float] | None = option(None, "Weight of the edges of a type in the walk.", own=True)
    dense_weight: float = option(0.001, "Weight of the dense list beside the walk's 1.", low=1e-30, high=FLOAT32_MAX)
    lexical_weight: float | None = option(
        0.3, "Weight of the lexical list [0.3].", low=0, high=FLOAT32_MAX, optional=True
    )
    lexical_k: int | None = option(100, "Length of the lexical list [100].", low=1, optional=True)
    entity_threshold: float = option(0.8, "Cosine from which the nearest entity counts.", low=-1, high=1)

    def __post_init__(self) -> None:
        check_options(self)
        object.__setattr__(self, "edge_weights", check_edge_weights(self.edge_weights))
        object.__setattr__(self, "rank_constant", self.ranks.rank_constant)

    @cached_property
    def ranks(self) -> RRF:
        """Return the method that fuses the first answer and the hits."""
        return RRF(rank_constant=self.rank_constant)

    def weights(self, legs: Sequence[str]) -> dict[str, float]:
        """Return what each list counts in the hits."""
        lexical = 0.3 if self.lexical_weight is None else self.lexical_weight
        weights = {"guided": 1.0, "dense": self.dense_weight, "lexical": lexical}
        return {leg: weights[leg] for leg in legs}
