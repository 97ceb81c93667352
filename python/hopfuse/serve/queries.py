"""Check the queries of a request, and find the rows of their filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from numpy.typing import NDArray

from ..errors import InputError
from .bounds import check_conditions, check_most
from .budget import Held
from .config import Limits
from .keys import Principal
from .schema import QueryIn
from .snapshots import Query, Snapshot
from .vectors import vector_of

#: Work from which on queries are checked and divided on threads, in terms of ids and names: what a query counts as, and
#: the passages of the index that count as one for a filter.
LONG, OF_QUERY, PASSAGES = 4096, 32, 64
#: Bytes that an id or a name takes in memory, about.
NAME_BYTES = 64


class QueryReader:
    """Checks the queries of one request, restricted to the passages that the key sees.

    Equal filters are evaluated once, and give the same array of rows.

    Parameters
    ----------
    snapshot : Snapshot
    principal : Principal
    limits : Limits
    held : Held
        The account of the request's bytes. What is read is checked against it, and is to be added to it.

    Attributes
    ----------
    nbytes : int
        Bytes of the queries that were read, without their texts.
    """

    def __init__(self, snapshot: Snapshot, principal: Principal, limits: Limits, held: Held) -> None:
        self._snapshot, self._principal, self._limits, self._held = snapshot, principal, limits, held
        self._rows: dict[bytes, Any] = {}  # by filter
        self.nbytes = 0

    def read(
        self, given: Sequence[str | QueryIn], vectors: Sequence[Any] | None = None, field: str = "queries"
    ) -> list[Query]:
        """Return the checked queries.

        Parameters
        ----------
        given : sequence of str or QueryIn
        vectors : sequence of ndarray or None, optional
            Vectors that have been checked already.
        field : str
            Name of the list in refusals.
        """
        check_most(len(given), field, self._limits, "queries")
        keys = self._check(given, field)
        return [
            self._one(one, f"{field}[{at}]", keys[at], None if vectors is None else vectors[at])
            for at, one in enumerate(given)
        ]

    def _check(self, given: Sequence[str | QueryIn], field: str) -> list[bytes | None]:
        """Refuse more than is allowed, before any work; return the filter of each query, as bytes to compare."""
        limits, values, keys = self._limits, 0, list[bytes | None]()
        for at, one in enumerate(given):
            text, allow, key = (one, None, None) if isinstance(one, str) else (one.text, one.allow, None)
            place = f"{field}[{at}]"
            if text is not None:
                check_most(len(text), f"{place}.text", limits, "text_chars", "character")
            if allow is not None:
                if isinstance(allow, Mapping):
                    values += check_conditions(allow, f"{place}.allow", limits)
                else:
                    check_most(len(allow), f"{place}.allow", limits, "allow")
                    values += len(allow)
                check_most(values, None, limits, "values", "value")
                key = msgspec.json.encode(allow, order="deterministic")
            if isinstance(one, QueryIn) and one.entities is not None:
                check_most(len(one.entities), f"{place}.entities", limits, "entities")
                values += len(one.entities)
            keys.append(key)
        check_most(values, None, limits, "values", "value")
        check_most(len(set(keys) - {None}), None, limits, "filters", "filter")
        return keys

    def _one(self, given: str | QueryIn, field: str, key: bytes | None, vector: Any) -> Query:
        if isinstance(given, str):
            return Query(given, allow=self._allowed(None, None, f"{field}.allow"))
        if vector is None:
            vector = vector_of(given, field)
        self.nbytes += (0 if vector is None else vector.nbytes) + NAME_BYTES * len(given.entities or ())
        return Query(
            given.text,
            vector,
            self._entities(given.entities, f"{field}.entities"),
            self._allowed(given.allow, key, f"{field}.allow"),
        )

    def _allowed(self, allow: Any, key: bytes | None, field: str) -> Any:
        """Return the rows of a filter; equal filters have the same array."""
        if key is None:
            return self._snapshot.rows(None, self._principal, field)
        if key not in self._rows:
            rows: NDArray[Any] = self._snapshot.rows(allow, self._principal, field)
            self._rows[key] = rows
            self.nbytes += rows.nbytes
            self._held.check(self.nbytes)
        return self._rows[key]

    def _entities(self, given: list[str | int] | None, field: str) -> list[str | int] | None:
        for at, one in enumerate(given or ()):
            if isinstance(one, str):
                check_most(len(one), f"{field}[{at}]", self._limits, "text_chars", "character")
            elif self._principal.where is not None:
                raise InputError(
                    "unsupported",
                    f"{field}[{at}]",
                    "{field} is {given}, and the key sees only a part of the index; give the entity's name",
                    given=one,
                )
        return given


def takes_long(given: Sequence[str | QueryIn], snapshot: Snapshot) -> bool:
    """Return whether queries take so long to check and divide that the event loop should not wait for it."""
    passages = snapshot.index.num_passages // PASSAGES
    work = OF_QUERY * len(given)
    for one in given:
        if isinstance(one, QueryIn):
            work += 0 if one.entities is None else len(one.entities)
            work += 0 if one.allow is None else passages + _number(one.allow)
    return work > LONG


def _number(allow: list[str | int] | Mapping[str, Any]) -> int:
    """Return the number of ids of a filter, or of its conditions and their values."""
    if not isinstance(allow, Mapping):
        return len(allow)
    return sum(1 + (len(value) if isinstance(value, list) else 0) for value in allow.values())
