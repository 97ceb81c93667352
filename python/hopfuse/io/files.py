"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ..errors import InputError


def write_whole(path: Path, write: Callable[[BinaryIO], object], *, drafts: Path | None = None) -> None:
    """Let ``write`` fill a new file, put it on the disk, and only then give it the name ``path``.

    Where that fails, nothing stays. The new file has a name that nobody can foresee, so a link that stands there
    is not followed, and two processes do not write the same one. It stands beside ``path``, or in the folder
    ``drafts`` of the same file system.
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


def create_exclusively(path: Path) -> BinaryIO:
    """Open a file for writing that nothing has the name of, a symbolic link included.

    Raises
    ------
    FileExistsError
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o666), "w+b")


def no_link(path: str, flags: int) -> int:
    """Open a file, for ``open(opener=)``, unless it is a symbolic link."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; what is looked at is what was opened, whoever replaces the name meanwhile.

    Raises
    ------
    FileNotFoundError
    InputError
        It is a directory, a pipe or a device.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a pipe must not block the open
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(f"{path} is not a regular file")
    return os.fdopen(descriptor, "rb")


def sync_file(file: BinaryIO) -> None:
    """Put what was written to a file on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    """Put a directory's entries on the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def existing_file(path: Path, what: str) -> Path:
    """Return the path, if it is a file; ``what`` is the option or argument that names it."""
    if not path.is_file():
        raise InputError(f"{what}: there is no file {str(path)!r}")
    return path
