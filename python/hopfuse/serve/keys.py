"""Keys: who may do what, over which passages."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..index import Where, where
from ..index.filters import split_condition
from .config import KeyConfig
from .errors import RefusalError

#: Before each key, so that a scanner of secrets knows one.
PREFIX = "hopfuse_"
RIGHTS = ("read", "write", "admin")


@dataclass(frozen=True)
class Principal:
    """Whoever sends a request.

    Attributes
    ----------
    name : str
        Of the key; empty where the server has none.
    rights : frozenset of str
    where : Where, optional
        The passages that the key may see; None: all.
    sets : mapping
        The metadata that its filter says by equality: passages that it adds have it.
    indexes : frozenset of str, optional
        None: all.
    prefix : str
        Of the ids of passages that it adds.
    """

    name: str = ""
    rights: frozenset[str] = frozenset(RIGHTS)
    where: Where | None = None
    sets: Mapping[str, Any] = field(default_factory=dict, hash=False)
    indexes: frozenset[str] | None = None
    prefix: str = ""

    def may(self, right: str) -> bool:
        """Return whether it has a right; admin has all."""
        return right in self.rights or "admin" in self.rights

    def sees(self, index: str) -> bool:
        """Return whether it may know of an index."""
        return self.indexes is None or index in self.indexes


class Keys:
    """The keys of a server; without any, everybody may do everything.

    Parameters
    ----------
    keys : mapping of str to KeyConfig
    """

    def __init__(self, keys: Mapping[str, KeyConfig]) -> None:
        self._known = [(bytes.fromhex(one.sha256), _principal(name, one)) for name, one in keys.items()]
        self._anyone = None if keys else Principal()

    def all(self) -> list[Principal]:
        """Return whoever has a key."""
        return [principal for _, principal in self._known]

    def principal(self, authorization: str) -> Principal:
        """Return who sends a header ``Authorization: Bearer KEY``; every digest is compared, in constant time.

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
            raise RefusalError(401, "key", "there is no known key; send the header Authorization: Bearer KEY")
        return found


def new_key() -> tuple[str, str]:
    """Return a key of 256 random bits, and its digest for the configuration.

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
    return Principal(name, frozenset(key.rights), filter, sets, allowed, key.prefix)
