"""A directory of generations: a pointer that is replaced atomically, and a lock for writers."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ..errors import FormatError, InputError

POINTER = "CURRENT"
LOCK = "LOCK"
_FILE = re.compile(r"generation-([0-9]{12})\.hopfuse")
_POINTER_BYTES = 64

T = TypeVar("T")


def publish(directory: Path, write: Callable[[Path, int], None]) -> int:
    """Write a new generation, point to it, and remove the older ones.

    A kill at any moment leaves the old generation or the new one in place. Writers wait for each
    other; a reader that has an older generation open keeps it, because its file lives on until it is
    closed.

    Parameters
    ----------
    directory : Path
        Made where absent.
    write : callable of (path, generation)
        Writes a complete file at a path that does not exist and flushes it to the disk.

    Returns
    -------
    int
        The generation's number.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with _writer_lock(directory):
        generation = 1 + max((_number(name) for name in _files(directory)), default=0)
        path = directory / f"generation-{generation:012d}.hopfuse"
        try:
            write(path, generation)
            _sync_directory(directory)
            _point_to(directory, path.name)
        except BaseException:
            if _pointer(directory) != path.name:
                path.unlink(missing_ok=True)
            raise
        _remove_others(directory, path.name)
    return generation


def open_current(directory: Path, read: Callable[[Path, int], T]) -> T:
    """What ``read(path, generation)`` makes of the current generation.

    Raises
    ------
    InputError
        There is no such directory.
    FormatError
        The pointer is missing, malformed, or names a file that does not exist.
    """
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory; an index is the directory that Index.save wrote")
    while True:
        name = _pointer(directory)
        if name is None:
            raise FormatError(f"{directory} holds no index: it has no file {POINTER}, which Index.save writes last")
        if not _FILE.fullmatch(name):
            raise FormatError(f"{directory / POINTER} is damaged: {name!r} is not the name of a generation")
        try:
            return read(directory / name, _number(name))
        except FileNotFoundError:
            if _pointer(directory) == name:
                raise FormatError(f"{directory / POINTER} names {name}, which does not exist") from None


def _pointer(directory: Path) -> str | None:
    path = directory / POINTER
    if not path.is_file():
        return None
    with open(path, "rb") as file:
        data = file.read(_POINTER_BYTES)
    line = data.decode("ascii", "backslashreplace")
    return line[:-1] if line.endswith("\n") else f"{line} (no end of line)"


def _point_to(directory: Path, name: str) -> None:
    draft = directory / f"{POINTER}.new"
    with open(draft, "wb") as file:
        file.write(f"{name}\n".encode())
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, directory / POINTER)
    _sync_directory(directory)


def _files(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if _FILE.fullmatch(name)]


def _number(name: str) -> int:
    found = _FILE.fullmatch(name)
    return int(found[1]) if found else 0


def _remove_others(directory: Path, name: str) -> None:
    """A file that cannot be removed now is removed by the next save."""
    for other in _files(directory):
        if other != name:
            with contextlib.suppress(OSError):
                os.unlink(directory / other)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _writer_lock(directory: Path) -> Iterator[None]:
    """An exclusive lock that the system releases when its holder ends, however it ends."""
    import fcntl  # POSIX only; reading an index does not need it

    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
