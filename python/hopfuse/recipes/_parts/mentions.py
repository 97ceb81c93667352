"""The entities that questions mention: as given, or as a matcher finds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ...errors import InputError


class Matcher(Protocol):
    """Anything that finds the entities of a text; :class:`hopfuse.extract.EntityLinker` is one."""

    def match(self, texts: Sequence[str], /) -> Sequence[Sequence[Any]]:
        """Return matches for each text: ``entity`` (a number), ``surface``, ``kind`` (``"exact"`` or ``"alias"``).

        They may have a ``confidence``, above 0 and at most 1. A matcher that has ``part(part)``, which returns the
        matcher of an :class:`hopfuse.index.IndexPart`, can take part in isolated searches.
        """
        ...


class Mention(NamedTuple):
    """An entity that a matcher found in a question, and how sure it is that the question means it."""

    entity: int
    surface: str
    kind: str
    confidence: float = 1.0


def question_mentions(
    matcher: Matcher | None,
    queries: Sequence[str] | None,
    entities: Any,
    batch: int | None,
) -> Sequence[Sequence[Any]]:
    """Return the names, entity numbers or matches of each question, or what the matcher finds in it."""
    if entities is None:
        if queries is None or matcher is None:
            raise InputError("search needs entities=, or queries= and a recipe with a matcher")
        return [[_read(mention) for mention in row] for row in matcher.match(list(queries))]
    rows = entities if isinstance(entities, Sequence) and not isinstance(entities, str) else [None]
    if any(isinstance(row, str) or not isinstance(row, Iterable) for row in rows):
        raise InputError("entities must be a sequence of sequences: the mentions of each query, [[name, ...], ...]")
    if batch is not None and len(entities) != batch:
        raise InputError(f"entities has {len(entities)} rows for {batch} queries; give one row per query")
    return [[_read(mention) for mention in row] for row in entities]


def _read(mention: Any) -> Any:
    """Return a matcher's match as a Mention; names and numbers as they are."""
    if not hasattr(mention, "entity"):
        return mention
    confidence = getattr(mention, "confidence", 1.0)
    if not 0 < confidence <= 1:
        raise InputError(f"a match has the confidence {confidence!r}; it must be above 0 and at most 1")
    return Mention(mention.entity, mention.surface, mention.kind, confidence)
