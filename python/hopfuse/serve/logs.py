"""The server's log on standard error: plain lines or JSON, optionally with a line for each request."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
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


def log_request(
    config: LogConfig, request: Request, route: str, *, status: int, seconds: float, code: str | None
) -> None:
    """Log a request, with the texts of its queries only if that is configured."""
    if not config.requests:
        return
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
    shown = " ".join(f"{name}={value}" for name, value in line.items())
    requests.info("%s", shown, extra={"request": line})
