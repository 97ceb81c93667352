"""Share an encoder among the threads of a server; queries take precedence over passages."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from ..encoders import Encoder

#: Passages that are encoded in one turn, and so the most that a query waits for.
AT_ONCE = 16


class Turns:
    """Turns at encoders, which need not be thread-safe: one thread at a time, queries first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._busy = False
        self._questions = 0  # waiting

    @contextmanager
    def question(self) -> Iterator[None]:
        """Take the next turn."""
        with self._changed:
            self._questions += 1
            self._changed.wait_for(lambda: not self._busy)
            self._questions -= 1
            self._busy = True
        with self._end():
            yield

    @contextmanager
    def passages(self) -> Iterator[None]:
        """Take a turn once no query waits."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._busy or self._questions))
            self._busy = True
        with self._end():
            yield

    @contextmanager
    def _end(self) -> Iterator[None]:
        try:
            yield
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()


class SharedEncoder:
    """An encoder that threads use in turns.

    Parameters
    ----------
    encoder : Encoder
    turns : Turns
        Shared by all encoders of a server, since several may be the same object.
    """

    def __init__(self, encoder: Encoder, turns: Turns) -> None:
        self._encoder, self._turns = encoder, turns
        self.name, self.dim, self.normalize = encoder.name, encoder.dim, encoder.normalize

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of queries."""
        with self._turns.question():
            return self._encoder.encode_queries(texts)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of passages, encoding a few in each turn."""
        parts = [np.zeros((0, self.dim), np.float32)]
        for first in range(0, len(texts), AT_ONCE):
            with self._turns.passages():
                parts.append(self._encoder.encode_passages(texts[first : first + AT_ONCE]))
        return np.concatenate(parts)
