"""Many connections and requests of one client."""

from __future__ import annotations

import time
from collections import Counter

from .attacks import Counts, Target, answers_of, anything, attack, flood, held, only

#: More than the server has connections for, by default.
MANY = 1200


@attack("idle connections", anything)
def idle_connections(target: Target) -> Counts:
    """1,200 connections that send nothing; those that are closed are opened anew."""
    opened = 0
    while target.goes_on():
        with held(target, MANY) as connections:
            opened += len(connections)
            time.sleep(min(1.0, target.seconds / 4))
    return {"opened": opened}


@attack("bodies that do not end", only(429, least=0))
def unfinished_bodies(target: Target) -> Counts:
    """1,200 requests with a key whose body lacks a byte."""
    sent = target.head("POST /v1/search", "Content-Length: 10", keyed=True) + b"\r\n" + b'{"queries'
    with held(target, MANY, sent) as connections:
        while target.goes_on():
            time.sleep(0.1)
        return answers_of(connections)


@attack("answers that nobody reads", anything)
def unread_answers(target: Target) -> Counts:
    """300 connections that ask for the page again and again, and read nothing."""
    sent = 100 * (target.head("GET /") + b"\r\n")
    with held(target, 300, sent) as connections:
        while target.goes_on():
            time.sleep(0.1)
        return {"open": len(connections)}


#: Seconds that ``/health/live`` takes beside connections that come as fast as they are accepted: it waits in the
#: system's queue of them, in which a bare event loop takes longer, since it accepts more.
QUEUED = 0.1


@attack("connections that come and go", anything, health_seconds=QUEUED)
def come_and_go(target: Target) -> Counts:
    """Connections that are opened and closed at once, as fast as a client can."""
    counts: Counter[str] = Counter()
    while target.goes_on():
        target.connect().close()
        counts["opened"] += 1
    return counts


@attack("refused requests", only(401))
def refused_requests(target: Target) -> Counts:
    """Requests without a key on sixteen connections, one after the other."""
    return flood(target, target.head("GET /v1/indexes") + b"\r\n", b"", 16)
