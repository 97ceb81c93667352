"""Encode by FastEmbed: ONNX models without torch."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_whole, import_extra
from ..errors import InputError
from .protocol import NamedEncoder, check_methods, local_folder, model_dim, refuse_of_loaded


class FastEmbedEncoder(NamedEncoder):
    """A FastEmbed model, from a local folder or already loaded. Nothing is downloaded.

    Queries go through FastEmbed's ``query_embed`` and passages through ``passage_embed``, which add the model's own
    prompts. The model's float16 or float32 vectors are rounded to float32. With ``normalize`` they are scaled to length
    1 in float64.

    Parameters
    ----------
    model : str or TextEmbedding
        A name of FastEmbed's list (``TextEmbedding.list_supported_models()``, and those that
        ``TextEmbedding.add_custom_model`` has added), or a loaded model.
    folder : path, optional
        The folder with the files of a model that is given by its name.
    batch_size : int, at least 1
        Texts in one pass of the model.
    threads : int, optional
        Threads of ONNX Runtime, for a model that is given by its name.
    name : str, optional
        The name that an index stores and compares; by default ``"fastembed/"`` and the model's name.
    normalize : bool
        Scale every row to length 1.

    Raises
    ------
    InputError
        A name without a folder, a folder that does not exist, a folder for a loaded model, an object that cannot
        embed, or a name that FastEmbed does not know.
    MissingExtraError
        ``fastembed`` is not installed, and a name is given.

    Examples
    --------
    ``FastEmbedEncoder("BAAI/bge-small-en-v1.5", folder="models/bge-small")``, or an object with FastEmbed's methods:

    >>> import numpy as np
    >>> from hopfuse.encoders import FastEmbedEncoder
    >>> class Model:
    ...     model_name = "lengths"
    ...     def query_embed(self, texts, **options):
    ...         yield from (np.array([len(text), 0.0]) for text in texts)
    ...     passage_embed = query_embed
    >>> encoder = FastEmbedEncoder(Model(), normalize=False)
    >>> encoder.name, encoder.encode_queries(["who?"])
    ('fastembed/lengths', array([[4., 0.]], dtype=float32))
    """

    def __init__(
        self,
        model: str | Any,
        *,
        folder: str | PathLike[str] | None = None,
        batch_size: int = 64,
        threads: int | None = None,
        name: str | None = None,
        normalize: bool = True,
    ) -> None:
        self._batch_size = check_whole(batch_size, "batch_size")
        self._model = _loaded(model, folder, threads)
        known = model if isinstance(model, str) else getattr(model, "model_name", type(model).__name__)
        dim = model_dim(self._model, lambda texts: _stacked(self._model.query_embed(texts)))
        super().__init__(name or f"fastembed/{known}", dim, normalize)

    def _vectors(self, texts: list[str], of_passages: bool) -> NDArray[Any]:
        embed = self._model.passage_embed if of_passages else self._model.query_embed
        return _stacked(embed(texts, batch_size=self._batch_size))


def _stacked(rows: Iterable[Any]) -> NDArray[Any]:
    return np.stack([np.asarray(row) for row in rows])


def _loaded(model: Any, folder: Any, threads: int | None) -> Any:
    if not isinstance(model, str):
        for name, given in (("folder", folder), ("threads", threads)):
            refuse_of_loaded(name, given)
        check_methods(model, ("query_embed", "passage_embed"), "a name of FastEmbed's list with a folder")
        return model
    where = local_folder(folder, "folder")
    package = import_extra("fastembed", "FastEmbedEncoder")
    try:
        return package.TextEmbedding(model, specific_model_path=str(where), threads=threads, local_files_only=True)
    except ValueError as error:
        raise InputError(
            "failed",
            "model",
            "{field} {given!r} cannot be loaded from {folder}: {error}",
            given=model,
            folder=where,
            error=error,
        ) from None
