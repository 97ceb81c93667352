"""A search request, whatever its protocol, and its answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .keys import Principal
from .schema import ResultOut, Timings, chars_of
from .snapshots import Query, Snapshot

#: Hits of an answer, and characters of what it says of them, up to which the event loop encodes it.
SMALL_HITS, SMALL_CHARS = 1000, 2**18

#: The sender of a request that needs no key.
ANYONE = Principal()


@dataclass(frozen=True, eq=False, kw_only=True)
class Search:
    """A checked search request.

    Attributes
    ----------
    snapshot : Snapshot
    queries : list of Query
    is_long : bool
        Whether the queries take so long to check that the event loop should not wait for it.
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

    snapshot: Snapshot
    queries: Sequence[Query]
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
class Answer:
    """The results of a request, the state that was searched, and timings."""

    results: list[ResultOut]
    snapshot: Snapshot
    timings: Timings

    @cached_property
    def is_large(self) -> bool:
        """Whether it takes so long to encode that the event loop should not wait for it."""
        hits = sum(len(one.hits) for one in self.results)
        return hits > SMALL_HITS or any(one.trace is not None for one in self.results) or self.chars > SMALL_CHARS

    @cached_property
    def chars(self) -> int:
        """The number of characters of what it says of its hits, at most; see :func:`~hopfuse.serve.schema.chars_of`."""
        return sum(chars_of(hit) for one in self.results for hit in one.hits)
