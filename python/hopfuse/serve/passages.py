"""Read passages: ``GET /v1/passages/{id}`` and, page by page, ``GET /v1/passages``.

What a key's filter hides is answered like what does not exist, by the same steps. Ids are looked up and sorted on a
thread, since that takes long in a large index.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .. import Index
from .._validation import check_whole
from ..errors import InputError
from .answers import in_parts
from .errors import MOST_SHOWN, no_passage
from .http import encode
from .keys import Principal
from .schema import PassageOut, PassagesPage
from .service import Service
from .snapshots import Snapshot, own_id

#: Passages of a page by default.
PAGE = 100
#: Bytes of JSON after which a page ends.
PAGE_BYTES = 2**20
#: Ids that are sorted by one call, during which no other Python runs.
RUN = 4096
#: Passages whose visibility is looked at together.
BLOCK = 65536


class PassageReader:
    """Reads passages of a service's indexes.

    Parameters
    ----------
    service : Service
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._orders: WeakKeyDictionary[Index, NDArray[np.int64]] = WeakKeyDictionary()
        self._lock = threading.Lock()  # one order is made at a time

    async def one(self, id: str, given: Mapping[str, str], principal: Principal, owner: str) -> bytes:
        """Return a passage as JSON.

        Parameters
        ----------
        id : str
        given : mapping
            The parameters ``index``, ``at_least`` and ``timeout_ms``.
        principal : Principal
        owner : str
            Whose turn it takes on the threads.

        Raises
        ------
        RefusalError
            404: no passage that the key sees has the id.
        """
        snapshot = await self._snapshot(given, principal)
        return await self._service.desk.run(owner, self._one, snapshot, id, principal)

    async def page(self, given: Mapping[str, str], principal: Principal, owner: str) -> list[bytes]:
        """Return the passages after an id, in ascending order of ids, as JSON in parts.

        Parameters
        ----------
        given : mapping
            The parameters ``after``, ``limit``, ``index``, ``at_least`` and ``timeout_ms``. ``after`` need not be the
            id of a passage.
        principal : Principal
        owner : str
            Whose turn it takes on the threads.
        """
        most = self._service.config.limits.passages
        limit = check_whole(whole(given, "limit", min(PAGE, most)), "limit", most)
        snapshot = await self._snapshot(given, principal)
        return await self._service.desk.run(owner, self._page, snapshot, given.get("after"), limit, principal)

    async def _snapshot(self, given: Mapping[str, str], principal: Principal) -> Snapshot:
        at_least = whole(given, "at_least", None)
        return await self._service.snapshot_at(
            given.get("index"), principal, at_least, whole(given, "timeout_ms", None)
        )

    def _one(self, snapshot: Snapshot, id: str, principal: Principal) -> bytes:
        index, seen = snapshot.index, snapshot.visible(principal)
        own = own_id(index, id)
        row = -1 if own is None else index.find(own)
        is_hidden = seen is not None and len(seen) > 0 and not seen[row]  # a row is looked at in any case
        if row < 0 or is_hidden:
            raise no_passage(id)
        return encode(_shown(index, row))

    def _page(self, snapshot: Snapshot, after: str | None, limit: int, principal: Principal) -> list[bytes]:
        index, seen = snapshot.index, snapshot.visible(principal)
        order = self._order(index)
        start = 0 if after is None else _place_after(index, order, after)
        found: list[bytes] = []
        nbytes, last, more = 0, -1, False
        for row in _rows(order[start:], seen):
            more = nbytes >= PAGE_BYTES or len(found) == limit
            if more:
                break
            found.append(encode(_shown(index, row)))
            nbytes, last = nbytes + len(found[-1]), row
        page = PassagesPage([], snapshot.seq, index.passage_ids[last] if more else None)
        return in_parts(page, ([one] for one in found))

    def _order(self, index: Index) -> NDArray[np.int64]:
        """Return the rows by ascending id."""
        with self._lock:
            order = self._orders.get(index)
            if order is None:
                order = self._orders[index] = _ascending(index)
            return order


def whole(given: Mapping[str, str], name: str, default: Any) -> Any:
    """Return a query parameter that is a whole number, or the default if it is not given."""
    text = given.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise InputError(
            "range", name, "{field} is {given!r}; it must be {allowed}", given=text[:50], allowed="a whole number"
        )
    return int(text)


def _rows(order: NDArray[np.int64], seen: NDArray[np.bool_] | None) -> Iterator[int]:
    """Yield the rows of an order that are seen."""
    for at in range(0, len(order), BLOCK):
        rows = order[at : at + BLOCK]
        yield from (rows if seen is None else rows[seen[rows]]).tolist()


def _place_after(index: Index, order: NDArray[np.int64], after: str) -> int:
    """Return the place in the order of the first id after a given one."""
    own = own_id(index, after)
    if own is None:
        raise InputError(
            "type",
            "after",
            "{field} is {given!r}, and the ids of this index are integers; give the last id of the page before",
            given=after[:MOST_SHOWN],
        )
    ids = index.passage_ids
    place: int = bisect_right(range(len(order)), own, key=lambda at: ids[int(order[at])])
    return place


def _ascending(index: Index) -> NDArray[np.int64]:
    """Return the rows by ascending id; no single call takes long, so that other threads go on."""
    ids = index.passage_ids
    if len(ids) and isinstance(ids[0], int):
        return np.argsort(np.fromiter(ids, np.int64, len(ids)))
    pairs = zip(ids, range(len(ids)), strict=True)
    runs = [sorted(islice(pairs, RUN)) for _ in range(0, len(ids), RUN)]
    return np.fromiter((row for _, row in merge(*runs)), np.int64, len(ids))


def _shown(index: Index, row: int) -> PassageOut:
    language = index.languages[row]
    return PassageOut(
        index.passage_ids[row],
        index.texts[row],
        index.titles[row] or None,
        index.metadata.row(row) or None,
        index.documents[row],
        None if language is None else str(language),
    )
