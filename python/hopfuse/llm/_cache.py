"""Cache answers on the disk, by the hash of their questions."""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
import warnings
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any

from ..errors import InputError
from ._transport import Messages

MAX_WRITE_SECONDS = 3600.0  # an older unfinished file was left by a killed process


def key_of(model: str, messages: Messages, schema: Mapping[str, Any] | None, temperature: float | None) -> str:
    """Return the hash of everything that an answer depends on."""
    asked = [model, [dict(message) for message in messages], schema, temperature]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


class Cache:
    """A folder with a file for each answer, which holds the answer alone: no question, no URL, no key.

    If a file cannot be read or written, a RuntimeWarning is issued once and the answer is still returned.

    Parameters
    ----------
    folder : str, path, or None
        Created if absent. None disables the cache.

    Raises
    ------
    InputError
        The argument is not a path, or cannot be created as a folder.
    """

    def __init__(self, folder: str | PathLike[str] | None) -> None:
        self._folder = None if folder is None else _path_of(folder)
        self._told, self._lock = set[str](), Lock()
        if self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                _remove_leftovers(self._folder)
            except OSError as error:
                raise InputError(
                    "UNSORTED",
                    None,
                    "cache is {given!r}, which cannot be made a folder: {error}",
                    given=str(folder),
                    error=error,
                ) from None

    def get(self, key: str) -> Any:
        """Return the answer, or None if there is none or its file is torn or cannot be read."""
        if self._folder is None:
            return None
        path = self._path(self._folder, key)
        try:
            record = json.loads(path.read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):
            return None
        except OSError as error:
            self._tell("cannot be read", f"the kept answer {path} cannot be read, and is asked for again: {error}")
            return None
        return record.get("answer") if isinstance(record, dict) else None

    def put(self, key: str, answer: str) -> None:
        """Store an answer, given as JSON; its file is renamed into place when it is complete."""
        if self._folder is None:
            return
        path, unfinished = self._path(self._folder, key), self._folder / f"{uuid.uuid4().hex}.unfinished"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open(unfinished, "x", encoding="utf-8") as file:
                    file.write(f'{{"answer": {answer}}}')
                os.replace(unfinished, path)
            except BaseException:
                _remove(unfinished)
                raise
        except OSError as error:
            self._tell("cannot be written", f"the answer could not be kept as {path}, though it was returned: {error}")

    @staticmethod
    def _path(folder: Path, key: str) -> Path:
        return folder / key[:2] / f"{key}.json"

    def _tell(self, what: str, message: str) -> None:
        """Warn about the first problem of a kind."""
        with self._lock:
            known = what in self._told
            self._told.add(what)
        if not known:
            warnings.warn(f"cache: {message}; others that fail so are not mentioned", RuntimeWarning, stacklevel=2)


def _path_of(folder: Any) -> Path:
    path = os.fspath(folder) if isinstance(folder, str | PathLike) else None
    if not isinstance(path, str) or not path.strip() or "\0" in path:
        raise InputError(
            "UNSORTED",
            None,
            "cache is {given!r}; it must be the path of a folder ('.' is the working directory)",
            given=folder,
        )
    return Path(path)


def _remove_leftovers(folder: Path) -> None:
    """Remove files that killed processes have left."""
    for file in folder.glob("*.unfinished"):
        try:
            if time.time() - file.stat().st_mtime > MAX_WRITE_SECONDS:
                file.unlink()
        except OSError:
            continue  # removed by another process, or owned by another user; such files are never read


def _remove(file: Path) -> None:
    with suppress(OSError):  # the first error is reported
        file.unlink()
