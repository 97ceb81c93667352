"""The options of GuidedWalk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ..._validation import FLOAT32_MAX
from ...errors import InputError
from ...fusion import RRF
from .._parts.config import check_edge_weights, check_lexical, check_options, option, with_options

FirstAnswer = Literal["fused", "dense"]
#: Options of a lexical leg, and their defaults.
LEXICAL_OPTIONS = ("word_boost", "word_k", "lexical_weight", "lexical_k")
TAU, TAU_WITH_WORDS = 1.4, 2.0
WORD_BOOST, WORD_K, LEXICAL_WEIGHT, LEXICAL_K = 8.0, 1000, 0.0, 100
DENSE_WEIGHT = 0.001
#: Passages of the first answer among which the second seeds' are chosen.
FIRST_K = 10


@with_options
@dataclass(frozen=True, kw_only=True)
class GuidedWalkConfig:
    """Options of :class:`GuidedWalk`.

    Raises
    ------
    InputError
        A value out of its range.

    Examples
    --------
    >>> from hopfuse.recipes import GuidedWalkConfig
    >>> GuidedWalkConfig(dense_weight=0.5).weights(("guided", "dense"))
    {'guided': 1.0, 'dense': 0.5}
    >>> GuidedWalkConfig().by_question
    True
    """

    first: FirstAnswer = option(
        "fused",
        "The first answer, which gives the second seeds.\n"
        "Fused: the dense list and a plain walk's list, by reciprocal ranks. Dense: that list alone, without a walk.",
        choices=("fused", "dense"),
    )
    second_top: int = option(
        3,
        "Most passages of an answer that give second seeds.\n"
        f"Its best, and the best with each name of the question among its first {FIRST_K} "
        "(:func:`hopfuse.cover_seeds`).",
        low=1,
        high=FIRST_K,
    )
    second_mass: float = option(
        0.5,
        "Share of the restart at second seeds.\n"
        "The question's own seeds get the rest. A question without any starts from second seeds alone.",
        low=0,
        high=1,
    )
    depth: int = option(
        1,
        "Number of guided walks.\n"
        "Each takes its second seeds from the answer before it, the first from the first answer.",
        low=1,
    )
    tau: float | None = option(
        TAU,
        f"Fall of similarity, in standard deviations, by which a weight falls e-fold [{TAU_WITH_WORDS:g} if words "
        f"raise weights, else {TAU:g}].\n"
        "In units of the spread of the question's own similarities (:func:`hopfuse.similarity_weights`).",
        low=1e-4,
        high=1e4,
        optional=True,
    )
    floor: float = option(0.01, "Smallest weight of a passage.", low=1e-30, high=1)
    dense_k: int = option(100, "Length of the dense list.", low=1)
    graph_k: int = option(30, "Length of the walks' lists.", low=1)
    rank_constant: float = option(10.0, "RRF's k.\nOf the first answer and of the hits.", low=0)
    damping: float = option(0.6, "Probability of walking on.", low=0, below=1)
    edge_weights: Mapping[str, float] | None = option(
        None,
        "Weight of the edges of a type in the walk.\n"
        "By the type's name in the index's graph; types that are not named have weight 1.",
        own=True,
    )
    dense_weight: float | None = option(
        DENSE_WEIGHT,
        "Weight of the dense list; the walk's is 1 [by question].\n"
        "By default each question's rarest name says how far it is left to direct retrieval; with this or "
        f"``lexical_weight``, all questions have the same weights, where the dense list's is {DENSE_WEIGHT:g} unless "
        "given. Below (rank_constant + 1) / (rank_constant + graph_k)², it only appends what the walk did not find.",
        low=1e-30,
        high=FLOAT32_MAX,
        optional=True,
    )
    word_boost: float | None = option(
        WORD_BOOST,
        f"How far the question's words raise a passage's weight [{WORD_BOOST:g}].\n"
        "With a lexical leg: the passage that scores best by the words other than names has its weight in the guided "
        "walk multiplied by 1 + this; others are raised in proportion to their scores (:func:`hopfuse.boost_weights`).",
        low=0,
        high=1e4,
        optional=True,
    )
    word_k: int | None = option(
        WORD_K, f"Number of passages whose weights may be raised [{WORD_K}].", low=1, optional=True
    )
    lexical_weight: float | None = option(
        0.3,
        "Weight of the lexical list [by question].\n"
        "By all words of the question; at 0 it is left out. If given, it is the same for all questions, as with "
        "``dense_weight``.",
        low=0,
        high=FLOAT32_MAX,
        optional=True,
    )
    lexical_k: int | None = option(LEXICAL_K, f"Length of the lexical list [{LEXICAL_K}].", low=1, optional=True)
    entity_threshold: float = option(0.8, "Smallest cosine at which the nearest entity is a match.", low=-1, high=1)

    def __post_init__(self) -> None:
        check_options(self)
        object.__setattr__(self, "edge_weights", check_edge_weights(self.edge_weights))
        object.__setattr__(self, "rank_constant", self.ranks.rank_constant)

    @cached_property
    def ranks(self) -> RRF:
        """Return the fusion method of the first answer and of the hits."""
        return RRF(rank_constant=self.rank_constant)

    def weights(self, legs: Sequence[str]) -> dict[str, float]:
        """Return the weight of each list in the hits where all questions have the same."""
        dense = DENSE_WEIGHT if self.dense_weight is None else self.dense_weight
        weights = {"guided": 1.0, "dense": dense, "lexical": self._lexical_weight}
        return {leg: weights[leg] for leg in legs}

    @property
    def by_question(self) -> bool:
        """Return whether each question's rarest name gives the lists' weights."""
        return self.dense_weight is None and self.lexical_weight is None

    @property
    def unread(self) -> dict[str, str]:
        """Return the lengths of lexical lists that have no part, each with the reason."""
        unread = {"word_k": "word_boost is 0"} if self.boost == 0 else {}
        if not self._has_lexical_list:
            unread["lexical_k"] = "lexical_weight is 0" if self.lexical_weight == 0 else "dense_weight is given"
        return unread

    def decay(self, *, has_words: bool) -> float:
        """Return ``tau``, or its default with or without words that raise weights."""
        return self.tau or (TAU_WITH_WORDS if has_words else TAU)

    @property
    def boost(self) -> float:
        """Return ``word_boost``, or its default with a lexical leg."""
        return WORD_BOOST if self.word_boost is None else self.word_boost

    @property
    def _has_lexical_list(self) -> bool:
        return self.by_question or self._lexical_weight > 0

    @property
    def _lexical_weight(self) -> float:
        return LEXICAL_WEIGHT if self.lexical_weight is None else self.lexical_weight

    def lexical_lengths(self, has_leg: bool, num_passages: int) -> tuple[int | None, int | None]:
        """Return the lengths of the list by all words and of the list that raises weights; None for one not used.

        Raises
        ------
        InputError
            Options of the leg without one, or the length of a list that is not used.
        """
        check_lexical(has_leg or None, {name: getattr(self, name) for name in LEXICAL_OPTIONS})
        if not has_leg:
            return None, None
        for name, reason in self.unread.items():
            if getattr(self, name) is not None:
                raise InputError(
                    "unused",
                    name,
                    "{field} is given, and {reason}: that list is not used; leave one of them out",
                    reason=reason,
                )
        fused = min(self.lexical_k or LEXICAL_K, num_passages) if self._has_lexical_list else None
        return fused, min(self.word_k or WORD_K, num_passages) if self.boost > 0 else None
