"""Read passages: ``GET /v1/passages/{id}`` and, page by page, ``GET /v1/passages``.

What a key's filter hides is answered like what does not exist, by the same steps. Ids are looked up and sorted on a
thread, since that takes long in a large index.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .._validation import check_whole
from ..errors import InputError
from ..index import Index
from .answers import PartedResponse, in_parts
from .budget import Held
from .errors import MOST_SHOWN, no_passage
from .found import HIT_BYTES
from .http import JSON, encode
from .keys import Principal
from .schema import AtLeast, PassageOut, PassagesPage
from .service import Service
from .snapshots import IndexSnapshot, own_id

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

    async def one(self, id: str, given: Mapping[str, str], principal: Principal, held: Held) -> PartedResponse:
        """Return a passage as JSON.

        Parameters
        ----------
        id : str
        given : mapping
            The parameters ``index``, ``at_least`` and ``timeout_ms``.
        principal : Principal
        held : Held
            The account of the request's bytes, which counts those of the answer before it is read.

        Raises
        ------
        RefusalError
            404: no passage that the key sees has the id. 400, 429: there is no room; see :meth:`Held.add`.
        """
        snapshot, desk = await self._snapshot(given, principal), self._service.desk
        row, nbytes = await desk.run(held.owner, self._find, snapshot, id, principal)
        held.add(nbytes)
        shown = await desk.run(held.owner, _encoded, snapshot.index, row)
        return PartedResponse([shown], JSON).hold(held, nbytes)

    async def page(self, given: Mapping[str, str], principal: Principal, held: Held) -> PartedResponse:
        """Return the passages after an id, in ascending order of ids, as JSON.

        Parameters
        ----------
        given : mapping
            The parameters ``after``, ``limit``, ``index``, ``at_least`` and ``timeout_ms``. ``after`` need not be the
            id of a passage.
        principal : Principal
        held : Held
            The account of the request's bytes, which counts those of the answer before it is read.

        Raises
        ------
        HopfuseError
            There is no room; see :meth:`Held.add`.
        """
        most = self._service.config.limits.passages
        limit = check_whole(whole(given, "limit", min(PAGE, most)), "limit", most)
        snapshot, desk = await self._snapshot(given, principal), self._service.desk
        rows, nbytes, more = await desk.run(held.owner, self._rows, snapshot, given.get("after"), limit, principal)
        held.add(nbytes)
        parts = await desk.run(held.owner, _page, snapshot, rows, more)
        return PartedResponse(parts, JSON).hold(held, nbytes)

    async def _snapshot(self, given: Mapping[str, str], principal: Principal) -> IndexSnapshot:
        at_least: AtLeast = "latest" if given.get("at_least") == "latest" else whole(given, "at_least", None)
        return await self._service.snapshot_at(
            given.get("index"), principal, at_least, whole(given, "timeout_ms", None)
        )

    def _find(self, snapshot: IndexSnapshot, id: str, principal: Principal) -> tuple[int, int]:
        """Return the row of a passage that the key sees, and its bytes; it is not read."""
        index, seen = snapshot.index, snapshot.visible(principal)
        own = own_id(index, id)
        row = -1 if own is None else index.find(own)
        is_hidden = seen is not None and len(seen) > 0 and not seen[row]  # a row is looked at in any case
        if row < 0 or is_hidden:
            raise no_passage(id)
        return row, int(_bytes_of(index, np.array([row]))[0])

    def _rows(
        self, snapshot: IndexSnapshot, after: str | None, limit: int, principal: Principal
    ) -> tuple[list[int], int, bool]:
        """Return the rows of a page, their bytes, and whether others follow; no passage is read."""
        index, seen = snapshot.index, snapshot.visible(principal)
        order = self._order(index)
        start = 0 if after is None else _place_after(index, order, after)
        rows = np.fromiter(islice(_seen_rows(order[start:], seen), limit + 1), np.int64)
        ends = np.cumsum(_bytes_of(index, rows))
        count = min(limit, 1 + int(np.searchsorted(ends, PAGE_BYTES)), len(rows))
        return rows[:count].tolist(), int(ends[count - 1]) if count else 0, count < len(rows)

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


def _seen_rows(order: NDArray[np.int64], seen: NDArray[np.bool_] | None) -> Iterator[int]:
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


def _bytes_of(index: Index, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return about how many bytes some passages have as JSON: int64, shape (n,); none is read."""
    ids: Any = index.passage_ids
    found: NDArray[np.int64] = HIT_BYTES + ids.lengths(rows) + index.titles.lengths(rows)
    return found + index.texts.lengths(rows) + index.metadata.lengths(rows)


def _page(snapshot: IndexSnapshot, rows: Sequence[int], more: bool) -> list[bytes]:
    """Return a page as JSON in parts."""
    index = snapshot.index
    page = PassagesPage([], snapshot.seq, index.passage_ids[rows[-1]] if more else None)
    return in_parts(page, ([_encoded(index, row)] for row in rows))


def _encoded(index: Index, row: int) -> bytes:
    """Return a passage as JSON."""
    language = index.languages[row]
    return encode(
        PassageOut(
            index.passage_ids[row],
            index.texts[row],
            index.titles[row] or None,
            index.metadata.row(row) or None,
            index.documents[row],
            None if language is None else str(language),
        )
    )
