"""Encoders and cross-encoders of sentence-transformers, from a local folder or already loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .._validation import (
    check_dtype,
    check_length,
    check_shape,
    check_whole,
    checked_texts,
    counted,
    import_extra,
    wrong_type,
)
from ..errors import InputError
from ..types import Hits
from .protocol import NamedEncoder, check_methods, local_folder, model_dim, model_name, refuse_of_loaded


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
            model, device, kind="SentenceTransformer", method="encode", user="SentenceTransformerEncoder"
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
        self._model = _local_model(model, device, kind="CrossEncoder", method="predict", user="CrossEncoderReranker")

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
        check_length(len(rows), "candidates", len(asked), "query")
        pairs = [(query, text) for query, row in zip(asked, rows, strict=True) for text in row]
        scores = self._predict(pairs) if pairs else np.zeros(0, np.float32)
        return np.split(scores, np.cumsum([len(row) for row in rows])[:-1]) if rows else []

    def _predict(self, pairs: list[tuple[str, str]]) -> NDArray[np.float32]:
        scores = np.asarray(
            self._model.predict(pairs, batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True)
        )
        if scores.shape == (len(pairs), 1):
            scores = scores[:, 0]
        check_dtype(scores, "scores", "fiu", "real numbers")
        check_shape(scores.shape, "scores", (len(pairs),), reason="one number for each pair")
        with np.errstate(over="ignore"):
            finished = np.ascontiguousarray(scores, np.float32)
        if not np.isfinite(finished).all():
            raise InputError("finite", "scores", "{field} of the model have a NaN or a number outside float32's range")
        return finished


def _checked_rows(candidates: Sequence[Sequence[str]]) -> list[list[str]]:
    if isinstance(candidates, str) or not isinstance(candidates, Iterable):
        raise wrong_type(candidates, "candidates", "a sequence of texts for each query")
    return [checked_texts(row, f"candidates[{at}]") for at, row in enumerate(candidates)]


def _name(model: Any) -> str:
    if isinstance(model, str | PathLike):
        folder = Path(model).expanduser().resolve()
        if folder.parent.name == "snapshots":  # of a hub's cache: models--ORG--NAME/snapshots/COMMIT
            folder = folder.parents[1]
        return f"sentence-transformers/{folder.name.split('--')[-1]}"
    return model_name(model) or type(model).__name__


def _local_model(model: Any, device: str | None, *, kind: str, method: str, user: str) -> Any:
    """Return a loaded model, or load one from a folder.

    ``kind`` is the class of sentence-transformers, ``method`` the method that a model must have, and ``user`` the class
    that needs the package, for errors.
    """
    if isinstance(model, str | PathLike):
        return _load(model, device, kind, user)
    check_methods(model, (method,), f"the folder of a model, or a {kind}")
    refuse_of_loaded("device", device)
    return model


def _load(model: str | PathLike[str], device: str | None, kind: str, user: str) -> Any:
    folder = local_folder(model, "model")
    package = import_extra("sentence_transformers", user)
    return getattr(package, kind)(str(folder), device=device, local_files_only=True)


@runtime_checkable
class Reranker(Protocol):
    """An object that scores texts against a query, reading both together; higher is better.

    A class need not inherit from this one.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.encoders import Reranker
    >>> class SharedWords:
    ...     def score(self, queries, candidates):
    ...         pairs = zip(queries, candidates, strict=True)
    ...         return [np.array([len(set(q.split()) & set(t.split())) for t in row], np.float32) for q, row in pairs]
    >>> isinstance(SharedWords(), Reranker)
    True
    """

    def score(self, queries: Sequence[str], candidates: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Return scores for B queries, for the n_b candidates of each: B arrays of float32, shape (n_b,)."""
        ...


def rerank(hits: Hits, queries: Sequence[str], texts: Sequence[str], reranker: Reranker, *, k: int) -> Hits:
    """Return the first k hits of each query in a reranker's order, with its scores.

    The reranker reads k texts for each query; later hits are dropped. The result can be returned, or fused with the
    original list (``hf.fuse([hits, reranked], ...)``).

    Parameters
    ----------
    hits : Hits
        B rows, ids 0 .. P - 1.
    queries : sequence of str, B entries
    texts : sequence of str, P entries
        The text of every passage.
    reranker : Reranker
    k : int, at least 1

    Returns
    -------
    Hits
        ids int64 and scores float32 of shape (B, min(k, width of hits)). Order: higher score, then lower id.

    Raises
    ------
    InputError
        Another number of queries than rows, one string as ``texts``, a hit without a text, k below 1, or scores of
        another shape or that are not finite in float32.

    References
    ----------
    Nogueira and Cho, Passage Re-ranking with BERT, arXiv:1901.04085 (2019).

    Examples
    --------
    >>> import hopfuse as hf
    >>> import numpy as np
    >>> from hopfuse.encoders import rerank
    >>> class Lengths:
    ...     def score(self, queries, candidates):
    ...         return [np.array([len(text) for text in row], np.float32) for row in candidates]
    >>> hits = hf.Hits([[0, 2, 1]], [[0.9, 0.8, 0.1]])
    >>> rerank(hits, ["how long?"], ["a", "bb", "ccc"], Lengths(), k=2).row(0)
    [(2, 3.0), (0, 1.0)]
    """
    first = hits.head(check_whole(k, "k"))
    asked = checked_texts(queries, "queries")
    check_length(len(asked), "queries", len(hits), "row")
    if isinstance(texts, str):
        raise wrong_type(texts, "texts", "a list with the text of every passage")
    largest = int(first.ids.max(initial=-1))
    if largest >= len(texts):
        raise InputError(
            "unknown",
            "hits",
            "{field} has the passage {given}; {@texts} has {allowed}: give the text of every passage",
            given=largest,
            allowed=counted(len(texts), "entry"),
        )
    rows = [first.ids[b, :n].tolist() for b, n in enumerate(first.counts.tolist())]
    scored = reranker.score(asked, [[texts[i] for i in row] for row in rows])
    check_length(len(scored), "reranker", len(rows), "query")
    scores = np.zeros(first.ids.shape, np.float32)
    for b, (row, found) in enumerate(zip(rows, scored, strict=True)):
        check_shape(np.shape(found), f"reranker[{b}]", (len(row),), reason="one score for each text of the query")
        with np.errstate(over="ignore"):  # becomes infinite, which Hits refuses
            scores[b, : len(row)] = found
    return Hits(first.ids, scores, first.counts)
