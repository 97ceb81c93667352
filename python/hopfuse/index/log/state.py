"""The state of a directory: a generation and the batches of its log, and the index that they define."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from ...errors import FormatError
from ..contents import Contents
from ..file.format import pack_head
from ..file.generations import generation_name, log_path, open_current
from ..file.mapping import open_file
from ..file.sections import Section
from ..schema import check_schema
from .delta import Delta, DeltaRows
from .encode import Batch, Slots
from .frames import Frame, Header, read_header, read_tail
from .merge import merge, places

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

    def snapshot(self) -> Kind:
        """Return the index at this seq, which is merged when it is first read."""
        if not self.count:
            return self.base
        base, made = self.base, dict[str, Any]()
        sections = MergedSections(lambda: merge(self.rows()), made)
        log = b"" if self.header is None else self.header.salt
        checksum = hashlib.sha256(f"{base.checksum} {log.hex()} {self.seq}".encode()).hexdigest()
        place = (base.directory, base.generation)
        return type(base)(sections, base.settings, *place, _made=made, _seq=self.seq, _checksum=checksum)

    def at(self, seq: int) -> State[Kind]:
        """Return the state at an earlier seq."""
        return replace(self, count=seq - self.base.seq)

    def after(self, header: Header, frames: Sequence[Frame], end: int) -> State[Kind]:
        """Return the state after more frames."""
        self.delta.append(self.count, frames)
        return State(self.base, header, self.delta, self.count + len(frames), end)


class MergedSections(Mapping[str, Section]):
    """The sections of a merged index; the merge runs at the first access."""

    def __init__(self, make: Callable[[], tuple[dict[str, Section], dict[str, Any]]], made: dict[str, Any]) -> None:
        self._make, self._made = make, made
        self._sections: dict[str, Section] | None = None
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Section:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Section]:
        with self._lock:
            if self._sections is None:
                sections, made = self._make()
                self._made.update(made)
                self._sections = sections
            return self._sections


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
    return kind(sections, head.settings, path.parent, generation, _seq=head.seq, _checksum=checksum)


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


def moved_batches(old: State[Kind], base: Kind, later: Sequence[Batch]) -> list[Batch]:
    """Return later batches renumbered for ``base``, a generation with the rows of the state ``old``."""
    if not later:
        return []
    rows = old.rows()
    at, start, before, after = places(rows), rows.after, Slots(base.num_passages, base.num_entities), later[-1].after
    passages = np.concatenate([at.passage, before.passages + np.arange(after.passages - start.passages)])
    entities = np.concatenate([at.entity, before.entities + np.arange(after.entities - start.entities)])
    moved = list[Batch]()
    for batch in later:
        moved.append(batch.moved(passages, entities, before))
        before = moved[-1].after
    return moved
