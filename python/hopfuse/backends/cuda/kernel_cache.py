"""An on-disk cache of compiled kernels and of passed self-tests."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

_MAGIC = b"hopfuse 1 "


def cache_folder(version: str) -> Path:
    """Return the folder of this version in ``HOPFUSE_CUDA_CACHE``, or else in the user's cache folder."""
    chosen = os.environ.get("HOPFUSE_CUDA_CACHE")
    if chosen:
        return Path(chosen) / version
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hopfuse" / "kernels" / version


class KernelCache:
    """Entries by key. A damaged entry counts as missing; a failure to write is kept in ``problem``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem: str | None = None

    def path(self, key: str) -> Path:
        return self.folder / key

    def get(self, key: str) -> bytes | None:
        """Return the content of an entry, or None if it is missing or damaged."""
        try:
            content = self.path(key).read_bytes()
        except OSError:
            return None
        head, _, body = content.partition(b"\n")
        return body if head == _head(body) else None

    def put(self, key: str, body: bytes) -> bool:
        """Write an entry atomically, also against other processes; return whether that succeeded."""
        made = None
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".new-", delete=False) as file:
                made = file.name
                file.write(_head(body) + b"\n" + body)
            os.replace(made, self.path(key))
        except OSError as error:
            self.problem = f"{self.folder} cannot be written: {error.strerror or error}"
            if made is not None:
                Path(made).unlink(missing_ok=True)
            return False
        return True


def _head(body: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(body).hexdigest().encode()
