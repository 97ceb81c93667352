"""Look up vectors that were computed elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_whole, checked_texts
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
        """Return the vectors of queries.

        Parameters
        ----------
        texts : sequence of str, or ndarray of real numbers, shape (n, dim)

        Returns
        -------
        ndarray of float32, shape (n, dim), C-contiguous

        Raises
        ------
        InputError
            A text without a vector, another shape, NaN or infinite entries, a zero vector under
            ``normalize=True``.
        """
        return self._encode(texts, self._queries, "queries")

    def encode_passages(self, texts: Sequence[str] | NDArray[Any]) -> NDArray[np.float32]:
        """Return the vectors of passages; see :meth:`encode_queries`."""
        return self._encode(texts, self._passages, "passages")

    def _encode(
        self, texts: Sequence[str] | NDArray[Any], known: Mapping[str, ArrayLike], name: str
    ) -> NDArray[np.float32]:
        if is_tensor(texts):
            texts = on_host(texts)
        if isinstance(texts, np.ndarray) and texts.dtype.kind in "fiu":
            return self._checked(texts, len(texts) if texts.ndim else 0)
        listed = checked_texts(cast("Sequence[str]", texts))
        for at, text in enumerate(listed):
            if text not in known:
                raise InputError(f"texts[{at}] ({text[:60]!r}) has no vector in {name}, which holds {len(known)} texts")
            if np.shape(known[text]) != (self._dim,):
                raise InputError(
                    f"the vector of {text[:60]!r} in {name} has shape {np.shape(known[text])}, not ({self._dim},)"
                )
        rows = [on_host(known[text]) for text in listed]
        return self._checked_rows(rows)
