"""Call encoders on threads of their own, within a time limit; a call that hangs occupies one of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .._threads import own_thread
from ..encoders import Encoder
from ..encoders.protocol import checked_vectors
from ..errors import InputError
from ..retriever import EncoderCalls
from .batcher import stopping
from .config import Limits
from .errors import RefusalError
from .metrics import Metrics

log = logging.getLogger("hopfuse.serve")
#: Seconds for which a thread waits for an encoder before another one takes its place.
PATIENCE = 0.1
#: Codes of the errors of this package's encoders that say that a text has no vector, which is the client's to change.
_OF_TEXTS = ("empty", "zero")

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
#: Within it, a thread is at a call or waits for its turn; what it yields lets another thread take its place.
Away = Callable[[Literal["turn", "call"]], AbstractContextManager[Callable[[], None]]]


class EncoderValueError(RefusalError, ValueError):
    """An encoder raised a ValueError, by which it may say that it has no vector for a text."""


class _Job:
    """A call of an encoder."""

    __slots__ = ("done", "encode", "error", "made", "settled", "since", "texts")

    def __init__(self, encode: Encode, texts: Sequence[str]) -> None:
        self.encode, self.texts, self.since = encode, texts, time.monotonic()
        self.done = threading.Lock()  # the fastest way to wait for another thread
        self.done.acquire()
        self.settled = False
        self.made: Any = None
        self.error: BaseException | None = None


class _Line:
    """The threads of one encoder: an idle one makes the next call, else a new one, until there are so many."""

    def __init__(self, encoder: Encoder, limits: Limits) -> None:
        self.encoder, self._limits, self._most = encoder, limits, limits.encoder_threads
        self._lock = threading.Lock()
        self._idle: list[SimpleQueue[_Job | None]] = []
        self._jobs: set[_Job] = set()  # that threads are at
        self._late: set[_Job] = set()  # that nothing waits for any longer
        self._closed = False

    @property
    def late(self) -> int:
        """The number of calls that have passed their limit and not ended."""
        return len(self._late)

    @property
    def is_stuck(self) -> bool:
        """Whether every thread is at such a call."""
        return len(self._late) >= self._most

    def run(self, encode: Encode, texts: Sequence[str], away: Away) -> Any:
        """Return what the encoder makes of texts; if that takes long, another thread may take this one's place."""
        job = self._begun(encode, texts)
        with away("call") as lend:
            if not job.done.acquire(timeout=min(PATIENCE, self._limits.encoder_seconds)):
                lend()
                if not job.done.acquire(timeout=max(0.0, self._limits.encoder_seconds - PATIENCE)):
                    self._give_up(job)
        if job.error is not None:
            raise job.error
        return job.made

    def _begun(self, encode: Encode, texts: Sequence[str]) -> _Job:
        job = _Job(encode, texts)
        with self._lock:
            if self._closed:
                raise stopping()
            if len(self._jobs) >= self._most:
                raise self.silent()
            self._jobs.add(job)
            jobs = self._idle.pop() if self._idle else None
        if jobs is None:
            jobs = SimpleQueue()
            own_thread(self._work, jobs, name=f"hopfuse-encode-{self.encoder.name}").start()
        jobs.put(job)
        return job

    def _work(self, jobs: SimpleQueue[_Job | None]) -> None:
        while (job := jobs.get()) is not None:
            made, error = None, None
            try:
                made = job.encode(job.texts)
            except BaseException as raised:  # SystemExit, too, is an error of the encoder
                error = raised
            with self._lock:
                self._jobs.discard(job)
                was_late = job in self._late
                self._late.discard(job)
                self._idle.append(jobs)
                self._settle(job, made, error)
            if was_late:
                seconds = time.monotonic() - job.since
                log.warning("the encoder %s ended a call after %.1f s", self.encoder.name, seconds)
            del job, made, error  # kept until the next call otherwise

    def _settle(self, job: _Job, made: Any, error: BaseException | None) -> bool:
        """Give a call its outcome, unless it has one; the lock is held."""
        if job.settled:
            return False
        job.made, job.error, job.settled = made, error, True
        job.done.release()
        return True

    def _give_up(self, job: _Job) -> None:
        """Let a call go on without anybody who waits for it."""
        with self._lock:
            if not self._settle(job, None, late(self.encoder, self._limits.encoder_seconds)):
                return  # it has just ended
            self._late.add(job)
            count = len(self._late)
        log.error(
            "the encoder %s did not answer within %g s; %d of %d threads hang in it",
            self.encoder.name,
            self._limits.encoder_seconds,
            count,
            self._most,
        )

    def silent(self) -> RefusalError:
        """Return the refusal of a text that no thread is free for."""
        return RefusalError(
            "unavailable",
            None,
            "texts cannot be searched: {late} calls of the encoder {encoder} have not ended within {seconds:g} s "
            "(limits.encoder_seconds), and no thread is left (limits.encoder_threads); send vectors, or try later",
            late=self.late,
            encoder=self.encoder.name,
            seconds=self._limits.encoder_seconds,
        ).after(max(1.0, self._limits.encoder_seconds))

    def close(self) -> None:
        """Refuse what waits, now and later; threads end after their calls."""
        with self._lock:
            self._closed = True
            for job in self._jobs:
                self._settle(job, None, stopping())
            idle, self._idle = self._idle, []
        for jobs in idle:
            jobs.put(None)


class TimedEncoders(EncoderCalls):
    """Calls encoders within ``limits.encoder_seconds``, each on up to ``limits.encoder_threads`` threads of its own.

    A call is made while another one runs only if that one has passed its limit. What an encoder raises or returns is
    checked, so that its fault is not told to a client as the client's.

    Parameters
    ----------
    limits : Limits
    metrics : Metrics
    away : callable, optional
        As :meth:`Batcher.away`.
    """

    def __init__(self, limits: Limits, metrics: Metrics, away: Away = lambda at: nullcontext(lambda: None)) -> None:
        self._limits, self._metrics, self._away = limits, metrics, away
        self._lines: dict[int, _Line] = {}  # by the encoder's id, which its line keeps
        self._lock = threading.Lock()
        self._closed = False
        metrics.watch_encoders(lambda: sum(line.late for line in list(self._lines.values())))

    def wait_for(self, changed: threading.Condition, ready: Callable[[], bool]) -> None:
        """Wait for a turn at an encoder, which another thread's call has for at most its time limit."""
        if ready():
            return
        with self._away("turn") as lend:
            if changed.wait_for(ready, PATIENCE):
                return
            lend()
            while not changed.wait_for(ready, PATIENCE):
                if self._closed:
                    raise stopping()

    def call(self, encoder: Encoder, encode: Encode, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the encoder's vectors of texts.

        Raises
        ------
        RefusalError
            500: the encoder failed. 503: it did not answer in time, or does not answer at all.
        InputError
            A text has no vector.
        """
        try:
            made: NDArray[np.float32] = self._line(encoder).run(encode, texts, self._away)
            if len(texts):
                checked_vectors(made, len(texts), encoder.dim, normalize=False)
        except RefusalError:
            self._metrics.encoder_failures.labels("late").inc()
            raise
        except BaseException as error:
            if isinstance(error, InputError) and error.code in _OF_TEXTS:
                raise
            self._metrics.encoder_failures.labels("failed").inc()
            refusal = RefusalError(
                "encoder",
                None,
                "the encoder {encoder} failed ({reason}); the server's log says more",
                encoder=encoder.name,
                reason=type(error).__name__,
            )
            raise refusal.about(kind=EncoderValueError if isinstance(error, ValueError) else None) from error
        return made

    def refusal(self, encoder: Encoder | None) -> RefusalError | None:
        """Return why texts that need an encoder are refused at once, or None."""
        line = self._lines.get(id(encoder))
        return line.silent() if line is not None and line.is_stuck else None

    def _line(self, encoder: Encoder) -> _Line:
        with self._lock:
            line = self._lines.get(id(encoder))
            if line is None:
                if self._closed:
                    raise stopping()
                line = self._lines[id(encoder)] = _Line(encoder, self._limits)
            return line

    def close(self) -> None:
        """Refuse what waits for an encoder, now and later."""
        with self._lock:
            self._closed = True
            lines = list(self._lines.values())
        for line in lines:
            line.close()


def late(encoder: Encoder, seconds: float) -> RefusalError:
    """Return the refusal of texts whose encoder did not answer in time."""
    return RefusalError(
        "unavailable",
        None,
        "the encoder {encoder} did not answer within {seconds:g} s (limits.encoder_seconds); send the request again, "
        "or send vectors",
        encoder=encoder.name,
        seconds=seconds,
    ).after(1)
