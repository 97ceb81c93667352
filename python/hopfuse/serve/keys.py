"""API keys and their rights."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..index import Where, where
from ..index.filters import split_condition
from .config import KeyConfig
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


class Keys:
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
