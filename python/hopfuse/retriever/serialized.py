"""Let threads share a collaborator that is not known to be safe for threads."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock, RLock
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class InUse(Generic[T]):
    """Objects by key, each made once for all who use it at a time."""

    def __init__(self) -> None:
        self._found: WeakValueDictionary[Hashable, T] = WeakValueDictionary()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the object of a key, made if none is in use."""
        with self._lock:
            found = self._found.get(key)
            if found is None:
                found = self._found[key] = make()
            return found


class Serialized:
    """An object whose methods run one at a time. What ``part`` and ``of_state`` return is serialized with it."""

    def __init__(self, inner: Any, lock: Any) -> None:
        self._inner, self._lock = inner, lock

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value
        method: Callable[..., Any] = value

        @wraps(method)  # a leg's signature says whether it takes a filter
        def in_turn(*args: Any, **options: Any) -> Any:
            with self._lock:
                found = method(*args, **options)
            return _serialized(found, self._lock) if name in ("part", "of_state") else found

        vars(self)[name] = in_turn
        return in_turn

    def __repr__(self) -> str:
        return repr(self._inner)

    def __reduce__(self) -> tuple[Any, ...]:
        return shared, (self._inner,)


#: By the ids of objects, which those that are in use keep.
_SHARED = InUse["Serialized"]()


def shared(collaborator: Any) -> Any:
    """Return a collaborator that threads may share: this package's own are safe as they are.

    An object has one lock, whichever retrievers share it.
    """
    if collaborator is None or type(collaborator).__module__.startswith("hopfuse."):
        return collaborator
    return _SHARED.get(id(collaborator), lambda: _serialized(collaborator, RLock()))


def _serialized(inner: Any, lock: Any) -> Serialized:
    """Return an object serialized; its class has the name of the object's, which errors and reports give."""
    kind: type[Serialized] = type(type(inner).__name__, (Serialized,), {})
    return kind(inner, lock)
