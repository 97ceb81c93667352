"""The calls of operations, a file for each operation or family.

A file has the named tuples of its calls (:class:`..call.Call`) and ``cases``, which yields its cases of the self-test;
nothing else lists it. It is loaded by the operation, or with all others by :func:`modules`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

__all__ = ["modules"]


def modules() -> Iterator[ModuleType]:
    """Import and yield the files, by name."""
    from pkgutil import iter_modules  # only here, because a search does not need it

    for found in sorted(iter_modules(__path__), key=lambda found: found.name):
        yield import_module(f"{__name__}.{found.name}")
