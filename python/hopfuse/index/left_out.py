"""The rows of a store that an index cannot hold: left out of it, with the reasons, up to a share of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._validation import counted
from ..errors import HopfuseError, InputError
from ..io.skips import SKIP_FAILED, Skips, check_share
from ..io.tables import Table, listed, readable

Read = TypeVar("Read")
#: What a row of each table is.
NOUNS = {"passages": "passage", "entities": "entity", "edges": "edge", "facts": "fact"}
#: Columns that a row must have: a store's rows often lack them.
_NEEDED = {"passages": ("vector", "text", "id"), "entities": ("vector", "name"), "facts": ("passage", "head", "tail")}
#: Columns that name what another row has, by what they name.
_ENDS = {
    "passages": ("src_passage", "dst_passage", "passage"),
    "entities": ("src_entity", "dst_entity", "head", "tail"),
}
_KEYS = {"passages": "id", "entities": "name"}
#: Values of an error that are not a row's.
_STATED = frozenset(("column", "allowed", "kind", "others", "property", "type"))


class LeftOutRow(NamedTuple):
    """A row of a store that an index lacks.

    Attributes
    ----------
    table : str
        ``"passages"``, ``"entities"``, ``"edges"`` or ``"facts"``.
    row : mapping
        The row's values by column, without its vector.
    error : InputError
        Why the index cannot hold it.
    """

    table: str
    row: Mapping[str, Any]
    error: InputError

    @property
    def key(self) -> Any:
        """The id of a passage, the name of an entity; of others, the values that say which they are."""
        name = _KEYS.get(self.table)
        return self.row.get(name) if name is not None else tuple(self.row.items())

    @property
    def reason(self) -> str:
        """The error, without the row's values."""
        return plain_reason(self.error)


class Rows(Protocol):
    """Reads the tables of a store."""

    def read(self, name: str, table: Table, read: Callable[[Table], Read]) -> Iterator[Read]:
        """Yield what ``read`` returns for a table of this name, or for the parts of it that it does not refuse."""
        ...


class EveryRow:
    """Reads every row: an error ends the build."""

    def read(self, name: str, table: Table, read: Callable[[Table], Read]) -> Iterator[Read]:
        """Yield what ``read`` returns."""
        yield read(table)


class LeftOut:
    """Collects the rows of a store that an index cannot hold: give it to :meth:`hopfuse.Index.build` as ``left_out``.

    Such rows have, for example, a NULL for a vector, a vector of another dimension, or an end that does not exist.
    Edges and facts of passages and entities that are left out are left out with them, and not listed, unless another
    row with the id or the name is there.

    Parameters
    ----------
    skip_failed : float in [0, 100]
        Per cent of the rows of a table that may be left out; one may be, unless this is 0.

    Examples
    --------
    >>> import hopfuse as hf, pyarrow as pa
    >>> from hopfuse.index import LeftOut
    >>> rows = pa.table({"id": ["a", "b", "c"], "text": ["one", "two", None]})
    >>> left_out = LeftOut()
    >>> index = hf.Index.build(hf.stores.ArrowSource(passages=rows), left_out=left_out)
    >>> list(index.passage_ids), [(row.table, row.key, row.reason) for row in left_out.rows]
    (['a', 'b'], [('passages', 'c', "'text' is missing; it must be a string")])
    """

    def __init__(self, skip_failed: float = SKIP_FAILED) -> None:
        self.rows: list[LeftOutRow] = []
        self._share = check_share(skip_failed)
        self.begin()

    def begin(self) -> None:
        """Forget what was read."""
        self.rows = []
        self._read = Counter[str]()
        self._gone: dict[str, set[Any]] = {name: set() for name in _ENDS}
        self._kept: dict[str, list[NDArray[np.int64]]] = {name: [] for name in _ENDS}  # hashes of ids and names
        self._compared = dict.fromkeys(_ENDS, (0, 0))  # how many were gone and kept when they were compared

    def read(self, name: str, table: Table, read: Callable[[Table], Read]) -> Iterator[Read]:
        """Yield what ``read`` returns for a table of this name, or for the parts of it that it does not refuse."""
        self._read[name] += table.num_rows
        table = self._without_gone(table)

        def keep(part: Table) -> Read:
            found = read(part)
            if name in _KEYS and part.num_rows:
                keys = listed(part.values(_KEYS[name]))
                self._kept[name].append(np.fromiter(map(hash, keys), np.int64, len(keys)))
            return found

        yield from readable(table, keep, partial(self.add, name), _NEEDED.get(name, ()))

    def add(self, name: str, table: Table, error: InputError) -> None:
        """Leave out the only row of a table."""
        row = {column: _plain(values) for column, values in table.columns.items() if column != "vector"}
        self.rows.append(LeftOutRow(name, row, error))
        if name in _KEYS and row.get(_KEYS[name]) is not None:
            self._gone[name].add(row[_KEYS[name]])

    def check(self) -> None:
        """Refuse to leave out more rows of a table than may be.

        Raises
        ------
        InputError
            ``skip_failed`` allows fewer; or, if none may be, the reason for one.
        """
        skips = {name: Skips(self._share, total, NOUNS[name]) for name, total in self._read.items()}
        for row in self.rows:
            skips[row.table].add(row.error)

    def report(self) -> str:
        """Return how many rows of each table are left out, and why the first one is."""
        counts = Counter(row.table for row in self.rows)
        said = ", ".join(counted(number, NOUNS[name]) for name, number in counts.items())
        first = self.rows[0]
        return f"{said} left out, such as {first.key!r}: {first.reason}"

    def _without_gone(self, table: Table) -> Table:
        """Return a table without the rows that name a passage or an entity that was left out."""
        kept = np.ones(table.num_rows, np.bool_)
        for what, ends in _ENDS.items():
            names = [name for name in ends if name in table.columns]
            if names:
                self._forget_kept(what)
            gone = self._gone[what]
            for name in names if gone else ():
                kept &= np.array([value not in gone for value in listed(table.values(name))], np.bool_)
        return table if kept.all() else table.only(np.flatnonzero(kept).tolist())

    def _forget_kept(self, what: str) -> None:
        """Take what another row has off the list of what is gone; an end that is none is refused, and listed."""
        gone, parts = self._gone[what], self._kept[what]
        state = len(gone), len(parts)
        if not gone or self._compared[what] == state:
            return
        hashes = np.sort(np.fromiter(map(hash, gone), np.int64, len(gone)))
        there = set[int]()
        for part in parts:
            at = np.minimum(np.searchsorted(hashes, part), hashes.size - 1)
            there.update(part[hashes[at] == part].tolist())
        self._gone[what] = {key for key in gone if hash(key) not in there}
        self._compared[what] = len(self._gone[what]), len(parts)


def _plain(values: Any) -> Any:
    """Return the value of a column of one row."""
    return listed(values)[0] if isinstance(values, list | np.ndarray) else values.to_pylist()[0]


def plain_reason(error: HopfuseError) -> str:
    """Return the sentence of an error about a row without the row's values, which a list of failures must not keep.

    Examples
    --------
    >>> plain_reason(InputError("type", "n", "{field} is {given!r}; it must be {allowed}", given="x", allowed="a date"))
    'n is a str; it must be a date'
    """
    sizes = error.code in ("shape", "length")
    plain = error.about()
    plain.places = ()
    plain.values = {
        name: value if name in _STATED or (sizes and isinstance(value, int)) else _Kind(value)
        for name, value in error.values.items()
    }
    return plain.sentence()


class _Kind:
    """Stands for a value in a sentence, by its type."""

    def __init__(self, value: Any) -> None:
        self._name = "nothing" if value is None else f"a {type(value).__name__}"

    def __str__(self) -> str:
        return self._name

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return self._name
