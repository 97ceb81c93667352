"""Mentions of entities in questions: given, or found by a matcher."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ..._validation import check_length, check_number, check_type, wrong_type
from ...errors import InputError
from .config import needed


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


def question_mentions(
    matcher: Matcher | None,
    queries: Sequence[str] | None,
    entities: Any,
    batch: int | None,
) -> Sequence[Sequence[Any]]:
    """Return the given names, entity numbers or matches of each question, or the matcher's."""
    if entities is None:
        if queries is None or matcher is None:
            raise needed(
                "entities", "search", "or queries= and a recipe with matcher=hopfuse.extract.QuestionMatcher(index)"
            )
        return [[_read(mention) for mention in row] for row in matcher.match(list(queries))]
    check_type(entities, "entities", Sequence, "the mentions of each query: [[name, ...], ...]")
    for b, row in enumerate(entities):
        if isinstance(row, str) or not isinstance(row, Iterable):
            raise wrong_type(row, f"entities[{b}]", "a list of mentions")
    if batch is not None:
        check_length(len(entities), "entities", batch, "query")
    return [[_read(mention) for mention in row] for row in entities]


def _read(mention: Any) -> Any:
    """Convert a matcher's match to a Mention; return names and numbers as they are."""
    if not hasattr(mention, "entity"):
        return mention
    confidence = getattr(mention, "confidence", 1.0)
    check_number(confidence, "confidence", above=0, high=1)
    return Mention(mention.entity, mention.surface, mention.kind, confidence, getattr(mention, "start", -1))


def unknown_entity(number: int, size: int, field: str) -> InputError:
    """Return the error for an entity number that the index does not have."""
    return InputError(
        "unknown",
        field,
        "{field} has the entity {given}; entities are {allowed}",
        given=int(number),
        allowed=f"0 .. {size - 1}",
    )
