"""Which backends exist on this machine, which one a call gets, and why."""

from __future__ import annotations

import os
from typing import Any

from ..errors import BackendError, InputError
from . import cpu
from .calls import Backend
from .first_use import FirstUse, no_cupy

__all__ = ["Backend", "automatic", "backend_info", "register", "resolve", "untested"]


_backends: dict[str, Backend] = {"cpu": cpu}


def _make_cuda() -> Backend:
    from .cuda.found_device import make_backend

    return make_backend()


def _differs_on_cuda(backend: Backend) -> str | None:
    """Run the quick self-test, once for an installation, device and driver; return the difference."""
    from .cuda.found_device import SelfTestMark
    from .selftest import difference

    mark = SelfTestMark.of(backend)
    if mark.is_set():
        return None
    found = difference(backend)
    if found is None:
        mark.set()
    return found


_cuda: FirstUse[Backend] = FirstUse("cuda", no_cupy, _make_cuda, _differs_on_cuda)


def register(name: str, backend: Backend) -> None:
    """Make ``backend=name`` known: the SIMT emulator's tests do. ``auto`` never chooses such a backend."""
    _backends[name] = backend


def resolve(backend: str) -> Backend:
    """Return the backend for a ``backend=`` argument; ``auto`` takes HOPFUSE_BACKEND where it is set."""
    name = _named(backend)
    return _usable(_cuda.tested() if name == _cuda.name else _backends[name])


def untested(backend: str) -> Backend:
    """Return the backend by its name, whatever its self-test says: for the self-test itself."""
    name = _named(backend)
    return _usable(_cuda.untested() if name == _cuda.name else _backends[name])


def _names() -> tuple[str, ...]:
    return (*_backends, _cuda.name)


def _named(backend: str) -> str:
    """Return the name of the backend for a ``backend=`` argument."""
    if not isinstance(backend, str) or backend not in ("auto", *_names()):
        raise InputError(f"backend is {backend!r}; allowed: {', '.join(('auto', *_names()))}")
    return automatic() if backend == "auto" else backend


def _usable(backend: Backend) -> Backend:
    if backend.unusable_reason is not None:
        raise BackendError(backend.unusable_reason)
    return backend


def automatic() -> str:
    """Return the name of the backend that ``auto`` is: HOPFUSE_BACKEND, else a GPU that has proved itself."""
    name = os.environ.get("HOPFUSE_BACKEND", "") or "auto"
    if name != "auto" and name not in _names():
        raise BackendError(f"HOPFUSE_BACKEND is {name!r}; allowed: {', '.join(('auto', *_names()))}, or leave it unset")
    if name != "auto":
        return name
    return _cuda.name if _cuda.is_usable() else "cpu"


def backend_info() -> dict[str, Any]:
    """Say what runs here and why: backends, kernel variants, threads, and the last call of each op.

    Returns
    -------
    dict
        ``auto``, the backend that ``backend="auto"`` gives, or None where HOPFUSE_BACKEND names none (``error``
        says so); ``backends`` -> name -> what it is: ``cpu`` its variant, the variants built and runnable, why others
        were not taken, threads, idle workspace bytes; ``cuda`` its device, driver and where its kernels came from, or
        ``error``, why it is not used; and the last call of each op.

    Examples
    --------
    >>> import hopfuse as hf
    >>> {"cpu", "cuda"} <= set(hf.backend_info()["backends"])
    True
    """
    chosen, error = None, None
    try:
        chosen = automatic()
    except BackendError as wrong:
        error = str(wrong)
    details = {name: backend.explain() for name, backend in _backends.items()}
    details[_cuda.name] = _cuda.explain()
    return {"auto": chosen, "error": error, "backends": details}
