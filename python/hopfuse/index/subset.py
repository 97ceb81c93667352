"""The part of an index for some passages, equal to an index built from their rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import blake2b
from threading import Condition
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import PartNumbers, RowNumbers
from . import parts
from .contents import Contents
from .file.sections import ArraysOrSections, Section
from .log.records import Slots
from .log.rows import Places, places_of
from .parts import metadata_build

Rows = NDArray[np.int64]


class PartArrays(NamedTuple):
    """The sections of a part, the objects that some were made from, and the rows of the whole index that it has."""

    arrays: ArraysOrSections
    made: dict[str, Any]
    passages: Rows
    entities: Rows
    facts: Rows


def part_arrays(whole: Contents, allow: NDArray[np.bool_]) -> PartArrays:
    """Return the sections of an index of some passages alone, in the order of the whole; ``allow`` is a mask (P,).

    It contains an entity if an edge joins it to one of the passages, or one of them states an edge or a fact about it.
    """
    graph, known, terms = whole.graph, whole.facts, whole.lexical
    seen, edges, facts = np.zeros(whole.num_entities, np.bool_), None, np.zeros(0, np.int64)
    if graph is not None:
        edges = parts.graph.stated_at(graph, lambda: whole.edge_statements, allow)
        seen[parts.graph.entities_at(graph, edges, allow)] = True
    if known is not None:
        facts = parts.facts.stated_by(known, allow)
        seen[known.rows[facts][:, [0, 2]]] = True
    at = _places(whole, np.flatnonzero(allow), np.flatnonzero(seen))
    made: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any] | Section] = {
        **parts.passages.subset(whole.sections, at.passages),
        **parts.entities.subset(whole.sections, whole.stated, at.entities),
        **parts.encoder.subset(whole.sections, at),
        **metadata_build.subset(whole.metadata, at.passages),
    }
    if whole.words is not None:
        made["words"], own = parts.words.moved(whole.words, at)
        arrays |= own
    if graph is not None:
        made["graph"], own = parts.graph.subset(graph, edges, at)
        arrays |= own
    if known is not None:
        made["facts"], own = parts.facts.subset(known, facts, at)
        arrays |= own
    if terms is not None and terms.counts is not None:
        made["lexical"], more = parts.terms.subset(terms, whole.sections, at.passages)
        arrays |= more
    return PartArrays(arrays, made, at.passages, at.entities, facts)


def _places(whole: Contents, passages: Rows, entities: Rows) -> Places:
    """Return the maps between rows of the whole index and of the part."""
    first = whole.num_entities if whole.words is None else whole.words.first
    names = int(np.searchsorted(entities, first))
    return places_of(passages, entities, Slots(whole.num_passages, whole.num_entities), names)


# ---- Kept parts ----


W = TypeVar("W", bound=Contents)
P = TypeVar("P", bound="Sized")


class Sized(Protocol):
    """Something of which the bytes are known."""

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes."""


#: Bytes of parts that an index keeps at least, if they are used.
LEAST_KEPT = 1 << 28
#: What a searched index takes in memory, as a multiple of the bytes of its vectors, and of its other arrays, which
#: recipes and kernels lay out.
OF_VECTORS, OF_OTHERS = 1.3, 3.0


class PartOf(Generic[W]):
    """What an index is a part of.

    Attributes
    ----------
    passages, entities : ndarray of int64
        The rows of its passages and entities in the other index, ascending.
    """

    def __init__(self, whole: W, passages: NDArray[np.int64], entities: NDArray[np.int64]) -> None:
        self._whole, self.passages, self.entities = ref(whole), passages, entities

    def whole(self) -> W | None:
        """Return the other index, or None if nothing uses it any longer."""
        return self._whole()

    def numbers(self, before: RowNumbers | None) -> PartNumbers:
        """Return the numbers of entities in the part.

        ``before``: the numbers in the other index, if that is a part too or a state of one that changes.
        """
        return PartNumbers(self.entities, before)


def searched_bytes(sections: Mapping[str, Section]) -> int:
    """Return about how many bytes an index takes while it is searched, without its strings."""
    taken = 0.0
    for name, section in sections.items():
        if not name.endswith(".bytes"):
            taken += section.nbytes * (OF_VECTORS if name.endswith(".vectors") else OF_OTHERS)
    return int(taken)


class PartCache(Generic[P]):
    """The most recently used parts, as many as have the given number of bytes together, and the latest. Thread-safe.

    Threads that ask for the same part wait for one of them to make it.

    Attributes
    ----------
    limit : int
        In bytes.
    made : int
        The number of parts that were made.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.made = limit, 0
        self._nbytes = 0
        self._parts: OrderedDict[bytes, tuple[int, P]] = OrderedDict()
        self._making: set[bytes] = set()
        self._changed = Condition()

    def get(self, allow: NDArray[np.bool_], make: Callable[[], P]) -> P:
        """Return the part of some passages, or make it."""
        key = _key(allow)
        with self._changed:
            self._changed.wait_for(lambda: key not in self._making)
            if key in self._parts:
                self._parts.move_to_end(key)
                return self._parts[key][1]
            self._making.add(key)
        try:
            part = make()
            nbytes = part.nbytes
        except BaseException:
            with self._changed:
                self._made_or_not(key)
            raise
        with self._changed:
            self._made_or_not(key)
            self.made += 1
            self._parts[key] = nbytes, part
            self._nbytes += nbytes
            self._drop()
        return part

    def keep(self, limit: int) -> None:
        """Set the limit."""
        with self._changed:
            self.limit = limit
            self._drop()

    def _drop(self) -> None:
        while self._nbytes > self.limit and len(self._parts) > 1:
            self._nbytes -= self._parts.popitem(last=False)[1][0]

    def _made_or_not(self, key: bytes) -> None:
        self._making.discard(key)
        self._changed.notify_all()

    def __contains__(self, allow: NDArray[np.bool_]) -> bool:
        """Return whether the part of some passages is kept."""
        return _key(allow) in self._parts

    @property
    def nbytes(self) -> int:
        """The bytes of the parts that are kept."""
        return self._nbytes

    def __len__(self) -> int:
        """Return the number of parts that are kept."""
        return len(self._parts)


def _key(allow: NDArray[np.bool_]) -> bytes:
    return blake2b(np.packbits(allow).data).digest()
