"""A column of ascending strings, in which many strings are found at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from .columns import StringColumn
from .sections import Section

#: The code of a string that the column lacks; no value has it.
ABSENT = -2
#: The number of strings up to which each is found by itself.
FEW = 16
#: Bytes of a string's beginning that are compared by NumPy, and bytes of memory for all beginnings.
_WIDTH, _MEMORY = 32, 1 << 26
_LEAST_WIDTH = 8
#: Strings whose beginnings are read at a time.
_BLOCK = 1 << 16
#: What finding one string by itself takes, per step of the search, in terms of reading the beginning of one.
_STEP = 4


class SortedStrings(StringColumn):
    """Distinct strings, ascending by code points.

    Many strings are found by a binary search of their beginnings in NumPy; only those whose beginning several strings
    of the column share are compared in Python. The beginnings are read at the first such search.
    """

    __slots__ = ("_beginnings",)

    def __init__(self, offsets: Section, data: Section) -> None:
        super().__init__(offsets, data)
        self._beginnings: NDArray[np.bytes_] | None = None

    @classmethod
    def of(cls, sections: Mapping[str, Section], name: str) -> SortedStrings:
        """Return the column of the sections ``name.offsets`` and ``name.bytes``."""
        return cls(sections[f"{name}.offsets"], sections[f"{name}.bytes"])

    def find(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the places of some strings in the column, ABSENT for those that it lacks: int64, shape (n,)."""
        steps, built = len(self).bit_length(), self._beginnings is not None
        if len(texts) <= FEW or not (built or _STEP * steps * len(texts) > len(self)):
            return np.array([self._find(text, 0, len(self)) for text in texts], np.int64)
        keys = self._keys()
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        asked = np.array(encoded, keys.dtype)
        first, end = (np.searchsorted(keys, asked, side) for side in ("left", "right"))
        place = np.minimum(first, len(self) - 1)
        ends = self._offsets.whole()
        lengths, given = ends[place + 1] - ends[place], np.fromiter(map(len, encoded), np.int64, len(encoded))
        single = end == first + 1
        whole = single & (given <= keys.itemsize)  # compared whole, but for zero bytes at the end
        found = np.where(whole & (lengths == given), first, ABSENT).astype(np.int64)
        for at in np.flatnonzero((end > first) & ~whole).tolist():
            found[at] = self._find(texts[at], int(first[at]), int(end[at]))
        return found

    def _find(self, text: str, first: int, end: int) -> int:
        """Return the place of a string among first .. end-1."""
        at = bisect_left(self, text, first, end)
        return at if at < end and self._item(at) == text else ABSENT

    def _keys(self) -> NDArray[np.bytes_]:
        """Return the beginnings of all strings as bytes, shape (n,), padded with zeros; they ascend."""
        if self._beginnings is None:
            ends, data = self.arrays()
            count = len(self)
            longest = int(np.diff(ends).max(initial=1))
            width = max(1, min(longest, _WIDTH, max(_LEAST_WIDTH, _MEMORY // count)))
            made = np.zeros((count, width), np.uint8)
            steps = np.arange(width)
            for at in range(0, count, _BLOCK):
                end = min(at + _BLOCK, count)
                places = ends[at:end, None] + steps
                inside = places < ends[at + 1 : end + 1, None]
                made[at:end][inside] = data[places[inside]]
            self._beginnings = made.view(f"S{width}").ravel()
        return self._beginnings
