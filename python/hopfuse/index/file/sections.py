"""A section of a file or of memory: an array whose blocks are verified when they are first used."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.mapped import release_pages
from ...errors import FormatError, InputError
from .format import BLOCK

#: Arrays by the names of their sections.
Arrays = dict[str, NDArray[Any]]


class Section:
    """A read-only array. Each block of an array from a file is verified before its first use."""

    __slots__ = ("_array", "_checksums", "_pending", "label")

    def __init__(self, label: str, array: NDArray[Any], checksums: NDArray[np.uint32] | None = None) -> None:
        self.label = label
        self._array = array.view()
        self._array.flags.writeable = False
        self._checksums = checksums
        # a bytearray, not an array: a hit's text asks for one block, and then an array costs more than the check
        self._pending = bytearray() if checksums is None else bytearray(b"\x01" * checksums.size)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array; nothing is read."""
        return self._array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type of the array; nothing is read."""
        return self._array.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the array; nothing is read."""
        return self._array.nbytes

    def whole(self) -> NDArray[Any]:
        """Verify and return the whole array."""
        if self._checksums is not None:
            self._verify(0, self.nbytes)
            self._checksums = None
        return self._array

    def part(self, start: int, stop: int) -> NDArray[Any]:
        """Return elements start .. stop-1 of a one-dimensional array, verifying only their blocks."""
        size = self._array.itemsize
        self._verify(start * size, stop * size)
        return self._array[start:stop]

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Verify the array, and return some of its rows as an array of their own."""
        return self.whole()[rows]

    def blocks(self) -> Iterator[memoryview]:
        """Verify the array, and yield the blocks of its payload; the pages of a mapped one are released after use."""
        array = self.whole()
        payload = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
        for start in range(0, payload.size, BLOCK):
            block = payload[start : start + BLOCK]
            yield block.data
            release_pages(block)

    def _verify(self, first: int, last: int) -> None:
        checksums = self._checksums
        if checksums is None or first >= last:
            return
        pending, end = self._pending, (last - 1) // BLOCK + 1
        b = pending.find(1, first // BLOCK, end)
        if b < 0:
            return
        payload = self._array.reshape(-1).view(np.uint8)
        while b >= 0:
            if zlib.crc32(payload[b * BLOCK : (b + 1) * BLOCK].data) != checksums[b]:
                raise FormatError(
                    "damaged",
                    None,
                    "block {block} (1 MiB) does not match its checksum; the file is damaged: restore it from a copy or "
                    "build the index again",
                    block=b,
                ).at(self.label)
            pending[b] = 0
            b = pending.find(1, b + 1, end)


Sections = Mapping[str, Section]
#: Arrays by the names of their sections, and sections that are made when they are read.
ArraysOrSections = Mapping[str, NDArray[Any] | Section]


def as_section(name: str, array: NDArray[Any] | Section) -> Section:
    """Return an array as the section of a name; a section itself."""
    return array if isinstance(array, Section) else Section(name, array)


@contextmanager
def damage_of(section: Section) -> Iterator[None]:
    """Raise what an InputError says about the data of a section as a FormatError, with the section as its place."""
    try:
        yield
    except InputError as error:
        raise error.about(kind=FormatError).at(section.label) from None


class LazySection(Section):
    """An array that is made when it is first read, and kept."""

    __slots__ = ("_dtype", "_make")

    def __init__(self, label: str, dtype: Any, make: Callable[[], NDArray[Any]]) -> None:
        self.label = label
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._make: Callable[[], NDArray[Any]] | None = make
        self._checksums = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array, which is made."""
        return self.whole().shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type of the array; it is not made."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the array, which is made."""
        return self.whole().nbytes

    def whole(self) -> NDArray[Any]:
        """Make the array, if it was not read before, and return it."""
        make = self._make
        if make is not None:
            array = make().view()
            array.flags.writeable = False
            self._array, self._make = array, None
        return self._array

    def part(self, start: int, stop: int) -> NDArray[Any]:
        """Return elements start .. stop-1; the whole array is made."""
        return self.whole()[start:stop]


class MadeSection(Section):
    """An array that is made each time it is read, and not kept; ``make`` yields it in parts of whole rows."""

    __slots__ = ("_dtype", "_make", "_shape")

    def __init__(
        self, label: str, shape: tuple[int, ...], dtype: Any, make: Callable[[], Iterator[NDArray[Any]]]
    ) -> None:
        self.label = label
        self._shape = shape
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._make = make

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array; it is not made."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type of the array; it is not made."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the array; it is not made."""
        return prod(self.shape) * self._dtype.itemsize

    def whole(self) -> NDArray[Any]:
        """Make and return the whole array."""
        return np.concatenate([np.zeros((0, *self._shape[1:]), self._dtype), *self._make()])

    def part(self, start: int, stop: int) -> NDArray[Any]:
        """Return elements start .. stop-1; the whole array is made."""
        return self.whole()[start:stop]

    def blocks(self) -> Iterator[memoryview]:
        """Make the array in parts, and yield the blocks of its payload."""
        block, held = np.empty(BLOCK, np.uint8), 0
        for part in self._make():
            payload = np.ascontiguousarray(part, part.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
            while payload.size:
                taken = payload[: BLOCK - held]
                block[held : held + taken.size] = taken
                payload, held = payload[taken.size :], held + taken.size
                if held == BLOCK:
                    yield block.data
                    block, held = np.empty(BLOCK, np.uint8), 0
        if held:
            yield block[:held].data
