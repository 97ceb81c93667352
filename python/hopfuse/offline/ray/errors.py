"""Errors of actors as rows of a dataset, since Ray would retry what raises an exception."""

from __future__ import annotations

import json

from ...errors import HopfuseError, error_of
from ..workers import portable


def row_of_error(error: Exception) -> str:
    """Return an error as JSON, for a row of a dataset; :func:`error_of_row` makes it again.

    Parameters
    ----------
    error : Exception
        An error of hopfuse or of the file system; any other becomes a RuntimeError with its traceback.

    Examples
    --------
    >>> from hopfuse.offline.ray import row_of_error
    >>> row_of_error(OSError("the disk is full"))
    '{"class": "OSError", "message": "the disk is full"}'
    """
    sent = portable(error)
    if isinstance(sent, HopfuseError):
        return json.dumps(sent.data())
    return json.dumps({"class": "OSError" if isinstance(sent, OSError) else "RuntimeError", "message": f"{sent}"})


def error_of_row(row: str) -> Exception:
    """Return the error of a row.

    Parameters
    ----------
    row : str
        From :func:`row_of_error`.

    Examples
    --------
    >>> from hopfuse.errors import InputError
    >>> from hopfuse.offline.ray import error_of_row, row_of_error
    >>> error = error_of_row(row_of_error(InputError("range", "k", "{field} is {given}", given=-1)))
    >>> type(error).__name__, error.code, error.values["given"]
    ('InputError', 'range', -1)
    """
    data = json.loads(row)
    if "code" in data:
        return error_of(data)
    return OSError(data["message"]) if data["class"] == "OSError" else RuntimeError(data["message"])
