"""Append arrays that may exceed memory to a temporary file, and map it."""

from __future__ import annotations

import mmap
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Spool:
    """An unnamed temporary file, which exists until it is closed and no longer mapped.

    Parameters
    ----------
    folder : path, optional
        By default the system's folder for temporary files.
    """

    def __init__(self, folder: Path | None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115, closed by mapped() or close()
        self._bytes = 0

    def append(self, array: NDArray[Any]) -> None:
        """Append an array.

        Raises
        ------
        OSError
            The disk is full.
        """
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._file.write(data.data)
        self._bytes += data.nbytes

    def mapped(self, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Map the whole file as a read-only array, and close it for writing."""
        with self._file as file:
            if not self._bytes:
                return np.zeros(shape, dtype)
            file.flush()
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return np.ndarray(shape, dtype, buffer=mapping)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
