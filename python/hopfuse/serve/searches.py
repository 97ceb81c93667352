"""A search request, whatever its protocol, and its answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .keys import Principal
from .schema import ResultOut, Timings
from .snapshots import Query, Snapshot

#: The sender of a request that needs no key.
ANYONE = Principal()


@dataclass(frozen=True, eq=False, kw_only=True)
class Search:
    """A checked search request.

    Attributes
    ----------
    snapshot : Snapshot
    queries : list of Query
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


@dataclass(frozen=True, slots=True)
class Answer:
    """The results of a request, the state that was searched, and timings."""

    results: list[ResultOut]
    snapshot: Snapshot
    timings: Timings
