"""The lexical list of a recipe: from the words of a question, by a collaborator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..errors import InputError
from ..types import Hits
from ..types.hits import PAD_ID, PAD_SCORE


class LexicalLeg(Protocol):
    """What a recipe asks of a lexical leg; :class:`hopfuse.lexical.BM25` is one."""

    def search(self, questions: Sequence[str], k: int, /) -> Hits:
        """At most k passages for each question."""
        ...


def checked_leg(leg: Any, weight: Any, name: str = "lexical_weight") -> tuple[LexicalLeg | None, float]:
    """The leg and its weight, or why they cannot be."""
    number = isinstance(weight, int | float | np.integer | np.floating) and not isinstance(weight, bool)
    if not number or not (np.isfinite(weight) and weight >= 0):
        raise InputError(f"{name} is {weight!r}; it must be a finite number, at least 0")
    if leg is not None and not callable(getattr(leg, "search", None)):
        raise InputError(f"lexical is a {type(leg).__name__}; it must have search(questions, k), as BM25 has")
    return leg, float(weight)


def lexical_pool(leg: LexicalLeg | None, questions: Sequence[str] | None, k: int, num_passages: int) -> Hits | None:
    """The leg's list for each question, padded to k, so that its shape is that of every batch."""
    if leg is None:
        return None
    if questions is None:
        raise InputError("search needs queries=, the questions as text, for the lexical leg")
    found = leg.search(list(questions), k)
    if not isinstance(found, Hits) or len(found) != len(questions):
        raise InputError(
            f"the lexical leg found {found!r} for {len(questions)} questions; it must return Hits with a row for each"
        )
    best = found.head(k)
    if best.ids.size and best.ids.max() >= num_passages:
        raise InputError(
            f"the lexical leg found passage {best.ids.max()}; the index has {num_passages}: build it from their texts"
        )
    ids = np.full((len(best), k), PAD_ID, np.int64)
    scores = np.full((len(best), k), PAD_SCORE, np.float32)
    ids[:, : best.shape[1]], scores[:, : best.shape[1]] = best.ids, best.scores
    return Hits(ids, scores, best.counts)
