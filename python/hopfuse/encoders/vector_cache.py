"""Cache vectors in a file, by the hash of their text."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from os import PathLike, fspath

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

#: Keys in one SQLite query, which accepts at most 32,766 values.
KEYS = 10_000


class VectorCache:
    """A SQLite file of float32 vectors, without their texts. Threads and processes may share it.

    Parameters
    ----------
    path : str or path
        Created if absent.
    dim : int
        Entries of a vector.

    Raises
    ------
    InputError
        The file is not a SQLite database or cannot be created; later, it cannot be read or written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hopfuse.encoders.vector_cache import VectorCache
    >>> cache = VectorCache(f"{tempfile.mkdtemp()}/vectors.db", 2)
    >>> cache.write([b"a"], np.array([[1.0, 2.0]], np.float32))
    >>> cache.read([b"a", b"b"])
    {b'a': array([1., 2.], dtype=float32)}
    """

    def __init__(self, path: str | PathLike[str], dim: int) -> None:
        self._path, self._bytes = fspath(path), 4 * dim
        with self._connected() as db:
            db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID")

    def read(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Return the cached vectors by key; a vector of another length counts as absent."""
        found: dict[bytes, NDArray[np.float32]] = {}
        with self._connected() as db:
            for at in range(0, len(keys), KEYS):
                part = list(keys[at : at + KEYS])
                marks = ",".join("?" * len(part))
                for key, vector in db.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part):
                    if len(vector) == self._bytes:
                        found[key] = np.frombuffer(vector, "<f4").astype(np.float32)
        return found

    def write(self, keys: Sequence[bytes], rows: NDArray[np.float32]) -> None:
        """Store vectors: all of them or, if the process is killed, none."""
        pairs = [(key, row.astype("<f4").tobytes()) for key, row in zip(keys, rows, strict=True)]
        with self._connected() as db:
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", pairs)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection; commit its changes unless an exception is raised."""
        try:
            with closing(sqlite3.connect(self._path, timeout=600)) as db, db:
                yield db
        except sqlite3.Error as error:
            raise InputError(
                "UNSORTED",
                None,
                "cache is {given!r}, which cannot be used as a file of vectors: {error}",
                given=self._path,
                error=error,
            ) from None
