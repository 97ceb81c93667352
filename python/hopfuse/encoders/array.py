"""Look up vectors that were computed elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_whole
from ..errors import InputError
from .protocol import NamedEncoder, is_tensor, on_host


class ArrayEncoder(NamedEncoder):
    """An encoder over existing vectors.

    Given texts, it looks up their vectors. Given an array or a torch tensor of shape (n, dim), on any device and of any
    real dtype, it returns that as the vectors.

    Parameters
    ----------
    dim : int, at least 1
    queries, passages : mapping of str to array_like of shape (dim,), optional
        The vector of each text. For a matrix: ``dict(zip(texts, matrix, strict=True))``.
    name : str
        The name of the model that made the vectors, which an index stores and compares.
    normalize : bool
        Scale every row to length 1. If False, a C-contiguous float32 array is returned without a copy.

    Raises
    ------
    InputError
        dim below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.encoders import ArrayEncoder
    >>> encoder = ArrayEncoder(2, queries={"who?": [3.0, 4.0]})
    >>> encoder.encode_queries(["who?"])
    array([[0.6, 0.8]], dtype=float32)
    >>> encoder.encode_passages(np.array([[0.0, 2.0]]))
    array([[0., 1.]], dtype=float32)
    """

    def __init__(
        self,
        dim: int,
        *,
        queries: Mapping[str, ArrayLike] | None = None,
        passages: Mapping[str, ArrayLike] | None = None,
        name: str = "array",
        normalize: bool = True,
    ) -> None:
        super().__init__(name, check_whole(dim, "dim"), normalize)
        self._queries: Mapping[str, ArrayLike] = {} if queries is None else queries
        self._passages: Mapping[str, ArrayLike] = {} if passages is None else passages

    def encode_queries(self, texts: Sequence[str] | NDArray[Any]) -> NDArray[np.float32]:
        """Return the vectors of queries, given as texts or as an array of shape (n, dim)."""
        return self._encode(texts, of_passages=False)

    def encode_passages(self, texts: Sequence[str] | NDArray[Any]) -> NDArray[np.float32]:
        """Return the vectors of passages, given as texts or as an array of shape (n, dim)."""
        return self._encode(texts, of_passages=True)

    def _encode(self, texts: Any, *, of_passages: bool) -> NDArray[np.float32]:
        given = on_host(texts) if is_tensor(texts) else texts
        if isinstance(given, np.ndarray) and given.dtype.kind in "fiu":
            return self._checked(given, len(given) if given.ndim else 0)
        return super()._encode(cast("Sequence[str]", given), of_passages=of_passages)

    def _vectors(self, texts: list[str], of_passages: bool) -> NDArray[Any]:
        name, known = ("passages", self._passages) if of_passages else ("queries", self._queries)
        for at, text in enumerate(texts):
            if text not in known:
                raise InputError(
                    "unknown",
                    "texts",
                    "{field}[{at}] ({text!r}) has no vector in {name}, which holds {number} texts",
                    at=at,
                    text=text[:60],
                    name=name,
                    number=len(known),
                )
            if np.shape(known[text]) != (self._dim,):
                raise InputError(
                    "shape",
                    None,
                    "the vector of {text!r} in {name} has shape {shape}, not ({dim},)",
                    text=text[:60],
                    name=name,
                    shape=np.shape(known[text]),
                    dim=self._dim,
                )
        return np.stack([on_host(known[text]) for text in texts])
