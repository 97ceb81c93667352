"""Tables, whole or in batches, and checked conversions of their columns. Errors name the row, of a file the line."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._validation import is_whole
from ..errors import InputError
from .arrow import arrow_values, component_counts, first_null
from .json_lines import parse_json

#: Rows of a batch.
ROWS = 8192
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_REAL = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_INT64 = np.iinfo(np.int64)
#: Bools as text; an empty field is a missing value.
_FLAGS = {"true": True, "false": False, "": True}
_TAG = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*")
#: The tag of a language that is not known.
_UNDETERMINED = "und"
#: What an id and a weight are, for error messages.
KEYS = "a string or an integer of 64 bits"
WEIGHTS = "a finite number of at least 0"

#: The place of a value, for error messages, and the value.
Placed = tuple[str, Any]
#: What a function reads of a table.
Read = TypeVar("Read")


@dataclass(frozen=True)
class Spec:
    """The columns of a kind of table.

    ``positional`` is their order in a TSV file without a header. If ``others`` is True, a file or an Arrow table may
    have more columns, which are not read; else they are an error. A mapping that a program gives as a row may have no
    others but ``ignored``, which are for other readers of the same rows. ``advice`` says where what they hold belongs.
    ``aliases`` are other names of columns: the column's own name for each. If ``stated`` is True, the source states its
    columns, and one without a value is there nonetheless. ``key`` is the column whose value also describes a row.
    """

    what: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    positional: tuple[str, ...]
    others: bool
    aliases: Mapping[str, str] = field(default_factory=dict)
    stated: bool = False
    key: str = ""
    ignored: tuple[str, ...] = ()
    advice: str = ""

    @property
    def known(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.required, *self.optional, *self.aliases)

    @property
    def allowed(self) -> tuple[str, ...]:
        """All keys that a mapping may have."""
        return (*self.known, *self.ignored)


@dataclass(frozen=True)
class Table:
    """Columns of equal length; None is a missing value.

    Attributes
    ----------
    columns : dict of str to list, ndarray or Arrow array
    num_rows : int
    where : callable
        Describes a row in error messages.
    textual : bool
        All values are strings (TSV), and numbers must be parsed.
    unread : tuple of str
        The other columns that were given.
    labels : mapping of str to str
        The names of columns in their store, where they have others.
    key : str
        A column whose value also describes a row.
    types : mapping of str to str
        The types of metadata columns, where the source states them.
    """

    what: str
    columns: dict[str, Any]
    num_rows: int
    where: Callable[[int], str]
    textual: bool = False
    unread: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    types: Mapping[str, str] = field(default_factory=dict)

    def values(self, name: str) -> list[Any] | NDArray[Any]:
        """Return the values of a column; None for every row if there is no such column."""
        column = self.columns.get(name)
        if column is None:
            return [None] * self.num_rows
        return column if isinstance(column, list | np.ndarray) else arrow_values(column, self.label(name), self.what)

    def row(self, at: int) -> dict[str, Any]:
        """Return the values of a row by column."""
        return {name: values[at] for name, values in self.columns.items()}

    def part(self, first: int, end: int) -> Table:
        """Return the rows ``first`` to ``end - 1``, which keep their places in error messages."""
        columns = {name: values[first:end] for name, values in self.columns.items()}
        count = max(0, min(end, self.num_rows) - first)
        return replace(self, columns=columns, num_rows=count, where=lambda row: self.where(first + row))

    def only(self, rows: Sequence[int]) -> Table:
        """Return some of the rows, ascending, which keep their places in error messages."""
        at = np.asarray(rows, np.int64)
        columns = {name: _taken(values, at) for name, values in self.columns.items()}
        return replace(self, columns=columns, num_rows=len(at), where=lambda row: self.where(int(at[row])))

    def label(self, name: str) -> str:
        """Return the name of a column in its store."""
        return self.labels.get(name, name)

    def place(self, row: int) -> str:
        """Describe a row by its place and, if the table has a key, by that."""
        where = self.where(row)
        key = self.part(row, row + 1).values(self.key)[0]
        key = key.item() if isinstance(key, np.generic) else key
        return where if key is None else f"{where} ({self.key} {key!r})"

    def refuse(self, row: int, name: str, value: Any, allowed: str, code: str = "type") -> NoReturn:
        """Raise an InputError for a value, or for one that is missing."""
        refuse_value(self.place(row), self.label(name), value, allowed, code, self.unread)


def _taken(values: Any, rows: NDArray[np.int64]) -> Any:
    if isinstance(values, list):
        return [values[row] for row in rows.tolist()]
    return values[rows] if isinstance(values, np.ndarray) else values.take(rows)


def readable(
    table: Table, read: Callable[[Table], Read], refuse: Callable[[Table, InputError], None], needed: Iterable[str] = ()
) -> Iterator[Read]:
    """Yield what ``read`` returns for a table or, if that raises an error, for parts of it without the rows at fault.

    Parameters
    ----------
    table : Table
    read : callable
        Raises an InputError for a row that it refuses.
    refuse : callable
        Takes a table of one such row, and the error.
    needed : iterable of str
        Columns that must not be missing: rows without them are found at once, others by halving.

    Raises
    ------
    InputError
        A table without rows is refused.

    Examples
    --------
    >>> table = Table("t", {"n": ["1", "x", "3", None]}, 4, "row {}".format)
    >>> bad = []
    >>> def read(part):
    ...     return integers(replace(part, textual=True), "n", 9).tolist()
    >>> list(readable(table, read, lambda row, error: bad.append(str(error)), ["n"]))
    [[1], [3]]
    >>> bad
    ["row 3: 'n' is missing; it must be an integer 0 .. 8", "row 1: 'n' is 'x'; it must be an integer 0 .. 8"]
    """
    try:
        found = read(table)
    except InputError as error:
        if not table.num_rows:
            raise
        if table.num_rows == 1:
            refuse(table, error)
            return
    else:
        yield found
        return
    absent = sorted({row for name in needed if name in table.columns for row in _missing(table.columns[name])})
    if absent and len(absent) < table.num_rows:
        for row in absent:
            yield from readable(table.only([row]), read, refuse)
        yield from readable(table.only(sorted({*range(table.num_rows)}.difference(absent))), read, refuse)
        return
    half = table.num_rows // 2
    for first, end in ((0, half), (half, table.num_rows)):
        yield from readable(table.part(first, end), read, refuse)


def _missing(values: Any) -> list[int]:
    if isinstance(values, np.ndarray):
        return []
    if isinstance(values, list):
        return [row for row, value in enumerate(values) if value is None]
    return np.flatnonzero(np.asarray(values.is_null())).tolist() if values.null_count else []


class Places:
    """The rows of all batches of a table, for error messages."""

    def __init__(self) -> None:
        self.num_rows = 0
        self._firsts: list[int] = []
        self._where: list[Callable[[int], str]] = []

    def add(self, table: Table) -> None:
        """Add the next batch."""
        self._firsts.append(self.num_rows)
        self._where.append(table.where)
        self.num_rows += table.num_rows

    def where(self, row: int) -> str:
        """Describe a row."""
        at = bisect_right(self._firsts, row) - 1
        return self._where[at](row - self._firsts[at])


class Presence:
    """Whether a table has an optional column, which all of its rows have, or none: ``allowed`` is its value."""

    def __init__(self, name: str, allowed: str) -> None:
        self._name, self._allowed = name, allowed
        self._first: Table | None = None

    def of(self, table: Table) -> bool:
        """Return whether the next batch has it; refuse a row without it beside rows with it."""
        found = self._name in table.columns
        if not table.num_rows:
            return found
        if self._first is None:
            self._first = replace(table.part(0, 1), columns={self._name: []} if found else {}, key="")
        if found != bool(self._first.columns):
            (self._first if found else table).refuse(0, self._name, None, self._allowed)
        return found


def row_batches(rows: Iterator[Any], spec: Spec, where: Callable[[int], str], *, others: bool) -> Iterator[Table]:
    """Yield batches of mappings, one per row, at least one; optional columns may be absent from any row.

    Other keys are an error, unless ``others``.
    """
    first, spelling = 0, dict[str, str]()
    while (table := _of_rows(rows, spec, first, where, spelling, others)).num_rows or not first:
        yield table
        first += table.num_rows
        if table.num_rows < ROWS:
            return


def _of_rows(
    rows: Iterator[Any],
    spec: Spec,
    first: int,
    where: Callable[[int], str],
    spelling: dict[str, str],
    others: bool,
) -> Table:
    """Return the next rows as a table; ``spelling`` has the spellings of columns in the rows before."""
    known, allowed = set(spec.known), set(spec.allowed)
    taken: list[Mapping[str, Any]] = []
    unread: dict[str, None] = {}
    for at, row in enumerate(islice(rows, ROWS), first):
        if not isinstance(row, Mapping):
            refuse_row(where(at), spec.what, row, f"a mapping with {', '.join(map(repr, spec.required))}")
        if not known.issuperset(row):
            if not others and not allowed.issuperset(row):
                _refuse_unknown(row, spec.allowed, where(at), spec.advice)
            unread |= dict.fromkeys(str(name) for name in row if name not in known)
        taken.append(row)
    columns: dict[str, Any] = {name: [row.get(name) for row in taken] for name in spec.known}
    for alias, name in spec.aliases.items():
        _keep_spelling(columns, name, alias, spelling, spec.what, lambda at: where(first + at))
    return make_table(spec, columns, len(taken), lambda at: where(first + at), (*spec.known, *unread))


def _keep_spelling(
    columns: dict[str, Any], name: str, alias: str, spelling: dict[str, str], what: str, where: Callable[[int], str]
) -> None:
    """Refuse a column under another spelling than in the rows before; drop its alias beside it."""
    own, other = ([value is not None for value in columns[one]] for one in (name, alias))
    if not any(own) and not any(other):
        return
    used = spelling.setdefault(name, name if any(own) else alias)
    if used == alias and any(own):
        raise InputError(
            "conflict",
            what,
            "{column!r} begins here, and the rows before have {alias!r}; give all rows one of them",
            column=name,
            alias=alias,
        ).at(where(own.index(True)))
    if used == name and not any(own):
        columns[alias] = [None] * len(other)


def make_table(
    spec: Spec,
    columns: dict[str, Any],
    num_rows: int,
    where: Callable[[int], str],
    given: Iterable[str],
    textual: bool = False,
) -> Table:
    """Return a table without the optional columns that no row has; ``given`` are the names of all columns."""
    if not spec.stated:
        columns = {name: one for name, one in columns.items() if name in spec.required or not _is_absent(one)}
    given = list(given)
    unread = {name for name in given if name not in spec.known}
    for alias, name in spec.aliases.items():
        if name in columns and alias in columns:
            unread.add(alias)
        if alias in columns:
            columns.setdefault(name, columns.pop(alias))
    others = tuple(name for name in given if name in unread)
    return Table(spec.what, columns, num_rows, where, textual, others, key=spec.key)


def _is_absent(column: Any) -> bool:
    """Return whether a column has no value."""
    if isinstance(column, list):
        return all(value is None for value in column)
    return not isinstance(column, np.ndarray) and column.null_count == len(column)


def joined(batches: Iterable[Table]) -> Table:
    """Return batches, at least one, as one table of lists and arrays."""
    tables, places = list(batches), Places()
    for table in tables:
        places.add(table)
    names = dict.fromkeys(name for table in tables for name in table.columns)
    columns = {name: _concatenated([table.values(name) for table in tables]) for name in names}
    where = tables[0].where if len(tables) == 1 else places.where
    types = {name: kind for table in tables for name, kind in table.types.items()}
    return replace(tables[0], columns=columns, num_rows=places.num_rows, where=where, types=types)


def _concatenated(parts: Sequence[list[Any] | NDArray[Any]]) -> list[Any] | NDArray[Any]:
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [value for part in parts for value in listed(part)]


def listed(values: list[Any] | NDArray[Any]) -> list[Any]:
    """Return the values of a column as Python's own, such as float rather than NumPy's float64."""
    return values if isinstance(values, list) else values.tolist()


def refuse_row(where: str, field: str, row: Any, allowed: str) -> NoReturn:
    """Raise an InputError for a row that is not what a table holds."""
    raise InputError(
        "type", field, "the row is of the type {given}; it must be {allowed}", given=type(row).__name__, allowed=allowed
    ).at(where)


def check_columns(
    names: Sequence[Any], where: str, required: Sequence[str], known: Sequence[str], *, others: bool, advice: str = ""
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
        _refuse_unknown(names, known, where, advice)


def _refuse_unknown(names: Iterable[Any], known: Sequence[str], where: str, advice: str) -> NoReturn:
    unknown = next(name for name in names if name not in known)
    raise InputError(
        "unknown",
        str(unknown),
        "there is no column {given!r} in such a table; allowed: {allowed}{fix}",
        given=unknown,
        allowed=", ".join(known),
        fix=f"; {advice}" if advice else "",
    ).at(where)


def texts(table: Table, name: str, *, default: str | None = None) -> list[str]:
    """Return a column of str; missing values become ``default``, or are refused without one."""
    if name not in table.columns:
        return [default or ""] * table.num_rows
    values = table.values(name)
    if isinstance(values, list) and set(map(type, values)) <= {str}:
        return values
    out = []
    for i, value in enumerate(values):
        found = default if value is None else value
        if not isinstance(found, str):
            table.refuse(i, name, value, "a string")
        out.append(found)
    return out


def keys(
    table: Table, name: str, before: Placed | None = None, *, allowed: str = KEYS, blank: bool = True
) -> list[str | int | None]:
    """Return a column of strings or 64-bit integers; missing values become None.

    Parameters
    ----------
    before : (str, value), optional
        The first value of an earlier batch, whose type these have.
    allowed : str
        What the values are, for error messages.
    blank : bool
        Whether there are blank strings; else they become None.

    Raises
    ------
    InputError
        A value of another type, or a mixture of strings and integers.
    """
    if name not in table.columns:
        return [None] * table.num_rows
    values = table.values(name)
    if isinstance(values, np.ndarray) and values.dtype.kind == "i":
        values = values.tolist()
    if blank and set(map(type, values)) == {str} and (before is None or isinstance(before[1], str)):
        return list(values)
    out: list[str | int | None] = []
    for i, value in enumerate(values):
        is_text = isinstance(value, str)
        if value is None or (is_text and not blank and not value.strip()):
            out.append(None)
            continue
        if not is_text and not (is_whole(value) and _INT64.min <= int(value) <= _INT64.max):
            table.refuse(i, name, value, allowed)
        before = before or (table.where(i), value)
        if is_text != isinstance(before[1], str):
            _refuse_mixed(table, name, i, value, before)
        out.append(value if is_text else int(value))
    return out


def row_ids(table: Table, before: Placed | None = None) -> list[str] | list[int]:
    """Read the column ``id``: distinct strings, or distinct int64 integers; the row numbers where it is absent.

    ``before`` is the first value of an earlier batch.

    Raises
    ------
    InputError
        A value of another type, strings and integers together, an id twice.
    """
    if "id" not in table.columns:
        return list(range(table.num_rows))
    found: list[Any] = keys(table, "id", before)
    if None in found:
        table.refuse(found.index(None), "id", None, KEYS)
    if len(set(found)) < len(found):
        row, earlier = first_repeated(found)
        refuse_repeated("id", found[row], table.where(row), table.where(earlier))
    return found


def first_repeated(values: Iterable[Any]) -> tuple[int, int]:
    """Return the first row that repeats a value, of which there is one, and the row of its first occurrence."""
    first: dict[Any, int] = {}
    return next((row, first[value]) for row, value in enumerate(values) if first.setdefault(value, row) != row)


def integers(table: Table, name: str, limit: int) -> NDArray[np.int64]:
    """Return a column of integers 0 .. limit-1."""
    allowed = f"an integer 0 .. {limit - 1}"
    values = _numbers(table, name, _as_integer, "iu", allowed)
    out = np.asarray(values, dtype=np.int64) if len(values) else np.zeros(0, np.int64)
    bad = (out < 0) | (out >= limit)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        table.refuse(at, name, values[at], allowed, "range")
    return out


def weights(table: Table, name: str) -> NDArray[np.float64] | None:
    """Return a column of finite numbers >= 0, or None without that column."""
    if name not in table.columns:
        return None
    out = np.asarray(_numbers(table, name, _as_real, "iuf", WEIGHTS), dtype=np.float64)
    bad = ~(np.isfinite(out) & (out >= 0))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        table.refuse(at, name, table.values(name)[at], WEIGHTS, "range")
    return out


def names_or_numbers(table: Table, name: str, before: Placed | None = None) -> list[str | int | None]:
    """Return a column of strings or of integers; missing values and blank strings become None.

    ``before`` is the first value of an earlier batch.

    Raises
    ------
    InputError
        A value of another type, or a mixture of strings and integers.
    """
    return keys(table, name, before, blank=False)


def languages(table: Table, name: str, before: Placed | None = None) -> list[str | None]:
    """Return a column of language tags in their canonical case; missing and blank ones, and ``und``, become None.

    Raises
    ------
    InputError
        A value that is not a tag.
    """
    known: dict[Any, str | None] = {None: None}
    out: list[str | None] = []
    for i, value in enumerate(table.values(name)):
        try:
            if value not in known:
                known[value] = language_tag(value)
            out.append(known[value])
        except (TypeError, ValueError, AttributeError):
            code = "syntax" if isinstance(value, str) else "type"
            table.refuse(i, name, value, "the tag of a language, such as 'en' or 'pt-BR'", code)
    return out


def language_tag(text: str) -> str | None:
    """Return a BCP 47 tag in its canonical case; None for ``und`` and for blank text.

    Raises
    ------
    ValueError
        The text is not such a tag.

    References
    ----------
    RFC 5646, Tags for Identifying Languages, 2009, section 2.1.1.

    Examples
    --------
    >>> [language_tag(text) for text in ("EN", "zh-hant-tw", "und", "")]
    ['en', 'zh-Hant-TW', None, None]
    """
    if not text.strip():
        return None
    if not _TAG.fullmatch(text):
        raise ValueError(text)
    parts = text.lower().split("-")
    if parts[0] == _UNDETERMINED:
        return None
    for at in range(1, len(parts)):
        if len(parts[at - 1]) > 1 and len(parts[at]) in (2, 4):  # not after a singleton such as x
            parts[at] = parts[at].upper() if len(parts[at]) == 2 else parts[at].title()
    return "-".join(parts)


def flags(table: Table, name: str) -> list[bool]:
    """Return a column of bools, in text ``true`` or ``false``; missing values become True."""
    out = []
    for i, value in enumerate(table.values(name)):
        found = _FLAGS.get(value.lower()) if table.textual and value is not None else value
        if value is not None and not isinstance(found, bool | np.bool_):
            table.refuse(i, name, value, "true or false")
        out.append(found is None or bool(found))
    return out


def integers_or_none(table: Table, name: str) -> list[int | None]:
    """Return a column of integers; missing values, and blank text, become None."""
    out: list[int | None] = []
    for i, value in enumerate(table.values(name)):
        absent = value is None or (table.textual and not value.strip())
        number = None if absent else _as_integer(value, table.textual)
        if number is None and not absent:
            table.refuse(i, name, value, "an integer")
        out.append(number)
    return out


def objects(table: Table, name: str) -> list[Mapping[str, Any] | None]:
    """Return a column of mappings, or of JSON objects in strings; missing values become None."""
    out: list[Mapping[str, Any] | None] = []
    for i, value in enumerate(table.values(name)):
        found = value
        if isinstance(value, str):
            try:
                found = parse_json(value) if value.strip() else None
            except (ValueError, RecursionError):
                table.refuse(i, name, value, "a JSON object", "syntax")
        if found is not None and not isinstance(found, Mapping):
            table.refuse(i, name, value, "an object of names and values")
        out.append(found)
    return out


def vectors(table: Table, name: str, dim: int | None) -> NDArray[Any]:
    """Return an Arrow column of lists of floats as an array (n, d); if ``dim`` is None, the first row decides d."""
    column = table.columns[name]
    counts = component_counts(column)
    if counts is None:
        raise InputError(
            "type",
            table.label(name),
            "the column {column!r} has the Arrow type {given}; it must hold {allowed}",
            column=table.label(name),
            given=column.type,
            allowed="lists of floating-point numbers",
        ).at(table.what)
    absent = first_null(column)
    if absent is not None:
        fix = f"give it one, or leave the row out, in SQL by WHERE {table.label(name)} IS NOT NULL"
        table.refuse(absent, name, None, f"a vector: {fix}")
    if dim is None:
        dim = int(counts[0]) if counts.size else getattr(column.type, "list_size", 0)
    wrong = np.flatnonzero(counts != dim)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            "shape",
            table.label(name),
            "{column!r} has {given} components, and the rows before it {allowed}; all vectors must have the same "
            "dimension",
            column=table.label(name),
            given=int(counts[row]),
            allowed=dim,
        ).at(table.place(row))
    if counts.size and dim == 0:
        raise InputError(
            "shape",
            table.label(name),
            "{column!r} has no components; a vector must have at least one",
            column=table.label(name),
        ).at(table.place(0))
    numbers = column.flatten()
    absent = first_null(numbers)
    if absent is not None:
        table.refuse(absent // dim, name, "a list with a null", "a list of numbers")
    return np.asarray(numbers.to_numpy(zero_copy_only=False)).reshape(table.num_rows, dim)


def _numbers(
    table: Table, name: str, convert: Callable[[Any, bool], Any], kinds: str, allowed: str
) -> Sequence[Any] | NDArray[Any]:
    values = table.values(name)
    if isinstance(values, np.ndarray) and values.dtype.kind in kinds:
        return values
    out = []
    for i, value in enumerate(values):
        number = convert(value, table.textual)
        if number is None:
            table.refuse(i, name, value, allowed)
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


def refuse_repeated(column: str, given: Any, where: str, other: str) -> NoReturn:
    """Raise an InputError for an id or a name that two rows have."""
    raise InputError(
        "duplicate",
        column,
        "the {column} {given!r} is also that of {other}; {column}s must be distinct: leave a row out, or take another "
        "column",
        column=column,
        given=given,
        other=other,
    ).at(where)


def _refuse_mixed(table: Table, column: str, row: int, value: Any, before: Placed) -> NoReturn:
    """Raise an InputError for strings and integers in a column."""
    raise InputError(
        "type",
        table.label(column),
        "{column!r} is {given!r}, and {first} has {other!r}; give all as strings or all as integers",
        column=table.label(column),
        given=value,
        first=before[0],
        other=before[1],
    ).at(table.where(row))
