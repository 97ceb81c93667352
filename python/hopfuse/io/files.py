"""Write files atomically, open them safely, and read arrays from .npy files."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Mapping
from operator import methodcaller
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError


def write_whole(path: Path, write: Callable[[BinaryIO], object], *, drafts: Path | None = None) -> None:
    """Write a temporary file with ``write``, sync it to the disk, and rename it to ``path``.

    If that fails, the temporary file is removed. Its name is random, so no link is followed and processes do not share
    it. It is in the folder of ``path``, or in ``drafts``, a folder of the same file system.
    """
    draft = (drafts or path.parent) / f".{secrets.token_hex(8)}.unfinished"
    try:
        with create_exclusively(draft) as file:
            write(file)
            sync_file(file)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def write_all(texts: Mapping[Path, str]) -> None:
    """Write UTF-8 files, each whole or not at all; write none if one of the texts cannot be encoded.

    Parameters
    ----------
    texts : mapping of Path to str

    Raises
    ------
    UnicodeEncodeError
        A text has a lone surrogate.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hopfuse.io import write_all
    >>> with TemporaryDirectory() as folder:
    ...     write_all({Path(folder, "a.json"): "1", Path(folder, "b.json"): "2"})
    ...     print(*sorted(path.name for path in Path(folder).iterdir()))
    a.json b.json
    """
    for path, content in {path: text.encode() for path, text in texts.items()}.items():
        write_whole(path, methodcaller("write", content))


def create_exclusively(path: Path) -> BinaryIO:
    """Create a file and open it for writing; an existing file or symbolic link is an error.

    Raises
    ------
    FileExistsError
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o666), "w+b")


def no_link(path: str, flags: int) -> int:
    """Open a file that is not a symbolic link; an opener for ``open(opener=)``."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. The opened file itself is checked, so replacing the name has no effect.

    Raises
    ------
    FileNotFoundError
    InputError
        The path is a directory, a pipe or a device.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # opening a pipe must not block
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError("type", None, "{path} is not a regular file", path=path)
    return os.fdopen(descriptor, "rb")


def sync_file(file: BinaryIO) -> None:
    """Sync a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    """Sync a directory's entries to the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_text(path: Path, what: str) -> str:
    """Return the text of a UTF-8 file or pipe, with its ends of lines and without a byte-order mark.

    ``what`` names the option or argument in errors.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise _no_file(path, what) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            "syntax", what, "{field}: {path} cannot be read as UTF-8 text: {error}", path=path, error=error
        ) from None


def read_npy(path: Path, what: str, *, mapped: bool = True) -> NDArray[Any]:
    """Read the array of an .npy file. Nothing in the file is executed.

    Parameters
    ----------
    path : Path
    what : str
        The option or argument that names the file, for errors.
    mapped : bool
        Map the file into memory instead of reading it, which gives the same array.

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
        array = None if is_archive else np.load(path, mmap_mode="r", allow_pickle=False)
        if array is not None and not array.dtype.itemsize:
            raise ValueError(f"{array.dtype} has no bytes")  # NumPy gives a copy of such an array another type
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
    return np.asarray(array) if mapped else np.array(array)


def existing_file(path: Path, what: str) -> Path:
    """Return the path if it is a file; ``what`` names the option or argument in errors."""
    if not path.is_file():
        raise _no_file(path, what)
    return path


def _no_file(path: Path, what: str) -> InputError:
    return InputError("missing", what, "{field}: there is no file {given!r}", given=str(path))
