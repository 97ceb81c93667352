"""Share encoders among threads, and among retrievers of the same one; questions take precedence over passages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..encoders import Encoder
from ..encoders.protocol import WrappedEncoder
from .serialized import InUse

#: Passages that are encoded in one turn, and so the most that a question waits for.
AT_ONCE = 16


class SharedEncoder(WrappedEncoder):
    """An encoder that threads use in turns, one at a time: a passage's turn begins when no question waits.

    Parameters
    ----------
    encoder : Encoder
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self._changed = threading.Condition()
        self._busy = False
        self._questions = 0  # waiting

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of questions."""
        with self._changed:
            self._questions += 1
            try:
                self._changed.wait_for(lambda: not self._busy)
            finally:
                self._questions -= 1
            self._busy = True
        return self._in_turn(self._encoder.encode_queries, texts)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of passages, encoding a few in each turn."""
        parts = [np.zeros((0, self.dim), np.float32)]
        for first in range(0, len(texts), AT_ONCE):
            with self._changed:
                self._changed.wait_for(lambda: not (self._busy or self._questions))
                self._busy = True
            parts.append(self._in_turn(self._encoder.encode_passages, texts[first : first + AT_ONCE]))
        return np.concatenate(parts)

    def _in_turn(
        self, encode: Callable[[Sequence[str]], NDArray[np.float32]], texts: Sequence[str]
    ) -> NDArray[np.float32]:
        try:
            return encode(texts)
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def __repr__(self) -> str:
        return repr(self._encoder)

    def __reduce__(self) -> tuple[Any, ...]:
        return _shared_again, (self._encoder,)


_SHARED = InUse[SharedEncoder]()


def shared_encoder(key: Hashable, make: Callable[[], Encoder]) -> SharedEncoder:
    """Return the one shared encoder of a key, such as a name, made when none of the key is in use."""
    return _SHARED.get(key, lambda: SharedEncoder(make()))


def _shared_again(encoder: Encoder) -> SharedEncoder:
    return shared_encoder(id(encoder), lambda: encoder)
