"""Tables in memory, and checked conversions of their columns. Errors name the row or, for a file, the line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .._validation import is_whole
from ..errors import InputError
from .json_lines import parse_json
from .languages import language_tag

_INTEGER = re.compile(r"-?[0-9]{1,18}")
_REAL = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_INT64 = np.iinfo(np.int64)
#: Bools as text; an empty field is a missing value.
_FLAGS = {"true": True, "false": False, "": True}


@dataclass(frozen=True)
class Spec:
    """The columns of a kind of table.

    ``positional`` is their order in a TSV file without a header. If ``others`` is True, unknown columns are ignored;
    else they are an error. ``aliases`` are other names of columns: the column's own name for each.
    """

    what: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    positional: tuple[str, ...]
    others: bool
    aliases: Mapping[str, str] = field(default_factory=dict)

    @property
    def known(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.required, *self.optional, *self.aliases)


@dataclass(frozen=True)
class Table:
    """Columns of equal length; None is a missing value.

    Attributes
    ----------
    columns : dict of str to list or ndarray
    num_rows : int
    where : callable
        Describes a row in error messages.
    textual : bool
        All values are strings (TSV), and numbers must be parsed.
    unread : tuple of str
        The other columns that were given; of mappings, the other keys of the first row.
    """

    what: str
    columns: dict[str, Any]
    num_rows: int
    where: Callable[[int], str]
    textual: bool = False
    unread: tuple[str, ...] = ()

    def row(self, at: int) -> dict[str, Any]:
        """Return the values of a row by column."""
        return {name: values[at] for name, values in self.columns.items()}

    def part(self, first: int, end: int) -> Table:
        """Return the rows ``first`` to ``end - 1``, which keep their places in error messages."""
        columns = {name: values[first:end] for name, values in self.columns.items()}
        count = max(0, min(end, self.num_rows) - first)
        return replace(self, columns=columns, num_rows=count, where=lambda row: self.where(first + row))


def from_rows(rows: Iterable[Any], spec: Spec, where: Callable[[int], str]) -> Table:
    """Return a table of mappings, one per row; optional columns may be absent from any of them."""
    names = spec.known
    columns: dict[str, list[Any]] = {name: [] for name in names}
    known = set(names)
    given: tuple[str, ...] = ()
    count = 0
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            refuse_row(where(i), spec.what, row, f"a mapping with {', '.join(map(repr, spec.required))}")
        if not spec.others and not known.issuperset(row):
            _refuse_unknown(row, names, where(i))
        if not i:
            given = tuple(map(str, row))
        for name in names:
            columns[name].append(row.get(name))
        count = i + 1
    return make_table(spec, dict(columns), count, where, given)


def make_table(
    spec: Spec,
    columns: dict[str, Any],
    num_rows: int,
    where: Callable[[int], str],
    given: Iterable[str],
    textual: bool = False,
) -> Table:
    """Return a table without the optional columns that no row has; ``given`` are the names of all columns."""
    absent = [name for name, values in columns.items() if isinstance(values, list) and all(v is None for v in values)]
    for name in absent:
        if name not in spec.required:
            del columns[name]
    unread = {name for name in given if name not in spec.known}
    for alias, name in spec.aliases.items():
        if name in columns and alias in columns:
            unread.add(alias)
        if alias in columns:
            columns.setdefault(name, columns.pop(alias))
    return Table(spec.what, columns, num_rows, where, textual, tuple(name for name in given if name in unread))


def refuse_row(where: str, field: str, row: Any, allowed: str) -> NoReturn:
    """Raise an InputError for a row that is not what a table holds."""
    raise InputError(
        "type", field, "the row is of the type {given}; it must be {allowed}", given=type(row).__name__, allowed=allowed
    ).at(where)


def check_columns(
    names: Sequence[Any], where: str, required: Sequence[str], known: Sequence[str], *, others: bool
) -> None:
    """Refuse missing and repeated columns and, unless there may be others, unknown ones."""
    for name in known:
        count = names.count(name)
        if count > 1 or (not count and name in required):
            raise InputError(
                "duplicate" if count else "missing",
                name,
                "the columns are {given}; {column!r} must be there once",
                given=list(names),
                column=name,
            ).at(where)
    if not others and not set(names) <= set(known):
        _refuse_unknown(names, known, where)


def _refuse_unknown(names: Iterable[Any], known: Sequence[str], where: str) -> NoReturn:
    unknown = next(name for name in names if name not in known)
    raise InputError(
        "unknown",
        str(unknown),
        "there is no column {given!r} in such a table; allowed: {allowed}",
        given=unknown,
        allowed=", ".join(known),
    ).at(where)


def texts(table: Table, name: str, *, default: str | None = None) -> list[str]:
    """Return a column of str; missing values become ``default``, or are refused without one."""
    values = table.columns.get(name)
    if values is None:
        return [default or ""] * table.num_rows
    out = []
    for i, value in enumerate(values):
        found = default if value is None else value
        if not isinstance(found, str):
            _refuse(table, name, i, value, "a string")
        out.append(found)
    return out


def row_ids(table: Table) -> list[str] | list[int]:
    """Read the column ``id``: distinct strings, or distinct int64 integers; the row numbers where it is absent.

    Raises
    ------
    InputError
        A value of another type, strings and integers together, an id twice.
    """
    values = table.columns.get("id")
    if values is None:
        return list(range(table.num_rows))
    kind = str if table.num_rows and isinstance(values[0], str) else int
    first: dict[Any, int] = {}
    for i, value in enumerate(values):
        is_text = isinstance(value, str)
        if not is_text and not (is_whole(value) and _INT64.min <= int(value) <= _INT64.max):
            _refuse(table, "id", i, value, "a string or an integer of 64 bits")
        if is_text != (kind is str):
            _refuse_mixed(table, "id", i, value, 0, values[0])
        own = kind(value)
        if first.setdefault(own, i) != i:
            raise InputError(
                "duplicate",
                "id",
                "the id {given!r} is also that of {other}; ids must be distinct",
                given=own,
                other=table.where(first[own]),
            ).at(table.where(i))
    return list(first)


def integers(table: Table, name: str, limit: int) -> NDArray[np.int64]:
    """Return a column of integers 0 .. limit-1."""
    allowed = f"an integer 0 .. {limit - 1}"
    values = _numbers(table, name, _as_integer, "iu", allowed)
    out = np.asarray(values, dtype=np.int64) if len(values) else np.zeros(0, np.int64)
    bad = (out < 0) | (out >= limit)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        _refuse(table, name, at, values[at], allowed, "range")
    return out


def weights(table: Table, name: str) -> NDArray[np.float64] | None:
    """Return a column of finite numbers >= 0, or None without that column."""
    if name not in table.columns:
        return None
    allowed = "a finite number of at least 0"
    out = np.asarray(_numbers(table, name, _as_real, "iuf", allowed), dtype=np.float64)
    bad = ~(np.isfinite(out) & (out >= 0))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        _refuse(table, name, at, table.columns[name][at], allowed, "range")
    return out


def categories(table: Table, name: str) -> tuple[NDArray[np.int64], list[str]] | None:
    """Return a column of strings as (number of each row's string, strings in order of first appearance)."""
    if name not in table.columns:
        return None
    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(text, len(numbers)) for text in texts(table, name)]
    return np.array(rows, np.int64), list(numbers)


def names_or_numbers(table: Table, name: str) -> list[str | int | None]:
    """Return a column of strings or of integers; missing values and blank strings become None.

    Raises
    ------
    InputError
        A value of another type, or a mixture of strings and integers.
    """
    values: Iterable[Any] = table.columns.get(name, [None] * table.num_rows)
    out: list[str | int | None] = []
    first: tuple[int, Any] | None = None
    for i, value in enumerate(values):
        if value is None or (isinstance(value, str) and not value.strip()):
            out.append(None)
            continue
        if not isinstance(value, str) and _as_integer(value, False) is None:
            _refuse(table, name, i, value, "a string or an integer")
        first = first or (i, value)
        if isinstance(value, str) != isinstance(first[1], str):
            _refuse_mixed(table, name, i, value, *first)
        out.append(value if isinstance(value, str) else int(value))
    return out


def languages(table: Table, name: str) -> list[str | None]:
    """Return a column of language tags in their canonical case; missing and blank ones, and ``und``, become None.

    Raises
    ------
    InputError
        A value that is not a tag.
    """
    out: list[str | None] = []
    for i, value in enumerate(table.columns.get(name, [None] * table.num_rows)):
        try:
            out.append(language_tag("" if value is None else value))
        except (TypeError, ValueError, AttributeError):
            code = "syntax" if isinstance(value, str) else "type"
            _refuse(table, name, i, value, "the tag of a language, such as 'en' or 'pt-BR'", code)
    return out


def flags(table: Table, name: str) -> list[bool]:
    """Return a column of bools, in text ``true`` or ``false``; missing values become True."""
    out = []
    for i, value in enumerate(table.columns.get(name, [None] * table.num_rows)):
        found = _FLAGS.get(value.lower()) if table.textual and value is not None else value
        if value is not None and not isinstance(found, bool | np.bool_):
            _refuse(table, name, i, value, "true or false")
        out.append(found is None or bool(found))
    return out


def integers_or_none(table: Table, name: str) -> list[int | None]:
    """Return a column of integers; missing values, and blank text, become None."""
    out: list[int | None] = []
    for i, value in enumerate(table.columns.get(name, [None] * table.num_rows)):
        absent = value is None or (table.textual and not value.strip())
        number = None if absent else _as_integer(value, table.textual)
        if number is None and not absent:
            _refuse(table, name, i, value, "an integer")
        out.append(number)
    return out


def objects(table: Table, name: str) -> list[Mapping[str, Any] | None]:
    """Return a column of mappings, or of JSON objects in strings; missing values become None."""
    out: list[Mapping[str, Any] | None] = []
    for i, value in enumerate(table.columns.get(name, [None] * table.num_rows)):
        found = value
        if isinstance(value, str):
            try:
                found = parse_json(value) if value.strip() else None
            except (ValueError, RecursionError):
                _refuse(table, name, i, value, "a JSON object", "syntax")
        if found is not None and not isinstance(found, Mapping):
            _refuse(table, name, i, value, "an object of names and values")
        out.append(found)
    return out


def _numbers(
    table: Table, name: str, convert: Callable[[Any, bool], Any], kinds: str, allowed: str
) -> Sequence[Any] | NDArray[Any]:
    values = table.columns[name]
    if isinstance(values, np.ndarray) and values.dtype.kind in kinds:
        return values
    out = []
    for i, value in enumerate(values):
        number = convert(value, table.textual)
        if number is None:
            _refuse(table, name, i, value, allowed)
        out.append(number)
    return out


def _as_integer(value: Any, textual: bool) -> int | None:
    if textual:
        return int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else None
    return int(value) if is_whole(value) and abs(int(value)) < 2**62 else None


def _as_real(value: Any, textual: bool) -> float | None:
    if textual:
        return float(value) if isinstance(value, str) and _REAL.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _refuse(table: Table, name: str, row: int, value: Any, allowed: str, code: str = "type") -> NoReturn:
    refuse_value(table.where(row), name, value, allowed, code, table.unread)


def refuse_value(
    where: str, column: str, value: Any, allowed: str, code: str = "type", unread: Sequence[str] = ()
) -> NoReturn:
    """Raise an InputError for a value of a table, or for one that is missing; ``unread`` are columns not read."""
    if value is None:
        raise InputError(
            "missing",
            column,
            "{column!r} is missing; it must be {allowed}{others}",
            column=column,
            allowed=allowed,
            others=f" (columns that are not read: {', '.join(unread[:8])})" if unread else "",
        ).at(where)
    given = value.item() if isinstance(value, np.generic) else value
    raise InputError(
        code, column, "{column!r} is {given!r}; it must be {allowed}", column=column, given=given, allowed=allowed
    ).at(where)


def _refuse_mixed(table: Table, column: str, row: int, value: Any, first: int, other: Any) -> NoReturn:
    """Raise an InputError for strings and integers in a column."""
    raise InputError(
        "type",
        column,
        "{column!r} is {given!r}, and {first} has {other!r}; give all as strings or all as integers",
        column=column,
        given=value,
        first=table.where(first),
        other=other,
    ).at(table.where(row))
