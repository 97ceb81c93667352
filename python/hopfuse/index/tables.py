"""A table in memory: columns of values, and where each row came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from ..errors import InputError


@dataclass(frozen=True)
class Spec:
    """The columns of a kind of table.

    ``positional`` is their order in a TSV file without a header. Unless ``others`` are allowed (and
    ignored), an unknown column is an error.
    """

    what: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    positional: tuple[str, ...]
    others: bool

    @property
    def known(self) -> tuple[str, ...]:
        """Every column that is read."""
        return self.required + self.optional


@dataclass(frozen=True)
class Table:
    """Columns of equal length; None stands for a value that is absent.

    Attributes
    ----------
    columns : dict of str to list or ndarray
    num_rows : int
    where : callable
        Where a row came from, for error messages.
    textual : bool
        Every value is a str (TSV); numbers are still to be parsed.
    """

    what: str
    columns: dict[str, Any]
    num_rows: int
    where: Callable[[int], str]
    textual: bool = False


def from_rows(rows: Iterable[Any], spec: Spec, where: Callable[[int], str]) -> Table:
    """A table of mappings, one a row; an optional column may be absent from any of them."""
    columns: dict[str, list[Any]] = {name: [] for name in spec.known}
    known = set(spec.known)
    count = 0
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"{where(i)} is a {type(row).__name__}; a row is a mapping with {list(spec.required)}")
        if not spec.others and not known.issuperset(row):
            refuse_unknown(row, spec, where(i))
        for name in spec.known:
            columns[name].append(row.get(name))
        count = i + 1
    return make_table(spec, dict(columns), count, where)


def make_table(
    spec: Spec, columns: dict[str, Any], num_rows: int, where: Callable[[int], str], textual: bool = False
) -> Table:
    """Drop optional columns that no row has."""
    absent = [name for name, values in columns.items() if isinstance(values, list) and all(v is None for v in values)]
    for name in absent:
        if name not in spec.required:
            del columns[name]
    return Table(spec.what, columns, num_rows, where, textual)


def refuse_unknown(names: Iterable[Any], spec: Spec, where: str) -> NoReturn:
    """Name a column that the table may not have."""
    unknown = [name for name in names if name not in spec.known]
    raise InputError(f"{where} has the column {unknown[0]!r}; allowed: {', '.join(spec.known)}")
