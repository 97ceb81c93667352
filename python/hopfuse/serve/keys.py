"""API keys and their rights, and the cost of guessing at them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request

from ..index import Where, where
from ..index.filters import split_condition
from .config import KeyConfig, Limits
from .errors import RefusalError

#: Prefix of every key, by which secret scanners recognise one.
PREFIX = "hopfuse_"
RIGHTS = ("read", "write", "admin")


@dataclass(frozen=True)
class Principal:
    """The sender of a request.

    Attributes
    ----------
    name : str
        Name of the key; empty if the server has no keys.
    rights : frozenset of str
    where : Where, optional
        Condition on the passages that the key sees; None for all.
    sets : mapping
        Metadata that the filter fixes by equality; passages that the key adds get it.
    indexes : frozenset of str, optional
        Indexes that the key sees; None for all.
    prefix : str
        Required prefix of the ids of passages that the key adds.
    expires : datetime, optional
        When the key ends.
    """

    name: str = ""
    rights: frozenset[str] = frozenset(RIGHTS)
    where: Where | None = None
    sets: Mapping[str, Any] = field(default_factory=dict, hash=False)
    indexes: frozenset[str] | None = None
    prefix: str = ""
    expires: datetime | None = None

    def may(self, right: str) -> bool:
        """Return whether the key has a right; admin has all."""
        return right in self.rights or "admin" in self.rights

    def sees(self, index: str) -> bool:
        """Return whether the key sees an index."""
        return self.indexes is None or index in self.indexes


class KeyRing:
    """The keys of a server. Without any, every request may do everything.

    Parameters
    ----------
    keys : mapping of str to KeyConfig
    """

    def __init__(self, keys: Mapping[str, KeyConfig]) -> None:
        self._known = [(bytes.fromhex(one.sha256), _principal(name, one)) for name, one in keys.items()]
        self._anyone = None if keys else Principal()

    def all(self) -> list[Principal]:
        """Return the principals of all keys."""
        return [principal for _, principal in self._known]

    def principal(self, authorization: str) -> Principal:
        """Return the principal of a header ``Authorization: Bearer KEY``; all digests are compared, in constant time.

        Raises
        ------
        RefusalError
            401.
        """
        if self._anyone is not None:
            return self._anyone
        scheme, _, key = authorization.partition(" ")
        digest = hashlib.sha256(key.strip().encode()).digest()
        found = None
        for known, principal in self._known:
            if hmac.compare_digest(known, digest):
                found = principal
        if found is None or scheme.lower() != "bearer":
            raise RefusalError(
                "unauthorized", None, "the request has no valid key; send the header Authorization: Bearer KEY"
            )
        if found.expires is not None and datetime.now(UTC) >= found.expires:  # told only to who has the key
            raise RefusalError(
                "expired",
                None,
                "the key {key} was valid until {until}; ask the server's operator for another",
                key=found.name,
                until=found.expires.isoformat(),
            )
        return found


def lacks_right(principal: Principal, right: str) -> RefusalError:
    """Return the refusal of a key without a right."""
    return RefusalError(
        "forbidden", None, "the key {key} lacks the right {right}; use one that has it", key=principal.name, right=right
    )


def new_key() -> tuple[str, str]:
    """Return a new key of 256 random bits, and its SHA-256 for the configuration.

    Examples
    --------
    >>> from hopfuse.serve import new_key
    >>> key, digest = new_key()
    >>> len(digest), key.startswith("hopfuse_")
    (64, True)
    """
    key = PREFIX + secrets.token_urlsafe(32)
    return key, hashlib.sha256(key.encode()).hexdigest()


def _principal(name: str, key: KeyConfig) -> Principal:
    allowed = None if key.indexes is None else frozenset(key.indexes)
    conditions = {split_condition(name): value for name, value in key.filter.items()}
    sets = {column: value for (column, operator), value in conditions.items() if operator == "eq"}
    filter = where(**key.filter) if key.filter else None
    return Principal(name, frozenset(key.rights), filter, sets, allowed, key.prefix, key.expires)


# ---- Wrong keys ------------------------------------------------------------------------------------------------------


#: Seconds for which wrong keys of an address count, and by which the refusal of each further one is delayed.
_WINDOW, _DELAY = 60.0, 1.0
#: Addresses that are remembered, and refusals that are delayed at a time.
_ADDRESSES, _DELAYED = 4096, 64
#: Bits of an IPv6 address that tell clients apart; a client chooses the others itself.
_CLIENT_BITS = 64


class Guesses:
    """The wrong keys of clients.

    After ``limits.wrong_keys`` of an address in a minute, the refusal of each further one is sent a second later. While
    many refusals wait, others are 429.

    Parameters
    ----------
    limits : Limits
    count : callable, optional
        Called for each delayed refusal.
    clock : callable, optional
        Returns seconds.

    Examples
    --------
    >>> import asyncio
    >>> from starlette.requests import Request
    >>> from hopfuse.serve import Guesses, Limits
    >>> guesses = Guesses(Limits(wrong_keys=1))
    >>> asyncio.run(guesses.delay(Request({"type": "http", "client": ("192.0.2.7", 5000)})))
    >>> len(guesses)
    1
    """

    def __init__(
        self, limits: Limits, count: Callable[[], None] = lambda: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limits, self._count, self._clock = limits, count, clock
        self._counts: OrderedDict[str, tuple[int, float]] = OrderedDict()  # and the end of the window, the oldest first
        self._delayed = 0

    def __len__(self) -> int:
        """Return the number of remembered addresses."""
        return len(self._counts)

    async def delay(self, request: Request) -> None:
        """Count a wrong key, and wait before it is refused if the client has sent many.

        Raises
        ------
        RefusalError
            429: many refusals wait.
        """
        if not self._is_over("" if request.client is None else request.client.host):
            return
        self._count()
        if self._delayed >= _DELAYED:
            raise RefusalError(
                "overloaded", None, "many requests with wrong keys are being refused; send the request again later"
            ).after(_DELAY)
        self._delayed += 1
        try:
            await asyncio.sleep(_DELAY)
        finally:
            self._delayed -= 1

    def _is_over(self, host: str) -> bool:
        address, now = client_of(host), self._clock()
        count, end = self._counts.get(address, (0, 0.0))
        if now >= end:
            self._counts.pop(address, None)  # it becomes the newest
            count, end = 0, now + _WINDOW
        self._counts[address] = (count + 1, end)
        while len(self._counts) > _ADDRESSES:
            self._counts.popitem(last=False)
        return count >= self._limits.wrong_keys


def client_of(host: str) -> str:
    """Return the address by which a client is known: its own, or its network if it is one of IPv6.

    Examples
    --------
    >>> client_of("192.0.2.7"), client_of("2001:db8:0:1::7"), client_of("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8:0:1::', '192.0.2.7')
    """
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), _CLIENT_BITS), strict=False).network_address)
