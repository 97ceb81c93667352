"""Mentions of entities in questions: given, or found by a matcher."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ..._validation import check_number, check_type, is_whole, wrong_type
from ...errors import InputError


class Matcher(Protocol):
    """An object that finds entities in texts, such as :class:`hopfuse.extract.EntityLinker`."""

    def match(self, texts: Sequence[str], /) -> Sequence[Sequence[Any]]:
        """Return the matches in each text: ``entity`` (a number), ``surface`` and ``kind`` (``"exact"``, ``"alias"``).

        A match may have a ``confidence``, above 0 and at most 1, and a ``start``, the offset of the surface; with it
        the encoder reads a question in one case as it would be written (:func:`spelled`). Isolated searches need
        ``part(part)``, which returns the matcher of an :class:`hopfuse.index.IndexPart`.
        """
        ...


class Mention(NamedTuple):
    """An entity that a matcher found in a question: the confidence that the question means it, and where it stands.

    ``start`` is the offset of the surface in the question, -1 if the matcher does not say.
    """

    entity: int
    surface: str
    kind: str
    confidence: float = 1.0
    start: int = -1


def read_mentions(entities: Any, num_entities: int) -> list[list[Any] | None]:
    """Return the given names, entity numbers and matches of each question; None for a question without any given.

    Raises
    ------
    InputError
        No sequence of rows, no mention, or an entity that the index does not have.
    """
    check_type(entities, "entities", Sequence, "the mentions of each query: [[name, ...], ...]")
    return [None if row is None else read_row(row, f"entities[{b}]", num_entities) for b, row in enumerate(entities)]


def read_row(row: Any, field: str, num_entities: int) -> list[Any]:
    """Return the mentions of a question: names (str), entity numbers (int) and matches (:class:`Mention`)."""
    if not isinstance(row, list) and (isinstance(row, str) or not isinstance(row, Iterable)):
        raise wrong_type(row, field, "a list of mentions")
    return [one if isinstance(one, str) else _read(one, f"{field}[{i}]", num_entities) for i, one in enumerate(row)]


def _read(given: Any, field: str, num_entities: int) -> Any:
    """Return an entity number, or a matcher's match as a Mention."""
    number = getattr(given, "entity", given)
    if not is_whole(number):
        raise InputError(
            "type",
            field,
            "{field} is {given!r}; a mention is {allowed}",
            given=given,
            allowed="a name (str) or an entity number (int)",
        )
    if not 0 <= number < num_entities:
        raise InputError(
            "unknown",
            field,
            "{field} is {given}; entities are {allowed}",
            given=int(number),
            allowed=f"0 .. {num_entities - 1}",
        )
    if number is given:
        return int(number)
    confidence = getattr(given, "confidence", 1.0)
    check_number(confidence, "confidence", above=0, high=1)
    return Mention(int(number), given.surface, given.kind, confidence, getattr(given, "start", -1))
