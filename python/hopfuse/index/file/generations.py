"""A directory of generations, with a pointer that is replaced atomically and a lock for writers."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ...errors import FormatError, InputError
from ...io.files import create_exclusively, open_regular, sync_directory, sync_file

POINTER = "CURRENT"
LOCK = "LOCK"
_FILE = re.compile(r"generation-([0-9]{12})\.hopfuse")
_LOG = re.compile(r"log-([0-9]{12})\.hopfuse")
#: Directories (device, inode) whose lock this process holds for a live index: waiting for it would deadlock.
_HELD_LOCKS: set[tuple[int, int]] = set()
_POINTER_BYTES = 64

T = TypeVar("T")


def publish(directory: Path, write: Callable[[Path, int], None]) -> int:
    """Write a new generation, point to it, remove the older ones, and return its number.

    If the process is killed, either the old generation or the new one is current. Writers wait for each other. A reader
    keeps an older generation that it has open, since its file exists until it is closed.

    ``write(path, generation)`` creates a complete file at a new path, and syncs it to the disk.

    Raises
    ------
    InputError
        This process has the directory open for changes.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with _writer_lock(directory):
        path, generation = new_generation(directory)
        try:
            write(path, generation)
            point_to(directory, generation)
        except BaseException:
            if _pointer(directory) != path.name:
                path.unlink(missing_ok=True)
            raise
    return generation


def check_directory(directory: Path) -> None:
    """Refuse a path that is not a directory."""
    if not directory.is_dir():
        raise InputError(
            "missing",
            "directory",
            "{given} is not a directory; an index is the directory that Index.save wrote",
            given=str(directory),
        )


def new_generation(directory: Path) -> tuple[Path, int]:
    """Remove the leftovers of killed writers, and return the path and number of the next generation; needs the lock."""
    generation = 1 + max((_number(name) for name in _files(directory)), default=0)
    _remove_leftovers(directory)
    return directory / generation_name(generation), generation


def point_to(directory: Path, generation: int) -> None:
    """Make a synced generation the current one, and remove the others; needs the lock."""
    sync_directory(directory)
    _point_to(directory, generation_name(generation))
    _remove_others(directory, generation)


def log_path(directory: Path, generation: int) -> Path:
    """Return the path of a generation's log."""
    return directory / f"log-{generation:012d}.hopfuse"


@contextlib.contextmanager
def hold_lock(directory: Path) -> Iterator[None]:
    """Hold the writer's lock for a live index; raise InputError if another writer holds it."""
    import fcntl  # POSIX only; reading an index does not need it

    descriptor = _open_lock(directory)
    key = _identity(descriptor)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                "busy",
                "directory",
                "{given} is open for writing elsewhere; there can be one writer, and any number of readers",
                given=str(directory),
            ) from None
        _HELD_LOCKS.add(key)
        try:
            yield
        finally:
            _HELD_LOCKS.discard(key)
    finally:
        os.close(descriptor)


def open_current(directory: Path, read: Callable[[Path, int], T]) -> T:
    """Return ``read(path, generation)`` for the current generation.

    Raises
    ------
    InputError
        There is no such directory.
    FormatError
        The pointer is missing, malformed, or names a file that does not exist.
    """
    check_directory(directory)
    while True:
        name = _pointer(directory)
        if name is None:
            raise FormatError(
                "missing",
                None,
                "it holds no index: there is no file {pointer}, which Index.save writes last",
                pointer=POINTER,
            ).at(directory)
        if not _FILE.fullmatch(name):
            raise FormatError("syntax", None, "{given!r} is not the name of a generation", given=name).at(
                directory / POINTER
            )
        try:
            return read(directory / name, _number(name))
        except FileNotFoundError:
            if _pointer(directory) == name:
                raise FormatError("missing", None, "it names {given}, which does not exist", given=name).at(
                    directory / POINTER
                ) from None


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
    draft.unlink(missing_ok=True)  # left by a killed writer; a link is not followed
    with create_exclusively(draft) as file:
        file.write(f"{name}\n".encode())
        sync_file(file)
    os.replace(draft, directory / POINTER)
    sync_directory(directory)


def _files(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if _FILE.fullmatch(name) or _LOG.fullmatch(name)]


def _number(name: str) -> int:
    found = _FILE.fullmatch(name) or _LOG.fullmatch(name)
    return int(found[1]) if found else 0


def _remove_leftovers(directory: Path) -> None:
    """Remove generations that killed writers left, which may fill the disk.

    If ``CURRENT`` is damaged, all are kept, since one of them is the index.
    """
    current = _pointer(directory)
    if current is None or (_FILE.fullmatch(current) and (directory / current).exists()):
        _remove_others(directory, 0 if current is None else _number(current))


def _remove_others(directory: Path, generation: int) -> None:
    """Remove other generations and their logs; a file that cannot be removed now is removed by the next save."""
    for other in _files(directory):
        if _number(other) != generation:
            with contextlib.suppress(OSError):
                os.unlink(directory / other)


@contextlib.contextmanager
def _writer_lock(directory: Path) -> Iterator[None]:
    """Hold an exclusive lock, which the system releases when the process ends."""
    import fcntl  # POSIX only; reading an index does not need it

    descriptor = _open_lock(directory)
    try:
        if _identity(descriptor) in _HELD_LOCKS:
            raise InputError(
                "busy",
                "directory",
                "{given} is open for changes in this process; compact() writes a new generation of it",
                given=str(directory),
            )
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _open_lock(directory: Path) -> int:
    return os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino
