"""Packages whose names are loaded at their first use (PEP 562), so that importing them stays cheap."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from importlib import import_module
from typing import Any

#: Held while a name of the API is loaded. Who imports a module locks it and then its package; who imports the package
#: locks its modules from within: of two such threads, one fails, or finds a module that is half imported. No module may
#: take such a name while it is imported, since the thread that holds this lock may wait for the module.
ONE_AT_A_TIME = threading.RLock()


def lazy_names(
    package: str, homes: Mapping[str, str], *, outermost: bool = False
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to str
        The names that each module of the package defines, with spaces between them; those of ``""`` are modules.
        Type checkers read imports of the same names, with ``as``, under ``TYPE_CHECKING``.
    outermost : bool
        Whether the names are loaded by one thread at a time; modules that they load then take none of them.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Waits for a thread that is importing it. From a package that is half imported, another thread may take modules
        # that are not whole yet, and those of NumPy need each other.
        import_module("numpy")
        with ONE_AT_A_TIME if outermost else nullcontext():
            module = import_module(f"{package}.{home_of[name] or name}")
        found = getattr(module, name) if home_of[name] else module
        setattr(sys.modules[package], name, found)
        return found

    return load, lambda: sorted({*vars(sys.modules[package]), *home_of}), sorted(home_of)
