"""How many connections and requests there may be, in all and of one client.

At a limit of connections, the one that has waited longest for a request gives way to the new one: at a client's limit,
one of the same client. If all of them have requests, the new one is refused. So a client that opens connections and
sends nothing shuts nobody out.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Any, Protocol

from starlette.requests import Request

from .config import ServeConfig
from .errors import RefusalError
from .keys import client_of

#: Further connections, on which /health alone is answered. Each has a second to send a request; the oldest gives way.
RESERVE, RESERVE_SECONDS = 64, 1.0
#: The name in a request's scope of its connection, which has ``identify(key)``.
CONNECTION = "hopfuse.connection"


def address_of(peer: Any) -> str | None:
    """Return the address by which the connections of a client are counted. Nothing else decides it.

    Parameters
    ----------
    peer : tuple or None
        Host and port of the other end.

    Returns
    -------
    str or None
        The host, or the network of an IPv6 host; None for a connection of no client of its own, such as one of a Unix
        socket.

    Examples
    --------
    >>> address_of(("192.0.2.7", 40000)), address_of(("2001:db8:0:1::7", 40000)), address_of(None)
    ('192.0.2.7', '2001:db8:0:1::', None)
    """
    return client_of(peer[0]) if peer else None


class Connection(Protocol):
    """What is counted."""

    groups: dict[str, ConnectionGroup]

    def give_way(self) -> None:
        """Close the connection, which waits for a request."""


class ConnectionGroup:
    """Connections that share a limit, and those of them that wait for a request, the longest first.

    Parameters
    ----------
    kind : {"all", "address", "key"}
    name : str
        The address, or the key's name.
    most : int
    """

    def __init__(self, kind: str, name: str, most: int) -> None:
        self.kind, self.name, self.most, self.count = kind, name, most, 0
        self.waiting: OrderedDict[Connection, None] = OrderedDict()

    def is_full(self) -> bool:
        """Whether there are as many as there may be, and all have requests."""
        return self.count >= self.most and not self.waiting

    def refusal(self) -> RefusalError:
        """Return the refusal of a request on a connection beyond the limit."""
        if self.kind == "all":
            said = RefusalError(
                "unavailable",
                None,
                "the server has {most} open connections with requests, the most that it takes (limits.connections); "
                "send the request again after Retry-After",
                most=self.most,
            )
        else:
            said = RefusalError(
                "overloaded",
                None,
                "the {kind} {name} has {most} open connections with requests, the most that it may have "
                "(limits.{kind}_connections); send the request again on one of them, or after Retry-After",
                kind=self.kind,
                name=self.name,
                most=self.most,
            )
        return said.after(1)


class Connections:
    """The open connections of a server, in groups: all, those of an address, those of a key.

    Parameters
    ----------
    config : ServeConfig
    """

    def __init__(self, config: ServeConfig) -> None:
        limits = config.limits
        self._most = {"address": config.part(limits.address_connections), "key": config.part(limits.key_connections)}
        self._all = ConnectionGroup("all", "", limits.connections)
        self._groups: dict[tuple[str, str], ConnectionGroup] = {}
        self._reserve: OrderedDict[Connection, None] = OrderedDict()

    @property
    def count(self) -> int:
        """The number of open connections."""
        return self._all.count + len(self._reserve)

    def open(self, one: Connection, address: str | None) -> RefusalError | None:
        """Count a new connection; return the refusal of its requests if there are too many."""
        groups = [self._all] if address is None else [self._group("address", address), self._all]
        for group in groups:
            if group.is_full():
                if len(self._reserve) >= RESERVE:
                    self._give_way(next(iter(self._reserve)))
                self._reserve[one] = None
                return group.refusal()
        for group in groups:
            self._join(one, group)
            group.waiting[one] = None
        return None

    def identify(self, one: Connection, key: str) -> None:
        """Count a connection, which has a request, among those of its key.

        Raises
        ------
        RefusalError
            429: the key has too many, and all have requests.
        """
        before = one.groups.get("key")
        if (before is not None and before.name == key) or not one.groups:
            return
        group = self._group("key", key)
        if group.is_full():
            raise group.refusal()
        if before is not None:
            self._leave(one, before)
        self._join(one, group)

    def busy(self, one: Connection) -> None:
        """Note that a connection has a request."""
        for group in one.groups.values():
            group.waiting.pop(one, None)

    def waits(self, one: Connection) -> None:
        """Note that a connection waits for a request."""
        for group in one.groups.values():
            group.waiting[one] = None

    def close(self, one: Connection) -> None:
        """Count a connection no longer."""
        self._reserve.pop(one, None)
        for group in one.groups.values():
            self._leave(one, group)
        one.groups = {}

    def _group(self, kind: str, name: str) -> ConnectionGroup:
        return self._groups.get((kind, name)) or ConnectionGroup(kind, name, self._most[kind])

    def _join(self, one: Connection, group: ConnectionGroup) -> None:
        if group.count >= group.most:
            self._give_way(next(iter(group.waiting)))
        if group is not self._all:
            self._groups[group.kind, group.name] = group
        one.groups[group.kind] = group
        group.count += 1

    def _leave(self, one: Connection, group: ConnectionGroup) -> None:
        group.waiting.pop(one, None)
        group.count -= 1
        if not group.count:
            self._groups.pop((group.kind, group.name), None)

    def _give_way(self, one: Connection) -> None:
        self.close(one)
        one.give_way()


class Requests:
    """The requests of keys that are not answered yet.

    Parameters
    ----------
    config : ServeConfig
    """

    def __init__(self, config: ServeConfig) -> None:
        self._most, self._counts = config.part(config.limits.key_requests), Counter[str]()

    def begin(self, request: Request) -> None:
        """Count a request and its connection among those of its key; without keys, nothing is counted.

        Raises
        ------
        RefusalError
            429: the key has too many.
        """
        key = request.state.principal.name
        if not key:
            return
        connection = request.scope.get(CONNECTION)
        if connection is not None:
            connection.identify(key)
        if self._counts[key] >= self._most:
            raise RefusalError(
                "overloaded",
                None,
                "the key {key} has {most} requests that are not answered, the most that it may have "
                "(limits.key_requests); send the request again after Retry-After",
                key=key,
                most=self._most,
            ).after(1)
        self._counts[key] += 1
        request.state.counted = key

    def end(self, request: Request) -> None:
        """Count a request no longer, if it was counted."""
        key = getattr(request.state, "counted", None)
        if key is not None:
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]
