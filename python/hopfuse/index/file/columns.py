"""Columns that are read item by item: strings (concatenated UTF-8 and int64 offsets), lists of strings, integers."""

from __future__ import annotations

import codecs
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import indptr_of_counts
from ...errors import FormatError, InputError
from .rows import TakenBytes, take_strings
from .sections import Section

#: The most characters of an integer of 64 bits.
DIGITS = 20
_CHUNK = 4096
_DECODE_BYTES = 1 << 22


def string_arrays(name: str, strings: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return the sections ``name.offsets`` and ``name.bytes`` of strings."""
    blob = bytearray()
    offsets = [0]
    for i, string in enumerate(strings):
        try:
            blob += string.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError(
                "syntax", f"{name}[{i}]", "{field} cannot be written as UTF-8: {error}", error=error
            ) from None
        offsets.append(len(blob))
    return {f"{name}.offsets": np.array(offsets, np.int64), f"{name}.bytes": np.frombuffer(blob, np.uint8)}


def string_column(sections: Mapping[str, Section], name: str) -> StringColumn:
    """Return the column of the sections ``name.offsets`` and ``name.bytes``."""
    return StringColumn(sections[f"{name}.offsets"], sections[f"{name}.bytes"])


def id_column(sections: Mapping[str, Section]) -> StringColumn | IntegerColumn:
    """Return the column of the passages' ids, which are strings or integers."""
    number = sections.get("passage.id.number")
    return string_column(sections, "passage.id") if number is None else IntegerColumn(number)


class StringColumn(Sequence[str]):
    """An immutable sequence of strings that is decoded item by item from (mapped) memory.

    An integer index gives a str, a slice a list of str. A negative index counts from the end.
    """

    __slots__ = ("_bytes", "_offsets")

    def __init__(self, offsets: Section, data: Section) -> None:
        self._offsets = offsets
        self._bytes = data

    def __len__(self) -> int:
        return self._offsets.shape[0] - 1

    @overload
    def __getitem__(self, item: int) -> str: ...
    @overload
    def __getitem__(self, item: slice) -> list[str]: ...
    def __getitem__(self, item: int | slice) -> str | list[str]:
        if not isinstance(item, slice):
            return self._item(row_number(item, len(self)))
        start, stop, step = item.indices(len(self))
        if step == 1:
            return self.read(start, max(start, stop))
        return [self[i] for i in range(start, stop, step)]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _CHUNK):
            yield from self.read(start, min(start + _CHUNK, len(self)))

    def __repr__(self) -> str:
        return f"StringColumn({len(self)} strings)"

    def _item(self, i: int) -> str:
        """Return string i: what ``read`` does for one, in a third of the time."""
        try:
            if isinstance(self._bytes, TakenBytes):
                return str(self._bytes.string(i).data, "utf-8")
            first, last = ascending(self._offsets, i, i + 1, self._bytes.shape[0])
            return str(self._bytes.part(first, last).data, "utf-8")
        except UnicodeDecodeError as error:
            raise FormatError("syntax", None, "string {row} is not UTF-8: {error}", row=i, error=error).at(
                self._bytes.label
            ) from None

    def read(self, start: int, stop: int) -> list[str]:
        """Return the strings start .. stop-1, 0 <= start <= stop <= n."""
        ends = ascending(self._offsets, start, stop, self._bytes.shape[0])
        data = self._bytes.part(ends[0], ends[-1]).tobytes()
        try:
            return [data[a - ends[0] : b - ends[0]].decode("utf-8") for a, b in pairwise(ends)]
        except UnicodeDecodeError as error:
            raise FormatError(
                "syntax",
                None,
                "a string in {first} .. {last} is not UTF-8: {error}",
                first=start,
                last=stop - 1,
                error=error,
            ).at(self._bytes.label) from None

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bytes of some strings in UTF-8, which are not read: int64, shape (n,)."""
        ends = self._offsets.whole()
        found: NDArray[np.int64] = ends[rows + 1] - ends[rows]
        if found.size and found.min() < 0:
            at = int(rows[found.argmin()])
            ascending(self._offsets, at, at + 1, self._bytes.shape[0])
        return found

    def longest(self) -> int:
        """Return the bytes of the longest string in UTF-8; none is read."""
        return int(np.diff(self._offsets.whole()).max(initial=0))

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return the offsets, (n + 1,), and the bytes of all strings."""
        check_offsets(self._offsets, self._bytes.shape[0])
        return self._offsets.whole(), self._bytes.whole()

    def take(self, name: str, rows: NDArray[np.int64]) -> dict[str, Section]:
        """Return the sections ``name.offsets`` and ``name.bytes`` of some of the strings, in an order.

        The bytes are copied when they are read.
        """
        if isinstance(self._bytes, TakenBytes):
            return self._bytes.strings(name, rows)
        return take_strings(name, *self.arrays(), rows)

    def check(self) -> None:
        """Verify all strings."""
        check_offsets(self._offsets, self._bytes.shape[0])
        offsets, data = self._offsets.whole(), self._bytes.whole()
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for start in range(0, data.size, _DECODE_BYTES):
                decoder.decode(data[start : start + _DECODE_BYTES].tobytes())
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise FormatError("syntax", None, "the bytes are not UTF-8: {error}", error=error).at(
                self._bytes.label
            ) from None
        inside = offsets[offsets < data.size]
        if (data[inside] & 0xC0 == 0x80).any():
            raise FormatError("syntax", None, "an offset is inside a UTF-8 character").at(self._offsets.label)


class IntegerColumn(Sequence[int]):
    """An immutable sequence of integers; an integer index gives an int, a slice a list of int."""

    __slots__ = ("_numbers",)

    def __init__(self, numbers: Section) -> None:
        self._numbers = numbers

    def __len__(self) -> int:
        return self._numbers.shape[0]

    @overload
    def __getitem__(self, item: int) -> int: ...
    @overload
    def __getitem__(self, item: slice) -> list[int]: ...
    def __getitem__(self, item: int | slice) -> int | list[int]:
        if isinstance(item, slice):
            found: list[int] = self._numbers.whole()[item].tolist()
            return found
        i = row_number(item, len(self))
        return int(self._numbers.part(i, i + 1)[0])

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers.whole().tolist())

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the most characters of an integer for each of some rows: int64, shape (n,)."""
        return np.full(len(rows), DIGITS, np.int64)

    def longest(self) -> int:
        """Return the most characters of an integer."""
        return DIGITS

    def __repr__(self) -> str:
        return f"IntegerColumn({len(self)} integers)"


class RaggedStrings(Sequence[tuple[str, ...]]):
    """An immutable sequence of rows, each of zero or more strings.

    An integer index gives a tuple of str, a slice a list of such tuples.
    """

    __slots__ = ("_rows", "_strings")

    def __init__(self, rows: Section, strings: StringColumn) -> None:
        self._rows = rows
        self._strings = strings

    def __len__(self) -> int:
        return self._rows.shape[0] - 1

    @overload
    def __getitem__(self, item: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, item: slice) -> list[tuple[str, ...]]: ...
    def __getitem__(self, item: int | slice) -> tuple[str, ...] | list[tuple[str, ...]]:
        if isinstance(item, slice):
            return [self[i] for i in range(*item.indices(len(self)))]
        i = row_number(item, len(self))
        first, last = ascending(self._rows, i, i + 1, len(self._strings))
        return tuple(self._strings.read(first, last))

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for start in range(0, len(self), _CHUNK):
            ends = ascending(self._rows, start, min(start + _CHUNK, len(self)), len(self._strings))
            strings = self._strings.read(ends[0], ends[-1])
            yield from (tuple(strings[a - ends[0] : b - ends[0]]) for a, b in pairwise(ends))

    def __repr__(self) -> str:
        return f"RaggedStrings({len(self)} rows, {len(self._strings)} strings)"

    def take(self, name: str, rows: NDArray[np.int64]) -> dict[str, Section]:
        """Return the sections ``name.rows``, ``name.offsets`` and ``name.bytes`` of some of the rows, in an order.

        The bytes are copied when they are read.
        """
        check_offsets(self._rows, len(self._strings))
        ends = self._rows.whole()
        counts = np.diff(ends)[rows]
        own = indptr_of_counts(counts)
        strings = np.repeat(ends[rows] - own[:-1], counts) + np.arange(own[-1])
        return {f"{name}.rows": Section(f"{name}.rows", own), **self._strings.take(name, strings)}

    def check(self) -> None:
        """Verify every row and every string."""
        check_offsets(self._rows, len(self._strings))
        self._strings.check()


def row_number(item: Any, length: int) -> int:
    """Return an index as a row 0 .. length-1; a negative index counts from the end."""
    i = operator.index(item)
    if not -length <= i < length:
        raise IndexError(f"row {i} of a column of {length}; rows are 0 .. {length - 1}")
    return i % length


def ascending(offsets: Section, start: int, stop: int, limit: int) -> list[int]:
    """Return the offsets start .. stop, after checking that they ascend within 0 .. limit."""
    ends = offsets.part(start, stop + 1)
    found: list[int] = ends.tolist()
    if found[0] < 0 or found[-1] > limit or found[0] > found[-1] or (stop - start > 1 and (ends[1:] < ends[:-1]).any()):
        raise FormatError(
            "order",
            None,
            "offsets {first} .. {last} do not ascend within 0 .. {limit}",
            first=start,
            last=stop,
            limit=limit,
        ).at(offsets.label)
    return found


def check_offsets(offsets: Section, limit: int) -> None:
    """Check that all offsets ascend from 0 to the limit."""
    ends = offsets.whole()
    if ends[0] != 0 or ends[-1] != limit or (ends[1:] < ends[:-1]).any():
        raise FormatError("order", None, "the offsets do not ascend from 0 to {limit}", limit=limit).at(offsets.label)
