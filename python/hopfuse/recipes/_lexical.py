"""The lexical list of a recipe: from the words of a question, by a collaborator."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..ops._checks import is_real
from ..types import Hits
from ..types.hits import PAD_ID
from ._rows import widened


class LexicalLeg(Protocol):
    """What a recipe asks of a lexical leg; :class:`hopfuse.lexical.BM25` is one."""

    def search(self, questions: Sequence[str], k: int, /) -> Hits:
        """At most k passages for each question; where ``allow=`` is a parameter too, as of ``dense_topk``, of those."""
        ...


def checked_leg(leg: Any, weight: Any, name: str = "lexical_weight") -> tuple[LexicalLeg | None, float]:
    """The leg and its weight, or why they cannot be."""
    if not is_real(weight) or not 0 <= weight < np.inf:
        raise InputError(f"{name} is {weight!r}; it must be a finite number, at least 0")
    if leg is not None and not callable(getattr(leg, "search", None)):
        raise InputError(f"lexical is a {type(leg).__name__}; it must have search(questions, k), as BM25 has")
    return leg, float(weight)


def lexical_pool(
    leg: LexicalLeg | None,
    questions: Sequence[str] | None,
    k: int,
    num_passages: int,
    allow: NDArray[np.bool_] | None = None,
) -> Hits | None:
    """The leg's list for each question, padded to k, so that its shape is that of every batch.

    A leg without ``allow=`` is asked for all passages, whose first k that are allowed are the same list.
    """
    if leg is None:
        return None
    if questions is None:
        raise InputError("search needs queries=, the questions as text, for the lexical leg")
    search: Any = leg.search
    if allow is None:
        found = search(list(questions), k)
    elif _has_allow(search):
        found = search(list(questions), k, allow=allow)
    else:
        found = search(list(questions), num_passages)
    if not isinstance(found, Hits) or len(found) != len(questions):
        raise InputError(
            f"the lexical leg found {found!r} for {len(questions)} questions; it must return Hits with a row for each"
        )
    if found.ids.size and found.ids.max() >= num_passages:
        raise InputError(
            f"the lexical leg found passage {found.ids.max()}; the index has {num_passages}: build it from their texts"
        )
    return widened(found if allow is None else _only(found, allow), k)


def _has_allow(search: Any) -> bool:
    try:
        return "allow" in signature(search).parameters
    except (TypeError, ValueError):  # what C code does not tell
        return False


def _only(hits: Hits, allow: NDArray[np.bool_]) -> Hits:
    """The hits that are allowed, in their order."""
    held = np.arange(hits.shape[1]) < hits.counts[:, None]
    rows = np.broadcast_to(allow, (len(hits), allow.shape[-1]))
    held &= np.take_along_axis(rows, np.where(held, hits.ids, 0), axis=1)
    return Hits(np.where(held, hits.ids, PAD_ID), hits.scores)
