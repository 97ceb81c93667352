"""The encoder of an index's vectors, as the index stores it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._validation import check_flag, check_text, check_whole


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
        check_text(self.name, "name")
        object.__setattr__(self, "dim", check_whole(self.dim, "dim"))
        object.__setattr__(self, "normalize", check_flag(self.normalize, "normalize"))

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
