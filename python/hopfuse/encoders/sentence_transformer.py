"""Sentence-transformers models that lie on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._checks import checked_texts, finished, positive
from ._local_model import local_model


class SentenceTransformerEncoder:
    """A sentence-transformers model, from a local folder or loaded already. Nothing is downloaded.

    Batches are padded to their longest text, so a vector's last bits may depend on the texts that it
    is encoded with; store the vectors where the same bits are needed again.

    Parameters
    ----------
    model : str, path, or SentenceTransformer
        A folder with a saved model, or any object whose ``encode`` takes sentence-transformers'
        arguments. A model's name on a hub is refused.
    query_prompt, passage_prompt : str, optional
        Text put before every query and before every passage; ``""`` for none. Without it, the model's
        own prompts for queries and for documents hold, where it has them.
    batch_size : int, at least 1
        Texts in one pass of the model.
    device : str, optional
        Where a model that is loaded from a folder runs, for instance ``"cpu"`` or ``"cuda:0"``;
        sentence-transformers chooses where absent.
    normalize : bool
        Scale every row to length 1.

    Raises
    ------
    InputError
        No such folder, an object without ``encode``, batch_size below 1, a device for a model that is
        loaded already.
    MissingExtraError
        ``sentence-transformers`` is not installed and a folder is given.

    References
    ----------
    Reimers and Gurevych, Sentence-BERT, EMNLP 2019.

    Examples
    --------
    Give it the folder of a model, ``SentenceTransformerEncoder("models/all-MiniLM-L6-v2")``, or an
    object that encodes:

    >>> import numpy as np
    >>> from hopfuse.encoders import SentenceTransformerEncoder
    >>> class Model:
    ...     def get_embedding_dimension(self):
    ...         return 2
    ...     def encode(self, texts, prompt=None, **options):
    ...         return np.array([[len((prompt or "") + t), 0.0] for t in texts])
    >>> encoder = SentenceTransformerEncoder(Model(), query_prompt="query: ", normalize=False)
    >>> encoder.encode_queries(["who?"])
    array([[11.,  0.]], dtype=float32)
    """

    def __init__(
        self,
        model: str | PathLike[str] | Any,
        *,
        query_prompt: str | None = None,
        passage_prompt: str | None = None,
        batch_size: int = 32,
        device: str | None = None,
        normalize: bool = True,
    ) -> None:
        self._batch_size = positive(batch_size, "batch_size")
        self._query_prompt = query_prompt
        self._passage_prompt = passage_prompt
        self._normalize = normalize
        self._model = local_model(
            model, device, kind="SentenceTransformer", method="an encode", user="SentenceTransformerEncoder"
        )
        self._dim = _dimension(self._model)

    @property
    def dim(self) -> int:
        """Entries of a vector."""
        return self._dim

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries.

        Parameters
        ----------
        texts : sequence of str, n entries
            The model cuts off what is longer than it reads.

        Returns
        -------
        ndarray of float32, shape (n, dim), C-contiguous

        Raises
        ------
        InputError
            A bare string or an entry that is not one, a vector that is not finite, or that is zero
            under ``normalize=True``.
        """
        return self._encode(getattr(self._model, "encode_query", self._model.encode), texts, self._query_prompt)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of passages; see :meth:`encode_queries`."""
        return self._encode(getattr(self._model, "encode_document", self._model.encode), texts, self._passage_prompt)

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str], prompt: str | None) -> NDArray[np.float32]:
        listed = checked_texts(texts)
        if not listed:
            return np.zeros((0, self._dim), np.float32)
        vectors = encode(
            listed, prompt=prompt, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True
        )
        return finished(vectors, len(listed), self._dim, self._normalize)


def _dimension(model: Any) -> int:
    for name in ("get_embedding_dimension", "get_sentence_embedding_dimension"):
        ask = getattr(model, name, None)
        known = ask() if callable(ask) else None
        if known is not None:
            return int(known)
    return int(np.shape(model.encode(["dimension"], show_progress_bar=False, convert_to_numpy=True))[1])
