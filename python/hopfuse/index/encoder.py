"""The encoder of an index's vectors, as the index stores it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError


@dataclass(frozen=True)
class EncoderInfo:
    """The encoder that made an index's vectors. Questions must be encoded by the same encoder.

    Parameters
    ----------
    name : str
    dim : int
        Dimension of a vector, at least 1.
    normalize : bool
        Whether every vector has length 1.

    Raises
    ------
    InputError

    Examples
    --------
    >>> from hopfuse.index import EncoderInfo
    >>> EncoderInfo("wordllama-256", 256, True)
    EncoderInfo(name='wordllama-256', dim=256, normalize=True)
    """

    name: str
    dim: int
    normalize: bool

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(
                "type", None, "the encoder's name is {given!r}; it must be a string that is not empty", given=self.name
            )
        if isinstance(self.dim, bool) or not isinstance(self.dim, int | np.integer) or self.dim < 1:
            raise InputError(
                "range", None, "the encoder's dim is {given!r}; it must be an integer, at least 1", given=self.dim
            )
        if not isinstance(self.normalize, bool | np.bool_):
            raise InputError(
                "type", None, "the encoder's normalize is {given!r}; it must be True or False", given=self.normalize
            )
        object.__setattr__(self, "dim", int(self.dim))
        object.__setattr__(self, "normalize", bool(self.normalize))

    @classmethod
    def of(cls, encoder: Any) -> EncoderInfo:
        """Return the ``name``, ``dim`` and ``normalize`` of an encoder.

        Examples
        --------
        >>> from hopfuse.encoders import ArrayEncoder
        >>> EncoderInfo.of(ArrayEncoder(3, name="mine")).dim
        3
        """
        if isinstance(encoder, EncoderInfo):
            return encoder
        from ..encoders import as_encoder  # imported only if there is an encoder

        whole = as_encoder(encoder)
        return cls(whole.name, whole.dim, whole.normalize)
