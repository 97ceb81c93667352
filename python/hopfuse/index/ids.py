"""The rows of passages by their ids, continued from one state of an index to the next."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import StateNumbers
from ..errors import FormatError
from ..types.derived import Continued

_Id = str | int


class _State(Protocol):
    """A state of an index, as far as its ids are concerned."""

    @property
    def directory(self) -> Hashable | None: ...

    @property
    def passage_ids(self) -> Sequence[_Id]: ...

    @property
    def num_passages(self) -> int: ...

    def rows_since(self, earlier: Any) -> Any: ...


class PassageRows(NamedTuple):
    """The rows of a state's passages by their ids.

    All states share the table, to which a change adds the ids that it adds. A passage that replaces another one has a
    number of its own, so an id may have several numbers, of which a state has one at most.
    """

    table: dict[_Id, int | tuple[int, ...]]
    """By id: the number, or numbers, of its passages."""
    numbers: StateNumbers

    def get(self, id: Any) -> int:
        """Return the row of an id, -1 if the state does not have it."""
        known = self.table.get(id, ())
        if isinstance(known, int):
            return self.numbers.get(known)
        # From the latest, which is in most states: a passage may be replaced at every turn.
        return next((row for row in map(self.numbers.get, reversed(known)) if row >= 0), -1)

    def add(self, ids: Iterable[_Id], numbers: NDArray[np.int64]) -> None:
        """Add passages."""
        for id, number in zip(ids, numbers.tolist(), strict=True):
            known = self.table.get(id)
            if known is None:
                self.table[id] = number
            else:
                self.table[id] = (*(known if isinstance(known, tuple) else (known,)), number)


def passage_rows(index: _State) -> PassageRows:
    """Return the rows of an index's passages by their ids.

    Raises
    ------
    FormatError
        Two passages have the same id.
    """
    return _ROWS.get(index)


def _of_all(index: _State) -> PassageRows:
    found = PassageRows({id: row for row, id in enumerate(index.passage_ids)}, StateNumbers.of_rows(index.num_passages))
    if len(found.table) != index.num_passages:
        raise FormatError(
            "duplicate", None, "two passages have the same id; open the index with verify='full' to find them"
        )
    return found


def _continued(index: _State, earlier: _State, known: PassageRows) -> PassageRows | None:
    maps = index.rows_since(earlier)
    numbers = None if maps is None else known.numbers.continued(maps.passages, index.num_passages)
    if numbers is None:
        return None
    fresh = numbers.since(known.numbers)
    assert fresh is not None
    ids, found = index.passage_ids, PassageRows(known.table, numbers)
    found.add((ids[row] for row in numbers.rows[fresh].tolist()), fresh)
    return found


_ROWS: Continued[_State, PassageRows] = Continued(_of_all, _continued, lambda index: index.directory)
