"""Read passages for ``hopfuse add``: their words, as at the build, and entities and facts by a reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import Index
from ..._validation import counted
from ...errors import InputError
from ...extract import Extraction, Memory, WordReader, build_memory
from ...extract.skips import SKIP_FAILED, Skips
from ..build.rules import check_reader
from ..build.sources import make_fact_reader
from ..console import note

Row = dict[str, Any]


class PassageReader:
    """Reads added passages the way the index's own were read; ``options`` are those of the command."""

    def __init__(self, index: Index, options: Mapping[str, Any]) -> None:
        given = {**options, "reader": () if options["reader"] is None else (options["reader"],)}
        check_reader({**given, "language": None, "tagger": None})
        names = index.num_entities if index.words is None else index.words.first
        if given["reader"] and (index.graph is None or index.facts is None):
            raise InputError(
                "unused",
                "reader",
                "{field} finds entities and facts, but the index was built without them; leave it out, or build the "
                "index again with {field}",
            )
        if names and index.graph is not None and not given["reader"]:
            note(f"The index has {counted(names, 'entity')}, but none is read from these passages: see --reader")
        self._facts = make_fact_reader(given) if given["reader"] else None
        self._words = None if index.words is None else WordReader.like(index.words)
        self._skips: Skips | None = None
        self._without_words: Skips | None = None

    @property
    def reads(self) -> bool:
        """True if there is a reader of words or of facts."""
        return self._facts is not None or self._words is not None

    def expect(self, total: int) -> None:
        """Expect so many passages in all calls of :meth:`read` together, of which a share may fail."""
        share = SKIP_FAILED if self._facts is None else self._facts.skip_failed
        self._skips, self._without_words = Skips(share, total), Skips(share, total)

    def read(self, rows: Sequence[Row], progress: Callable[[int, int], None]) -> Memory:
        """Return what the readers find in passages."""
        if self._facts is None:
            assert self._words is not None
            return build_memory(self._words.read(rows, progress=progress, skips=self._without_words))
        found = self._facts.read(rows, progress=progress, skips=self._skips)
        return build_memory(found if self._words is None else self._words.add(found, skips=self._without_words))


def edges_between(rows: Sequence[Row], batch: int) -> dict[int, list[dict[str, Any]]]:
    """Return edges between consecutive passages of a document that are in different batches, by the later batch."""
    places = build_memory(
        Extraction(row["id"], "", "", document=row.get("document"), position=row.get("position")) for row in rows
    ).sequence
    found: dict[int, list[dict[str, Any]]] = {}
    for a, b in places.tolist():
        if a // batch != b // batch:
            ends = {"src": ("passage", rows[a]["id"]), "dst": ("passage", rows[b]["id"])}
            found.setdefault(max(a, b) // batch, []).append({**ends, "type": "sequence"})
    return found
