"""The lexical list of a recipe, by a collaborator that reads words."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...types import Hits
from .filters import only
from .hits import widened


class LexicalLeg(Protocol):
    """Anything that ranks passages by words; :class:`hopfuse.lexical.BM25` is one."""

    def search(self, questions: Sequence[str], k: int, /) -> Hits:
        """Return at most k passages for each question; with ``allow=``, a parameter as of ``dense_topk``, of those.

        A leg that has ``part(rows)``, which returns the leg over some rows alone, can take part in isolated searches.
        """
        ...


def check_leg(leg: Any) -> LexicalLeg | None:
    """Return a lexical leg, or None where there is none."""
    if leg is not None and not callable(getattr(leg, "search", None)):
        raise InputError(f"lexical is a {type(leg).__name__}; it must have search(questions, k), as BM25 has")
    checked: LexicalLeg | None = leg
    return checked


def lexical_length(
    leg: LexicalLeg | None, *, lexical_weight: float | None, lexical_k: int | None, default: int, num_passages: int
) -> int:
    """Return the length of the leg's list, ``default`` where none is given; options without a leg are refused."""
    options = {"lexical_weight": lexical_weight, "lexical_k": lexical_k}
    given = [name for name, value in options.items() if value is not None]
    if leg is None and given:
        raise InputError(f"{' and '.join(given)} are given without lexical=; give the leg, or leave them out")
    return min(lexical_k or default, num_passages)


def lexical_pool(
    leg: LexicalLeg | None,
    questions: Sequence[str] | None,
    k: int,
    num_passages: int,
    allow: NDArray[np.bool_] | None = None,
) -> Hits | None:
    """Return the leg's list for each question, padded to k, so that its shape is that of every batch.

    A leg without ``allow=`` is asked for all passages, whose first k that are allowed are the same list.
    """
    if leg is None:
        return None
    if questions is None:
        raise InputError("search needs queries=, the questions as text, for the lexical leg")
    search: Any = leg.search
    if allow is None:
        found = search(list(questions), k)
    elif has_allow(search):
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
    return widened(only(found, allow), k)


def has_allow(search: Any) -> bool:
    """Return whether a collaborator's method takes the passages that a question may find."""
    try:
        return "allow" in signature(search).parameters
    except (TypeError, ValueError):  # what C code does not tell
        return False
