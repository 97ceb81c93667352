"""Vectors of passages and entities, and the encoder that made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..._validation import check_flag, check_needs, check_text, check_whole
from ...errors import InputError
from ...types import Corpus
from ...types.corpus import Metric, Storage
from ..file.columns import string_arrays, string_column
from ..file.format import Settings
from ..file.sections import Section, damage_of

Sections = Mapping[str, Section]
Arrays = dict[str, NDArray[Any]]


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
        from ...encoders import as_encoder  # imported only if there is an encoder

        whole = as_encoder(encoder)
        return cls(whole.name, whole.dim, whole.normalize)


# ---- Sections ----


def build(encoder: EncoderInfo) -> Arrays:
    """Return the sections ``encoder.*``."""
    return {
        **string_arrays("encoder.name", [encoder.name]),
        "encoder.setting": np.array([encoder.dim, encoder.normalize], np.int64),
    }


def load(sections: Sections) -> EncoderInfo | None:
    """Return the encoder of the vectors, or None if it is not known."""
    if "encoder.setting" not in sections:
        return None
    dim, normalize = sections["encoder.setting"].whole().tolist()
    with damage_of(sections["encoder.setting"]):
        check_whole(normalize, "normalize", 1, least=0)
        encoder = EncoderInfo(string_column(sections, "encoder.name")[0], dim, bool(normalize))
        check_dim(encoder, *(vector_dim(sections, f"{kind}.vectors") for kind in ("passage", "entity")))
    return encoder


def check_dim(encoder: EncoderInfo, dim: int | None, entity_dim: int | None) -> None:
    """Refuse an encoder of another dimension than the passages' vectors or, without those, the entities'."""
    own = entity_dim if dim is None else dim
    check_needs("encoder", encoder, "vectors", own)
    if own != encoder.dim:
        raise InputError(
            "shape",
            "encoder",
            "{field} {name!r} makes vectors of {given} dimensions, those of the index have {allowed}",
            name=encoder.name,
            given=encoder.dim,
            allowed=own,
        )


# ---- Vectors ----


def load_corpus(sections: Sections, settings: Settings, name: str) -> Corpus | None:
    """Return a corpus over a section of vectors, or None without that section."""
    if name not in sections:
        return None
    metric, storage = cast(Metric, settings.metric), cast(Storage, settings.storage)
    with damage_of(sections[name]):
        return Corpus.from_stored(sections[name].whole(), metric=metric, storage=storage)


def vector_dim(sections: Sections, name: str) -> int | None:
    """Return the dimension of a section of vectors, or None without that section."""
    return sections[name].shape[1] if name in sections else None
