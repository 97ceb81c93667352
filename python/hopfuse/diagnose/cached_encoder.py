"""An encoder that caches the vectors of another, in memory and in a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..encoders import Encoder
from ..encoders.protocol import WrappedEncoder
from ..errors import FormatError
from ..io.files import read_npy, write_whole

Vectors = NDArray[np.float32]


class CachedEncoder(WrappedEncoder):
    """An encoder that caches the vectors of another.

    Vectors of queries are cached in memory. With a folder, vectors of queries and passages are also cached there, in a
    file for each list of texts, which later runs with the same encoder and texts read.

    Parameters
    ----------
    encoder : Encoder
    folder : Path, optional
        Created if it does not exist. The files are named by the SHA-256 hash of the encoder's name and the texts.

    Raises
    ------
    FormatError
        When encoding, if a file of the folder does not have the shape or type of its texts' vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from hopfuse.diagnose import CachedEncoder
    >>> class Lengths:
    ...     name, dim, normalize = "lengths", 1, False
    ...     def encode_queries(self, texts):
    ...         print("encodes", texts)
    ...         return np.array([[len(text)] for text in texts], np.float32)
    >>> cached = CachedEncoder(Lengths())
    >>> cached.encode_queries(["a", "bb"]).tolist(), cached.encode_queries(["bb"]).tolist()
    encodes ['a', 'bb']
    ([[1.0], [2.0]], [[2.0]])
    """

    def __init__(self, encoder: Encoder, folder: Path | None = None) -> None:
        super().__init__(encoder)
        self._folder = folder
        self._queries: dict[str, Vectors] = {}

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of passages: float32, shape (n, dim)."""
        return self._cached("passages", list(texts), self._encoder.encode_passages)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of queries: float32, shape (n, dim)."""
        new = list(dict.fromkeys(text for text in texts if text not in self._queries))
        if new:
            self._queries.update(zip(new, self._cached("queries", new, self._encoder.encode_queries), strict=True))
        rows = [self._queries[text] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dim), np.float32)

    def _cached(self, kind: str, texts: list[str], encode: Callable[[Sequence[str]], Vectors]) -> Vectors:
        if self._folder is None:
            return encode(texts)
        digest = sha256(repr((self.name, self.dim, self.normalize, kind, texts)).encode())
        path = self._folder / f"{digest.hexdigest()}.npy"
        if path.exists():
            vectors = np.asarray(read_npy(path, "cache"))
            if vectors.dtype != np.float32 or vectors.shape != (len(texts), self.dim):
                raise FormatError(
                    "damaged",
                    None,
                    "{path} holds {given} of shape {shape}; delete it",
                    path=path,
                    given=vectors.dtype,
                    shape=vectors.shape,
                )
            return vectors
        vectors = np.asarray(encode(texts), np.float32)
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file: np.save(file, vectors))
        return vectors
