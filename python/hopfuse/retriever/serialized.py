"""Let threads share a collaborator that is not known to be safe for threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any


class Serialized:
    """An object whose methods run one at a time. What ``part`` returns is serialized too."""

    def __init__(self, inner: Any, lock: Any = None) -> None:
        self._inner, self._lock = inner, RLock() if lock is None else lock

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value
        method: Callable[..., Any] = value

        @wraps(method)  # a leg's signature says whether it takes a filter
        def in_turn(*args: Any, **options: Any) -> Any:
            with self._lock:
                found = method(*args, **options)
            return Serialized(found, self._lock) if name == "part" else found

        vars(self)[name] = in_turn
        return in_turn

    def __repr__(self) -> str:
        return repr(self._inner)


def shared(collaborator: Any) -> Any:
    """Return a collaborator that threads may share: this package's own are safe as they are."""
    if collaborator is None or type(collaborator).__module__.startswith("hopfuse."):
        return collaborator
    return Serialized(collaborator)
