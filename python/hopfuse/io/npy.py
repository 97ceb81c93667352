"""Read arrays from .npy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .files import existing_file


def read_npy(path: Path, what: str, *, mapped: bool = True) -> NDArray[Any]:
    """Read the array of an .npy file. Nothing in the file is executed.

    Parameters
    ----------
    path : Path
    what : str
        The option or argument that names the file, for errors.
    mapped : bool
        Map the file into memory instead of reading it.

    Raises
    ------
    InputError
        There is no such file, or it is not an .npy file of numbers, such as an .npz archive or an array of objects.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "vectors.npy"), np.eye(2))
    ...     read_npy(Path(folder, "vectors.npy"), "vectors", mapped=False)
    array([[1., 0.],
           [0., 1.]])
    """
    try:
        with open(existing_file(path, what), "rb") as file:
            is_archive = file.read(2) == b"PK"
        array = None if is_archive else np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except InputError:
        raise
    except Exception as error:  # np.load passes on any error of its header's parsers
        raise InputError(
            "syntax", what, "{field}: {path} cannot be read as an .npy array: {error}", path=path, error=error
        ) from None
    if array is None:
        raise InputError(
            "type",
            what,
            "{field}: {path} is a zip archive, as np.savez writes; save one array with np.save",
            path=path,
        )
    return np.asarray(array)
