"""The entities that questions mention: as given, or as a matcher finds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from ..errors import InputError


class Matcher(Protocol):
    """What finds the entities of a text; :class:`hopfuse.extract.Gazetteer` is one."""

    def match(self, texts: Sequence[str], /) -> Sequence[Sequence[Any]]:
        """For each text, matches with an ``entity`` number."""
        ...


def question_mentions(
    matcher: Matcher | None, queries: Sequence[str] | None, entities: Any, batch: int | None
) -> Sequence[Sequence[Any]]:
    """Names or entity numbers of each question."""
    if entities is None:
        if queries is None or matcher is None:
            raise InputError("search needs entities=, or queries= and a recipe with a matcher")
        entities = [[m.entity for m in row] for row in matcher.match(list(queries))]
    rows = entities if isinstance(entities, Sequence) and not isinstance(entities, str) else [None]
    if any(isinstance(row, str) or not isinstance(row, Iterable) for row in rows):
        raise InputError("entities must be a sequence of sequences: the mentions of each query, [[name, ...], ...]")
    if batch is not None and len(entities) != batch:
        raise InputError(f"entities has {len(entities)} rows for {batch} queries; give one row per query")
    return [list(row) for row in entities]
