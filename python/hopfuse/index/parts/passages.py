"""Passages: ids, titles and texts, and labels that they share: the documents that contain them, and languages."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError, InputError
from ...io import tables
from ...io.tables import Placed, Table, language_tag
from ..file.columns import IntegerColumn, StringColumn, id_column, row_number, string_arrays, string_column
from ..file.rows import is_whole, take_rows
from ..file.sections import ArraysOrSections, Section, Sections
from ..log.records import LogRecords
from ..log.rows import CommonNumbers, DeltaRows

Codes = NDArray[np.int32]
Rows = NDArray[np.int64]
Value = str | int


class Label(NamedTuple):
    """The sections of a label: the place of each passage's value, and the values as strings or as integers."""

    what: str
    codes: str
    strings: str
    numbers: str
    read: Callable[[Table, str, Placed | None], Sequence[Value | None]]


DOCUMENT = Label("document", "passage.document", "document.name", "document.number", tables.names_or_numbers)
LANGUAGE = Label("language", "passage.language", "language.tag", "", tables.languages)
LABELS = (DOCUMENT, LANGUAGE)


class LabelColumn(Sequence[Value | None]):
    """An immutable sequence of the passages' labels; None where there is none.

    An integer index gives a label, a slice a list of labels.

    Attributes
    ----------
    codes : ndarray of int32, shape (P,), or None
        The place of each passage's label among ``values``, -1 if it has none; None if no passage has a label.
    values : StringColumn or IntegerColumn
        The distinct labels, ascending.

    Examples
    --------
    >>> import hopfuse as hf
    >>> index = hf.Index.build(passages=[{"text": "one", "document": "b"}, {"text": "two"}])
    >>> list(index.documents), list(index.documents.values)
    (['b', None], ['b'])
    """

    __slots__ = ("_count", "codes", "values")

    def __init__(self, codes: Codes | None, values: StringColumn | IntegerColumn, count: int) -> None:
        self.codes, self.values, self._count = codes, values, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, item: int) -> Value | None: ...
    @overload
    def __getitem__(self, item: slice) -> list[Value | None]: ...
    def __getitem__(self, item: int | slice) -> Value | list[Value | None] | None:
        if isinstance(item, slice):
            return [self[i] for i in range(*item.indices(self._count))]
        row = row_number(item, self._count)
        code = -1 if self.codes is None else int(self.codes[row])
        return None if code < 0 else self.values[code]

    def __iter__(self) -> Iterator[Value | None]:
        if self.codes is None:
            return iter([None] * self._count)
        known: list[Value | None] = [*self.values, None]  # -1 is the last one
        return iter([known[code] for code in self.codes.tolist()])

    def __repr__(self) -> str:
        return f"LabelColumn({self._count} rows, {len(self.values)} labels)"


# ---- From values to sections ----


def build(ids: Sequence[Any], titles: Iterable[str], texts: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the sections of ids, which are all strings or all integers, titles, texts and their lengths."""
    are_strings = bool(ids) and isinstance(ids[0], str)
    return {
        **(string_arrays("passage.id", ids) if are_strings else {"passage.id.number": np.array(ids, np.int64)}),
        **string_arrays("passage.title", titles),
        **string_arrays("passage.text", texts),
        "passage.length": np.array([len(text.split()) for text in texts], np.int32),
    }


def label_arrays(label: Label, values: Iterable[Value | None]) -> dict[str, NDArray[Any]]:
    """Return the sections of a label from the value of each passage; none if no passage has one.

    Raises
    ------
    InputError
        There are strings and integers.
    """
    place: dict[Value, int] = {}
    codes = [-1 if value is None else place.setdefault(value, len(place)) for value in values]
    return coded_arrays(label, np.array(codes, np.int32), list(place))


def coded_arrays(label: Label, codes: Codes, values: Sequence[Value]) -> dict[str, NDArray[Any]]:
    """Return the sections of a label from distinct values, in any order, and the place of each passage's."""
    if not values:
        return {}
    kinds = {type(value) for value in values}
    if len(kinds) > 1:
        raise InputError(
            "type",
            label.what,
            "the passages have {what}s that are strings, and others that are integers; convert one kind",
            what=label.what,
        )
    order = sorted(range(len(values)), key=values.__getitem__)
    codes, kept = used(codes, np.array(order, np.int64))
    found = [values[at] for at in kept.tolist()]
    if not found:
        return {}
    named = string_arrays(label.strings, found) if kinds == {str} else {label.numbers: np.array(found, np.int64)}
    return {label.codes: codes, **named}


def used(codes: Codes, ascending: Rows) -> tuple[Codes, Rows]:
    """Return codes as places among the used ones of the values, and those, in their order.

    ``ascending`` has the numbers of all values, 0 .. n-1, in the order of the values.
    """
    seen = np.zeros(ascending.size + 1, np.bool_)
    seen[codes] = True  # -1 is the last one
    kept = ascending[seen[ascending]]
    if is_whole(kept, ascending.size):
        return codes, kept
    place = np.full(ascending.size + 1, -1, np.int32)
    place[kept] = np.arange(kept.size, dtype=np.int32)
    return place[codes], kept


# ---- From sections ----


def load_labels(sections: Sections, label: Label, num_passages: int) -> LabelColumn:
    """Return the labels of the passages; their codes are verified."""
    section = sections.get(label.codes)
    if section is None:
        return LabelColumn(None, label_values(sections, label), num_passages)
    values = label_values(sections, label)
    codes = section.whole()
    if not len(values) or (codes < -1).any() or (codes >= len(values)).any():
        raise FormatError(
            "range",
            None,
            "the place of a {what} is outside -1 .. {last}, or there is none",
            what=label.what,
            last=len(values) - 1,
        ).at(section.label)
    return LabelColumn(codes, values, num_passages)


def label_values(sections: Sections, label: Label) -> StringColumn | IntegerColumn:
    """Return the distinct labels."""
    if label.codes not in sections:
        return IntegerColumn(Section(label.codes, np.zeros(0, np.int64)))
    number = sections.get(label.numbers)
    return string_column(sections, label.strings) if number is None else IntegerColumn(number)


def check_labels(sections: Sections, label: Label, found: LabelColumn) -> None:
    """Check that the values ascend, that each is some passage's, and that languages are tags."""
    if found.codes is None:
        return
    where, values = sections[label.codes].label, list[Any](found.values)
    if any(a >= b for a, b in pairwise(values)):
        raise FormatError("order", None, "the {what}s do not ascend", what=label.what).at(where)
    if used(found.codes, np.arange(len(values)))[1].size < len(values):
        raise FormatError("damaged", None, "a {what} belongs to no passage", what=label.what).at(where)
    check_values(label, values, where)


def check_values(label: Label, values: Iterable[Value], where: str) -> None:
    """Refuse languages that are not tags in their canonical case, and blank documents."""
    for value in values:
        if not _is_value(label, value):
            raise FormatError(
                "syntax",
                None,
                "the {what} {given!r} is blank, or not the tag of a language",
                what=label.what,
                given=value,
            ).at(where)


def _is_value(label: Label, value: Value) -> bool:
    if label is LANGUAGE:
        try:
            return language_tag(str(value)) == value
        except ValueError:
            return False
    return isinstance(value, int) or bool(value.strip())


# ---- Some passages ----


def subset(sections: Sections, rows: Rows) -> ArraysOrSections:
    """Return the sections of some passages."""
    ids = id_column(sections)
    arrays: dict[str, NDArray[Any] | Section] = {
        **string_column(sections, "passage.title").take("passage.title", rows),
        **string_column(sections, "passage.text").take("passage.text", rows),
        "passage.length": sections["passage.length"].whole()[rows],
    }
    if isinstance(ids, StringColumn) and rows.size:
        arrays |= ids.take("passage.id", rows)
    else:
        numbers = np.array(ids[:], np.int64) if not isinstance(ids, StringColumn) else np.zeros(0, np.int64)
        arrays["passage.id.number"] = numbers[rows]
    for label in LABELS:
        arrays |= _label_subset(sections, label, rows)
    return arrays


def _label_subset(sections: Sections, label: Label, rows: Rows) -> ArraysOrSections:
    """Return the sections of a label for some passages."""
    if label.codes not in sections:
        return {}
    codes, values = sections[label.codes].take(rows), label_values(sections, label)
    codes, kept = used(codes, np.arange(len(values)))
    if not kept.size:
        return {}
    if isinstance(values, StringColumn):
        return {label.codes: codes, **values.take(label.strings, kept)}
    return {label.codes: codes, label.numbers: take_rows(sections[label.numbers].whole(), kept)}


# ---- Changes ----


def merge(log: DeltaRows, passages: Rows) -> ArraysOrSections:
    """Return the sections of passages after records, given by their slots in the order of the rows."""
    arrays: dict[str, NDArray[Any] | Section] = {
        **_merged_ids(log, passages),
        **log.taken("passage.title", passages),
        **log.taken("passage.text", passages),
        "passage.length": take_rows(log.whole("passage.length"), passages),
    }
    for label in LABELS:
        if log.knows(label.codes):
            arrays |= _merged_label(log, label, passages)
    return arrays


def _merged_ids(log: DeltaRows, passages: Rows) -> ArraysOrSections:
    """Return ids of the index's type; an index without passages takes the type of the first ones added."""
    kinds = {name for name in ("passage.id.number", "passage.id.offsets") if log.has(name)}
    if log.before.passages:
        kinds.add("passage.id.number" if "passage.id.number" in log.sections else "passage.id.offsets")
    if len(kinds) > 1:
        raise FormatError("conflict", None, "the log has passages with string ids and passages with integer ids")
    if "passage.id.offsets" in kinds and passages.size:
        return log.taken("passage.id", passages)
    numbers = log.whole("passage.id.number") if "passage.id.number" in kinds else np.zeros(0, np.int64)
    return {"passage.id.number": take_rows(numbers, passages)}


def _merged_label(log: DeltaRows, label: Label, passages: Rows) -> ArraysOrSections:
    """Return the sections of a label after records, without labels that no passage has any more."""
    codes = take_rows(log.whole(label.codes), passages)
    if label.numbers and log.knows(label.numbers):
        numbers = log.whole(label.numbers)
        codes, kept = used(codes, log.labels[label.what].ascending())
        return {label.codes: codes, label.numbers: take_rows(numbers, kept)} if kept.size else {}
    codes, kept = used(codes, log.labels[label.what].ascending())
    return {label.codes: codes, **log.taken(label.strings, kept)} if kept.size else {}


def check_records(label: Label, records: LogRecords, known: Container[str]) -> None:
    """Refuse labels of records that are not valid, and integers where others, in ``known`` arrays, are strings."""
    kinds = (f"{label.strings}.offsets", label.numbers)
    if all(kind in records.arrays or kind in known for kind in kinds):
        raise FormatError("conflict", None, "the passages' {what}s are strings and integers", what=label.what)
    check_values(label, _labels_of(records, label), f"the {label.what}s of a batch")


def number_labels(
    label: Label, known: CommonNumbers, records: LogRecords, arrays: dict[str, NDArray[Any]], counts: dict[str, Rows]
) -> None:
    """Leave the new ones of the labels of batches, and put common numbers in place of the codes."""
    if label.codes not in arrays:
        return
    values = _labels_of(records, label)
    name = label.numbers if label.numbers in arrays else f"{label.strings}.offsets"
    own = records.count(name)
    found = [known.number(value) for value in values]
    is_new = np.array([new for _, new in found], np.bool_)
    fresh = [value for value, (_, new) in zip(values, found, strict=True) if new]
    batch = np.repeat(np.arange(records.size), own)[is_new]
    counts[name] = np.bincount(batch, minlength=records.size)
    if name == label.numbers:
        arrays[name] = np.array(fresh, np.int64)
    else:
        arrays |= string_arrays(label.strings, fresh)
        sizes = np.bincount(batch, np.diff(arrays[name]), minlength=records.size)
        counts[f"{label.strings}.bytes"] = sizes.astype(np.int64)
    numbers = np.array([number for number, _ in found] + [-1], np.int32)
    begin = np.repeat(np.cumsum(own) - own, records.rows[label.codes])
    codes = arrays[label.codes]
    arrays[label.codes] = numbers[np.where(codes < 0, -1, begin + codes)]


def _labels_of(records: LogRecords, label: Label) -> list[Any]:
    """Return the labels that batches name."""
    return records[label.numbers].tolist() if label.numbers in records.arrays else records.strings(label.strings)
