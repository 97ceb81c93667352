"""A search request, whatever its protocol, and its answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .found import HitReader, QueryRanking
from .keys import Principal
from .schema import ResultOut, Timings
from .snapshots import IndexSnapshot, SearchQuery

#: Hits of an answer, and bytes of it, up to which a batch reads them and the event loop encodes them.
SMALL_HITS, SMALL_BYTES = 1000, 2**18

#: The sender of a request that needs no key.
ANYONE = Principal()


@dataclass(frozen=True, eq=False, kw_only=True)
class Search:
    """A checked search request.

    Attributes
    ----------
    snapshot : IndexSnapshot
    queries : list of SearchQuery
    is_long : bool
        Whether checking the queries takes too long for the event loop to wait.
    k : int
    recipe : str, optional
    options : mapping
    timeout_ms : int, optional
    trace : bool
    strict : bool
        Whether a note is an error.
    per_document : int, optional
    fields : frozenset of str
        ``"title"``, ``"text"``, ``"metadata"``.
    principal : Principal
    owner : str
        Who sends it, for limits of one key (:func:`~hopfuse.serve.http.owner_of`).
    arrived : float
        Time of arrival (:func:`time.monotonic`), from which the timeout counts.
    """

    snapshot: IndexSnapshot
    queries: Sequence[SearchQuery]
    is_long: bool = False
    k: int = 10
    recipe: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    timeout_ms: int | None = None
    trace: bool = False
    strict: bool = False
    per_document: int | None = None
    fields: frozenset[str] = frozenset(("title", "text", "metadata"))
    principal: Principal = ANYONE
    owner: str = ""
    arrived: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, eq=False)
class SearchAnswer:
    """What was found for a request, the state that was searched, and timings.

    Attributes
    ----------
    found : list of QueryRanking
        By query.
    snapshot : IndexSnapshot
    timings : Timings
    reader : HitReader
        Reads the hits.
    """

    found: list[QueryRanking]
    snapshot: IndexSnapshot
    timings: Timings
    reader: HitReader

    @cached_property
    def nbytes(self) -> int:
        """The bytes that its results take, about, which is known before passages are read."""
        return sum(one.nbytes for one in self.found)

    @cached_property
    def is_large(self) -> bool:
        """Whether reading and encoding it takes too long for the event loop to wait."""
        return (
            self.nbytes > SMALL_BYTES
            or sum(map(len, self.found)) > SMALL_HITS
            or any(one.hits is None or one.trace is not None for one in self.found)
        )

    @property
    def results(self) -> list[ResultOut]:
        """The results by query, whose passages are read now unless a batch did."""
        return self.reader.results(self.found)
