"""Decode the messages of PostgreSQL's output plugin pgoutput, protocol version 1, into transactions.

Source: PostgreSQL's documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import StoreError

#: An unchanged value that the server does not send, since it is stored outside its row (TOAST).
UNCHANGED = object()
Values = dict[str, object]


class LogRow(NamedTuple):
    """A row that was inserted, updated or deleted: its values before and after, as far as sent, as text by column."""

    relation: int
    old: Values | None
    new: Values | None


@dataclass
class Transaction:
    """The rows of one committed transaction."""

    xid: int
    end: int
    """The position after the commit."""
    commit: int
    """The position of the commit."""
    rows: list[LogRow] = field(default_factory=list)
    truncated: set[int] = field(default_factory=set)


def transactions(messages: Iterable[bytes]) -> Iterator[Transaction]:
    """Yield the transactions of a stream of messages, in the order of their commits.

    Raises
    ------
    StoreError
        A message is not of the protocol.
    """
    names: dict[int, list[tuple[str, bool]]] = {}
    current: Transaction | None = None
    for data in messages:
        kind, body = data[:1], _MessageReader(data)
        if kind == b"B":
            _, _, xid = body.take("!QqI")
            current = Transaction(xid, 0, 0)
        elif kind == b"R":
            relation, columns = body.relation()
            names[relation] = columns
        elif kind in b"IUD" and current is not None:
            (relation,) = body.take("!I")
            old, new = body.tuples(names[relation])
            current.rows.append(LogRow(relation, old, new))
        elif kind == b"T" and current is not None:
            count, _ = body.take("!IB")
            current.truncated.update(body.take(f"!{count}I"))
        elif kind == b"C" and current is not None:
            _, current.commit, current.end, _ = body.take("!BQQq")
            yield current
            current = None
        elif kind not in b"YOM":
            raise StoreError(
                "version",
                None,
                "PostgreSQL sent a message of the type {given!r}, which version 1 of pgoutput does not have",
                given=kind,
            )


class _MessageReader:
    """Reads a message after its first byte."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 1

    def take(self, layout: str) -> tuple[int, ...]:
        """Return the next numbers, in a layout of :mod:`struct`."""
        found = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return found

    def string(self) -> str:
        """Return the next NUL-terminated string."""
        end = self._data.index(b"\0", self._at)
        text = self._data[self._at : end].decode()
        self._at = end + 1
        return text

    def relation(self) -> tuple[int, list[tuple[str, bool]]]:
        """Return a table's oid, and its columns: the name of each, and whether it is in the replica identity."""
        (relation,) = self.take("!I")
        self.string()
        self.string()
        _, count = self.take("!BH")
        columns = []
        for _ in range(count):
            (flags,) = self.take("!B")
            columns.append((self.string(), bool(flags & 1)))
            self.take("!Ii")
        return relation, columns

    def tuples(self, columns: list[tuple[str, bool]]) -> tuple[Values | None, Values | None]:
        """Return the row before, as far as it is sent, and the row after."""
        old: Values | None = None
        new: Values | None = None
        while self._at < len(self._data):
            mark = chr(self.take("!B")[0])
            values = self._values(columns)
            if mark == "N":
                new = values
            elif mark == "K":
                old = {name: values[name] for name, is_key in columns if is_key}
            else:
                old = values
        return old, new

    def _values(self, columns: list[tuple[str, bool]]) -> Values:
        (count,) = self.take("!H")
        values: Values = {}
        for name, _ in columns[:count]:
            mark = chr(self.take("!B")[0])
            if mark == "n":
                values[name] = None
            elif mark == "u":
                values[name] = UNCHANGED
            else:
                (length,) = self.take("!I")
                values[name] = self._data[self._at : self._at + length].decode()
                self._at += length
        return values


def position_text(position: int) -> str:
    """Return a position (LSN) as PostgreSQL writes it.

    Examples
    --------
    >>> position_text(2**32 + 255)
    '1/FF'
    """
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def position_of(text: str) -> int:
    """Return the position (LSN) of a text.

    Examples
    --------
    >>> position_of("1/FF") - 2**32
    255
    """
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)
