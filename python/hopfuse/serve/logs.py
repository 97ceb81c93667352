"""The server's log on standard error: plain lines or JSON, optionally with a line for each request."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from starlette.requests import Request

from .config import LogConfig
from .http import encode

requests = logging.getLogger("hopfuse.serve.requests")


class JsonLines(logging.Formatter):
    """Formats records as JSON lines: time, level, logger, worker, message or request, and error.

    Parameters
    ----------
    worker : int, optional
    """

    def __init__(self, worker: int | None = None) -> None:
        super().__init__()
        self._worker = {} if worker is None else {"worker": worker}

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            **self._worker,
        }
        request = getattr(record, "request", None)
        line |= {"message": record.getMessage()} if request is None else request
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return encode(line).decode()


class _Room:
    """Room for ``most`` lines in each ``seconds``; ``tell(number)`` says how many more there were.

    Parameters
    ----------
    seconds : float
    tell : callable
    clock : callable
    """

    def __init__(self, seconds: float, tell: Callable[[int], None], clock: Callable[[], float]) -> None:
        self._seconds, self._tell, self._clock = seconds, tell, clock
        self._end, self._left_out, self._count = float("-inf"), 0, 0

    def take(self, most: int) -> bool:
        """Return whether there is room for one more line."""
        now = self._clock()
        if now >= self._end:
            self.close()
            self._end, self._count = now + self._seconds, 0
        self._count += 1
        if self._count <= most:
            return True
        self._left_out += 1
        return False

    def close(self) -> None:
        """Tell how many lines had no room."""
        if self._left_out:
            self._tell(self._left_out)
            self._left_out = 0


class FewLines:
    """Logs warnings that a client can cause at will: at most ``most`` in each ``seconds``, and how many were left out.

    Parameters
    ----------
    log : Logger
    most : int
    seconds : float
    clock : callable

    Examples
    --------
    >>> import logging
    >>> few = FewLines(logging.getLogger("example"), most=1, clock=lambda: 5.0)
    >>> [few.warning("the request is not valid") for _ in range(3)]
    [True, False, False]
    """

    def __init__(
        self,
        log: logging.Logger,
        most: int = 20,
        seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._most = log, most
        self._room = _Room(seconds, partial(log.warning, "%d more such lines were left out"), clock)

    def warning(self, message: str, *given: object) -> bool:
        """Log a line; return whether it was logged."""
        if not self._room.take(self._most):
            return False
        self._log.warning(message, *given)
        return True


def start_logging(config: LogConfig, worker: int | None = None) -> None:
    """Log to standard error as configured.

    A program that calls :func:`run` and has configured logging itself keeps its handlers. A worker is a process that
    :func:`run` started, so its logging is replaced, whatever the modules that it imports have configured: its lines
    must carry its number.

    Parameters
    ----------
    config : LogConfig
    worker : int, optional
        The number of the worker, if this process is one.

    Examples
    --------
    >>> from hopfuse.serve import LogConfig, start_logging
    >>> start_logging(LogConfig(format="json"))  # doctest: +SKIP
    """
    handler = logging.StreamHandler(sys.stderr)
    if config.format == "json":
        handler.setFormatter(JsonLines(worker))
    else:
        name = "" if worker is None else f" worker {worker}"
        handler.setFormatter(logging.Formatter(f"%(asctime)s %(levelname)s{name} %(name)s %(message)s"))
    is_ours = worker is not None
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=is_ours)
    logging.getLogger("mcp").setLevel(logging.WARNING)  # it logs every call


class RequestLog:
    """Logs requests as configured: all, or slow ones, as warnings; of both at most ``most`` lines a second each.

    Parameters
    ----------
    config : LogConfig
    clock : callable, optional
        Returns seconds.
    """

    def __init__(self, config: LogConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        told = {False: "%d lines of requests were left out", True: "%d lines of slow requests were left out"}
        self._rooms = {slow: _Room(1.0, partial(requests.warning, said), clock) for slow, said in told.items()}

    def __call__(self, request: Request, route: str, *, status: int, seconds: float, code: str | None) -> None:
        """Log a request, with the texts of its queries only if that is configured."""
        config = self._config
        slow = config.slow_ms is not None and 1000 * seconds >= config.slow_ms
        if (config.requests or slow) and self._rooms[slow].take(config.most):
            line = _line(config, request, route, status=status, seconds=seconds, code=code)
            if slow:
                line["slow"] = True
            shown = " ".join(f"{name}={value}" for name, value in line.items())
            requests.log(logging.WARNING if slow else logging.INFO, "%s", shown, extra={"request": line})

    def close(self) -> None:
        """Log how many lines were left out last."""
        for room in self._rooms.values():
            room.close()


def _line(
    config: LogConfig, request: Request, route: str, *, status: int, seconds: float, code: str | None
) -> dict[str, Any]:
    """Return what is logged of a request."""
    state = request.state
    line: dict[str, Any] = {"method": request.method, "route": route, "status": status, "ms": round(1000 * seconds, 3)}
    if request.client is not None:
        line["client"] = request.client.host
    if code is not None:
        line["code"] = code
    principal = getattr(state, "principal", None)
    if principal is not None:
        line["key"] = principal.name
    answer, search = getattr(state, "answer", None), getattr(state, "search", None)
    if search is not None:
        line |= {"index": search.snapshot.name, "queries": len(search.queries)}
        if config.texts:
            line["texts"] = [query.text for query in search.queries]
    if answer is not None:
        timings = answer.timings
        line |= {"seq": answer.snapshot.seq, "batch": timings.batch, "queued_ms": timings.queued_ms}
    return line
