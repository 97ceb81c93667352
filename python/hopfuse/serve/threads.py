"""Threads that do not keep the process from ending, whatever hangs in them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from queue import Empty, SimpleQueue
from typing import Any

from .._threads import own_thread


class DaemonThreads(Executor):
    """A pool like ThreadPoolExecutor, which Python does not wait for when it ends.

    Parameters
    ----------
    most : int
        Most threads.
    name : str
        Their name, to which a number is added.
    inside : callable, optional
        Returns a context manager within which each thread runs its jobs.

    Examples
    --------
    >>> from hopfuse.serve.threads import DaemonThreads
    >>> with DaemonThreads(2, "example") as pool:
    ...     pool.submit(len, "a river").result()
    7
    """

    def __init__(
        self,
        most: int,
        name: str,
        inside: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._most, self._name, self._inside = most, name, inside
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._busy = 0  # jobs that run or wait
        self._closed = False
        self.threads: list[threading.Thread] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a call on a thread, and return its future."""
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool is closed")
            self._busy += 1
            self._jobs.put((future, lambda: fn(*args, **kwargs)))
            if len(self.threads) < min(self._most, self._busy):
                name = f"{self._name}-{len(self.threads)}"
                self.threads.append(own_thread(self._work, name=name))
                self.threads[-1].start()
        return future

    def _work(self) -> None:
        with self._inside():
            while (job := self._jobs.get()) is not None:
                future, call = job
                if future.set_running_or_notify_cancel():
                    try:
                        found = call()
                    except BaseException as error:  # of any kind: a thread that ended would leave its jobs
                        future.set_exception(contained(error))
                    else:
                        future.set_result(found)
                        del found
                del job, future, call  # kept until the next job otherwise
                with self._lock:
                    self._busy -= 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more jobs, and end the threads after those that were accepted."""
        with self._lock:
            closing, self._closed = not self._closed, True
        if cancel_futures:
            with contextlib.suppress(Empty):
                while True:
                    job = self._jobs.get_nowait()
                    if job is not None:
                        job[0].cancel()
            closing = True  # the ends of threads were among the jobs
        if closing:
            for _ in self.threads:
                self._jobs.put(None)
        if wait:
            join(self.threads)


def contained(error: BaseException) -> Exception:
    """Return an error that a future may have: SystemExit would end the event loop, and StopIteration is refused.

    Examples
    --------
    >>> from hopfuse.serve.threads import contained
    >>> contained(SystemExit(3)), contained(KeyError("a"))
    (RuntimeError('the call raised SystemExit(3)'), KeyError('a'))
    """
    if isinstance(error, Exception) and not isinstance(error, (StopIteration, StopAsyncIteration)):
        return error
    found = RuntimeError(f"the call raised {error!r}")
    found.__cause__ = error
    return found


def join(threads: Sequence[threading.Thread], seconds: float | None = None) -> list[threading.Thread]:
    """Wait for threads for at most that many seconds in total, and return those that have not ended.

    Examples
    --------
    >>> import threading
    >>> from hopfuse.serve.threads import join
    >>> never = threading.Thread(target=threading.Event().wait, daemon=True)
    >>> never.start()
    >>> join([never], 0.01) == [never]
    True
    """
    until = None if seconds is None else time.monotonic() + seconds
    for one in threads:
        if one.ident is not None and one is not threading.current_thread():
            one.join(None if until is None else max(0.0, until - time.monotonic()))
    return [one for one in threads if one.is_alive()]
