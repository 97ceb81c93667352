"""Memory of recordings: blocks that are reused while a recording is made, and freed with it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

#: A block serves requests of at least half its size, so that small requests do not use up large blocks.
MOST_WASTED = 2


class Place(NamedTuple):
    """A block, or a part of one, that replays use; it keeps the block alive."""

    block: Any
    size: int
    number: int
    address: int
    begin: int = 0


class RecordingMemory:
    """Blocks of one recording, or of several that are never replayed at the same time.

    Replays write to the memory of the first run, including memory that the run dropped and reused. So if two recordings
    share their memory, the results of one must be read before the other is replayed. A recording keeps all its blocks
    alive, an array keeps its own; unreferenced blocks are freed.

    Parameters
    ----------
    make : callable
        Allocates a block of a number of bytes, which is freed when it is dropped.
    address_of : callable
        Returns the address of a block.
    """

    def __init__(self, make: Callable[[int], Any], address_of: Callable[[Any], int]) -> None:
        self._make, self._address_of = make, address_of
        self._places: dict[int, Place] = {}
        self._free: list[tuple[int, int]] = []  # (bytes, number), ascending
        self._returned: deque[tuple[int, int]] = deque()  # appended to by garbage collections, at any time
        self.made = 0

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks."""
        return sum(place.size for place in self._places.values())

    @property
    def unused(self) -> int:
        """The bytes of blocks that no array of a first run uses."""
        self._collect()
        return sum(size for size, _ in self._free)

    def take(self, nbytes: int, besides: Set[int] = frozenset()) -> Lease:
        """Return a block of at least ``nbytes``, not among ``besides``; it is reusable when the lease is dropped."""
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

    def release(self, place: Place) -> None:
        self._returned.append((place.size, place.number))

    def forget(self, first: int) -> None:
        """Drop the blocks from this number on, which a failed recording has made."""
        self._collect()
        self._places = {number: place for number, place in self._places.items() if number < first}
        self._free = [(size, number) for size, number in self._free if number < first]

    def _collect(self) -> None:
        while self._returned:
            size, number = self._returned.popleft()
            if number in self._places:
                insort(self._free, (size, number))


class Lease:
    """A block in use by a first run."""

    def __init__(self, memory: RecordingMemory, place: Place) -> None:
        self._memory, self.place = memory, place

    def __del__(self) -> None:
        self._memory.release(self.place)

    @property
    def block(self) -> Any:
        return self.place.block

    @property
    def begin(self) -> int:
        return self.place.begin


class Tape:
    """Memory of work that runs twice: the second run gets the same memory as the first, in the same order.

    In the first run, memory that is dropped is reused by later requests. The second run cannot do the same, because
    other blocks are free then and the memory must not grow during a recording. Only results are elsewhere in the second
    run: side by side, in a block of their own.
    """

    def __init__(self, memory: RecordingMemory) -> None:
        self.memory = memory
        self._first = memory.made
        self._given: list[tuple[int, Place]] = []
        self._next: int | None = None
        self._results: Lease | Place | None = None
        self._result_at: dict[int, Place] = {}  # by the number of the request

    def record(self) -> None:
        """Start the second run, which allocates nothing."""
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
            raise RuntimeError("the captured work requests other memory in its recording than in the run before it")
        found: Place = self._result_at.get(self._next, place)
        self._next += 1
        return found

    def side_by_side(self, arrays: Sequence[tuple[int, int]], begins: Sequence[int], nbytes: int) -> Place:
        """Return a block for results, into which the second run's requests for these arrays are redirected.

        ``arrays`` are (address, bytes) of the results of the first run; ``begins`` are their offsets in the block.
        """
        if self._next is not None:
            assert isinstance(self._results, Place)
            return self._results
        lease = self.memory.take(nbytes, {place.number for _, place in self._given})
        block = lease.place
        last = {(place.address, size): number for number, (size, place) in enumerate(self._given)}
        for array, begin in zip(arrays, begins, strict=True):
            number = last.pop(array, None)  # an array that is returned twice is copied the second time
            if number is not None:
                self._result_at[number] = block._replace(address=block.address + begin, begin=begin)
        self._results = lease
        return block

    def check(self) -> None:
        """Raise unless the second run made as many requests as the first."""
        if self._next != len(self._given):
            raise RuntimeError("the captured work requests less memory in its recording than in the run before it")

    def abandon(self) -> None:
        """Drop the memory of work that failed."""
        self._given, self._results, self._result_at = [], None, {}
        self.memory.forget(self._first)
