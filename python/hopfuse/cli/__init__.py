"""The command ``hopfuse``: parses options, calls the public API, ``serve`` and ``offline``, and prints.

Click and Rich come with the extra ``cli``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import MissingExtraError
from .failures import leave_with

__all__ = ["main"]

_NEEDED = ("click", "rich")


def main(args: Sequence[str] | None = None) -> None:
    """Run a command and exit: with code 0 on success, 2 after an error that hopfuse reports.

    Parameters
    ----------
    args : sequence of str, optional
        By default ``sys.argv[1:]``.

    Examples
    --------
    >>> from hopfuse.cli import main
    >>> try:
    ...     main(["--version"])
    ... except SystemExit as exit:
    ...     print(exit.code)
    hopfuse 0.1.0
    0
    """
    try:
        from .app import run
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in _NEEDED:
            raise
        leave_with(MissingExtraError(package, "cli", "the command line"))
    run(args)
