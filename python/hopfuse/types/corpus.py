"""A dense corpus, checked once for every later query."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .arrays import to_numpy

Metric = Literal["ip", "cosine"]
Storage = Literal["float32", "float16"]
METRICS = ("ip", "cosine")
STORAGES = ("float32", "float16")
_CHUNK_BYTES = 1 << 26


@dataclass(frozen=True, eq=False)
class Corpus:
    """Vectors to search exactly. Immutable; build it with :meth:`from_array`.

    Attributes
    ----------
    vectors : ndarray of float32 or float16, shape (N, d)
        The originals that define every score, C-contiguous. An array that already has the wanted
        dtype and layout is referenced, not copied (it may be memory-mapped): do not change it.
    metric : {"ip", "cosine"}
    storage : {"float32", "float16"}
    """

    vectors: NDArray[Any]
    metric: Metric
    storage: Storage
    _prepared: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_array(cls, X: Any, *, metric: Metric = "ip", storage: Storage = "float32") -> Corpus:
        """Check an array of vectors and wrap it.

        Parameters
        ----------
        X : array_like of float, shape (N, d), d >= 1
            Finite vectors. NumPy, or any CPU array that speaks DLPack.
        metric : {"ip", "cosine"}
            Inner product, or cosine similarity (vectors need not be normalised).
        storage : {"float32", "float16"}
            Precision of the originals. Values are rounded to it here, once; scores are defined on
            the rounded values.

        Raises
        ------
        InputError
            NaN or infinite entries, values outside the storage's range, a zero vector under
            ``metric="cosine"``; the message names the row.

        Examples
        --------
        >>> import numpy as np, hopfuse as hf
        >>> hf.Corpus.from_array(np.eye(3), metric="cosine")
        Corpus(vectors=3, dim=3, metric='cosine', storage='float32')
        """
        if metric not in METRICS:
            raise InputError(f"metric is {metric!r}; allowed: {', '.join(METRICS)}")
        if storage not in STORAGES:
            raise InputError(f"storage is {storage!r}; allowed: {', '.join(STORAGES)}")
        array = to_numpy(X, "X")
        if array.ndim != 2 or array.dtype.kind not in "fiu" or array.shape[1] < 1:
            raise InputError(f"X is {array.dtype}{array.shape}; it must be real numbers of shape (N, d), d >= 1")
        with np.errstate(over="ignore"):
            vectors = np.ascontiguousarray(array, dtype=np.dtype(storage))
        _check_rows(vectors, metric)
        return cls(vectors, metric, storage)

    @property
    def num_vectors(self) -> int:
        """N."""
        return int(self.vectors.shape[0])

    @property
    def dim(self) -> int:
        """d."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return self.num_vectors

    def __repr__(self) -> str:
        return f"Corpus(vectors={self.num_vectors}, dim={self.dim}, metric={self.metric!r}, storage={self.storage!r})"


def _check_rows(vectors: NDArray[Any], metric: str) -> None:
    step = max(1, _CHUNK_BYTES // (4 * vectors.shape[1]))
    for start in range(0, vectors.shape[0], step):
        with np.errstate(over="ignore"):
            norms = np.square(vectors[start : start + step], dtype=np.float64).sum(axis=1)
        bad = ~(norms <= np.finfo(np.float32).max / 2)
        if bad.any():
            row = start + int(np.flatnonzero(bad)[0])
            raise InputError(f"row {row} of X has a NaN, an infinite entry, or values too large to score in float32")
        if metric == "cosine" and (norms < np.finfo(np.float32).tiny).any():
            row = start + int(np.flatnonzero(norms < np.finfo(np.float32).tiny)[0])
            raise InputError(
                f"row {row} of X is the zero vector (or vanishes in float32), which has no cosine; "
                "drop it or use metric='ip'"
            )
