"""Encode with WordLlama's small static embeddings, for demonstrations and tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._validation import check_whole, import_extra
from ..errors import InputError
from .protocol import NamedEncoder

DIMS = (64, 128, 256)


class WordLlamaEncoder(NamedEncoder):
    """WordLlama: the mean of static token embeddings, 16 MB, no GPU and no download.

    The weights are part of the installed ``wordllama`` package. Queries and passages are encoded alike. The name is
    ``"wordllama"`` for every dim, since smaller vectors are the leading entries of larger ones. A text's vector does
    not depend on the other texts of a call.

    Parameters
    ----------
    dim : {64, 128, 256}
        The number of leading entries of the vectors, which the model is trained to be truncated to.
    batch_size : int, at least 1
        Texts tokenized at once. It limits memory and does not change the result.
    normalize : bool
        Scale every row to length 1.

    Raises
    ------
    InputError
        Another dim, batch_size below 1.
    MissingExtraError
        ``wordllama`` is not installed.
    FileNotFoundError
        The installed ``wordllama`` has no weights; nothing is downloaded.

    References
    ----------
    https://github.com/dleemiller/WordLlama

    Examples
    --------
    >>> from hopfuse.encoders import WordLlamaEncoder
    >>> encoder = WordLlamaEncoder(64)
    >>> vectors = encoder.encode_passages(["a river in France", "the Loire", "a stock exchange"])
    >>> vectors.shape, bool(vectors[0] @ vectors[1] > vectors[0] @ vectors[2])
    ((3, 64), True)
    """

    def __init__(self, dim: int = 256, *, batch_size: int = 64, normalize: bool = True) -> None:
        if dim not in DIMS:
            raise InputError(
                "choice",
                "dim",
                "{field} is {given!r}; allowed: {allowed}",
                given=dim,
                allowed=", ".join(map(str, DIMS)),
            )
        super().__init__("wordllama", int(dim), normalize)
        self._batch_size = check_whole(batch_size, "batch_size")
        package = _import()
        folder = Path(str(package.__file__)).parent
        self._model = package.WordLlama.load(
            cache_dir=folder,
            dim=DIMS[-1],
            trunc_dim=self._dim if self._dim < DIMS[-1] else None,
            disable_download=True,
        )

    def _vectors(self, texts: list[str], of_passages: bool) -> Any:
        return self._model.embed(texts, norm=False, batch_size=self._batch_size)


def _import() -> Any:
    with _root_logger_kept():
        return import_extra("wordllama", "WordLlamaEncoder")


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Undo the ``logging.basicConfig`` that wordllama calls when it is imported."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
