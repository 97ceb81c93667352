"""Caches of what is computed from an object, kept as long as the object is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import MISSING, fields
from threading import Lock
from typing import Any, Generic, Self, TypeVar
from weakref import WeakKeyDictionary, ref

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


#: The latest objects of a family of which a new one may be a later state.
RECENT = 16


class Continued(ByObject[K, T]):
    """As :class:`ByObject`; the value of a later state of an object is continued from that of an earlier one.

    An earlier state counts as long as something keeps it alive, so that the value of a new state must be asked for
    before the last one is dropped.

    Parameters
    ----------
    make : callable (object)
        Return the value of an object.
    follow : callable (object, earlier object, its value)
        Return the value of a later state, or None if it must be made anew. The earlier value stays valid.
    family : callable (object)
        Return what all states of an object have in common, or None for an object without other states.

    Examples
    --------
    >>> class Line(list):
    ...     __hash__ = object.__hash__
    >>> def follow(line, earlier, total):
    ...     return total + sum(line[len(earlier):])
    >>> totals = Continued(sum, follow, lambda line: "the only one")
    >>> first = Line([1, 2])
    >>> totals.get(first), totals.get(Line([1, 2, 3]))
    (3, 6)
    """

    def __init__(
        self,
        make: Callable[[K], T],
        follow: Callable[[K, K, T], T | None],
        family: Callable[[K], Hashable | None],
    ) -> None:
        super().__init__(self._continued)
        self._anew, self._follow, self._family = make, follow, family
        self._recent: dict[Hashable, list[ref[K]]] = {}

    def _continued(self, of: K) -> T:
        family = self._family(of)
        if family is None:
            return self._anew(of)
        made: T | None = None
        for earlier, value in self._values(family):
            if (made := self._follow(of, earlier, value)) is not None:
                break
        made = self._anew(of) if made is None else made
        with self._lock:
            self._recent = {kind: alive for kind, kept in self._recent.items() if (alive := _alive(kept))}
            self._recent[family] = [*self._recent.get(family, ()), ref(of)][-RECENT:]
        return made

    def _values(self, family: Hashable) -> Iterator[tuple[K, T]]:
        """Yield the latest objects of a family that are alive, and their values, the last one first."""
        with self._lock:
            recent = self._recent.get(family, ())
        for one in reversed(recent):
            earlier = one()
            known = None if earlier is None else self._made.get(earlier)
            if earlier is not None and known is not None:
                yield earlier, known[0]


def _alive(references: list[ref[K]]) -> list[ref[K]]:
    return [one for one in references if one() is not None]
