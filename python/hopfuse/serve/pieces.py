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
    encodes : bool
        Whether the encoder is called for them.
    parts : int, optional
        Parts of the index that have to be made for their filters; None for queries without filters.
    """

    places: list[int]
    encodes: bool = False
    parts: int | None = None


def pieces_of(queries: Sequence[Query], encodes: Sequence[bool], snapshot: Snapshot, limit: int) -> list[Piece]:
    """Return the pieces of a request's queries, each of at most ``limit``.

    Queries with filters and queries without are in different pieces, and so are queries with vectors and without, and
    those for which the encoder is called: so no query with a vector waits for a text, and the texts that the encoder
    gets are those of the piece, in its order. The queries of a filter whose part of the index has to be made are
    pieces of their own.

    Parameters
    ----------
    queries : sequence of Query
        Equal filters are the same object.
    encodes : sequence of bool
        Whether the encoder is called, by query.
    snapshot : Snapshot
    limit : int
    """
    found: dict[tuple[int, bool, bool], list[int]] = {}  # by filter, 0 for none and 1 for those whose parts exist
    of_filter: dict[int, int] = {}
    left = LOOKED_UP
    for at, query in enumerate(queries):
        which = 0
        if query.allow is not None:
            if id(query.allow) not in of_filter:
                left -= snapshot.index.num_passages
                is_known = left >= 0 and snapshot.has_part(query.allow)
                of_filter[id(query.allow)] = 1 if is_known else 2 + len(of_filter)
            which = of_filter[id(query.allow)]
        found.setdefault((which, query.vector is None, encodes[at]), []).append(at)
    pieces = list[Piece]()
    for (which, _, encoded), places in sorted(found.items()):
        for start in range(0, len(places), limit):
            parts = None if which == 0 else int(which > 1)  # of a part that has to be made, each
            pieces.append(Piece(places[start : start + limit], encoded, parts))
    return pieces
