"""Notes: what a search could not use of a question."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ...errors import InputError
from ...types import Hits
from .questions import Asked


def notes_of(
    asked: Asked, seeds: Sequence[Collection[Any]] | None, unknown: Collection[str], *words: Hits | None
) -> list[list[InputError]]:
    """Return the notes of each question.

    Parameters
    ----------
    asked : Asked
    seeds : sequence of B collections, or None
        The entities that each question names; None for a recipe that reads none.
    unknown : collection of str
        Given names of no entity.
    *words : Hits or None
        The lists of what has words of each question; None for one that is not made.
    """
    notes: list[list[InputError]] = [[] for _ in range(asked.size)]
    if unknown and asked.mentions is not None:
        for b, row in enumerate(asked.mentions):
            if b not in asked.matched:
                notes[b] += [_unknown_name(i, name) for i, name in enumerate(row) if name in unknown]
    lists = [hits for hits in words if hits is not None]
    if asked.texts is None or not (lists or asked.matched):
        return notes
    for b, text in enumerate(asked.texts):
        is_known = bool(seeds and seeds[b]) or any(hits.counts[b] for hits in lists)
        if not is_known and (lists or b in asked.matched) and text and text.strip():
            notes[b].append(_unknown_text(text))
    return notes


def _unknown_name(place: int, name: str) -> InputError:
    return InputError(
        "unknown",
        f"entities[{place}]",
        "{field} is {given!r}, and no entity that is searched has this name; correct the name, or leave it out",
        given=name,
    )


def _unknown_text(text: str) -> InputError:
    return InputError(
        "unknown",
        "text",
        "{field} is {given!r}, and no name and no word of it is known to what is searched",
        given=text,
    )
