"""A backend that costs nothing until it is asked for, and is tested against the CPU before its first answer."""

from __future__ import annotations

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
    """Safe for threads: one makes and tests the backend, the others wait.

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
        self._made: B | None = None
        self._unusable: str | None = None
        self._tested = False
        self._is_usable: bool | None = None
        self._difference: str | None = None

    def untested(self) -> B:
        """Return the backend. BackendError where this machine cannot run it."""
        with self._lock:
            if self._made is None and self._unusable is None:
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

    def is_usable(self) -> bool:
        """Say whether ``backend="auto"`` may take it; wrong answers are a warning."""
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
