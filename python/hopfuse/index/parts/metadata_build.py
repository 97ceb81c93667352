"""Build the sections of metadata from rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays.distinct import distinct
from ..._validation import check_choice, check_type
from ...errors import InputError
from ...io.tables import refuse_value
from ..file.columns import StringColumn, string_arrays
from ..file.sections import Arrays, ArraysOrSections, Section
from .metadata import EPOCH, FIRST, LAST, STORES, TYPES, MetadataColumn

_INT64 = np.iinfo(np.int64)
#: The types of columns whose values are ordered.
ORDERED_TYPES = ("timestamp", "int64", "float64", "string")
_NUMBERS = {"int64", "float64"}
#: The columns that say from when and until when a passage is valid.
FROM, TO = "valid_from", "valid_to"
#: The largest integer up to which float64 represents all integers.
_EXACT = 2**53
#: In place of a type: the column's objects become columns, one for each of their entries. ``ALL`` stands for all names.
FLATTEN, ALL = "flatten", "*"


class _Values(NamedTuple):
    """A column: its type, the rows that have a value, and those values."""

    type: str
    rows: list[int]
    values: list[Any]


def metadata_arrays(
    rows: Sequence[Mapping[str, Any] | None],
    types: Mapping[str, str] | None,
    where: Callable[[int], str],
) -> Arrays:
    """Return the sections ``metadata.*``, or none without columns.

    Parameters
    ----------
    rows : sequence of mapping or None, P entries
        A value of None is missing. A column without a type and without a value is left out, with a UserWarning.
    types : mapping of str to str, optional
        Types of some columns; any other column has the type of its first value. An object under a name of the type
        :data:`FLATTEN`, or with columns of its entries already, becomes columns: ``loc.page`` for ``page`` in ``loc``.
        The name :data:`ALL` stands for every name.
    where : callable
        Describes a row in error messages.

    Raises
    ------
    InputError
        A value of another type than its column's, a name or value that is not allowed, or a ``valid_from`` after the
        row's ``valid_to``.
    """
    given = check_types(types)
    flat = flattened(rows, given, where)
    columns = {name: _converted(name, column, where) for name, column in _columns(flat, given, where).items()}
    if not columns:
        return {}
    _check_validity(columns, where)
    return _arrays(columns, len(rows))


def flattened(
    rows: Sequence[Mapping[str, Any] | None], types: Mapping[str, str], where: Callable[[int], str]
) -> Sequence[Mapping[str, Any] | None]:
    """Return rows in which objects are replaced by their entries, where ``types`` or columns of that name say so.

    Raises
    ------
    InputError
        An entry has the name of another value of its row, or a name that is not allowed.

    Examples
    --------
    >>> flattened([{"page": 1, "loc": {"lines": {"from": 3}}}], {"loc": "flatten"}, str)
    [{'page': 1, 'loc.lines.from': 3}]
    """
    names = {name for name, kind in types.items() if kind == FLATTEN}
    names.update(name.partition(".")[0] for name in types if "." in name)
    if not names:
        return rows
    return [row if not isinstance(row, Mapping) else _flat(row, names, where(at)) for at, row in enumerate(rows)]


def _flat(row: Mapping[str, Any], names: Set[str], where: str) -> Mapping[str, Any]:
    if not any(isinstance(value, Mapping) for value in row.values()):
        return row
    found: dict[str, Any] = {}
    left = list(row.items())[::-1]
    while left:
        name, value = left.pop()
        if isinstance(value, Mapping) and not names.isdisjoint((ALL, _checked_name(name, where).partition(".")[0])):
            left += [(f"{name}.{_checked_name(inner, where)}", one) for inner, one in list(value.items())[::-1]]
        elif found.setdefault(name, value) is not value:
            raise InputError(
                "duplicate",
                f"metadata.{name}",
                "{field} is there twice, once as an entry of an object; rename one",
            ).at(where)
    return found


def check_types(types: Any) -> dict[str, str]:
    """Return checked types of columns."""
    if types is None:
        return {}
    check_type(types, "metadata_types", Mapping, "a mapping of a column's name to its type")
    return {
        _checked_name(name, "metadata_types"): check_choice(
            kind, f"metadata_types[{name!r}]", (FLATTEN,) if name == ALL else (*TYPES, FLATTEN)
        )
        for name, kind in types.items()
    }


def type_of(value: Any) -> str | None:
    """Return the column type of a value, or None if there is none."""
    if isinstance(value, bool | np.bool_):
        return "bool"
    for kinds, name in (
        ((int, np.integer), "int64"),
        ((float, np.floating), "float64"),
        (str, "string"),
        ((datetime, np.datetime64), "timestamp"),
    ):
        if isinstance(value, kinds):
            return name
    listed = isinstance(value, list | tuple | np.ndarray) and all(isinstance(item, str) for item in value)
    return "strings" if listed else None


def types_of(rows: Sequence[Mapping[str, Any] | None], types: Mapping[str, str]) -> dict[str, str]:
    """Return the types of the columns that have values in checked rows: those of their first values, or the given ones.

    Examples
    --------
    >>> types_of([{"year": 1843, "name": None}, {"loc": {"page": 2}}], {"loc": "flatten"})
    {'year': 'int64', 'loc.page': 'int64'}
    """
    flat = flattened(rows, types, str)
    return {name: column.type for name, column in _columns(flat, types, str, tells=False).items() if column.rows}


def as_type(value: Any, kind: str) -> Any:
    """Return a value as a column of a type stores it: bool, int, float, str or tuple of str; None for another value.

    :data:`VALUES` describes the values of each type.
    """
    found = type_of(value)
    if kind == "timestamp":
        return _microseconds(value)
    if kind == "float64" and found == "int64" and abs(int(value)) <= _EXACT:
        return float(value)
    if (
        found != kind
        or (kind == "int64" and not _INT64.min <= int(value) <= _INT64.max)
        or (kind == "float64" and np.isnan(value))
    ):
        return None
    return tuple(value) if kind == "strings" else _PYTHON[kind](value)


_PYTHON: dict[str, Callable[[Any], Any]] = {"bool": bool, "int64": int, "float64": float, "string": str}
#: What the values of each type of column are, for error messages.
VALUES = {
    "bool": "true or false",
    "int64": "an integer of 64 bits",
    "float64": "a number that is not NaN (an integer only up to 2^53)",
    "string": "a string",
    "strings": "a list of strings",
    "timestamp": "a time with a time zone, to the microsecond, such as '2024-05-01T12:00:00Z'",
}


def _microseconds(value: Any) -> int | None:
    """Return a time as microseconds since 1970 in UTC, or None if it is not one."""
    if isinstance(value, np.datetime64) and not np.isnat(value):
        whole = value.astype("datetime64[us]")
        if whole == value and FIRST <= int(whole.astype(np.int64)) <= LAST:
            return int(whole.astype(np.int64))
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    passed = value - EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds


def _columns(
    rows: Sequence[Mapping[str, Any] | None],
    types: Mapping[str, str],
    where: Callable[[int], str],
    *,
    tells: bool = True,
) -> dict[str, _Values]:
    """Return the type and the values of each column; say which are left out if it ``tells``."""
    found: dict[str, _Values] = {name: _Values(kind, [], []) for name, kind in types.items() if kind != FLATTEN}
    absent: set[str] = set()
    for i, row in enumerate(rows):
        if row is None:
            continue
        if not isinstance(row, Mapping):
            refuse_value(where(i), "metadata", row, "an object of columns and values")
        for name, value in row.items():
            if value is None:
                absent.add(_checked_name(name, where(i)))
                continue
            column = found.get(name)
            if column is None:
                column = found[_checked_name(name, where(i))] = _Values(_first_type(name, value, where(i)), [], [])
            column.rows.append(i)
            column.values.append(value)
    objects = {name for name in absent if any(one.startswith(f"{name}.") for one in found)}  # in other rows
    empty = sorted(absent.difference(found, objects))
    if empty and tells:
        warnings.warn(
            f"the metadata {', '.join(map(repr, empty))} is left out: no row has a value, so its type is unknown; to "
            f"store it, give metadata_types={{{empty[0]!r}: 'string'}}, or another type",
            UserWarning,
            stacklevel=2,
        )
    return found


def _checked_name(name: Any, where: str) -> str:
    if not isinstance(name, str) or not name:
        raise InputError(
            "type",
            "metadata",
            "a column of metadata has the name {given!r}; it must be a string, not empty",
            given=name,
        ).at(where)
    return name


def _first_type(name: str, value: Any, where: str) -> str:
    if isinstance(value, Mapping):
        raise InputError(
            "type",
            f"metadata.{name}",
            "{field} is the object {given!r}; convert it, or store its entries as columns such as {column!r}: give it "
            "the type {type!r} with {@metadata_types}",
            given=value,
            column=f"{name}.{next(iter(value), 'x')}",
            type=FLATTEN,
        ).at(where)
    kind = type_of(value)
    if kind is None:
        refuse_value(where, f"metadata.{name}", value, f"one of {', '.join(TYPES)} (a list of strings): convert it")
    return kind


def _converted(name: str, column: _Values, where: Callable[[int], str]) -> _Values:
    kind, values = column.type, []
    for i, value in zip(column.rows, column.values, strict=True):
        made = as_type(value, kind)
        if made is None:
            raise InputError(
                "type",
                f"metadata.{name}",
                "{field} is {given!r}, and the column is of the type {kind}; it must be {allowed}: convert it, or "
                "build the index with another type of the column, by {@metadata_types}",
                given=value,
                kind=kind,
                allowed=VALUES[kind],
            ).at(where(i))
        values.append(made)
    return _Values(kind, column.rows, values)


def _check_validity(columns: Mapping[str, _Values], where: Callable[[int], str]) -> None:
    """Refuse a passage that is valid from a later time than until."""
    kinds = {columns[name].type for name in (FROM, TO) if name in columns}
    if (len(kinds) > 1 and kinds != _NUMBERS) or not {FROM, TO} <= columns.keys() or not kinds.issubset(ORDERED_TYPES):
        return
    ends = dict(zip(columns[TO].rows, columns[TO].values, strict=True))
    for row, first in zip(columns[FROM].rows, columns[FROM].values, strict=True):
        if first > ends.get(row, first):
            shown = (_shown(value, columns[FROM].type) for value in (first, ends[row]))
            raise InputError(
                "range",
                f"metadata.{FROM}",
                "{field} is {given}, after the {to} {end}, so the passage is never valid; exchange them, or leave one "
                "out",
                **dict(zip(("given", "end"), shown, strict=True)),
                to=TO,
            ).at(where(row))


def _shown(value: Any, kind: str) -> str:
    """Return a value as it is written in a file."""
    return (EPOCH + timedelta(microseconds=value)).isoformat() if kind == "timestamp" else repr(value)


def _arrays(columns: Mapping[str, _Values], passages: int) -> Arrays:
    texts = {text for column in columns.values() if column.type == "string" for text in column.values}
    texts.update(
        item for column in columns.values() if column.type == "strings" for row in column.values for item in row
    )
    place = {text: at for at, text in enumerate(sorted(texts))}
    stores: dict[str, list[NDArray[Any]]] = {name: [] for name in (*dict.fromkeys(STORES.values()), "item", "present")}
    begin = 0
    for column in columns.values():
        present = np.zeros(passages, np.uint8)
        present[column.rows] = 1
        stores["present"].append(present)
        if column.type == "strings":
            counts = np.zeros(passages + 1, np.int64)
            counts[np.array(column.rows, np.int64) + 1] = [len(row) for row in column.values]
            stores["list"].append(begin + np.cumsum(counts))
            begin += int(counts.sum())
            stores["item"].append(np.array([place[item] for row in column.values for item in row], np.int32))
            continue
        values = [place[text] for text in column.values] if column.type == "string" else column.values
        data = np.full(passages, -1 if column.type == "string" else 0, DTYPES[STORES[column.type]])
        data[column.rows] = values
        stores[STORES[column.type]].append(data)
    return {
        **string_arrays("metadata.name", columns),
        "metadata.type": np.array([TYPES.index(column.type) for column in columns.values()], np.uint8),
        **{f"metadata.{name}": np.concatenate([np.zeros(0, DTYPES[name]), *parts]) for name, parts in stores.items()},
        **string_arrays("metadata.value", place),
    }


#: The dtype of each section.
DTYPES: dict[str, Any] = {
    "present": np.uint8,
    "flag": np.uint8,
    "number": np.int64,
    "real": np.float64,
    "code": np.int32,
    "list": np.int64,
    "item": np.int32,
}


def _strings_at(strings: Sequence[str], rows: NDArray[np.int32]) -> dict[str, NDArray[Any]] | dict[str, Section]:
    """Return the sections of some of the distinct strings."""
    if isinstance(strings, StringColumn):
        return strings.take("metadata.value", rows.astype(np.int64))
    return string_arrays("metadata.value", (strings[at] for at in rows.tolist()))


def subset(metadata: Mapping[str, MetadataColumn], passages: NDArray[np.int64]) -> ArraysOrSections:
    """Return the sections of the metadata of some passages, without strings that none of them has."""
    columns, dtypes = list(metadata.values()), DTYPES
    if not columns:
        return {}
    stores: dict[str, list[NDArray[Any]]] = {name: [] for name in dtypes}
    used = [np.zeros(0, np.int32)]
    begin = 0
    for column in columns:
        stores["present"].append(column.present[passages].view(np.uint8))
        if column.type != "strings":
            stores[STORES[column.type]].append(column.data[passages])
            continue
        counts = np.diff(column.data)
        kept = np.zeros(len(column), np.bool_)
        kept[passages] = True
        stores["item"].append(column.items[np.repeat(kept, counts)])
        stores["list"].append(begin + np.concatenate([[0], np.cumsum(counts[passages])]))
        begin += int(counts[passages].sum())
    used += stores["code"] + stores["item"]
    codes = distinct(np.concatenate(used))
    codes = codes[codes >= 0]
    for name in ("code", "item"):
        stores[name] = [np.where(part < 0, -1, np.searchsorted(codes, part)) for part in stores[name]]
    strings = columns[0].strings
    return {
        **string_arrays("metadata.name", metadata),
        "metadata.type": np.array([TYPES.index(column.type) for column in columns], np.uint8),
        **{
            f"metadata.{name}": np.concatenate([np.zeros(0, dtypes[name]), *parts]).astype(dtypes[name])
            for name, parts in stores.items()
        },
        **_strings_at(strings, codes),
    }
