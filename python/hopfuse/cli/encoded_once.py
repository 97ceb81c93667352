"""An encoder that encodes a text once: what is timed afterwards is the search alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..encoders import Encoder


class EncodedOnce:
    """Another encoder's vectors; those of queries are kept.

    Parameters
    ----------
    encoder : Encoder
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._kept: dict[str, NDArray[np.float32]] = {}

    @property
    def dim(self) -> int:
        """Entries of a vector."""
        return self._encoder.dim

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The other encoder's."""
        return self._encoder.encode_passages(texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The other encoder's, of those that were not asked for before."""
        new = list(dict.fromkeys(text for text in texts if text not in self._kept))
        if new:
            self._kept.update(zip(new, self._encoder.encode_queries(new), strict=True))
        rows = [self._kept[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dim), np.float32)
