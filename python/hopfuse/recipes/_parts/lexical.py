"""The lexical leg of a recipe: an object that ranks passages by words."""

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
    """An object that ranks passages by words, such as :class:`hopfuse.lexical.BM25`."""

    def search(self, questions: Sequence[str], k: int, /) -> Hits:
        """Return at most k passages for each question.

        Two members are optional: an ``allow=`` parameter, as in ``dense_topk``; and ``part(rows)``, which returns the
        leg over some rows alone and is needed for isolated searches.
        """
        ...


def check_leg(leg: Any) -> LexicalLeg | None:
    """Return a lexical leg or None; refuse other objects."""
    if leg is not None and not callable(getattr(leg, "search", None)):
        raise InputError(
            "type", None, "lexical is a {kind}; it must have search(questions, k), as BM25 has", kind=type(leg).__name__
        )
    checked: LexicalLeg | None = leg
    return checked


def lexical_length(
    leg: LexicalLeg | None, *, lexical_weight: float | None, lexical_k: int | None, default: int, num_passages: int
) -> int:
    """Return the length of the leg's list, by default ``default``; refuse options without a leg."""
    options = {"lexical_weight": lexical_weight, "lexical_k": lexical_k}
    given = [name for name, value in options.items() if value is not None]
    if leg is None and given:
        raise InputError(
            "unused",
            None,
            "{names} are given without {@lexical}; give the leg, or leave them out",
            names=" and ".join(given),
        )
    return min(lexical_k or default, num_passages)


def lexical_pool(
    leg: LexicalLeg | None,
    questions: Sequence[str] | None,
    k: int,
    num_passages: int,
    allow: NDArray[np.bool_] | None = None,
) -> Hits | None:
    """Return the leg's list for each question, padded to k, so that shapes do not depend on the batch.

    A leg without ``allow=`` ranks all passages; the first k allowed ones are kept.
    """
    if leg is None:
        return None
    if questions is None:
        raise InputError("missing", "search", "{field} needs {@queries}, the questions as text, for the lexical leg")
    search: Any = leg.search
    if allow is None:
        found = search(list(questions), k)
    elif has_allow(search):
        found = search(list(questions), k, allow=allow)
    else:
        found = search(list(questions), num_passages)
    if not isinstance(found, Hits) or len(found) != len(questions):
        raise InputError(
            "length",
            None,
            "the lexical leg returned {found!r} for {number} questions; it must return Hits, a row for each",
            found=found,
            number=len(questions),
        )
    if found.ids.size and found.ids.max() >= num_passages:
        raise InputError(
            "UNSORTED",
            None,
            "the lexical leg returned passage {max}; the index has {num_passages}: build the leg from "
            "the index's texts",
            max=found.ids.max(),
            num_passages=num_passages,
        )
    return widened(only(found, allow), k)


def has_allow(search: Any) -> bool:
    """Return whether a search method has an ``allow`` parameter."""
    try:
        return "allow" in signature(search).parameters
    except (TypeError, ValueError):  # C code may have no signature
        return False
