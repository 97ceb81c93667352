"""What an index that follows a store lacks of its rows: left out, or without facts or a vector, and why.

The list is stored with the position up to which the index has the rows, so it has the rows as they are at that moment.
It has keys and reasons, and none of the rows' texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from ..errors import InputError
from ..index import LeftOutRow

#: A word that may tell what a text is about.
_WORD = re.compile(r"\w{4,}")
#: What is lacking: the whole row, or a part of a passage.
ROW, FACTS, VECTOR = "row", "facts", "vector"


class Failure(NamedTuple):
    """What an index lacks of a row.

    Attributes
    ----------
    table : str
        ``"passages"``, ``"entities"``, ``"edges"`` or ``"facts"``.
    key : object
        The id of a passage, the name of an entity; of an edge or a fact, its columns.
    lacks : {"row", "facts", "vector"}
        ``"row"`` if the index has nothing of it.
    reason : str
    """

    table: str
    key: Any
    lacks: str
    reason: str


class Touched(Protocol):
    """The keys of rows that are read again."""

    passages: set[Any]
    entities: set[str]
    edges: set[tuple[tuple[str, Any], tuple[str, Any]]]
    facts: set[tuple[str, str, str]]


class Failures:
    """The rows that an index lacks, by table and key.

    Examples
    --------
    >>> from hopfuse.stores.failures import FACTS, Failures
    >>> failures = Failures()
    >>> failures.add("passages", 7, FACTS, "too long")
    >>> list(Failures.of_data(failures.data()))
    [Failure(table='passages', key=7, lacks='facts', reason='too long')]
    """

    def __init__(self, listed: Iterable[Failure] = ()) -> None:
        self._rows: dict[tuple[str, Any, str], str] = {}
        for one in listed:
            self.add(*one)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Failure]:
        return (Failure(*key, reason) for key, reason in self._rows.items())

    def __contains__(self, one: object) -> bool:
        return isinstance(one, Failure) and (one.table, one.key, one.lacks) in self._rows

    def add(self, table: str, key: Any, lacks: str, reason: str) -> None:
        """Add what is lacking of a row."""
        self._rows[table, key, lacks] = reason

    def add_part(self, id: Any, lacks: str, reason: str, text: str) -> None:
        """Add what is lacking of a passage, without the words of its text that the reason may repeat.

        Examples
        --------
        >>> failures = Failures()
        >>> failures.add_part(7, FACTS, "no names in 'Ada wrote notes.'", "Ada wrote notes.")
        >>> next(iter(failures)).reason
        "no names in 'Ada … ….'"
        """
        said = frozenset(_WORD.findall(text.casefold()))
        plain = _WORD.sub(lambda word: "…" if word[0].casefold() in said else word[0], reason)
        self.add("passages", id, lacks, plain)

    def add_rows(self, rows: Iterable[LeftOutRow]) -> None:
        """Add rows that are left out, unless a column of their key is missing: nothing could tell which they are."""
        for row in rows:
            key = row.key if row.table in ("passages", "entities") else _columns(row.row)
            if key is not None:
                self.add(row.table, key, ROW, row.reason)

    def untouched(self, touched: Touched) -> Failures:
        """Return those of rows that are not read again."""
        return Failures(one for one in self if not _is_touched(one, touched))

    def check(self, share: float, total: int) -> None:
        """Refuse to lack more than a share of all passages, in per cent; one may be lacking, unless the share is 0.

        Raises
        ------
        InputError
        """
        most = max(1, int(total * share / 100)) if share else 0
        if len(self) > most:
            *_, last = self
            raise InputError(
                "limit",
                "skip_failed",
                "{given} rows cannot be held by the index of {total} passages, and {field} allows {allowed:g} %; the "
                "last one, of {table}: {reason}. Mend the cause, or allow more with {field}",
                given=len(self),
                total=total,
                allowed=share,
                table=last.table,
                reason=last.reason,
            )

    def data(self) -> dict[str, dict[str, dict[str, list[Any]]]]:
        """Return the list as JSON has it: keys by table, by what is lacking and by the reason."""
        found: dict[str, dict[str, dict[str, list[Any]]]] = {}
        for one in self:
            found.setdefault(one.table, {}).setdefault(one.lacks, {}).setdefault(one.reason, []).append(one.key)
        return found

    @classmethod
    def of_data(cls, data: Mapping[str, Mapping[str, Mapping[str, Iterable[Any]]]]) -> Failures:
        """Return the list that :meth:`data` describes."""
        return cls(
            Failure(table, _tuples(key), lacks, reason)
            for table, by_lack in data.items()
            for lacks, by_reason in by_lack.items()
            for reason, keys in by_reason.items()
            for key in keys
        )


def _tuples(key: Any) -> Any:
    return tuple(map(_tuples, key)) if isinstance(key, list) else key


#: The columns that say which edge or fact a row is.
_NAMED = (
    ("src_passage", "src_entity"),
    ("dst_passage", "dst_entity"),
    ("head",),
    ("tail",),
)


def _columns(row: Mapping[str, Any]) -> tuple[tuple[str, Any], ...] | None:
    """Return the columns of an edge or a fact that tell it; None if an end is missing."""
    kept = ("type", "relation", "passage", *(name for names in _NAMED for name in names))
    for names in _NAMED:
        given = [name for name in names if name in row]
        if given and all(row[name] is None for name in given):
            return None
    return tuple((name, row[name]) for name in kept if row.get(name) is not None)


def _is_touched(one: Failure, touched: Touched) -> bool:
    if one.table == "passages":
        return one.key in touched.passages
    if one.table == "entities":
        return one.key in touched.entities
    columns = dict(one.key)
    ids = [value for name, value in columns.items() if name.endswith("passage")]
    names = [value for name, value in columns.items() if name.endswith("_entity") or name in ("head", "tail")]
    if not touched.passages.isdisjoint(ids) or not touched.entities.isdisjoint(names):
        return True
    if one.table == "facts":
        return (columns["head"], columns.get("relation"), columns["tail"]) in touched.facts
    ends = {name[:3]: (name[4:], value) for name, value in columns.items() if name[3:4] == "_"}
    return (ends["src"], ends["dst"]) in touched.edges or (ends["dst"], ends["src"]) in touched.edges
