"""Backends: which exist on this machine, and which one a call uses.

May import the native module, ``types``, ``errors``, the checks and ``_arrays``.
"""

from __future__ import annotations

from typing import Any

from .. import _native
from .._validation import check_choice
from ..errors import BackendError
from . import cpu
from .call import Backend
from .driver import no_driver
from .first_use import FirstUse

__all__ = ["Backend", "automatic", "backend_info", "cuda_at", "opened", "register", "resolve", "untested"]


_backends: dict[str, Backend] = {"cpu": cpu}


def _make_cuda(ordinal: int | None = None) -> Backend:
    from .cuda.found_device import make_backend

    return make_backend(ordinal, cuda_at)


def _differs_on_cuda(backend: Backend) -> str | None:
    """Run the quick self-test, once per build, device and driver; return the difference found, or None."""
    from .cuda.found_device import CudaOps, SelfTestMark
    from .selftest_process import difference_in_process

    assert isinstance(backend, CudaOps)
    mark = SelfTestMark.of(backend)
    if mark.is_set():
        return None
    may_cooperate = backend.runtime.cooperative
    found = difference_in_process(backend)
    if found is None and backend.runtime.cooperative == may_cooperate:
        mark.set()
    return found


_cuda: FirstUse[Backend] = FirstUse("cuda", no_driver, _make_cuda, _differs_on_cuda)
#: Further devices by their number, each opened and tested when a thread or an array of a call is on it.
_further: dict[int, FirstUse[Backend]] = {}


def cuda_at(ordinal: int) -> Backend:
    """Return the ops of a further device."""
    first = _further.get(ordinal)
    if first is None:
        made = FirstUse("cuda", no_driver, lambda: _make_cuda(ordinal), _differs_on_cuda)
        first = _further.setdefault(ordinal, made)
    return first.tested()


def opened(backend: str) -> list[Backend]:
    """Return the ops of all devices of a backend that are in use."""
    name = _named(backend)
    made = [first.made for first in (_cuda, *_further.values())] if name == _cuda.name else [_backends[name]]
    return [one for one in made if one is not None and one.device is not None]


def register(name: str, backend: Backend) -> None:
    """Register a backend under a name, as the tests of the SIMT emulator do; ``auto`` never selects it."""
    _backends[name] = backend


def resolve(backend: str) -> Backend:
    """Return the backend for a ``backend=`` argument; ``auto`` honours HOPFUSE_BACKEND."""
    name = _named(backend)
    return _usable(_of_thread(_cuda.tested()) if name == _cuda.name else _backends[name])


def untested(backend: str) -> Backend:
    """Return the backend for a ``backend=`` argument without its self-test, to run that test."""
    name = _named(backend)
    return _usable(_of_thread(_cuda.untested()) if name == _cuda.name else _backends[name])


def _of_thread(backend: Backend) -> Backend:
    """Return the ops of the device that is current on this thread."""
    device: Backend | None = backend.device
    return backend if device is None else device


def _names() -> tuple[str, ...]:
    return (*_backends, _cuda.name)


def _named(backend: str) -> str:
    """Check a ``backend=`` argument and return the backend's name."""
    if backend == "auto":
        return automatic()
    return check_choice(backend, "backend", ("auto", *_names()))


def _usable(backend: Backend) -> Backend:
    if backend.unusable is not None:
        raise backend.unusable.with_traceback(None)
    return backend


def automatic() -> str:
    """Return the name that ``auto`` stands for: HOPFUSE_BACKEND, else "cuda" if it passed its self-test, else "cpu"."""
    name = _native.environment("HOPFUSE_BACKEND") or "auto"
    if name == "auto":
        return _cuda.name if _cuda.is_usable() else "cpu"
    if name not in _names():
        raise BackendError(
            "choice",
            None,
            "HOPFUSE_BACKEND is {given!r}; allowed: {allowed}, or leave it unset",
            given=name,
            allowed=", ".join(("auto", *_names())),
        )
    return name


def _described(backend: Backend) -> dict[str, Any]:
    """Return a backend's description, or why it has none, such as a device in a forked process."""
    try:
        return backend.explain()
    except BackendError as error:
        return {"error": str(error)}


def backend_info() -> dict[str, Any]:
    """Describe the backends of this machine, their kernel variants and threads, and the last call of each op.

    Returns
    -------
    dict
        ``auto``: the backend that ``backend="auto"`` selects, or None if HOPFUSE_BACKEND is invalid (then ``error``
        says so). ``backends``: a dict per backend, with the last call of each op. ``cpu`` has the variant in use, the
        variants built and runnable, why others are not used, threads and idle workspace bytes. ``cuda`` has the device,
        the driver and the origin of its kernels, or under ``error`` why it is not used.

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
    details = {name: _described(backend) for name, backend in _backends.items()}
    details[_cuda.name] = _cuda.explain()
    return {"auto": chosen, "error": error, "backends": details}
