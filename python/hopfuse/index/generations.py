"""A directory of generations: a pointer that is replaced atomically, and a lock for writers."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ..errors import FormatError, InputError
from ..io.files import create_exclusively, open_regular, sync_directory, sync_file

POINTER = "CURRENT"
LOCK = "LOCK"
_FILE = re.compile(r"generation-([0-9]{12})\.hopfuse")
_POINTER_BYTES = 64

T = TypeVar("T")


def publish(directory: Path, write: Callable[[Path, int], None]) -> int:
    """Write a new generation, point to it, remove the older ones, and return its number.

    A kill at any moment leaves the old generation or the new one in place. Writers wait for each
    other; a reader that has an older generation open keeps it, because its file lives on until it is
    closed.

    ``write(path, generation)`` writes a complete file at a path that does not exist, and flushes it to the disk.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with _writer_lock(directory):
        generation = 1 + max((_number(name) for name in _files(directory)), default=0)
        path = directory / generation_name(generation)
        _remove_leftovers(directory)
        try:
            write(path, generation)
            sync_directory(directory)
            _point_to(directory, path.name)
        except BaseException:
            if _pointer(directory) != path.name:
                path.unlink(missing_ok=True)
            raise
        _remove_others(directory, path.name)
    return generation


def open_current(directory: Path, read: Callable[[Path, int], T]) -> T:
    """Return what ``read(path, generation)`` makes of the current generation.

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


def generation_name(generation: int) -> str:
    """Return the name of a generation's file."""
    return f"generation-{generation:012d}.hopfuse"


def _pointer(directory: Path) -> str | None:
    try:
        with open_regular(directory / POINTER) as file:
            data = file.read(_POINTER_BYTES)
    except (FileNotFoundError, InputError):
        return None
    line = data.decode("ascii", "backslashreplace")
    return line[:-1] if line.endswith("\n") else f"{line} (no end of line)"


def _point_to(directory: Path, name: str) -> None:
    draft = directory / f"{POINTER}.new"
    draft.unlink(missing_ok=True)  # left by a writer that was killed; what is a link is not followed
    with create_exclusively(draft) as file:
        file.write(f"{name}\n".encode())
        sync_file(file)
    os.replace(draft, directory / POINTER)
    sync_directory(directory)


def _files(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if _FILE.fullmatch(name)]


def _number(name: str) -> int:
    found = _FILE.fullmatch(name)
    return int(found[1]) if found else 0


def _remove_leftovers(directory: Path) -> None:
    """Remove generations that writers left when they were killed: nobody needs them, and a disk may be full of them.

    Where ``CURRENT`` is damaged, all stay: one of them is the index.
    """
    current = _pointer(directory)
    if current is None or (_FILE.fullmatch(current) and (directory / current).exists()):
        _remove_others(directory, current)


def _remove_others(directory: Path, name: str | None) -> None:
    """A file that cannot be removed now is removed by the next save."""
    for other in _files(directory):
        if other != name:
            with contextlib.suppress(OSError):
                os.unlink(directory / other)


@contextlib.contextmanager
def _writer_lock(directory: Path) -> Iterator[None]:
    """An exclusive lock that the system releases when its holder ends, however it ends."""
    import fcntl  # POSIX only; reading an index does not need it

    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
