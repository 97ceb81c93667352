"""Arrays that grow batch by batch: in memory or, if they may exceed it, in a temporary file, which is mapped."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..io import tables
from ..io.tables import Table
from ..types import Corpus
from ..types.corpus import Metric, Storage, refusal


class Buffer(Protocol):
    """Bytes to which arrays are appended."""

    def append(self, data: bytes | NDArray[Any]) -> None:
        """Append bytes, or those of an array.

        Raises
        ------
        OSError
            The disk is full.
        """
        ...

    def array(self, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return all bytes as an array; nothing is appended afterwards."""
        ...

    def close(self) -> None:
        """Release what no array uses."""
        ...


class Memory:
    """A buffer in memory."""

    def __init__(self) -> None:
        self._data = bytearray()

    def append(self, data: bytes | NDArray[Any]) -> None:
        """Append bytes, or those of an array."""
        self._data += data if isinstance(data, bytes) else _bytes_of(data)

    def array(self, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return all bytes as an array."""
        return np.frombuffer(self._data, dtype).reshape(shape) if self._data else np.zeros(shape, dtype)

    def close(self) -> None:
        """Do nothing."""


class Spool:
    """A buffer in an unnamed temporary file, which exists until it is closed and no longer mapped.

    Parameters
    ----------
    folder : path, optional
        By default the system's folder for temporary files.
    """

    def __init__(self, folder: Path | None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115, closed by array() or close()
        self._is_empty = True

    def append(self, data: bytes | NDArray[Any]) -> None:
        """Append bytes, or those of an array."""
        self._is_empty &= not self._file.write(data if isinstance(data, bytes) else _bytes_of(data))

    def array(self, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Map the whole file as a read-only array, and close it for writing."""
        with self._file as file:
            if self._is_empty:
                return np.zeros(shape, dtype)
            file.flush()
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return np.ndarray(shape, dtype, buffer=mapping)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


class Vectors:
    """The column ``vector`` of a table, checked and rounded batch by batch."""

    def __init__(self, buffer: Callable[[], Buffer], metric: Metric, storage: Storage) -> None:
        self._make, self._metric, self._storage = buffer, metric, storage
        self._buffer: Buffer | None = None
        self._dim: int | None = None
        self._dtype: np.dtype[Any] | None = None
        self._count = self._num_rows = 0

    def checked(self, table: Table) -> Corpus | None:
        """Return the vectors of a batch, checked and rounded to the storage type, or None without any."""
        if not table.num_rows and self._num_rows:
            return None
        if (self._buffer is None) != ("vector" not in table.columns) and self._num_rows:
            raise InputError(
                "conflict",
                "vector",
                "a batch with other columns begins here; all batches of a table must have the same",
            ).at(table.place(0))
        if "vector" not in table.columns:
            return None
        values = tables.vectors(table, "vector", self._dim)
        if not values.size and not values.shape[1]:
            return None
        if self._dtype is not None and self._storage == "int8":
            values = values.astype(self._dtype, copy=False)  # the precision of the first batch
        made = Corpus.unchecked(np.ascontiguousarray(values), metric=self._metric, storage=self._storage)
        wrong = made.unscorable()
        if wrong is not None:
            raise refusal(wrong, table.label("vector")).at(table.place(wrong.row))
        return made

    def keep(self, table: Table, made: Corpus | None) -> None:
        """Append the vectors of a batch."""
        if not table.num_rows and self._num_rows:
            return
        self._num_rows += table.num_rows
        if "vector" in table.columns and self._buffer is None:
            self._buffer = self._make()
        if made is not None and self._buffer is not None:
            self._dim, self._dtype = made.dim, made.vectors.dtype
            self._buffer.append(made.vectors)
            self._count += table.num_rows

    def corpus(self) -> Corpus | None:
        """Return the vectors, or None if there are none."""
        if self._buffer is None or self._dim is None or self._dtype is None:
            return None
        return Corpus(self._buffer.array(self._dtype, (self._count, self._dim)), self._metric, self._storage)
