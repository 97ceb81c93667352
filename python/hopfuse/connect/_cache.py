"""Answers on the disk, by what was asked."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import InputError

Messages = Sequence[Mapping[str, str]]


def key_of(model: str, messages: Messages, schema: Mapping[str, Any] | None, temperature: float | None) -> str:
    """The hash of all that an answer depends on."""
    asked = [model, [dict(message) for message in messages], schema, temperature]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


class Cache:
    """A file for each answer. It holds the answer alone: no question, no address, no key.

    Parameters
    ----------
    folder : str, path, or None
        Made where absent. None keeps nothing.
    """

    def __init__(self, folder: str | PathLike[str] | None) -> None:
        self._folder = None if folder is None else Path(folder)
        if self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"cache is {str(folder)!r}, which cannot be made a folder: {error}") from None

    def get(self, key: str) -> Any:
        """The answer; None where there is none, or a file that is torn."""
        if self._folder is None:
            return None
        try:
            record = json.loads(self._path(key).read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):
            return None
        return record.get("answer") if isinstance(record, dict) else None

    def put(self, key: str, answer: Any) -> None:
        """Keep an answer: the file has its name once it is whole."""
        if self._folder is None:
            return
        path = self._path(key)
        path.parent.mkdir(exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=path.parent, suffix=".unfinished")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"answer": answer}, file)
            os.replace(unfinished, path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / key[:2] / f"{key}.json"
