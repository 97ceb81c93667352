"""End the command with an error: one line of text, or of JSON for programs. Imports neither Click nor Rich."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from ..errors import HopfuseError
from ..report import printable

#: The codes of the system's errors; that of others is "failed".
_CODES = {FileNotFoundError: "missing", FileExistsError: "exists"}


def wants_json() -> bool:
    """Return whether errors are printed for programs: ``HOPFUSE_ERRORS=json`` in the environment."""
    return os.environ.get("HOPFUSE_ERRORS") == "json"


def leave_with(error: HopfuseError | OSError, name: Callable[[str], str] = str) -> NoReturn:
    """Print an error in one line on stderr, and exit with code 2.

    Parameters
    ----------
    error : HopfuseError or OSError
    name : callable
        Returns what the command calls an argument, such as ``--dense-k`` for ``dense_k``.
    """
    if isinstance(error, HopfuseError):
        found = error.data(name)
    else:
        code = _CODES.get(type(error), "failed")
        found = {"class": type(error).__name__, "code": code, "field": None, "message": _reason(error)}
        found |= {"values": {}, "places": [] if error.filename is None else [str(error.filename)]}
    found["message"] = printable(" ".join(found["message"].split()))
    print(json.dumps({"error": found}) if wants_json() else f"hopfuse: {found['message']}", file=sys.stderr)
    sys.exit(2)


def _reason(error: OSError) -> str:
    """Return what the system says: the file and the reason, without the number."""
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
