"""Cross-encoders of sentence-transformers that lie on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ._checks import checked_texts, positive
from ._local_model import local_model


class CrossEncoderReranker:
    """A cross-encoder, from a local folder or loaded already. Nothing is downloaded.

    It reads a query and a text together and gives one score; what is longer than it reads is cut off. Batches are
    padded to their longest pair, so a score's last bits may depend on the pairs that it is computed with.

    Parameters
    ----------
    model : str, path, or CrossEncoder
        A folder with a saved model of one output, or any object whose ``predict`` takes sentence-transformers'
        arguments. A model's name on a hub is refused.
    batch_size : int, at least 1
        Pairs in one pass of the model.
    device : str, optional
        Where a model that is loaded from a folder runs, for instance ``"cpu"`` or ``"cuda:0"``; sentence-transformers
        chooses where absent.

    Raises
    ------
    InputError
        No such folder, an object without ``predict``, batch_size below 1, a device for a model that is loaded already.
    MissingExtraError
        ``sentence-transformers`` is not installed and a folder is given.

    References
    ----------
    Nogueira and Cho, Passage Re-ranking with BERT, arXiv:1901.04085 (2019).

    Examples
    --------
    Give it the folder of a model, ``CrossEncoderReranker("models/ms-marco-MiniLM-L6-v2")``, or an object that predicts:

    >>> import numpy as np
    >>> from hopfuse.encoders import CrossEncoderReranker
    >>> class Model:
    ...     def predict(self, pairs, **options):
    ...         return np.array([float(query in text) for query, text in pairs])
    >>> CrossEncoderReranker(Model()).score(["sea"], [["a river", "by the sea"]])
    [array([0., 1.], dtype=float32)]
    """

    def __init__(
        self,
        model: str | PathLike[str] | Any,
        *,
        batch_size: int = 32,
        device: str | None = None,
    ) -> None:
        self._batch_size = positive(batch_size, "batch_size")
        self._model = local_model(model, device, kind="CrossEncoder", method="a predict", user="CrossEncoderReranker")

    def score(self, queries: Sequence[str], candidates: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Scores of texts.

        Parameters
        ----------
        queries : sequence of str, B entries
        candidates : sequence of B sequences of str
            The texts to score against each query; n_b of them, possibly none.

        Returns
        -------
        list of B ndarrays of float32, shape (n_b,)
            Higher for better; on the scale of the model.

        Raises
        ------
        InputError
            Another number of rows than of queries, anything that is not a text, a model that gives more than one score
            a pair or one that is not finite.
        """
        asked, rows = checked_texts(queries), _checked_rows(candidates)
        if len(asked) != len(rows):
            raise InputError(f"{len(rows)} rows of candidates for {len(asked)} queries; give one for each query")
        pairs = [(query, text) for query, row in zip(asked, rows, strict=True) for text in row]
        scores = self._predict(pairs) if pairs else np.zeros(0, np.float32)
        return np.split(scores, np.cumsum([len(row) for row in rows])[:-1]) if rows else []

    def _predict(self, pairs: list[tuple[str, str]]) -> NDArray[np.float32]:
        scores = np.asarray(
            self._model.predict(pairs, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True)
        )
        if scores.shape == (len(pairs), 1):
            scores = scores[:, 0]
        if scores.dtype.kind not in "fiu" or scores.shape != (len(pairs),):
            raise InputError(
                f"the model gave {scores.dtype}{scores.shape} for {len(pairs)} pairs; it must be one number a pair"
            )
        with np.errstate(over="ignore"):
            finished = np.ascontiguousarray(scores, np.float32)
        if not np.isfinite(finished).all():
            raise InputError("the model gave a score that is NaN or outside float32's range")
        return finished


def _checked_rows(candidates: Sequence[Sequence[str]]) -> list[list[str]]:
    if isinstance(candidates, str) or not isinstance(candidates, Iterable):
        raise InputError(f"candidates is one {type(candidates).__name__}; pass a sequence of texts for each query")
    return [checked_texts(row) for row in candidates]
