"""Caches of what is computed from an object, kept as long as the object is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from threading import Lock
from typing import Any, Generic, Self, TypeVar
from weakref import WeakKeyDictionary

from ..errors import InputError

K = TypeVar("K")
T = TypeVar("T")


class KeepsDerived:
    """Base of frozen types with a dict ``derived``, where operations cache what they compute from the arrays.

    Pickling and copying leave the cache empty: it may hold memory of this process, and is filled again on use.
    """

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Refuse data in place of the fields, and say which method takes them."""
        needed = [one for one in fields(cls) if one.default is one.default_factory is MISSING]  # type: ignore[arg-type]
        own_init = "__dataclass_fields__" not in vars(cls)  # a subclass that takes other arguments
        if given and not own_init and len(given) + len(named) < len(needed):
            raise InputError(
                "type",
                None,
                "{type}(...) does not take data {given}; call {allowed}",
                type=cls.__name__,
                given=_kind(given[0]),
                allowed=cls._maker(*given),
            )
        return super().__new__(cls)

    @classmethod
    def _maker(cls, *given: Any) -> str:
        """Return the call that takes such data."""
        return " or ".join(f"{cls.__name__}.{name}(...)" for name in sorted(vars(cls)) if name.startswith("from_"))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "derived": {}}


def _kind(given: Any) -> str:
    shape = getattr(given, "shape", None)
    return f"of the type {type(given).__name__}" + ("" if shape is None else f" and the shape {tuple(shape)}")


class ByObject(Generic[K, T]):
    """The value of a function for each object, which is hashed as in a dict and not kept alive. Thread-safe.

    Threads that ask for the same object wait for one of them to make its value.

    Examples
    --------
    >>> class Text(str):
    ...     pass
    >>> lengths, text = ByObject(len), Text("four")
    >>> lengths.get(text), len(lengths)
    (4, 1)
    >>> del text
    >>> len(lengths)
    0
    """

    def __init__(self, make: Callable[[K], T]) -> None:
        self._make, self._lock = make, Lock()
        self._made: WeakKeyDictionary[K, list[T]] = WeakKeyDictionary()
        self._making: WeakKeyDictionary[K, Lock] = WeakKeyDictionary()

    def get(self, of: K) -> T:
        """Return the value of an object, made at the first call."""
        with self._lock:
            known, making = self._made.get(of), self._making.setdefault(of, Lock())
        if known is None:
            with making:
                known = self._made.get(of) or [self._make(of)]
                with self._lock:
                    self._made[of] = known
        return known[0]

    def __len__(self) -> int:
        """Return the number of objects that have a value."""
        return len(self._made)
