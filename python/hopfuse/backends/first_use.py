"""A backend that costs nothing until it is asked for, and is tested against the CPU before its first answer."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from ..errors import BackendError

B = TypeVar("B")

INSTALL = (
    "install it with: pip install 'hopfuse[cuda13]' for a driver of CUDA 13 or later, 'hopfuse[cuda12]' for CUDA 12"
)


#: What a process is told that was forked after its parent began with a device: CUDA works in the parent alone.
FORKED = (
    "backend {name!r} cannot be used here: this process was forked from one that used it, and CUDA does not outlive a "
    "fork. Start workers with the method 'spawn' (multiprocessing.get_context('spawn'), "
    "DataLoader(multiprocessing_context='spawn'), gunicorn without --preload), or use backend='cpu'"
)


def no_cupy() -> str | None:
    """Return why there is no CuPy, without importing it; None if there is. A mere folder of that name is none."""
    try:
        found = find_spec("cupy")
    except ValueError:  # a module of that name without a spec
        found = None
    if found is not None and found.origin is not None:
        return None
    return f"backend='cuda' needs CuPy, which is not installed; {INSTALL}"


class FirstUse(Generic[B]):
    """Safe for threads: one makes and tests the backend, the others wait. A child forked since has no backend.

    Parameters
    ----------
    name : str
    impossible : callable
        Why the backend cannot be here, without importing anything; None if it may be.
    make : callable
        The backend, or BackendError with the reason.
    differs : callable
        What the backend computes differently from the CPU, None if nothing.
    """

    def __init__(
        self,
        name: str,
        impossible: Callable[[], str | None],
        make: Callable[[], B],
        differs: Callable[[B], str | None],
    ) -> None:
        self.name = name
        self._impossible, self._make, self._differs = impossible, make, differs
        self._lock = threading.RLock()
        self._began_in: int | None = None  # the process that made it, or tried to
        self._made: B | None = None
        self._unusable: str | None = None
        self._tested = False
        self._is_usable: bool | None = None
        self._warned_in: int | None = None
        self._difference: str | None = None

    def untested(self) -> B:
        """Return the backend. BackendError where this machine cannot run it, or this process since a fork."""
        self._refuse_fork()
        with self._lock:
            if self._made is None and self._unusable is None:
                self._began_in = os.getpid()
                self._unusable = self._impossible()
                if self._unusable is None:
                    try:
                        self._made = self._make()
                    except Exception as error:  # a broken installation must not break calls that can do without
                        self._unusable = _said(error)
            if self._made is None:
                raise BackendError(str(self._unusable))
            return self._made

    def tested(self) -> B:
        """Return the backend, if it also has the CPU's bits. BackendError otherwise."""
        self._refuse_fork()
        with self._lock:
            backend = self.untested()
            if not self._tested:
                try:
                    self._difference = self._differs(backend)
                except Exception as error:
                    self._difference = f"its self-test failed: {_said(error)}"
                self._tested = True
            if self._difference is not None:
                raise BackendError(f"backend {self.name!r} is not used: {self._difference}")
            return backend

    def _is_forked(self) -> bool:
        """Say whether the process that began with it was another. Its lock may be that one's for good: take none."""
        return self._began_in not in (None, os.getpid()) and self._unusable is None

    def _refuse_fork(self) -> None:
        if self._is_forked():
            raise BackendError(FORKED.format(name=self.name))

    def is_usable(self) -> bool:
        """Say whether ``backend="auto"`` may take it; wrong answers, and a fork from a process that had it, warn."""
        if self._is_forked():
            if self._warned_in != os.getpid():
                self._warned_in = os.getpid()
                reason = FORKED.format(name=self.name)
                warnings.warn(f"{reason}. backend='auto' takes the CPU", RuntimeWarning, stacklevel=5)
            return False
        if self._is_usable is None:
            with self._lock:
                error = self._error()
                is_first, self._is_usable = self._is_usable is None, error is None
            if is_first and error is not None and self._made is not None:
                warnings.warn(f"{error}. backend='auto' takes the CPU", RuntimeWarning, stacklevel=5)
        return bool(self._is_usable)

    def _error(self) -> BackendError | None:
        try:
            self.tested()
        except BackendError as error:
            return error
        return None

    def explain(self) -> dict[str, Any]:
        """Return what the backend says of itself, with the reason why it is not used."""
        if self._is_forked():
            return {"error": FORKED.format(name=self.name)}
        error = None
        try:
            self.tested()
        except BackendError as reason:
            error = str(reason)
        made: Any = self._made
        try:
            about = {} if made is None else made.explain()
        except BackendError as reason:  # the device failed since
            about, error = {}, str(reason)
        return {**about, "error": error}


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, BackendError) else f"{type(error).__name__}: {error}"
