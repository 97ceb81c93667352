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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import connection, get_all_start_methods, get_context, parent_process
from pathlib import Path
from typing import Any, Protocol

import msgspec

from .._threads import thread_count
from ..errors import HopfuseError, InputError
from .config import ServeConfig

log = logging.getLogger("hopfuse.serve")
#: Seconds until a dead worker is replaced.
RESTART_SECONDS = 1.0
#: Seconds that workers have to end beyond the drain time.
GRACE_SECONDS = 1.9
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


#: ``answer(config, place, bound, ready)`` serves until a signal, and calls ``ready()`` once it listens.
Answer = Callable[[ServeConfig, Place, socket.socket, Callable[[], None]], None]


@dataclass
class _Worker:
    """A process, and the pipe on which it reports that it is ready, or its error."""

    place: Place
    process: Any
    pipe: connection.Connection
    reloads: int = 0
    ready: bool = False
    fault: HopfuseError | None = None


class Rereading(Protocol):
    """Reads the configuration again; see :class:`hopfuse.serve.reloading.Reloader`."""

    def next(self) -> Any:
        """Return what has changed, or None."""

    def take(self, found: Any) -> None:
        """Note that it is used."""


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

    def _reload(self, workers: list[_Worker]) -> None:
        """Read the configuration again for workers that start later, and let the others read it themselves."""
        os.read(self._woken, 4096)
        self._reloads = self._hups
        found = self._reloader.next()
        if found is None:
            return
        self._reloader.take(found)
        self._config = msgspec.structs.replace(found.config, threads=self._config.threads)
        for one in workers:
            if one.ready:
                self._pass_on(one)

    def _pass_on(self, one: _Worker) -> None:
        """Tell a worker that listens to read the configuration again."""
        if HUP is not None and one.process.is_alive():
            os.kill(one.process.pid, HUP)
            one.reloads = self._reloads

    def _start(self, place: Place) -> _Worker:
        hears, says = self._context.Pipe(duplex=False)
        process = self._context.Process(target=self._work, args=(place, says), name=f"hopfuse-{place.number}")
        process.start()
        says.close()
        return _Worker(place, process, hears, self._reloads)

    def _work(self, place: Place, says: connection.Connection) -> None:
        """Run as a worker."""
        for kind in (signal.SIGTERM, signal.SIGINT):
            signal.signal(kind, signal.SIG_DFL)
        if HUP is not None:
            signal.signal(HUP, signal.SIG_IGN)  # until it listens
        threading.Thread(target=_end_with_parent, name="hopfuse-parent", daemon=True).start()
        if self._cards:
            os.environ["CUDA_VISIBLE_DEVICES"] = self._cards[place.number]
        try:
            with _bound(self._port.family, self._port.getsockname(), shared=True) as bound:
                self._answer(self._config, place, bound, lambda: says.send(None))
        except HopfuseError as error:
            says.send(error)

    def _watch(self, workers: list[_Worker]) -> None:
        """Return after a signal; raise the error of a worker if none is ready."""
        while not self._signals:
            waits: list[Any] = [self._woken, *(one.pipe for one in workers if not (one.ready or one.fault))]
            connection.wait([*waits, *(one.process.sentinel for one in workers)])
            for one in workers:
                if not (one.ready or one.fault) and one.pipe.poll():
                    _hear(one)
                    if one.ready and one.reloads < self._reloads:
                        self._pass_on(one)
                    if all(one.ready for one in workers):
                        notify_ready()
            if self._reloads < self._hups and not self._signals:
                self._reload(workers)
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
        dead.pipe.close()
        dead.process.close()
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


def _hear(worker: _Worker) -> None:
    try:
        worker.fault = worker.pipe.recv()
        worker.ready = worker.fault is None
    except EOFError:
        worker.fault = HopfuseError("failed", None, "the worker ended without a message")


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
