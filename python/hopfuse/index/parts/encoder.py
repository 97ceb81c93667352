"""Vectors of passages and entities, and the encoder that made them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..._validation import check_flag, check_needs, check_text, check_whole
from ...errors import InputError
from ...types import Corpus
from ...types.continued_corpus import ContinuedCorpus
from ...types.corpus import Metric, Storage
from ..file.columns import string_arrays, string_column
from ..file.format import Settings
from ..file.rows import TakenRows, is_whole, take_rows
from ..file.sections import Arrays, ArraysOrSections, Section, Sections, damage_of
from ..log.rows import DeltaRows, Places


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


def kept(sections: Sections) -> dict[str, Section]:
    """Return the sections ``encoder.*``."""
    return {name: section for name, section in sections.items() if name.startswith("encoder.")}


def subset(sections: Sections, at: Places) -> ArraysOrSections:
    """Return the sections of the vectors of some passages and entities, and of their encoder."""
    rows = {"passage.vectors": at.passages, "entity.vectors": at.entities}
    return {name: sections[name].take(own) for name, own in rows.items() if name in sections} | kept(sections)


def merge(
    name: str, log: DeltaRows, base: Corpus, order: NDArray[np.int64], earlier: Corpus | None = None
) -> tuple[Corpus, ArraysOrSections]:
    """Return vectors in an order as a corpus that shares those of the generation if it can, and as a section.

    ``earlier`` is the corpus after fewer batches of the same log, whose vectors are not checked again.
    """
    whole, before = log.whole(name), earlier if isinstance(earlier, ContinuedCorpus) else None
    if is_whole(order, len(whole)):
        return ContinuedCorpus(base, whole, before=before), {name: whole}
    if (order[1:] > order[:-1]).all():
        return ContinuedCorpus(base, whole, order, before=before), {name: TakenRows(name, whole, order)}
    vectors = take_rows(whole, order)  # names that were added precede the words
    return Corpus.from_stored(vectors, metric=base.metric, storage=base.storage), {name: vectors}
