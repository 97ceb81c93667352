"""Vectors of the facts of an index, continued from those of an earlier state."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from ..encoders import Encoder
from ..index import Index
from ..index.numbers import kept_facts

#: Texts of no fact whose vectors are kept at least.
LEAST_UNUSED = 1000


class _TextVectors:
    """The vectors of texts, each encoded once. Thread-safe."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self._lock = encoder, Lock()
        self._place = dict[str, int]()
        self._vectors = np.zeros((0, encoder.dim), np.float32)  # with room for more

    def __len__(self) -> int:
        return len(self._place)

    def places(self, texts: Sequence[str]) -> list[int]:
        """Return the places of texts in :attr:`vectors`; those that are new are encoded."""
        with self._lock:
            place, count = self._place, len(self._place)
            fresh = [text for text in dict.fromkeys(texts) if text not in place]
            if fresh:
                made = self._encoder.encode_passages(fresh)
                if count + len(fresh) > len(self._vectors):
                    grown = np.zeros((max(count + len(fresh), 2 * count), made.shape[1]), np.float32)
                    grown[:count] = self._vectors[:count]
                    self._vectors = grown
                self._vectors[count : count + len(fresh)] = made
                place.update(zip(fresh, range(count, count + len(fresh)), strict=True))
            return [place[text] for text in texts]

    def of(self, texts: Sequence[str]) -> _TextVectors:
        """Return the vectors of those of these texts that are known, without the others."""
        other = _TextVectors(self._encoder)
        with self._lock:
            known = [text for text in dict.fromkeys(texts) if text in self._place]
            other._vectors = self._vectors[[self._place[text] for text in known]]
        other._place = {text: at for at, text in enumerate(known)}
        return other

    def at(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors at some places."""
        return self._vectors[places]


class FactVectors:
    """The vectors of all facts of an index: those of their texts, each of which is encoded once.

    Parameters
    ----------
    index : Index
        With facts.
    encoder : Encoder
    earlier : (Index, FactVectors), optional
        An earlier state, and its vectors by the same encoder: only the texts of new facts are read.

    Attributes
    ----------
    vectors : ndarray of float32, shape (F, d)
    """

    vectors: NDArray[np.float32]
    _texts: _TextVectors
    _places: NDArray[np.int64]

    def __init__(self, index: Index, encoder: Encoder, earlier: tuple[Index, FactVectors] | None = None) -> None:
        assert index.facts is not None
        facts, names = index.facts, index.entity_names
        kept, before = np.full(len(facts), -1), np.zeros(0, np.int64)
        if earlier is None:
            self._texts = _TextVectors(encoder)
        elif len(earlier[1]._texts) > 2 * len(facts) + LEAST_UNUSED:
            self._texts = earlier[1]._texts.of(facts.texts(names))
        else:
            self._texts, before = earlier[1]._texts, earlier[1]._places
            kept = kept_facts(index, earlier[0])
        self._places = np.append(before, -1)[kept]
        fresh = np.flatnonzero(kept < 0)
        rows = facts.rows[fresh].tolist()
        self._places[fresh] = self._texts.places([f"{names[h]} {facts.relations[r]} {names[t]}" for h, r, t in rows])
        self.vectors = self._texts.at(self._places)
