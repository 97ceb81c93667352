"""Encoders and cross-encoders of sentence-transformers, from a local folder or already loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_whole, checked_texts
from ..errors import InputError, MissingExtraError
from .protocol import NamedEncoder, model_dim, model_name


class SentenceTransformerEncoder(NamedEncoder):
    """A sentence-transformers model, from a local folder or already loaded. Nothing is downloaded.

    Batches are padded to their longest text, so a vector's last bits may depend on the other texts. Store the vectors
    if the same bits are needed again.

    Parameters
    ----------
    model : str, path, or SentenceTransformer
        A folder with a saved model, or any object whose ``encode`` takes sentence-transformers' arguments. Names of
        models on a hub are refused.
    query_prompt, passage_prompt : str, optional
        Text before every query and every passage; ``""`` for none. By default, the model's own prompts for queries and
        documents, if it has them.
    batch_size : int, at least 1
        Texts in one pass of the model.
    device : str, optional
        Device of a model that is loaded from a folder, such as ``"cpu"`` or ``"cuda:0"``; by default
        sentence-transformers chooses.
    name : str, optional
        The name that an index stores and compares; by default ``"sentence-transformers/"`` and the name of the folder,
        or the name of a loaded model.
    normalize : bool
        Scale every row to length 1.

    Raises
    ------
    InputError
        A folder that does not exist, an object without ``encode``, batch_size below 1, or a device for a loaded model.
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
        name: str | None = None,
        normalize: bool = True,
    ) -> None:
        self._batch_size = check_whole(batch_size, "batch_size")
        self._query_prompt = query_prompt
        self._passage_prompt = passage_prompt
        self._model = _local_model(
            model, device, kind="SentenceTransformer", method="an encode", user="SentenceTransformerEncoder"
        )
        super().__init__(name or _name(model), model_dim(self._model, self._model.encode), normalize)

    def _vectors(self, texts: list[str], of_passages: bool) -> Any:
        name, prompt = "encode_query", self._query_prompt
        if of_passages:
            name, prompt = "encode_document", self._passage_prompt
        encode = getattr(self._model, name, self._model.encode)
        return encode(texts, prompt=prompt, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True)


class CrossEncoderReranker:
    """A cross-encoder, from a local folder or already loaded. Nothing is downloaded.

    It reads a query and a text together and gives one score; long texts are truncated. Batches are padded to their
    longest pair, so a score's last bits may depend on the other pairs.

    Parameters
    ----------
    model : str, path, or CrossEncoder
        A folder with a saved model of one output, or any object whose ``predict`` takes sentence-transformers'
        arguments. Names of models on a hub are refused.
    batch_size : int, at least 1
        Pairs in one pass of the model.
    device : str, optional
        Device of a model that is loaded from a folder, such as ``"cpu"`` or ``"cuda:0"``; by default
        sentence-transformers chooses.

    Raises
    ------
    InputError
        A folder that does not exist, an object without ``predict``, batch_size below 1, or a device for a loaded model.
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
        self._batch_size = check_whole(batch_size, "batch_size")
        self._model = _local_model(model, device, kind="CrossEncoder", method="a predict", user="CrossEncoderReranker")

    def score(self, queries: Sequence[str], candidates: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Return the scores of texts.

        Parameters
        ----------
        queries : sequence of str, B entries
        candidates : sequence of B sequences of str
            The n_b texts to score against each query, possibly none.

        Returns
        -------
        list of B ndarrays of float32, shape (n_b,)
            Higher is better; the scale is the model's.

        Raises
        ------
        InputError
            Another number of rows than queries, an entry that is not a string, or a model that gives several scores for
            a pair or scores that are not finite.
        """
        asked, rows = checked_texts(queries), _checked_rows(candidates)
        if len(asked) != len(rows):
            raise InputError(
                "length",
                None,
                "{number} rows of candidates for {number_2} queries; give one for each query",
                number=len(rows),
                number_2=len(asked),
            )
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
                "shape",
                None,
                "the model gave {dtype}{shape} for {number} pairs; it must be one number a pair",
                dtype=scores.dtype,
                shape=scores.shape,
                number=len(pairs),
            )
        with np.errstate(over="ignore"):
            finished = np.ascontiguousarray(scores, np.float32)
        if not np.isfinite(finished).all():
            raise InputError("finite", None, "the model gave a score that is NaN or outside float32's range")
        return finished


def _checked_rows(candidates: Sequence[Sequence[str]]) -> list[list[str]]:
    if isinstance(candidates, str) or not isinstance(candidates, Iterable):
        raise InputError(
            "length",
            "candidates",
            "{field} is one {kind}; pass a sequence of texts for each query",
            kind=type(candidates).__name__,
        )
    return [checked_texts(row) for row in candidates]


def _name(model: Any) -> str:
    if isinstance(model, str | PathLike):
        folder = Path(model).expanduser().resolve()
        if folder.parent.name == "snapshots":  # of a hub's cache: models--ORG--NAME/snapshots/COMMIT
            folder = folder.parents[1]
        return f"sentence-transformers/{folder.name.split('--')[-1]}"
    return model_name(model) or type(model).__name__


def _local_model(model: Any, device: str | None, *, kind: str, method: str, user: str) -> Any:
    """Return a loaded model, or load one from a folder.

    ``kind`` is the class of sentence-transformers, ``method`` the method that a model must have, with an article, and
    ``user`` the class that needs the package, for errors.
    """
    if isinstance(model, str | PathLike):
        return _load(model, device, kind, user)
    name = method.split()[-1]
    if not callable(getattr(model, name, None)):
        raise InputError(
            "type",
            "model",
            "{field} is a {kind} without {method} method; pass the folder of a model or a {kind_2}",
            kind=type(model).__name__,
            method=method,
            kind_2=kind,
        )
    if device is not None:
        raise InputError(
            "duplicate",
            "device",
            "{field} is {given!r}, but the model is already loaded; move it: model.to({given!r})",
            given=device,
        )
    return model


def _load(model: str | PathLike[str], device: str | None, kind: str, user: str) -> Any:
    folder = Path(model).expanduser()
    if not folder.is_dir():
        raise InputError(
            "unknown",
            None,
            "{model!r} is not a folder on this machine, and models are never downloaded; download the "
            "model and pass its folder, or pass a loaded {kind}",
            model=str(model),
            kind=kind,
        )
    try:
        package = import_module("sentence_transformers")
    except ModuleNotFoundError as error:
        raise MissingExtraError("sentence-transformers", "encode", user) from error
    return getattr(package, kind)(str(folder), device=device, local_files_only=True)
