"""The state of a directory: a generation and the batches of its log, and the index that they define."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any, Generic, TypeVar

import numpy as np

from ...errors import FormatError
from ..contents import Contents
from ..file.format import pack_head
from ..file.generations import generation_name, log_path, open_current
from ..file.mapping import open_file
from ..file.sections import as_section
from ..parts import passages
from ..schema import check_schema
from .delta import Delta
from .frames import Frame, Header, read_header, read_tail
from .lineage import Lineage, MergedSections, MergeResult
from .merge import merge, slots_to_rows
from .records import LogRecord, Slots
from .rows import DeltaRows, Rows

Kind = TypeVar("Kind", bound=Contents)


@dataclass(frozen=True)
class State(Generic[Kind]):
    """A generation, the number of batches after it, and the end of its log."""

    base: Kind
    header: Header | None
    delta: Delta
    count: int
    end: int

    @property
    def generation(self) -> int:
        """The generation's number."""
        assert self.base.generation is not None
        return self.base.generation

    @property
    def seq(self) -> int:
        """The seq of the last batch."""
        return self.base.seq + self.count

    def rows(self) -> DeltaRows:
        """Return the rows of the batches."""
        return self.delta.rows(self.count)

    def snapshot(self, before: Kind | None = None) -> Kind:
        """Return the index at this seq, which is merged when it is first read.

        Given an earlier snapshot of the same generation, the merge continues that one's.
        """
        if not self.count:
            return self.base
        base, cache = self.base, dict[str, Any]()
        earlier = None if before is None else self._merged(before)
        sections = MergedSections(lambda: merge(base, self.rows(), earlier), cache)
        log = b"" if self.header is None else self.header.salt
        checksum = hashlib.sha256(f"{base.checksum} {log.hex()} {self.seq}".encode()).hexdigest()
        rest: dict[str, Any] = {"_lock": RLock(), "_seq": self.seq, "_checksum": checksum}
        return replace(base, _sections=sections, _cache=cache, **rest)

    def _merged(self, before: Kind) -> MergeResult | None:
        """Return what an earlier snapshot merged, or None if it cannot be continued."""
        sections = before.sections
        if before.lineage is not self.base.lineage or not isinstance(sections, MergedSections):
            return None
        return sections.merged if sections.merged.log.count <= self.count else None

    def at(self, seq: int) -> State[Kind]:
        """Return the state at an earlier seq."""
        return replace(self, count=seq - self.base.seq)

    def after(self, header: Header, frames: Sequence[Frame], end: int) -> State[Kind]:
        """Return the state after more frames."""
        self.delta.append(self.count, frames)
        return State(self.base, header, self.delta, self.count + len(frames), end)


def read_state(kind: type[Kind], directory: Path, before: State[Kind] | None = None) -> State[Kind]:
    """Read the current generation and its log; given an earlier state, read only what is new."""
    return open_current(directory, lambda path, generation: _read_state(kind, path, generation, before))


def reopened(kind: type[Kind], directory: str, generation: int, seq: int) -> Kind:
    """Open a generation at a seq, to unpickle an index."""
    path = Path(directory) / generation_name(generation)
    try:
        state = _read_state(kind, path, generation, None)
        if state.seq >= seq:
            return state.at(seq).snapshot()
    except FileNotFoundError:
        pass
    raise FormatError(
        "changed",
        None,
        "the directory no longer has the generation {generation} at seq {seq}, to which this pickled index refers; "
        "open it again: hf.Index.open",
        generation=generation,
        seq=seq,
    ).at(directory)


def open_generation(kind: type[Kind], path: Path, generation: int) -> Kind:
    """Map a generation file."""
    head, sections = open_file(path)
    try:
        if head.generation != generation:
            raise FormatError(
                "conflict",
                None,
                "the header says generation {given}, the name {allowed}; the file was renamed",
                given=head.generation,
                allowed=generation,
            )
        check_schema(sections, head.settings)
    except FormatError as error:
        raise error.at(path) from None
    checksum = hashlib.sha256(pack_head(head)).hexdigest()
    rest: dict[str, Any] = {"_seq": head.seq, "_checksum": checksum, "_lineage": Lineage()}
    return kind(sections, head.settings, path.parent, generation, **rest)


def first_state(base: Kind) -> State[Kind]:
    """Return the state of a generation without a log."""
    assert base.directory is not None
    assert base.generation is not None
    return State(base, None, Delta(base, str(log_path(base.directory, base.generation))), 0, 0)


def _read_state(kind: type[Kind], path: Path, generation: int, before: State[Kind] | None) -> State[Kind]:
    if before is None or before.generation != generation:
        before = first_state(open_generation(kind, path, generation))
    log = log_path(path.parent, generation)
    try:
        header = before.header or read_header(log, generation, before.base.seq)
        if header is None:
            if not path.exists():
                raise FileNotFoundError(path)  # the generation was removed, and its log with it
            return before
        tail = read_tail(log, header, before.end or None, before.seq)
    except FormatError:
        if not path.exists():
            raise FileNotFoundError(path) from None
        raise
    return before.after(header, tail.frames, tail.end)


def follow_compaction(old: State[Kind], new: State[Kind]) -> None:
    """Note how the slots of a new generation continue those of the one before, if it is a compaction of it.

    It is not if an index was saved in its place, whose seq is after all batches of the log; then the seq is not one
    that ``old`` has read. It is not known if the log was compacted before it was read up to there.
    """
    count = new.base.seq - old.base.seq
    if not 0 <= count <= old.delta.held:
        return
    compacted = old.at(new.base.seq)
    if not _has_rows_of(compacted, new.base):
        return
    slots = _slots_after(compacted, new.base, old.rows().after if old.count > count else None)
    assert old.base.lineage is not None
    assert new.base.lineage is not None
    new.base.lineage.continues(old.base.lineage, *slots)


def _has_rows_of(compacted: State[Kind], base: Kind) -> bool:
    """Return whether a generation has the passages and entities of a state, by their numbers, ids and sizes.

    A copy of another index may be put in the place of one that was changed, with a seq that both have.
    """
    rows = compacted.rows()
    at = slots_to_rows(compacted.base, rows)
    found = {**passages.merge(rows, at.passages), **rows.taken("entity.name", at.entities)}
    ids = "passage.id.number" if "passage.id.number" in found else "passage.id.bytes"
    return ids in base.sections and all(
        np.array_equal(as_section(name, found[name]).whole(), base.sections[name].whole())
        for name in (ids, "passage.text.offsets", "entity.name.offsets")
    )


def _slots_after(old: State[Kind], base: Kind, after: Slots | None) -> tuple[Rows, Rows]:
    """Return the slots in ``base``, a generation with the rows of the state ``old``, of all slots up to ``after``.

    Those that came after the state follow the rows.
    """
    rows = old.rows()
    at, start = slots_to_rows(old.base, rows), rows.after
    more = start if after is None else after
    return (
        np.concatenate([at.passage, base.num_passages + np.arange(more.passages - start.passages)]),
        np.concatenate([at.entity, base.num_entities + np.arange(more.entities - start.entities)]),
    )


def moved_records(old: State[Kind], base: Kind, later: Sequence[LogRecord]) -> list[LogRecord]:
    """Return later batches renumbered for ``base``, a generation with the rows of the state ``old``."""
    if not later:
        return []
    slots = _slots_after(old, base, later[-1].after)
    before, moved = Slots(base.num_passages, base.num_entities), list[LogRecord]()
    for batch in later:
        moved.append(batch.moved(*slots, before))
        before = moved[-1].after
    return moved
