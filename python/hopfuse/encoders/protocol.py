"""The encoder protocol, and the adapter for objects of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .._validation import check_dtype, check_shape, checked_texts
from ..errors import InputError


@runtime_checkable
class Encoder(Protocol):
    """An object that encodes texts as vectors, with a method for queries and one for passages.

    Both methods return a float32 C-contiguous array of shape (n, dim), row i for ``texts[i]``, and (0, dim) for no
    texts. The encoders of this package scale every row to length 1 by default, so that an inner product is a cosine. An
    index stores ``name``, ``dim`` and ``normalize``, and refuses the vectors of another encoder.

    A class need not inherit from this one. :func:`as_encoder` adapts objects that lack some members, or that use
    sentence-transformers' names.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.encoders import Encoder
    >>> class Lengths:
    ...     name, dim, normalize = "lengths", 1, False
    ...     def encode_queries(self, texts):
    ...         return np.array([[len(t)] for t in texts], np.float32).reshape(-1, 1)
    ...     encode_passages = encode_queries
    >>> isinstance(Lengths(), Encoder)
    True
    """

    @property
    def name(self) -> str:
        """The model's name, which identifies the vectors that it makes."""
        ...

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        ...

    @property
    def normalize(self) -> bool:
        """Whether every row is scaled to length 1."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of queries: float32, shape (n, dim)."""
        ...

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of passages: float32, shape (n, dim)."""
        ...


class NamedEncoder:
    """Base class of this package's encoders, which define :meth:`_vectors`."""

    def __init__(self, name: str, dim: int, normalize: bool) -> None:
        self._name, self._dim, self._normalize = name, dim, normalize

    @property
    def name(self) -> str:
        """The model's name, or the one given at construction."""
        return self._name

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        return self._dim

    @property
    def normalize(self) -> bool:
        """Whether every row is scaled to length 1."""
        return self._normalize

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of queries.

        Parameters
        ----------
        texts : sequence of str, n entries

        Returns
        -------
        ndarray of float32, shape (n, dim), C-contiguous

        Raises
        ------
        InputError
            A bare string or an entry that is not one, a vector that is not finite, or that is zero under
            ``normalize=True``.
        """
        return self._encode(texts, of_passages=False)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of passages; see :meth:`encode_queries`."""
        return self._encode(texts, of_passages=True)

    def _encode(self, texts: Sequence[str], *, of_passages: bool) -> NDArray[np.float32]:
        listed = checked_texts(texts)
        vectors = self._vectors(listed, of_passages) if listed else np.zeros((0, self._dim))
        return self._checked(vectors, len(listed))

    def _vectors(self, texts: list[str], of_passages: bool) -> Any:
        """Return a vector for each of at least one text."""
        raise NotImplementedError

    def _checked(self, vectors: Any, count: int) -> NDArray[np.float32]:
        return checked_vectors(vectors, count, self._dim, self._normalize)


class WrappedEncoder:
    """Base class of encoders that wrap another one, and have its name, dimension and scaling."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    @property
    def wrapped(self) -> Encoder:
        """The encoder that is wrapped."""
        return self._encoder

    @property
    def name(self) -> str:
        """The name of the wrapped encoder."""
        return self._encoder.name

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        return self._encoder.dim

    @property
    def normalize(self) -> bool:
        """True if every row is scaled to length 1."""
        return self._encoder.normalize


def as_encoder(encoder: Any) -> Encoder:
    """Return an object as an :class:`Encoder`.

    Parameters
    ----------
    encoder : object
        An Encoder, which is returned unchanged; or an object with ``encode_queries`` or sentence-transformers'
        ``encode_query`` for queries, and ``encode_passages`` or ``encode_document`` for passages. Defaults of missing
        members: ``name`` is the name of the model that sentence-transformers loaded, else of the class; ``dim`` comes
        from ``get_embedding_dimension()``, else from the vector of one text; ``normalize`` is False, and rows are not
        changed. Vectors may be torch tensors on any device, and are rounded to float32.

    Returns
    -------
    Encoder

    Raises
    ------
    InputError
        The object cannot encode queries; or, when passages are encoded, it cannot encode those.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.encoders import as_encoder
    >>> class Lengths:
    ...     def encode_query(self, texts, **options):
    ...         return np.array([[len(t), 1.0] for t in texts])
    ...     encode_document = encode_query
    >>> encoder = as_encoder(Lengths())
    >>> encoder.name, encoder.dim, encoder.encode_passages(["a river"])
    ('Lengths', 2, array([[7., 1.]], dtype=float32))
    """
    if isinstance(encoder, type):
        raise InputError(
            "type",
            "encoder",
            "{field} is the class {given}; give an object of it: {given}(...)",
            given=encoder.__name__,
        )
    if isinstance(encoder, Encoder):
        return encoder
    if not any(callable(getattr(encoder, name, None)) for name in _QUERY_METHODS):
        raise no_method(encoder, "encoder", _QUERY_METHODS, "one of hopfuse.encoders, or an adapter's encoder")
    return cast("Encoder", _FittedEncoder(encoder))


_QUERY_METHODS = ("encode_queries", "encode_query")
_PASSAGE_METHODS = ("encode_passages", "encode_document")


def encodes_passages(given: Any) -> bool:
    """Return whether an object has a method that encodes passages, as arrays of vectors and paths have not."""
    return any(callable(getattr(given, name, None)) for name in _PASSAGE_METHODS)


class _FittedEncoder:
    """Adapts a user's object to the protocol."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self._dim: int | None = None

    @property
    def name(self) -> str:
        return str(getattr(self._encoder, "name", None) or model_name(self._encoder) or type(self._encoder).__name__)

    @property
    def dim(self) -> int:
        if self._dim is None:
            known = getattr(self._encoder, "dim", None)
            self._dim = model_dim(self._encoder, self._method(_QUERY_METHODS)) if known is None else int(known)
        return self._dim

    @property
    def normalize(self) -> bool:
        return bool(getattr(self._encoder, "normalize", False))

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._encode(_QUERY_METHODS, texts)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._encode(_PASSAGE_METHODS, texts)

    def _encode(self, names: tuple[str, str], texts: Sequence[str]) -> NDArray[np.float32]:
        listed = checked_texts(texts)
        if not listed:
            return np.zeros((0, self.dim), np.float32)
        vectors = on_host(self._method(names)(listed))
        if self._dim is None and vectors.ndim == 2:
            self._dim = int(getattr(self._encoder, "dim", None) or vectors.shape[1])
        return checked_vectors(vectors, len(listed), self.dim, normalize=False)

    def _method(self, names: tuple[str, str]) -> Callable[[list[str]], Any]:
        for name in names:
            method = getattr(self._encoder, name, None)
            if callable(method):
                return cast("Callable[[list[str]], Any]", method)
        raise no_method(self._encoder, "encoder", names, "an encoder that has it")


def no_method(value: Any, field: str, methods: Iterable[str], allowed: str) -> InputError:
    """Return the error for an object that has none of the methods that are called; ``allowed`` says what has them."""
    return InputError(
        "type",
        field,
        "{field} is of the type {given}, which has no {methods}; give {allowed}",
        given=type(value).__name__,
        methods=" or ".join(methods),
        allowed=allowed,
    )


def check_methods(model: Any, methods: Iterable[str], allowed: str) -> None:
    """Raise unless a loaded model has the methods that are called."""
    for method in methods:
        if not callable(getattr(model, method, None)):
            raise no_method(model, "model", (method,), allowed)


def refuse_of_loaded(field: str, given: Any) -> None:
    """Raise if an option of loading a model is given beside a loaded one."""
    if given is not None:
        raise InputError(
            "unused",
            field,
            "{field} is given, and {@model} is loaded already; leave it out, or change the model itself",
        )


def local_folder(folder: Any, field: str) -> Path:
    """Return the folder of a model on this machine."""
    found = None if folder is None else Path(folder).expanduser()
    if found is None or not found.is_dir():
        raise InputError(
            "missing",
            field,
            "{field} is {given!r}, which is not a folder on this machine, and models are never downloaded; download "
            "the model and pass its folder",
            given=None if folder is None else str(folder),
        )
    return found


def first_unencodable(encode: Callable[[list[str]], Any], texts: Sequence[str]) -> int | None:
    """Return the number of the first text without words, unless ``encode`` has a vector for an empty text; else None.

    White space is no words: models read it as tokens, of which the vector says nothing.
    """
    at = next((at for at, text in enumerate(texts) if not text.strip()), None)
    if at is None:
        return None
    try:
        encode([""])
    except ValueError:  # of any library; hopfuse's InputError is one
        return at
    return None


def model_name(model: Any) -> str | None:
    """Return the name under which sentence-transformers loaded a model, or None if it is not known."""
    card = getattr(model, "model_card_data", None)
    name = getattr(card, "model_id", None) or getattr(card, "base_model", None)
    return f"sentence-transformers/{str(name).rstrip('/').split('/')[-1]}" if name else None


def model_dim(model: Any, encode: Callable[[list[str]], Any]) -> int:
    """Return the dimension that a model states, else that of the vector of one text."""
    for name in ("get_embedding_dimension", "get_sentence_embedding_dimension"):
        ask = getattr(model, name, None)
        known = ask() if callable(ask) else None
        if known is not None:
            return int(known)
    return int(np.shape(encode(["dimension"]))[1])


def checked_vectors(vectors: Any, count: int, dim: int, normalize: bool) -> NDArray[np.float32]:
    """Return vectors as float32 (count, dim), C-contiguous, finite, each of length 1 if asked for."""
    raw = on_host(vectors)
    check_dtype(raw, "vectors", "fiu", "real numbers")
    check_shape(raw.shape, "vectors", (count, dim), reason="one for each text, of the encoder's dimensions")
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.ascontiguousarray(raw, dtype=np.float32)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise InputError(
            "finite",
            f"texts[{int(np.argmin(finite))}]",
            "the vector of {field} has a NaN or an entry outside float32's range",
        )
    return _unit(rows) if normalize else rows


def on_host(vectors: Any) -> NDArray[Any]:
    """Return vectors as a NumPy array; torch tensors on any device, and lists of them, are copied.

    A bfloat16 tensor is converted to float32, exactly. Gradients are dropped.

    Examples
    --------
    >>> on_host([[1, 2]])
    array([[1, 2]])
    """
    if is_tensor(vectors):
        plain = vectors.detach().cpu()
        return np.asarray(plain.float() if str(plain.dtype) == "torch.bfloat16" else plain)
    if isinstance(vectors, list) and vectors and all(map(is_tensor, vectors)):
        return np.stack([on_host(one) for one in vectors])
    return np.asarray(vectors)


def is_tensor(array: Any) -> bool:
    """Return whether an object is a torch tensor, without importing torch."""
    return type(array).__module__.split(".")[0] == "torch" and callable(getattr(array, "detach", None))


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1, keepdims=True))
    if (lengths == 0).any():
        raise InputError(
            "zero",
            f"texts[{int(np.argmin(lengths))}]",
            "the vector of {field} is zero and has no direction (is the text empty?); leave it out, or pass "
            "normalize=False",
        )
    unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return unit
