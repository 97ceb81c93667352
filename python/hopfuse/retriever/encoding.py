"""Share encoders and other collaborators among threads and retrievers; questions take precedence over passages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from threading import Lock, RLock
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ..encoders import Encoder
from ..encoders.protocol import WrappedEncoder

_T = TypeVar("_T")


class _InUse(Generic[_T]):
    """Objects by key, each made once for all who use it at a time."""

    def __init__(self) -> None:
        self._found: WeakValueDictionary[Hashable, _T] = WeakValueDictionary()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return the object of a key, made if none is in use."""
        with self._lock:
            found = self._found.get(key)
            if found is None:
                found = self._found[key] = make()
            return found


class _Serialized:
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
_COLLABORATORS = _InUse[_Serialized]()


def shared(collaborator: Any) -> Any:
    """Return a collaborator that threads may share: this package's own are safe as they are.

    An object has one lock, whichever retrievers share it.
    """
    if collaborator is None or type(collaborator).__module__.startswith("hopfuse."):
        return collaborator
    return _COLLABORATORS.get(id(collaborator), lambda: _serialized(collaborator, RLock()))


def _serialized(inner: Any, lock: Any) -> _Serialized:
    """Return an object serialized; its class has the name of the object's, which errors and reports give."""
    kind: type[_Serialized] = type(type(inner).__name__, (_Serialized,), {})
    return kind(inner, lock)


#: Passages that are encoded in one turn, and so the most that a question waits for.
AT_ONCE = 16


class EncoderCalls:
    """How a thread waits for its turn at an encoder and calls it: here, for as long as it takes.

    A subclass that limits the time of a call raises when it has passed. The turn then ends, although the encoder may
    still be at work.
    """

    def wait_for(self, changed: threading.Condition, ready: Callable[[], bool]) -> None:
        """Wait for a turn; ``changed`` is held."""
        changed.wait_for(ready)

    def call(
        self, encoder: Encoder, encode: Callable[[Sequence[str]], NDArray[np.float32]], texts: Sequence[str]
    ) -> NDArray[np.float32]:
        """Return ``encode(texts)``, a method of the encoder's."""
        return encode(texts)


_HERE = EncoderCalls()
_CALLS = ContextVar("hopfuse_encoder_calls", default=_HERE)


@contextmanager
def calling(calls: EncoderCalls) -> Iterator[None]:
    """Let this thread call shared encoders in this way.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.retriever import EncoderCalls, calling
    >>> class Counted(EncoderCalls):
    ...     texts = 0
    ...     def call(self, encoder, encode, texts):
    ...         self.texts += len(texts)
    ...         return super().call(encoder, encode, texts)
    >>> index = hf.Index.build(passages=[{"text": "The sea."}, {"text": "A river."}], encoder="wordllama:64")
    >>> retriever, counted = hf.Retriever(index, encoder="wordllama:64"), Counted()
    >>> with calling(counted):
    ...     found = retriever.search("Which river?", k=1)
    >>> found[0][0].text, counted.texts
    ('A river.', 1)
    """
    token = _CALLS.set(calls)
    try:
        yield
    finally:
        _CALLS.reset(token)


class SharedEncoder(WrappedEncoder):
    """An encoder that threads use in turns, one at a time: questions as they came, passages when no question waits.

    Parameters
    ----------
    encoder : Encoder
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self._changed = threading.Condition()
        self._busy = False
        self._questions: list[object] = []  # waiting, in their order

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of questions."""
        with self._changed:
            place = object()
            self._questions.append(place)
            try:
                _CALLS.get().wait_for(self._changed, lambda: not self._busy and self._questions[0] is place)
            finally:
                self._questions.remove(place)
                self._changed.notify_all()
            self._busy = True
        return self._in_turn(self._encoder.encode_queries, texts)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of passages, encoding a few in each turn."""
        parts = [np.zeros((0, self.dim), np.float32)]
        for first in range(0, len(texts), AT_ONCE):
            with self._changed:
                _CALLS.get().wait_for(self._changed, lambda: not (self._busy or self._questions))
                self._busy = True
            parts.append(self._in_turn(self._encoder.encode_passages, texts[first : first + AT_ONCE]))
        return np.concatenate(parts)

    def _in_turn(
        self, encode: Callable[[Sequence[str]], NDArray[np.float32]], texts: Sequence[str]
    ) -> NDArray[np.float32]:
        try:
            return _CALLS.get().call(self, encode, texts)
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def __repr__(self) -> str:
        return repr(self._encoder)

    def __reduce__(self) -> tuple[Any, ...]:
        return _shared_again, (self._encoder,)


_ENCODERS = _InUse[SharedEncoder]()


def shared_encoder(key: Hashable, make: Callable[[], Encoder]) -> SharedEncoder:
    """Return the one shared encoder of a key, such as a name, made when none of the key is in use."""
    return _ENCODERS.get(key, lambda: SharedEncoder(make()))


def _shared_again(encoder: Encoder) -> SharedEncoder:
    return shared_encoder(id(encoder), lambda: encoder)
