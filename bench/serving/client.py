"""The open loop: requests are sent on a schedule, whatever has been answered, and timed from their scheduled time.

A program of its own: the task is read from standard input as JSON, what it counted is written to standard output.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import threading
import time
from collections import Counter, deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

#: Seconds by which a schedule is delayed, so that the first requests are on time.
HEAD_START = 0.05


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task of requests.

    Attributes
    ----------
    port : int
    files : list of str
        Bodies, one after the other; none: a GET.
    kind : str
        Content type.
    path : str
    rate : float
        Requests a second.
    seconds : float
    begin : float
        When, by :func:`time.time`; 0: now.
    grace : float
        Seconds after the last request in which answers count.
    connections : int
        At most; a request that finds none free waits for one, and that counts.
    even : bool
        At even intervals; else as independent callers come (exponential intervals by a fixed seed).
    series : bool
        Give every request's schedule, latency and status.
    """

    port: int
    files: list[str] = field(default_factory=list)
    kind: str = "application/json"
    path: str = "/v1/search"
    rate: float = 10.0
    seconds: float = 1.0
    begin: float = 0.0
    grace: float = 10.0
    connections: int = 512
    even: bool = False
    series: bool = False

    def as_json(self) -> str:
        """The task in the form that the program reads."""
        return json.dumps(asdict(self))

    def requests(self) -> list[bytes]:
        """The bytes of each request."""
        head = f"{self.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        if not self.files:
            return [f"GET {head}\r\n".encode()]
        found = []
        for file in self.files:
            body = Path(file).read_bytes()
            found.append(f"POST {head}Content-Type: {self.kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        return found

    def schedule(self) -> list[float]:
        """Times of the requests, in seconds after the start."""
        if self.even:
            return np.arange(0.0, self.seconds, 1 / self.rate).tolist()
        draw = np.random.default_rng(3)
        gaps = draw.exponential(1 / self.rate, max(1, int(2 * self.rate * self.seconds) + 100))
        times = np.cumsum(gaps)
        return times[times < self.seconds].tolist()


class Connection(asyncio.Protocol):
    """A connection that is kept open, with one request at a time."""

    def __init__(self, loop: Loop) -> None:
        self._loop, self._data, self._ends = loop, bytearray(), -1
        self._transport: Any = None
        self.number = -1

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def send(self, number: int, request: bytes) -> None:
        """Send a request."""
        self.number = number
        self._transport.write(request)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._data += data
        if self._ends < 0:
            at = self._data.find(b"\r\n\r\n")
            if at < 0:
                return
            self._ends = at + 4 + length_of(bytes(self._data[:at]))
        if len(self._data) >= self._ends:
            number, status = self.number, int(self._data[9:12])
            self._data.clear()
            self.number = self._ends = -1
            self._loop.answered(self, number, status)

    def connection_lost(self, exc: Exception | None) -> None:
        self._loop.lost(self)


class Loop:
    """The requests of a task, their connections and their outcomes."""

    def __init__(self, task: Task) -> None:
        self._task, self._requests, self.due = task, task.requests(), task.schedule()
        count = len(self.due)
        self.sent, self.done = np.full(count, np.nan), np.full(count, np.nan)
        self.status = np.zeros(count, np.int64)
        self._made: set[Connection] = set()
        self._free: list[Connection] = []
        self._waiting: deque[int] = deque()
        self._opening: set[asyncio.Future[None]] = set()
        self._open, self._left = 0, count
        self._start = 0.0
        self._all = asyncio.Event()

    async def run(self) -> None:
        """Send all requests, and wait for the answers."""
        loop = asyncio.get_running_loop()
        self._start = time.perf_counter() + max(HEAD_START, self._task.begin - time.time())
        # A thread keeps the time, since timers of an event loop are late by whole milliseconds.
        timer = threading.Thread(target=self._keep_time, args=(loop,), daemon=True)
        timer.start()
        try:
            async with asyncio.timeout(self._start - time.perf_counter() + self._task.seconds + self._task.grace):
                await self._all.wait()
        except TimeoutError:
            pass
        await asyncio.to_thread(timer.join)
        for one in self._made:
            one.close()

    def _keep_time(self, loop: asyncio.AbstractEventLoop) -> None:
        at = 0
        while at < len(self.due):
            rest = self._start + self.due[at] - time.perf_counter()
            if rest > 0:
                time.sleep(rest)
            now, first = time.perf_counter() - self._start, at
            while at < len(self.due) and self.due[at] <= now:
                at += 1
            loop.call_soon_threadsafe(self._leave, range(first, at))

    def _leave(self, numbers: range) -> None:
        for number in numbers:
            self._waiting.append(number)
            if not self._free and self._open < self._task.connections:
                self._open += 1
                self._opening.add(task := asyncio.ensure_future(self._connect()))
                task.add_done_callback(self._opening.discard)
        self._send()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            _, made = await loop.create_connection(lambda: Connection(self), "127.0.0.1", self._task.port)
        except OSError:
            self._open -= 1
            if self._waiting:
                self._settle(self._waiting.popleft(), 0)
            return
        self._made.add(made)
        self._free.append(made)
        self._send()

    def _send(self) -> None:
        while self._free and self._waiting:
            number = self._waiting.popleft()
            self.sent[number] = time.perf_counter() - self._start
            self._free.pop().send(number, self._requests[number % len(self._requests)])

    def answered(self, connection: Connection, number: int, status: int) -> None:
        """Record an answer, and free its connection."""
        self._settle(number, status)
        self._free.append(connection)
        self._send()

    def lost(self, connection: Connection) -> None:
        """Record the request of a connection that the server closed."""
        self._open -= 1
        self._made.discard(connection)
        if connection in self._free:
            self._free.remove(connection)
        if connection.number >= 0:
            self._settle(connection.number, 0)

    def _settle(self, number: int, status: int) -> None:
        """Record an outcome; status 0 means no answer."""
        self.status[number], self.done[number] = status, time.perf_counter() - self._start
        self._left -= 1
        if self._left == 0:
            self._all.set()


def length_of(head: bytes) -> int:
    """Return the length of the body by the head of an answer.

    Examples
    --------
    >>> length_of(b"HTTP/1.1 200 OK\\r\\nContent-Length: 12")
    12
    """
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


def figures(task: Task, loop: Loop) -> dict[str, Any]:
    """Return counts of statuses, answers 200 per second, their latencies in seconds, and the client's own delays."""
    due = np.array(loop.due)
    latency, good = loop.done - due, loop.status == 200
    in_time = good & (loop.done <= task.seconds)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    found: dict[str, Any] = {
        "offered": len(due),
        "statuses": {str(status): count for status, count in sorted(Counter(loop.status.tolist()).items())},
        "answered_per_second": int(in_time.sum()) / task.seconds,
        "latency": percentiles(latency[good]),
        "late": percentiles((loop.sent - due)[~np.isnan(loop.sent)]),
        "client_cpu": usage.ru_utime + usage.ru_stime,
    }
    if task.series:
        rounded = [[round(float(x), 6) for x in column] for column in (due, np.nan_to_num(latency, nan=-1.0))]
        found["series"] = {"due": rounded[0], "latency": rounded[1], "status": loop.status.tolist()}
    return found


def percentiles(seconds: Any) -> dict[str, float] | None:
    """Return the 50th, 90th and 99th percentile and the maximum, or None if there are no values."""
    if not len(seconds):
        return None
    names = ("p50", "p90", "p99", "max")
    return {name: float(f"{x:.4g}") for name, x in zip(names, np.percentile(seconds, (50, 90, 99, 100)), strict=True)}


def main() -> None:
    """Run the task on standard input."""
    task = Task(**json.load(sys.stdin))
    loop = Loop(task)
    asyncio.run(loop.run())
    print(json.dumps(figures(task, loop)))


if __name__ == "__main__":
    main()
