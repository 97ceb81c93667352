"""The entities that questions mention: as given, or as a matcher finds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from ...errors import InputError


class Matcher(Protocol):
    """Anything that finds the entities of a text; :class:`hopfuse.extract.Gazetteer` is one."""

    def match(self, texts: Sequence[str], /) -> Sequence[Sequence[Any]]:
        """Return matches for each text: ``entity`` (a number), ``surface``, ``kind`` (``"exact"`` or ``"alias"``)."""
        ...


class Mention(NamedTuple):
    """An entity that a matcher found in a question."""

    entity: int
    surface: str
    kind: str


def question_mentions(
    matcher: Matcher | None, queries: Sequence[str] | None, entities: Any, batch: int | None
) -> Sequence[Sequence[Any]]:
    """Return the names or entity numbers of each question, or what the matcher finds in it."""
    if entities is None:
        if queries is None or matcher is None:
            raise InputError("search needs entities=, or queries= and a recipe with a matcher")
        found = matcher.match(list(queries))
        return [[Mention(m.entity, m.surface, m.kind) for m in row] for row in found]
    rows = entities if isinstance(entities, Sequence) and not isinstance(entities, str) else [None]
    if any(isinstance(row, str) or not isinstance(row, Iterable) for row in rows):
        raise InputError("entities must be a sequence of sequences: the mentions of each query, [[name, ...], ...]")
    if batch is not None and len(entities) != batch:
        raise InputError(f"entities has {len(entities)} rows for {batch} queries; give one row per query")
    return [list(row) for row in entities]
