"""Several processes on one port: a parent that holds the port, and workers that answer.

The parent forks the workers before anything is loaded. Each listens on the port once it is ready, and the system
distributes new connections among them. The parent replaces a worker that dies, and stops all workers when it stops.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import connection, get_all_start_methods, get_context, parent_process
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from .._threads import thread_count
from ..errors import HopfuseError, InputError
from .config import ServeConfig

log = logging.getLogger("hopfuse.serve")
#: Seconds until a dead worker is replaced.
RESTART_SECONDS = 1.0
#: Seconds that workers have to end beyond the drain time.
GRACE_SECONDS = 1.9
#: Seconds in which a worker checks a configuration; one that does not counts as one that refuses it.
CHECK_SECONDS = 60.0
#: Seconds between two looks at workers that check one.
LOOK_SECONDS = 0.5
#: Environment variable with systemd's socket, of units that say when they are ready.
NOTIFY = "NOTIFY_SOCKET"
#: The signal to read the configuration again, where there is one.
HUP = getattr(signal, "SIGHUP", None)
#: Folder with an entry for each GPU of NVIDIA's driver.
CARDS = Path("/proc/driver/nvidia/gpus")


@dataclass(frozen=True)
class Place:
    """The place of a process among the workers.

    Attributes
    ----------
    number, count : int
    folder : Path
        Folder of the workers' sockets.
    """

    number: int
    count: int
    folder: Path


#: ``answer(config, place, bound, pipe)`` serves until a signal. Once it listens, it sends ``(0, None)`` by the pipe,
#: and later ``(order.number, error or None)`` for each :class:`Order` of the parent.
Answer = Callable[[ServeConfig, Place, socket.socket, connection.Connection], None]


@dataclass(frozen=True)
class Order:
    """What a parent orders its workers to do when the configuration was read again.

    Attributes
    ----------
    number : int
    act : {"check", "use", "refuse"}
        Say whether it can be used; use it; count that it is not used.
    config : ServeConfig, optional
        None if it is not used.
    """

    number: int
    act: Literal["check", "use", "refuse"]
    config: ServeConfig | None = None


@dataclass(eq=False)
class _Worker:
    """A process, and the pipe on which it says that it is ready, its error, and its answers to orders.

    ``state`` is the number of configurations that were read again and used, up to its own. ``answered`` is the number
    of the order that it answered last, and ``answer`` the error.
    """

    place: Place
    process: Any
    pipe: connection.Connection
    state: int
    ready: bool = False
    fault: HopfuseError | None = None
    is_over: bool = False
    answered: int = 0
    answer: HopfuseError | None = None

    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return not self.is_over and self.process.is_alive()

    def close(self) -> None:
        """Free what belongs to a process that has ended."""
        self.is_over = True
        self.pipe.close()
        self.process.close()

    def hear(self) -> None:
        """Receive a message."""
        try:
            number, error = self.pipe.recv()
        except (EOFError, OSError):
            number, error = 0, HopfuseError("failed", None, "the worker ended without a message")
        if number:
            self.answered, self.answer = number, error
        elif error is None:
            self.ready = True
        else:
            self.fault = error

    def order(self, order: Order) -> None:
        """Send an order, unless the worker has ended."""
        with contextlib.suppress(OSError):
            self.pipe.send(order)


class Rereading(Protocol):
    """Reads the configuration again; see :class:`hopfuse.serve.reloading.Reloader`."""

    def next(self) -> Any:
        """Return what has changed, or None."""

    def take(self, found: Any) -> None:
        """Note that it is used."""

    def refuse(self, error: Exception) -> None:
        """Note that it is not used."""


def run_workers(config: ServeConfig, answer: Answer, reloader: Rereading) -> None:
    """Serve by ``config.workers`` processes until SIGINT or SIGTERM, then let them finish open requests.

    Raises
    ------
    HopfuseError
        A worker cannot start, or there are fewer GPUs than workers.
    """
    if "fork" not in get_all_start_methods() or not hasattr(socket, "SO_REUSEPORT"):
        raise InputError(
            "unsupported",
            "workers",
            "{field} is {given}, and processes cannot share a port on this system; leave it out",
            given=config.workers,
        )
    cards = cards_of(os.environ)
    if cards and len(cards) < config.workers:
        raise InputError(
            "range",
            "workers",
            "{field} is {given}, and the number of GPUs, one for each process, is {allowed}; give at "
            "most so many workers, or set HOPFUSE_BACKEND=cpu in the environment",
            given=config.workers,
            allowed=len(cards),
        )
    config = msgspec.structs.replace(config, threads=config.threads or max(1, thread_count(None) // config.workers))
    with kept_port(config) as port, tempfile.TemporaryDirectory(prefix="hopfuse-serve-") as folder:
        _Parent(config, answer, port, Path(folder), cards, reloader).run()


class _Parent:
    """Starts workers, replaces those that die, and stops all of them."""

    def __init__(
        self,
        config: ServeConfig,
        answer: Answer,
        port: socket.socket,
        folder: Path,
        cards: list[str],
        reloader: Rereading,
    ) -> None:
        self._reloader, self._hups, self._reloads = reloader, 0, 0
        self._reloading: Generator[None, None, None] | None = None
        self._orders = self._state = 0
        self._config, self._answer, self._port, self._cards = config, answer, port, cards
        self._places = [Place(number, config.workers, folder) for number in range(config.workers)]
        self._context: Any = get_context("fork")
        self._woken, self._wake = os.pipe()
        self._signals = 0

    def run(self) -> None:
        before = {kind: signal.signal(kind, self._signalled) for kind in (signal.SIGTERM, signal.SIGINT)}
        if HUP is not None:
            before[HUP] = signal.signal(HUP, self._hung_up)
        workers = [self._start(place) for place in self._places]
        try:
            log.info("%d workers of process %d answer at %s", len(workers), os.getpid(), url_of(self._port))
            self._watch(workers)
        finally:
            self._stop(workers)
            for kind, handler in before.items():
                signal.signal(kind, handler)
            os.close(self._woken)
            os.close(self._wake)

    def _signalled(self, kind: int, frame: Any) -> None:
        self._signals += 1
        os.write(self._wake, b".")

    def _hung_up(self, kind: int, frame: Any) -> None:
        self._hups += 1
        os.write(self._wake, b".")

    def _reload(self, workers: list[_Worker]) -> Generator[None, None, None]:
        """Read the configuration again, and use it in all workers if none refuses it; yield while they answer."""
        try:
            found = self._reloader.next()
            if found is None:
                return
            for one in (yield from self._ordered(workers, "check", found.config)):
                if one.answered < self._orders:
                    raise HopfuseError(
                        "failed",
                        None,
                        "worker {worker} did not check it: it ended, or did not answer within {seconds:g} s",
                        worker=one.place.number,
                        seconds=CHECK_SECONDS,
                    )
                if one.answer is not None:
                    raise one.answer
        except Exception as error:  # perhaps one of a program's own function that reads the configuration
            yield from self._ordered(workers, "refuse")
            self._reloader.refuse(error)
            return
        self._config = msgspec.structs.replace(found.config, threads=self._config.threads)
        self._state += 1
        for one in (yield from self._ordered(workers, "use", found.config)):
            if one.is_alive() and one.answered < self._orders:
                log.warning("worker %d does not answer; it uses the configuration once it does", one.place.number)
        self._reloader.take(found)

    def _ordered(
        self, workers: list[_Worker], act: Literal["check", "use", "refuse"], config: ServeConfig | None = None
    ) -> Generator[None, None, list[_Worker]]:
        """Order the workers that answer requests to do something; return them once they have, or have ended."""
        self._orders += 1
        ordered = [one for one in workers if one.ready]
        for one in ordered:
            one.state = self._state
            one.order(Order(self._orders, act, config))
        until = time.monotonic() + CHECK_SECONDS
        while time.monotonic() < until and any(one.answered < self._orders and one.is_alive() for one in ordered):
            yield
        return ordered

    def _start(self, place: Place) -> _Worker:
        own, its = self._context.Pipe()
        process = self._context.Process(target=self._work, args=(place, its), name=f"hopfuse-{place.number}")
        process.start()
        its.close()
        return _Worker(place, process, own, self._state)

    def _work(self, place: Place, pipe: connection.Connection) -> None:
        """Run as a worker."""
        for kind in (signal.SIGTERM, signal.SIGINT):
            signal.signal(kind, signal.SIG_DFL)
        if HUP is not None:
            signal.signal(HUP, signal.SIG_IGN)  # the parent's matter; a terminal sends it to all
        threading.Thread(target=_end_with_parent, name="hopfuse-parent", daemon=True).start()
        if self._cards:
            os.environ["CUDA_VISIBLE_DEVICES"] = self._cards[place.number]
        try:
            with _bound(self._port.family, self._port.getsockname(), shared=True) as bound:
                self._answer(self._config, place, bound, pipe)
        except HopfuseError as error:
            pipe.send((0, error))

    def _watch(self, workers: list[_Worker]) -> None:
        """Return after a signal; raise the error of a worker if none is ready."""
        while not self._signals:
            waits: list[Any] = [self._woken, *(one.pipe for one in workers if not one.fault)]
            seconds = None if self._reloading is None else LOOK_SECONDS
            heard = connection.wait([*waits, *(one.process.sentinel for one in workers)], seconds)
            if self._woken in heard:
                os.read(self._woken, 4096)
            for one in workers:
                if one.pipe in heard:
                    was_ready = one.ready
                    one.hear()
                    if one.ready and not was_ready:
                        self._welcome(one, workers)
            self._go_on(workers)
            dead = [one for one in workers if not one.process.is_alive()]
            if dead and not any(one.ready for one in workers) and not self._signals:
                raise dead[0].fault or HopfuseError(
                    "failed",
                    None,
                    "a worker ended at its start with exit code {exitcode}",
                    exitcode=dead[0].process.exitcode,
                )
            for one in dead:
                workers[workers.index(one)] = self._replaced(one)

    def _welcome(self, one: _Worker, workers: list[_Worker]) -> None:
        """Give a worker that listens the configuration that was taken while it started."""
        if one.state < self._state:
            one.state = self._state
            one.order(Order(self._orders, "use", self._config))
        if all(one.ready for one in workers):
            notify_ready()

    def _go_on(self, workers: list[_Worker]) -> None:
        """Continue to reload the configuration, or begin to, if a signal has asked for it and a worker can check it."""
        if self._reloading is None and self._reloads < self._hups and any(one.ready for one in workers):
            self._reloads = self._hups
            self._reloading = self._reload(workers)
        if self._reloading is not None:
            try:
                next(self._reloading)
            except StopIteration:
                self._reloading = None

    def _replaced(self, dead: _Worker) -> _Worker:
        if not self._signals:
            code = dead.process.exitcode
            log.error(
                "worker %d ended with exit code %s (%s) and is replaced",
                dead.place.number,
                code,
                dead.fault or "no message",
            )
            connection.wait([self._woken], RESTART_SECONDS)
        if self._signals:
            return dead
        dead.close()
        return self._start(dead.place)

    def _stop(self, workers: list[_Worker]) -> None:
        """Let workers finish open requests; a second signal kills them at once."""
        asked, until = self._signals, time.monotonic() + self._config.limits.drain_seconds + GRACE_SECONDS
        for one in workers:
            if one.process.is_alive():
                one.process.terminate()
        while any(one.process.is_alive() for one in workers) and time.monotonic() < until and self._signals <= asked:
            connection.wait([one.process.sentinel for one in workers if one.process.is_alive()], 0.1)
        for one in workers:
            if one.process.is_alive():
                one.process.kill()
            one.process.join()


def _end_with_parent() -> None:
    """Stop this worker when its parent ends, even by SIGKILL."""
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def notify_ready() -> None:
    """Tell systemd that the service is ready, if the unit is of the type notify (sd_notify(3))."""
    address = os.environ.get(NOTIFY, "")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.connect("\0" + address[1:] if address.startswith("@") else address)
            systemd.sendall(b"READY=1")


def cards_of(environment: Mapping[str, str], driver: Path = CARDS) -> list[str]:
    """Return the GPUs that kernels would use, as in CUDA_VISIBLE_DEVICES; none if they use the CPU.

    CUDA is not loaded, since it does not survive a fork.

    Parameters
    ----------
    environment : mapping of str to str
        Environment variables.
    driver : Path
        The driver's folder with an entry for each GPU.

    Examples
    --------
    >>> from hopfuse.serve import cards_of
    >>> cards_of({"HOPFUSE_BACKEND": "cpu"})
    []
    """
    if environment.get("HOPFUSE_BACKEND", "") not in ("", "auto", "cuda") or find_spec("cupy") is None:
        return []
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return [one.strip() for one in named.split(",") if one.strip()]
    return [str(at) for at in range(len(list(driver.iterdir())))] if driver.is_dir() else []


@contextlib.contextmanager
def kept_port(config: ServeConfig) -> Iterator[socket.socket]:
    """Hold the port for this program's processes; refuse a port of another program, unless ``share_port`` allows it.

    Raises
    ------
    InputError
        It cannot be had.
    """
    if not config.share_port:  # another program may use the port, and share it
        check_port(config)
    with _port_of(config, shared=True) as kept:
        yield kept


def check_port(config: ServeConfig) -> None:
    """Refuse a port that another program uses, before indexes are opened.

    Raises
    ------
    InputError
        It cannot be had.
    """
    _port_of(config, shared=False).close()


def _port_of(config: ServeConfig, *, shared: bool) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return _bound(family, address, shared=shared)
    except OSError as error:
        raise InputError(
            "busy",
            "port",
            "cannot listen on {host}:{given}: {reason}; choose another {field}",
            host=config.host,
            given=config.port,
            reason=error.strerror,
        ) from None


def _bound(family: int, address: Any, *, shared: bool) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
    except BaseException:
        bound.close()
        raise
    return bound


def url_of(port: socket.socket) -> str:
    """Return the address of a socket as that of a server."""
    host, number = port.getsockname()[:2]
    return f"http://[{host}]:{number}" if ":" in host else f"http://{host}:{number}"
