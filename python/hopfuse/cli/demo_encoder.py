"""An encoder that encodes a batch's texts once, though a demo and its recipe both ask for their vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..encoders import Encoder


class BatchEncoder:
    """Another encoder's vectors; those of the texts of a batch are kept until the next one starts.

    A text that a batch has twice is encoded twice, as without this: a batch is timed as a whole.

    Parameters
    ----------
    encoder : Encoder
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._kept: dict[tuple[str, ...], NDArray[np.float32]] = {}

    @property
    def dim(self) -> int:
        """Entries of a vector."""
        return self._encoder.dim

    @property
    def used(self) -> bool:
        """Whether anything was encoded since the batch started."""
        return bool(self._kept)

    def start(self) -> None:
        """Forget the batch before."""
        self._kept.clear()

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The other encoder's."""
        return self._encoder.encode_passages(texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The other encoder's, made when the batch first asks for these texts together."""
        asked = tuple(texts)
        if asked not in self._kept:
            self._kept[asked] = self._encoder.encode_queries(list(asked))
        return self._kept[asked]
