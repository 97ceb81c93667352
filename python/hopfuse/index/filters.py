"""Filters by metadata: conditions on columns, compiled to a mask of the passages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import reduce
from operator import and_
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .._arrays.distinct import distinct
from .._validation import check_flag, check_list
from ..errors import InputError
from .membership import is_in
from .parts.metadata import Metadata, MetadataColumn
from .parts.metadata_build import FROM, ORDERED_TYPES, TO, VALUES, as_type

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LISTS = ("any", "all", "none")
#: The largest number of values for which comparing with each is faster than a table.
FEW = 3
OPERATORS = (*COMPARISONS, "in", *LISTS, "exists")
_ORDERED = (*COMPARISONS, "in", "exists")
#: The operators of each type of column.
ALLOWED = {
    "bool": ("eq", "ne", "in", "exists"),
    **dict.fromkeys(ORDERED_TYPES, _ORDERED),
    "strings": (*LISTS, "exists"),
}

Mask = NDArray[np.bool_]


class Where:
    """A filter of passages by their metadata; make one with :func:`where`, join several with ``&``, ``|`` and ``~``.

    Two filters are equal if they are written alike.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.where(tenant="a", year__ge=2020) | ~hf.where(tags__any=["draft"])
    ((where(tenant='a') & where(year__ge=2020)) | ~where(tags__any=('draft',)))
    """

    __slots__ = ("_node", "_text")

    def __init__(self, node: tuple[Any, ...], text: str) -> None:
        self._node, self._text = node, text

    def __and__(self, other: Any) -> Where:
        return self._joined(other, "&")

    def __or__(self, other: Any) -> Where:
        return self._joined(other, "|")

    def __invert__(self) -> Where:
        return Where(("~", self), f"~{self._text}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Where) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return self._text

    def __bool__(self) -> NoReturn:
        raise InputError(
            "unsupported", None, "a filter has no truth value; join filters with & | ~, not with and, or, not"
        )

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise InputError(
            "type",
            None,
            "{given} is a filter by metadata, not an array; give the index's mask: index.mask({given})",
            given=self,
        )

    def mask(self, metadata: Metadata) -> Mask:
        """Return the passages that the filter allows, bool (P,), read-only; cached with the metadata.

        Raises
        ------
        InputError
            A column that does not exist, or an operator or a value that does not fit its type.
        """
        return metadata.cached_mask(self._text, lambda: self._compiled(metadata))

    def conditions(self) -> dict[str, Any] | None:
        """Return the conditions that must all hold, by column and operator; None if they are joined in another way.

        Examples
        --------
        >>> import hopfuse as hf
        >>> (hf.where(user="ada") & hf.where(year__in=[2020, 2021])).conditions()
        {'user__eq': 'ada', 'year__in': [2020, 2021]}
        >>> (~hf.where(user="ada")).conditions() is None
        True
        """
        kind, *parts = self._node
        if kind == "test":
            column, operator, value = parts
            return {f"{column}__{operator}": list(value) if isinstance(value, tuple) else value}
        both = [part.conditions() for part in parts] if kind == "&" else []
        if not both or None in both or not both[0].keys().isdisjoint(both[1]):
            return None
        return {**both[0], **both[1]}

    def _compiled(self, metadata: Metadata) -> Mask:
        kind, *parts = self._node
        if kind == "~":
            inner: Mask = parts[0]._compiled(metadata)
            return ~inner
        if kind in ("&", "|"):
            join = np.logical_and if kind == "&" else np.logical_or
            made: Mask = parts[0]._compiled(metadata)
            join(made, parts[1]._compiled(metadata), out=made)
            return made
        return _test(metadata, *parts)

    def _joined(self, other: Any, sign: str) -> Where:
        if not isinstance(other, Where):
            raise InputError(
                "type",
                None,
                "{given!r} is not a filter; join filters: where(a=1) {sign} where(b=2)",
                given=other,
                sign=sign,
            )
        return Where((sign, self, other), f"({self} {sign} {other})")


def where(**conditions: Any) -> Where:
    """Return a filter of passages by their metadata; all conditions must hold.

    A condition is ``column=value`` or ``column__operator=value``:

    ========================== =====================================================================================
    ``eq ne lt le gt ge``      compare with a value; strings are compared by code points
    ``in``                     the value is in a list
    ``any``, ``all``, ``none`` the list of strings contains any, all or none of a list
    ``exists``                 True: there is a value; False: it is missing
    ========================== =====================================================================================

    A missing value meets no condition except ``exists=False``. ``~`` negates a whole filter: ``~where(year=2020)``
    allows passages without a year, ``where(year__ne=2020)`` does not.

    Parameters
    ----------
    **conditions
        Values of the column's type: bool, int, float (or an int for a float64 column), str; for a timestamp a
        datetime with a time zone, a np.datetime64 in UTC or a string such as ``"2024-05-01T12:00:00Z"``.

    Returns
    -------
    Where
        For ``allow=`` of a recipe's search, or :meth:`hopfuse.Index.mask`.

    Raises
    ------
    InputError
        No condition, or a value that is not a list for an operator that needs one. Columns and types are checked when
        the filter is used.

    Examples
    --------
    >>> import hopfuse as hf
    >>> rows = [{"text": "one", "metadata": {"year": 2019, "tags": ["a"]}}, {"text": "two", "metadata": {"year": 2024}}]
    >>> index = hf.Index.build(passages=rows)
    >>> index.mask(hf.where(year__ge=2020) | hf.where(tags__any=["a", "b"]))
    array([ True,  True])
    >>> index.mask(~hf.where(tags__exists=True))
    array([False,  True])
    """
    if not conditions:
        raise InputError("empty", None, "the filter has no condition; give one, such as year__ge=2020")
    made = [_condition(name, value) for name, value in conditions.items()]
    found = made[0]
    for one in made[1:]:
        found = found & one
    return found


def valid_at(metadata: Metadata, at: Any) -> Where:
    """Return the filter of the passages that are valid at a time: see :meth:`hopfuse.Index.valid_at`."""
    columns = [metadata[name] for name in (FROM, TO) if name in metadata]
    if not columns:
        raise InputError(
            "missing",
            "at",
            "{field} is given, and no passage says when it is valid: give the metadata {columns}; {known}",
            columns=f"{FROM} and {TO}",
            known=metadata.described(),
        )
    for column in columns:
        if column.type not in ORDERED_TYPES:
            raise InputError(
                "unsupported",
                "at",
                "{field} is given, and the column {column!r} is of the type {kind}, which is not a time; allowed: "
                "{allowed}",
                column=column.name,
                kind=column.type,
                allowed=", ".join(ORDERED_TYPES),
            )
        if as_type(at, column.type) is None:
            raise InputError(
                "type",
                "at",
                "{field} is {given!r}, and the column {column!r} is of the type {kind}; it must be {allowed}",
                column=column.name,
                kind=column.type,
                given=at,
                allowed=VALUES[column.type],
            )
    no = {FROM: f"{FROM}__gt", TO: f"{TO}__le"}  # a missing value meets neither
    return reduce(and_, [~where(**{no[column.name]: at}) for column in columns])


def split_condition(name: str) -> tuple[str, str]:
    """Return the column and the operator of a condition's name."""
    column, separator, operator = name.rpartition("__")
    return (column, operator) if separator and column and operator in OPERATORS else (name, "eq")


#: Fields of a passage's row by which somebody may want to filter.
_FIELDS = frozenset(("document", "language", "position", "title"))


def unknown_column(metadata: Metadata, name: str) -> InputError:
    """Return the error for a condition whose column does not exist."""
    column, _, operator = name.rpartition("__")
    if column in metadata:
        return _wrong_operator(column, metadata.types[column], operator)
    return InputError(
        "unknown",
        name,
        "there is no column {given!r} to filter by; {columns}{hint}",
        given=name,
        columns=metadata.described(),
        hint=f". A row's {name} is no metadata: give it there as well" if name in _FIELDS else "",
    )


def _wrong_operator(column: str, kind: str, operator: str) -> InputError:
    return InputError(
        "choice",
        column,
        "the column {column!r} is of the type {kind}, which has no operator {given!r}; allowed: {allowed}",
        column=column,
        kind=kind,
        given=operator,
        allowed=", ".join(f"{column}__{one}" for one in ALLOWED[kind]),
    )


def _condition(name: str, value: Any) -> Where:
    column, operator = split_condition(name)
    if operator in ("in", *LISTS):
        value = tuple(_plain(one) for one in check_list(value, name))
    elif operator == "exists":
        check_flag(value, name)
    elif value is None:
        raise InputError(
            "missing",
            name,
            "{field} is None; passages without a value are found by {column}__exists=False",
            column=column,
        )
    value = _plain(value)
    label = f"{column}={value!r}" if operator == "eq" else f"{column}__{operator}={value!r}"
    return Where(("test", column, operator, value), f"where({label})")


def _plain(value: Any) -> Any:
    """Convert a NumPy scalar to Python's type, so that equal filters are written alike; keep a datetime64."""
    return value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value


def _test(metadata: Metadata, name: str, operator: str, value: Any) -> Mask:
    if name not in metadata:
        raise unknown_column(metadata, name)
    column = metadata[name]
    if operator not in ALLOWED[column.type]:
        raise _wrong_operator(name, column.type, operator)
    if operator == "exists":
        return column.present.copy() if value else np.logical_not(column.present)
    if column.type == "strings":
        return _lists(column, operator, column.strings.find([_value(column, "string", one) for one in value]))
    if operator == "in":
        return _is_in(column, [_value(column, column.type, one) for one in value])
    return _compared(column, operator, _value(column, column.type, value))


def _value(column: MetadataColumn, kind: str, value: Any) -> Any:
    made = as_type(value, kind)
    if made is None:
        raise InputError(
            "type",
            column.name,
            "the column {column!r} is of the type {kind}, and the filter has {given!r}; it must be {allowed}",
            column=column.name,
            kind=column.type,
            given=value,
            allowed=VALUES[kind],
        )
    return made


def _compared(column: MetadataColumn, operator: str, value: Any) -> Mask:
    data = column.data
    if column.type == "string":
        if operator in ("eq", "ne"):
            value = int(column.strings.find([value])[0])
        else:  # strings are sorted, so comparing their codes compares them
            cut = (bisect_left if operator in ("lt", "ge") else bisect_right)(column.strings, value)
            operator, value = {"lt": "lt", "le": "lt", "gt": "ge", "ge": "ge"}[operator], cut
    made = _COMPARE[operator](data, value)
    return np.logical_and(made, column.present, out=made)


_COMPARE: dict[str, Callable[[Any, Any], Mask]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _is_in(column: MetadataColumn, values: list[Any]) -> Mask:
    if column.type == "string":
        return _are_places(column, column.data, column.strings.find(values))
    if len(values) <= FEW or column.type == "bool":
        made = np.zeros(len(column), np.bool_)
        for one in dict.fromkeys(values):
            made |= column.data == one
    else:
        made = is_in(column.data, np.array(values, column.data.dtype))
    return np.logical_and(made, column.present, out=made)


def _are_places(column: MetadataColumn, data: NDArray[np.int32], places: NDArray[np.int64]) -> Mask:
    """Return which codes of strings (-1 if missing) are in ``places``; negative places match nothing."""
    held: Mask
    if len(places) == 1 and places[0] >= 0:
        held = data == places[0]
    else:
        wanted = np.zeros(len(column.strings) + 1, np.bool_)  # the last entry is for missing values
        wanted[places[places >= 0]] = True
        held = wanted.take(data, mode="wrap")
    return held


def _lists(column: MetadataColumn, operator: str, codes: NDArray[np.int64]) -> Mask:
    if operator == "all":
        return _have_all(column, distinct(codes))
    found = _holders(column, codes)
    return found if operator == "any" else np.logical_and(column.present, ~found, out=found)


def _have_all(column: MetadataColumn, codes: NDArray[np.int64]) -> Mask:
    """Return the passages whose list contains each of some distinct strings."""
    if not codes.size:
        return column.present.copy()
    if codes[0] < 0:  # a string that no list contains
        return np.zeros(len(column), np.bool_)
    at = np.flatnonzero(_are_places(column, column.items, codes))
    pairs = column.row_of[at].astype(np.int64) * len(column.strings) + column.items[at]
    pairs.sort()  # nearly sorted: np.unique, which makes a hash table since NumPy 2.3, takes 50 times as long
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    made: Mask = np.bincount(pairs // len(column.strings), minlength=len(column)) == codes.size
    return made


def _holders(column: MetadataColumn, codes: NDArray[np.int64]) -> Mask:
    """Return the passages whose list contains one of some strings."""
    found = _are_places(column, column.items, codes)
    made = np.zeros(len(column), np.bool_)
    made[column.row_of.take(np.flatnonzero(found))] = True
    return made
