"""A backend that is created on first use and tested against the CPU before its first result."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable
from contextvars import Context
from typing import Any, Generic, TypeVar

from ..errors import BackendError, DeviceMemoryError

#: Seconds until ``backend="auto"`` asks again a device that had no room for the self-test.
RETRY_SECONDS = 10.0

B = TypeVar("B")


class FirstUse(Generic[B]):
    """A backend made and tested once, by one thread while others wait. It is unusable in processes forked afterwards.

    Both happen in an empty context: a cancelled token of the call that happens to be the first does not fail the test.

    Parameters
    ----------
    name : str
    impossible : callable
        Returns the error if the backend cannot exist here, or None, in no time.
    make : callable
        Returns the backend, or raises BackendError.
    differs : callable
        Returns how the backend's results differ from the CPU's, or None.
    """

    def __init__(
        self,
        name: str,
        impossible: Callable[[], BackendError | None],
        make: Callable[[], B],
        differs: Callable[[B], str | None],
    ) -> None:
        self.name = name
        self._impossible, self._make, self._differs = impossible, make, differs
        self._lock = threading.RLock()
        self._began_in: int | None = None  # id of the process that made it, or tried to
        self._made: B | None = None
        self._unusable: BackendError | None = None
        self._tested = False
        self._is_usable: bool | None = None
        self._short_until = 0.0  # after a self-test without room, when the next may be
        self._warned_in: int | None = None
        self._difference: str | None = None

    @property
    def made(self) -> B | None:
        """The backend, if it was made in this process."""
        return None if self._is_forked() else self._made

    def untested(self) -> B:
        """Return the backend; raise BackendError if this machine, or this forked process, cannot run it."""
        self._refuse_fork()
        with self._lock:
            if self._made is None and self._unusable is None:
                self._began_in = os.getpid()
                self._unusable = self._impossible()
                if self._unusable is None:
                    try:
                        self._made = Context().run(self._make)
                    except Exception as error:  # a broken installation must not break calls on the CPU
                        self._unusable = self._translated(error)
            if self._unusable is not None:
                raise self._unusable.about()  # a copy, since a kept error would keep the frames of its call
            assert self._made is not None
            return self._made

    def tested(self) -> B:
        """Return the backend; raise BackendError if it cannot run or its results differ from the CPU's."""
        self._refuse_fork()
        with self._lock:
            backend = self.untested()
            if not self._tested:
                try:
                    self._difference = Context().run(self._differs, backend)
                except DeviceMemoryError:  # once there is room, the next call tests it
                    raise
                except Exception as error:
                    said = str(error) if isinstance(error, BackendError) else f"{type(error).__name__}: {error}"
                    self._difference = f"its self-test failed: {said}"
                self._tested = True
            if self._difference is not None:
                raise BackendError(
                    "failed",
                    "backend",
                    "{field} {given!r} is not used: {difference}",
                    given=self.name,
                    difference=self._difference,
                )
            return backend

    def _is_forked(self) -> bool:
        """Return whether another process used the backend first; takes no lock, which a fork may have left locked."""
        return self._began_in not in (None, os.getpid()) and self._unusable is None

    def _refuse_fork(self) -> None:
        if self._is_forked():
            raise self._forked()

    def _forked(self) -> BackendError:
        return BackendError(
            "unavailable",
            "backend",
            "{field} {given!r} cannot be used here: this process was forked from one that used it, and CUDA does not "
            "survive a fork. Start workers with the method 'spawn' (multiprocessing.get_context('spawn'), "
            "DataLoader(multiprocessing_context='spawn'), gunicorn without --preload), or use backend='cpu'",
            given=self.name,
        )

    def _translated(self, error: Exception) -> BackendError:
        if isinstance(error, BackendError):
            return error
        return BackendError(
            "failed",
            "backend",
            "{field} {given!r} cannot be used: {kind}: {error}",
            given=self.name,
            kind=type(error).__name__,
            error=error,
        )

    def is_usable(self) -> bool:
        """Return whether ``backend="auto"`` may use it; warn once if results differ or the process was forked."""
        if self._is_forked():
            if self._warned_in != os.getpid():
                self._warned_in = os.getpid()
                warnings.warn(f"{self._forked()}. backend='auto' uses the CPU", RuntimeWarning, stacklevel=5)
            return False
        if self._is_usable is None and time.monotonic() >= self._short_until:
            with self._lock:
                is_first = self._is_usable is None and not self._short_until
                error = self._error()
                if isinstance(error, DeviceMemoryError):
                    self._short_until = time.monotonic() + RETRY_SECONDS
                else:
                    self._is_usable = error is None
            if is_first and error is not None and self._made is not None:
                warnings.warn(f"{error}. backend='auto' uses the CPU", RuntimeWarning, stacklevel=5)
        return bool(self._is_usable)

    def _error(self) -> BackendError | None:
        try:
            self.tested()
        except BackendError as error:
            return error.with_traceback(None)  # its frames hold the error, and what the caller searches
        return None

    def explain(self) -> dict[str, Any]:
        """Return the backend's own description, with the reason if it is not used."""
        if self._is_forked():
            return {"error": str(self._forked())}
        reason = self._error()
        error = None if reason is None else str(reason)
        made: Any = self._made
        try:
            about = {} if made is None else made.explain()
        except BackendError as failure:  # the device failed after the test
            about, error = {}, str(failure)
        return {**about, "error": error}
