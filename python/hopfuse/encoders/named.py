"""Encoders by name: those that a user names, and the one whose name an index keeps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import missing_extra
from ..errors import InputError
from .endpoint import EndpointEncoder
from .protocol import Encoder, WrappedEncoder
from .sentence_transformers import SentenceTransformerEncoder
from .word_llama import DIMS, WordLlamaEncoder

ENDPOINT = "endpoint"
#: Names beside WordLlama's, as they are written.
OTHERS = ("sentence-transformers:FOLDER", f"{ENDPOINT}:MODEL:DIM")


def open_encoder(name: str) -> Encoder:
    """Return the encoder of a name.

    Parameters
    ----------
    name : str
        ``wordllama``, ``wordllama:DIM``, ``sentence-transformers:FOLDER``, or ``endpoint:MODEL:DIM``: a model behind
        the endpoint of ``OPENAI_BASE_URL``, by default OpenAI's, with the key of ``OPENAI_API_KEY``.

    Raises
    ------
    InputError
        Another name, a folder that is not on this machine, or no key for OpenAI's endpoint.
    MissingExtraError
        The encoder's library is not installed.

    Examples
    --------
    >>> from hopfuse.encoders import open_encoder
    >>> open_encoder("wordllama:64").dim
    64
    """
    kind, _, detail = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind == "wordllama" and (not detail or detail.isdecimal()):
        return WordLlamaEncoder(int(detail)) if detail else WordLlamaEncoder()
    if kind == "sentence-transformers" and detail:
        return SentenceTransformerEncoder(detail)
    model, _, dim = detail.rpartition(":")
    if kind == ENDPOINT and model and dim.isdecimal():
        return EndpointEncoder(model=model, dim=int(dim))
    raise InputError(
        "choice",
        "encoder",
        "{field} is {given!r}, which names no encoder; allowed: {allowed}",
        given=name,
        allowed=", ".join(["wordllama", *(f"wordllama:{dim}" for dim in DIMS), *OTHERS]),
    )


def recorded_encoder(name: str, dim: int, normalize: bool) -> Encoder:
    """Return the encoder whose name, dimension and scaling an index keeps; its model is loaded at its first use.

    Raises
    ------
    InputError
        The name alone does not say where the encoder's files are.
    MissingExtraError
        The encoder's library is not installed.

    Examples
    --------
    >>> from hopfuse.encoders import recorded_encoder
    >>> recorded_encoder("wordllama", 64, True).encode_queries(["a river"]).shape
    (1, 64)
    """
    if name != "wordllama":
        raise InputError(
            "missing",
            "encoder",
            "{field} is missing, and the files of {name}, which made the vectors of the index, are not known; give "
            "{field}, such as sentence-transformers:FOLDER, or the vectors of the questions",
            name=name,
        )
    if find_spec("wordllama") is None:
        raise missing_extra("wordllama", "WordLlamaEncoder")
    return _RecordedEncoder(dim, normalize)


def load_model(encoder: Any) -> None:
    """Load the model of an encoder that :func:`recorded_encoder` returned; others have theirs.

    Examples
    --------
    >>> from hopfuse.encoders.named import load_model, recorded_encoder
    >>> load_model(recorded_encoder("wordllama", 64, True))
    """
    while isinstance(encoder, WrappedEncoder):
        encoder = encoder.wrapped
    if isinstance(encoder, _RecordedEncoder):
        encoder.load()


class _RecordedEncoder:
    """WordLlama, loaded at its first use: a search with given vectors does not need it."""

    name = "wordllama"

    def __init__(self, dim: int, normalize: bool) -> None:
        self.dim, self.normalize = dim, normalize

    def __reduce__(self) -> tuple[Any, ...]:
        return _RecordedEncoder, (self.dim, self.normalize)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._loaded.encode_queries(texts)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._loaded.encode_passages(texts)

    def load(self) -> None:
        _ = self._loaded

    @cached_property
    def _loaded(self) -> WordLlamaEncoder:
        return WordLlamaEncoder(self.dim, normalize=self.normalize)
