"""Mentions of entities in questions: given, or found by a matcher."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ..._validation import counted
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


def question_mentions(
    matcher: Matcher | None,
    queries: Sequence[str] | None,
    entities: Any,
    batch: int | None,
) -> Sequence[Sequence[Any]]:
    """Return the given names, entity numbers or matches of each question, or the matcher's."""
    if entities is None:
        if queries is None or matcher is None:
            raise InputError(
                "missing",
                None,
                "search needs {@entities}, or {@queries} and a recipe with "
                "matcher=hopfuse.extract.QuestionMatcher(index)",
            )
        return [[_read(mention) for mention in row] for row in matcher.match(list(queries))]
    rows = entities if isinstance(entities, Sequence) and not isinstance(entities, str) else [None]
    if any(isinstance(row, str) or not isinstance(row, Iterable) for row in rows):
        raise InputError(
            "length",
            "entities",
            "{field} must be a sequence of sequences, the mentions of each query: [[name, ...], ...]",
        )
    if batch is not None and len(entities) != batch:
        raise InputError(
            "UNSORTED",
            "entities",
            "{field} has {count} for {count_2}; give one row per query",
            count=counted(len(entities), "row"),
            count_2=counted(batch, "query"),
        )
    return [[_read(mention) for mention in row] for row in entities]


def _read(mention: Any) -> Any:
    """Convert a matcher's match to a Mention; return names and numbers as they are."""
    if not hasattr(mention, "entity"):
        return mention
    confidence = getattr(mention, "confidence", 1.0)
    if not 0 < confidence <= 1:
        raise InputError(
            "range",
            None,
            "a match has the confidence {confidence!r}; it must be above 0 and at most 1",
            confidence=confidence,
        )
    return Mention(mention.entity, mention.surface, mention.kind, confidence, getattr(mention, "start", -1))
