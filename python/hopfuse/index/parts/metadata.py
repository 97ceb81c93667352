"""Metadata of passages: typed columns with missing values."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.rows import indptr_of_counts
from ...errors import FormatError
from ..file.columns import row_number, string_column
from ..file.sections import Section
from ..file.sorted_strings import SortedStrings

#: The types of columns; a file stores their positions in this tuple.
TYPES = ("bool", "int64", "float64", "string", "timestamp", "strings")
#: The section that holds the values of each type.
STORES = {
    "bool": "flag",
    "int64": "number",
    "float64": "real",
    "string": "code",
    "timestamp": "number",
    "strings": "list",
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Timestamps that a datetime can hold: the years 1 to 9999.
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
#: Bytes of JSON around a string, and of a value that is none, about.
QUOTES, PLAIN = 3, 24
#: The number of recently used masks that an index caches.
MASKS = 64

Sections = Mapping[str, Section]


class MetadataColumn(Sequence[Any]):
    """A column of the passages' metadata: a value for each passage, or None if it is missing.

    An integer index gives a value, a slice a list: bool, int, float, str, a datetime in UTC, or a tuple of str.

    Attributes
    ----------
    name : str
    type : {"bool", "int64", "float64", "string", "timestamp", "strings"}
    present : ndarray of bool, shape (P,)
        Passages that have a value.
    data : ndarray, shape (P,), or (P + 1,) for "strings"
        bool, int64 (a timestamp: microseconds since 1970 in UTC) or float64, 0 if missing; or int32, the index of a
        string in ``strings``, -1 if missing. For "strings": int64, the offsets of each passage's items.
    items : ndarray of int32
        For "strings", the indices in ``strings`` of all items, passage by passage; else empty.
    strings : sequence of str
        All distinct strings of the metadata, ascending by code points.

    Examples
    --------
    >>> import hopfuse as hf
    >>> rows = [{"text": "one", "metadata": {"year": 2019}}, {"text": "two"}]
    >>> column = hf.Index.build(passages=rows).metadata["year"]
    >>> column.type, list(column), column.present
    ('int64', [2019, None], array([ True, False]))
    """

    def __init__(
        self,
        name: str,
        type: str,
        present: NDArray[np.bool_],
        data: NDArray[Any],
        items: NDArray[np.int32],
        strings: SortedStrings,
    ) -> None:
        self.name, self.type, self.present, self.data = name, type, present, data
        self.items, self.strings = items, strings
        self._row_of: NDArray[np.int32] | None = None

    def __len__(self) -> int:
        return int(self.present.size)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, slice):
            return [self._value(i) for i in range(*item.indices(len(self)))]
        return self._value(row_number(item, len(self)))

    @property
    def row_of(self) -> NDArray[np.int32]:
        """The passage of each item, computed once."""
        if self._row_of is None:
            self._row_of = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.data))
        return self._row_of

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return about how many bytes the values of some passages have as JSON: int64, shape (n,); none is read.

        Examples
        --------
        >>> import hopfuse as hf
        >>> rows = [{"text": "one", "metadata": {"tags": ["a", "bcd"]}}, {"text": "two"}]
        >>> hf.Index.build(passages=rows).metadata["tags"].lengths(np.array([0, 1]))
        array([10,  0])
        """
        if self.type == "string":
            codes, found = self.data[rows].astype(np.int64), np.zeros(len(rows), np.int64)
            found[codes >= 0] = self.strings.lengths(codes[codes >= 0]) + QUOTES
            return found
        if self.type != "strings":
            return np.where(self.present[rows], PLAIN, 0)
        firsts, counts = self.data[rows], self.data[rows + 1] - self.data[rows]
        own = indptr_of_counts(counts)
        codes = self.items[np.repeat(firsts - own[:-1], counts) + np.arange(own[-1])].astype(np.int64)
        sums = indptr_of_counts(self.strings.lengths(codes) + QUOTES)
        return sums[own[1:]] - sums[own[:-1]]

    def _value(self, row: int) -> Any:
        if not self.present[row]:
            return None
        if self.type == "strings":
            return tuple(self.strings[int(code)] for code in self.items[self.data[row] : self.data[row + 1]])
        value = self.data[row].item()
        if self.type == "string":
            return self.strings[value]
        return EPOCH + timedelta(microseconds=value) if self.type == "timestamp" else value

    def __repr__(self) -> str:
        return f"MetadataColumn({self.name!r}, {self.type}, {int(self.present.sum())} of {len(self)} passages)"


class Metadata(Mapping[str, MetadataColumn]):
    """The metadata of an index: its columns by name.

    Columns of ``metadata_types`` come first, then the others in order of appearance. A column is read and verified at
    its first use.

    Examples
    --------
    >>> import hopfuse as hf
    >>> rows = [{"text": "one", "metadata": {"year": 2019, "tags": ["a", "b"]}}, {"text": "two"}]
    >>> metadata = hf.Index.build(passages=rows).metadata
    >>> metadata.types, metadata.row(0), metadata.row(1)
    ({'year': 'int64', 'tags': 'strings'}, {'year': 2019, 'tags': ('a', 'b')}, {})
    """

    def __init__(self, sections: Sections, num_passages: int) -> None:
        self._sections, self._passages = sections, num_passages
        self._columns: dict[str, MetadataColumn] = {}
        self._masks: OrderedDict[Any, NDArray[np.bool_]] = OrderedDict()
        self._lock = threading.RLock()
        self._strings: SortedStrings | None = None
        self.types: dict[str, str] = {}
        if "metadata.type" in sections:
            self.types = _types(sections)
            _check_sizes(sections, list(self.types.values()), num_passages)

    def __getitem__(self, name: str) -> MetadataColumn:
        if name not in self.types:
            raise KeyError(f"there is no column {name!r}; {self.described()}")
        with self._lock:
            if name not in self._columns:
                self._columns[name] = self._read(name)
            return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __contains__(self, name: object) -> bool:
        return name in self.types

    def described(self) -> str:
        """Return a phrase that lists the columns and their types, for error messages."""
        listed = ", ".join(f"{name} ({kind})" for name, kind in self.types.items())
        return f"the columns are {listed}" if listed else "the index has no metadata: build it with metadata"

    def row(self, passage: int) -> dict[str, Any]:
        """Return the values of a passage by column, without missing ones."""
        values = {name: self[name][passage] for name in self.types}
        return {name: value for name, value in values.items() if value is not None}

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return about how many bytes the metadata of some passages has as JSON: int64, shape (n,); none is read."""
        found = np.zeros(len(rows), np.int64)
        for name in self.types:
            own = self[name].lengths(rows)
            found += np.where(self[name].present[rows], own + len(name) + QUOTES, 0)
        return found

    def longest(self) -> int:
        """Return a bound of :meth:`lengths`, by the longest string and the longest list of each column."""
        total = 0
        for name, column in ((name, self[name]) for name in self.types):
            count = int(np.diff(column.data).max(initial=0)) if column.type == "strings" else 1
            total += len(name) + QUOTES + max(PLAIN, count * (column.strings.longest() + QUOTES))
        return total

    def cached_mask(self, key: Any, make: Callable[[], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Return the cached mask of a key, or make it."""
        with self._lock:
            mask = self._masks.get(key)
            if mask is not None:
                self._masks.move_to_end(key)
                return mask
        mask = make()  # without the lock: a filter that takes long delays no other one
        mask.flags.writeable = False
        with self._lock:
            mask = self._masks.setdefault(key, mask)
            if len(self._masks) > MASKS:
                self._masks.popitem(last=False)
        return mask

    def __repr__(self) -> str:
        return f"Metadata({self.types})"

    def _read(self, name: str) -> MetadataColumn:
        """Return a column, after checking everything that a filter relies on."""
        names, kind, size = list(self.types), self.types[name], self._passages
        at = names.index(name)
        store = STORES[kind]
        place = sum(STORES[self.types[before]] == store for before in names[:at])
        present = self._sections["metadata.present"].part(at * size, (at + 1) * size)
        length = size + (kind == "strings")
        data = self._sections[f"metadata.{store}"].part(place * length, (place + 1) * length)
        if self._strings is None:
            self._strings = SortedStrings.of(self._sections, "metadata.value")
        strings = self._strings
        items = np.zeros(0, np.int32)
        if kind == "strings":
            item = self._sections["metadata.item"]
            if data[0] < 0 or data[-1] > item.shape[0] or (data[1:] < data[:-1]).any():
                raise FormatError(
                    "order",
                    None,
                    "the lists of {column!r} do not ascend within 0 .. {limit}",
                    column=name,
                    limit=item.shape[0],
                ).at(item.label)
            items = item.part(int(data[0]), int(data[-1]))
            data = data - data[0]
        check_values(self._sections["metadata.present"].label, name, kind, present, data, items, len(strings))
        held = present.view(np.bool_)
        return MetadataColumn(name, kind, held, data.view(np.bool_) if kind == "bool" else data, items, strings)


def check_metadata(sections: Sections, num_passages: int) -> Metadata:
    """Return the metadata with all columns read and verified."""
    metadata = Metadata(sections, num_passages)
    if metadata:
        check_ascending(sections["metadata.value.bytes"].label, list(string_column(sections, "metadata.value")))
        if "strings" in metadata.types.values():
            _check_lists(sections, num_passages)
        for name in metadata:
            metadata[name]
    return metadata


def _types(sections: Sections) -> dict[str, str]:
    section = sections["metadata.type"]
    return types_of(section.label, list(string_column(sections, "metadata.name")), section.whole())


def types_of(label: str, names: Sequence[str], codes: NDArray[np.uint8]) -> dict[str, str]:
    """Return the types of columns by name, after checking both."""
    if codes.size and codes.max() >= len(TYPES):
        raise FormatError(
            "range",
            None,
            "a column has the type {given}; 0 to {last} are known",
            given=int(codes.max()),
            last=len(TYPES) - 1,
        ).at(label)
    if len(set(names)) != len(names) or not all(names):
        raise FormatError(
            "duplicate", None, "the column names {given} are not distinct, or one is empty", given=list(names)
        ).at(label)
    return {name: TYPES[code] for name, code in zip(names, codes.tolist(), strict=True)}


def check_ascending(label: str, strings: Sequence[str]) -> None:
    """Check that the strings of the metadata ascend."""
    if any(a >= b for a, b in pairwise(strings)):
        raise FormatError("order", None, "the strings do not ascend").at(label)


def _check_sizes(sections: Sections, types: Sequence[str], passages: int) -> None:
    counts = {store: sum(STORES[kind] == store for kind in types) for store in STORES.values()}
    sizes = {f"metadata.{store}": count * (passages + (store == "list")) for store, count in counts.items()}
    for name, size in ({"metadata.present": len(types) * passages} | sizes).items():
        if sections[name].shape[0] != size:
            raise FormatError(
                "length",
                None,
                "the section has {given} entries; columns of {types} have {allowed}",
                given=sections[name].shape[0],
                types=types,
                allowed=size,
            ).at(sections[name].label)


def _check_lists(sections: Sections, passages: int) -> None:
    """Check that the lists of all columns are consecutive in the items."""
    rows, items = sections["metadata.list"].whole().reshape(-1, passages + 1), sections["metadata.item"]
    if rows[0, 0] != 0 or rows[-1, -1] != items.shape[0] or (rows[1:, 0] != rows[:-1, -1]).any():
        raise FormatError(
            "damaged", None, "the columns' lists do not follow one another from 0 to {limit}", limit=items.shape[0]
        ).at(items.label)


def check_values(
    label: str,
    name: str,
    kind: str,
    present: NDArray[np.uint8],
    data: NDArray[Any],
    items: NDArray[np.int32],
    num_strings: int,
) -> None:
    """Check a column's values; of lists, ``data`` holds the offsets."""
    missing = present == 0
    wrong = "a mark of presence is not 0 or 1" if present.size and present.max() > 1 else ""
    if kind == "bool" and data.size and data.max() > 1:
        wrong = "a bool is not 0 or 1"
    if kind == "float64" and np.isnan(data).any():
        wrong = "a number is NaN"
    if kind == "string":
        inside = (data >= 0) & (data < num_strings)
        if not np.where(missing, data == -1, inside).all():
            wrong = f"the index of a string is outside 0 .. {num_strings - 1}, or not -1 for a missing value"
    elif kind == "strings":
        if items.size and not 0 <= items.min() <= items.max() < num_strings:
            wrong = f"the index of an item is outside 0 .. {num_strings - 1}"
        elif (np.diff(data)[missing] != 0).any():
            wrong = "a missing list has items"
    elif kind == "timestamp" and data.size and not FIRST <= data.min() <= data.max() <= LAST:
        wrong = "a time is outside the years 1 to 9999"
    elif (data[missing] != 0).any():
        wrong = "a missing value is not 0"
    if wrong:
        raise FormatError("damaged", None, "in the column {column!r} {wrong}", column=name, wrong=wrong).at(label)
