"""Memory of recordings: blocks that are given out again while a recording is made, and freed with it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

#: A block is given out for requests of half its size and more: a small one would keep a later large one from it.
MOST_WASTED = 2


class Place(NamedTuple):
    """A block that replays use, or a part of it; whoever holds it holds the block."""

    block: Any
    size: int
    number: int
    address: int
    begin: int = 0


class RecordingMemory:
    """Blocks for one recording, or for several that are never replayed at the same time.

    A recording's replays write where its run was given memory, also where that was dropped and given out again; so of
    two recordings with one memory the first's results must be read before the second is replayed. Recordings hold all
    blocks, an array its own: what nothing holds is freed.

    Parameters
    ----------
    make : callable
        A new block of so many bytes, freed when it is dropped.
    address_of : callable
        Where a block begins.
    """

    def __init__(self, make: Callable[[int], Any], address_of: Callable[[Any], int]) -> None:
        self._make, self._address_of = make, address_of
        self._places: dict[int, Place] = {}
        self._free: list[tuple[int, int]] = []  # (bytes, number), ascending
        self._returned: deque[tuple[int, int]] = deque()  # garbage collections append here, in the midst of anything
        self.made = 0

    @property
    def nbytes(self) -> int:
        """Return the bytes of all blocks."""
        return sum(place.size for place in self._places.values())

    @property
    def unused(self) -> int:
        """Return the bytes of those that no array of a first run holds."""
        self._collect()
        return sum(size for size, _ in self._free)

    def take(self, nbytes: int, besides: Set[int] = frozenset()) -> Lease:
        """Return a block of at least so many bytes, none of ``besides``; it comes back when the lease is dropped."""
        self._collect()
        for at in range(bisect_left(self._free, (nbytes, 0)), len(self._free)):
            size, number = self._free[at]
            if size > MOST_WASTED * nbytes:
                break
            if number not in besides:
                del self._free[at]
                return Lease(self, self._places[number])
        block = self._make(nbytes)
        place = Place(block, nbytes, self.made, self._address_of(block))
        self._places[place.number] = place
        self.made += 1
        return Lease(self, place)

    def give_back(self, place: Place) -> None:
        self._returned.append((place.size, place.number))

    def forget(self, first: int) -> None:
        """Hold no block from this number on: what a recording that failed has made."""
        self._collect()
        self._places = {number: place for number, place in self._places.items() if number < first}
        self._free = [(size, number) for size, number in self._free if number < first]

    def _collect(self) -> None:
        while self._returned:
            size, number = self._returned.popleft()
            if number in self._places:
                insort(self._free, (size, number))


class Lease:
    """A block that a first run uses."""

    def __init__(self, memory: RecordingMemory, place: Place) -> None:
        self._memory, self.place = memory, place

    def __del__(self) -> None:
        self._memory.give_back(self.place)

    @property
    def block(self) -> Any:
        return self.place.block

    @property
    def begin(self) -> int:
        return self.place.begin


class Tape:
    """Memory for a work that runs twice: what the first run was given, the second is given again, in the same order.

    The first run gives back what it drops, so that its later requests reuse it. To do the same in the second would not
    do: what is free then is not what was free before the first, and it must not grow in the middle of a recording.
    Results alone lie elsewhere in the second run: side by side, in a block of their own.
    """

    def __init__(self, memory: RecordingMemory) -> None:
        self.memory = memory
        self._first = memory.made
        self._given: list[tuple[int, Place]] = []
        self._next: int | None = None
        self._results: Lease | Place | None = None
        self._result_at: dict[int, Place] = {}  # by the number of the request

    def record(self) -> None:
        """Allocate nothing from here on."""
        self._next = 0
        if isinstance(self._results, Lease):
            self._results = self._results.place

    def take(self, nbytes: int) -> Lease | Place:
        if self._next is None:
            lease = self.memory.take(nbytes)
            self._given.append((nbytes, lease.place))
            return lease
        size, place = self._given[self._next] if self._next < len(self._given) else (None, None)
        if size != nbytes or place is None:
            raise RuntimeError("a captured work asks for other memory in its recording than in the run before it")
        found: Place = self._result_at.get(self._next, place)
        self._next += 1
        return found

    def side_by_side(self, arrays: Sequence[tuple[int, int]], begins: Sequence[int], nbytes: int) -> Place:
        """Return a block for results, where the second run is given those of them that the first one asked for.

        ``arrays`` are where they are and how large; ``begins`` where they belong in the block.
        """
        if self._next is not None:
            assert isinstance(self._results, Place)
            return self._results
        lease = self.memory.take(nbytes, {place.number for _, place in self._given})
        block = lease.place
        last = {(place.address, size): number for number, (size, place) in enumerate(self._given)}
        for array, begin in zip(arrays, begins, strict=True):
            number = last.pop(array, None)  # an array that is a result twice is copied for the second
            if number is not None:
                self._result_at[number] = block._replace(address=block.address + begin, begin=begin)
        self._results = lease
        return block

    def check(self) -> None:
        """Check that the recording asked for all that the run before it did."""
        if self._next != len(self._given):
            raise RuntimeError("a captured work asks for less memory in its recording than in the run before it")

    def abandon(self) -> None:
        """Give back what was made for it, for a work that failed."""
        self._given, self._results, self._result_at = [], None, {}
        self.memory.forget(self._first)
