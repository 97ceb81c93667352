"""Finding an index's entity names in questions."""

from __future__ import annotations

from collections.abc import Sequence

from .. import Index
from ..extract import Gazetteer


class NameFinder:
    """The names in a text, as they stand there; the automaton is built when it is first needed."""

    def __init__(self, index: Index, *, case_sensitive: bool) -> None:
        self._index = index
        self._case_sensitive = case_sensitive
        self._gazetteer: Gazetteer | None = None

    def find(self, texts: Sequence[str]) -> list[list[str]]:
        """The distinct names in each text, in order."""
        if self._gazetteer is None:
            self._gazetteer = self._build()
        return [list(dict.fromkeys(m.surface for m in found)) for found in self._gazetteer.match(texts)]

    def _build(self) -> Gazetteer:
        named = {e: name for e, name in enumerate(self._index.entity_names) if name.strip()}
        aliases = {e: [a for a in row if a.strip()] for e, row in enumerate(self._index.entity_aliases)}
        row_of = {e: row for row, e in enumerate(named)}
        return Gazetteer(
            list(named.values()),
            {row_of[e]: row for e, row in aliases.items() if e in row_of},
            case_sensitive=self._case_sensitive,
        )
