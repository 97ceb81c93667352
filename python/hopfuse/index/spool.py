"""Arrays that are too large for memory while they are read: appended to a temporary file, and mapped."""

from __future__ import annotations

import mmap
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Spool:
    """A temporary file without a name, which goes when nothing maps it.

    Parameters
    ----------
    folder : path, optional
        Where it is written; by default where the system has temporary files.
    """

    def __init__(self, folder: Path | None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115, closed by mapped() or close()
        self._bytes = 0

    def append(self, array: NDArray[Any]) -> None:
        """Write an array behind what is there.

        Raises
        ------
        OSError
            The disk is full.
        """
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self._file.write(data.data)
        self._bytes += data.nbytes

    def mapped(self, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return all that was written as one array, read-only, over the file; nothing is written after."""
        with self._file as file:
            if not self._bytes:
                return np.zeros(shape, dtype)
            file.flush()
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return np.ndarray(shape, dtype, buffer=mapping)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
