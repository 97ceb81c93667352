"""Digests of input files, and stamps that save reading an unchanged file again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..io.queries import opened


def fingerprints(files: Mapping[str, Path], known: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Return path, size and SHA-256 of each file.

    Parameters
    ----------
    files : mapping of str to path
        Paths, by the option or argument that names the file.
    known : mapping, optional
        Digests and stamps from :func:`stamps`; a file with the same stamp is not read.
    """
    found = {}
    for name, path in files.items():
        stamp = _stamp(path)
        before = (known or {}).get(name)
        if before is not None and before["stamp"] == stamp:
            digest = before["sha256"]
        else:
            with opened(path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        found[name] = {"path": str(path.resolve()), "bytes": stamp[1], "sha256": digest}
    return found


def stamps(inputs: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return the sizes and modification times of files, with their known digests, as JSON."""
    found = {name: {"stamp": _stamp(Path(one["path"])), "sha256": one["sha256"]} for name, one in inputs.items()}
    return json.dumps(found, indent=1, sort_keys=True).encode()


def check_inputs(inputs: Mapping[str, Mapping[str, Any]], known: Mapping[str, Any]) -> None:
    """Refuse files that have changed since the plan was made.

    Raises
    ------
    InputError
        A file has changed; the message names it.
    """
    now = fingerprints({name: Path(one["path"]) for name, one in inputs.items()}, known)
    for name, one in inputs.items():
        if now[name]["sha256"] != one["sha256"]:
            raise InputError(
                "changed",
                name,
                "{field}: {path} has changed since the plan was made; restore it, or plan again",
                path=one["path"],
            )


def _stamp(path: Path) -> list[Any]:
    with opened(path):
        found = path.stat()
    return [str(path.resolve()), found.st_size, found.st_mtime_ns]
