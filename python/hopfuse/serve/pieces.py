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


def pieces_of(queries: Sequence[Query], snapshot: Snapshot, limit: int, encodes: Sequence[bool]) -> list[Piece]:
    """Return the pieces of a request's queries, each of at most ``limit``.

    Queries with filters and queries without are in different pieces. The queries of a filter whose part of the index
    has to be made are pieces of their own. All queries of a piece have vectors or none, and need the encoder or none
    does: so no query with a vector waits for a text, and the texts that the encoder gets are those of the piece, in its
    order.

    Parameters
    ----------
    queries : sequence of Query
        Equal filters are the same object.
    snapshot : Snapshot
    limit : int
    encodes : sequence of bool
        Whether each query needs the encoder.
    """
    is_new: dict[int, bool] = {}  # by filter
    places: dict[tuple[int, int, bool, bool], list[int]] = {}  # without filters first, then of parts that exist
    left = LOOKED_UP
    for at, query in enumerate(queries):
        order, of = 0, 0
        if query.allow is not None:
            of = id(query.allow)
            if of not in is_new:
                left -= snapshot.index.num_passages
                is_new[of] = left < 0 or not snapshot.has_part(query.allow)
            order, of = (2, of) if is_new[of] else (1, 0)
        places.setdefault((order, of, query.vector is None, encodes[at]), []).append(at)
    found = list[Piece]()
    for (order, of, _, _), some in sorted(places.items(), key=lambda one: (one[0][0], one[1])):
        for chunk in _chunks(some, limit):
            found.append(Piece(chunk, None if order == 0 else int(is_new.get(of, False))))
    return found


def _chunks(places: list[int], limit: int) -> list[list[int]]:
    return [places[at : at + limit] for at in range(0, len(places), limit)]
