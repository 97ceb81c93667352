"""A search as every way in makes it, and its answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .keys import Principal
from .schema import ResultOut, Timings
from .snapshots import Query, Snapshot

#: Who sends a request that no key is asked for.
ANYONE = Principal()


@dataclass(frozen=True, eq=False, kw_only=True)
class Search:
    """A request to search, checked.

    Attributes
    ----------
    snapshot : Snapshot
    queries : list of Query
    k : int
    recipe : str, optional
    options : mapping
    timeout_ms : int, optional
    trace : bool
    fields : frozenset of str
        ``"title"``, ``"text"``, ``"metadata"``.
    principal : Principal
        Whose turn it takes.
    nbytes : int
        Of the body.
    arrived : float
        When, by :func:`time.monotonic`; the timeout counts from then.
    """

    snapshot: Snapshot
    queries: Sequence[Query]
    k: int = 10
    recipe: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    timeout_ms: int | None = None
    trace: bool = False
    fields: frozenset[str] = frozenset(("title", "text", "metadata"))
    principal: Principal = ANYONE
    nbytes: int = 0
    arrived: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class Answer:
    """The rankings of a request's questions, and where the time went."""

    results: list[ResultOut]
    snapshot: Snapshot
    timings: Timings
