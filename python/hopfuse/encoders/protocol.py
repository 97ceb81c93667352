"""What an encoder is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Encoder(Protocol):
    """Anything that turns texts into vectors, queries and passages apart.

    Both methods return a float32 C-contiguous array of shape (n, dim), row i for ``texts[i]``, and
    (0, dim) for no text. The encoders of this package scale every row to length 1 unless told
    otherwise, so that an inner product is a cosine. Any object with these three members will do; it
    need not inherit from this class.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.encoders import Encoder
    >>> class Lengths:
    ...     dim = 1
    ...     def encode_queries(self, texts):
    ...         return np.array([[len(t)] for t in texts], np.float32).reshape(-1, 1)
    ...     encode_passages = encode_queries
    >>> isinstance(Lengths(), Encoder)
    True
    """

    @property
    def dim(self) -> int:
        """Entries of a vector."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries: float32, shape (n, dim)."""
        ...

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of passages: float32, shape (n, dim)."""
        ...
