"""Divide the queries of a request into pieces, between which other requests get their turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .snapshots import Query, Snapshot

#: Passages of filters for which it is looked up whether their part of the index exists; others count as new.
LOOKED_UP = 1 << 22


class Piece(NamedTuple):
    """Queries that are searched in one batch.

    Attributes
    ----------
    places : list of int
        Their positions in the request.
    parts : int, optional
        Parts of the index that have to be made for their filters; None for queries without filters.
    """

    places: list[int]
    parts: int | None = None


def pieces_of(queries: Sequence[Query], snapshot: Snapshot, limit: int) -> list[Piece]:
    """Return the pieces of a request's queries, each of at most ``limit``.

    Queries with filters and queries without are in different pieces. The queries of a filter whose part of the index
    has to be made are pieces of their own.

    Parameters
    ----------
    queries : sequence of Query
        Equal filters are the same object.
    snapshot : Snapshot
    limit : int
    """
    plain, known = list[int](), list[int]()
    new: dict[int, list[int]] = {}  # by filter
    of_filter: dict[int, list[int]] = {}  # the list that has the queries of each
    left = LOOKED_UP
    for at, query in enumerate(queries):
        if query.allow is None:
            plain.append(at)
            continue
        if id(query.allow) not in of_filter:
            left -= snapshot.index.num_passages
            is_known = left >= 0 and snapshot.has_part(query.allow)
            of_filter[id(query.allow)] = known if is_known else new.setdefault(id(query.allow), [])
        of_filter[id(query.allow)].append(at)
    found = [Piece(some) for some in _chunks(plain, limit)]
    found += [Piece(some, 0) for some in _chunks(known, limit)]
    for places in new.values():
        found += [Piece(some, 1 if number == 0 else 0) for number, some in enumerate(_chunks(places, limit))]
    return found


def _chunks(places: list[int], limit: int) -> list[list[int]]:
    return [places[at : at + limit] for at in range(0, len(places), limit)]
