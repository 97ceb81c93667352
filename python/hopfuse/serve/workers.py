"""Several processes on one port: a parent that holds the port, and workers that answer.

The parent forks the workers before anything is loaded. Each listens on the port once it is ready, and the system
distributes new connections among them. The parent replaces a worker that dies, and stops all workers when it stops. It
reads the configuration again, and gives it to all workers or none.
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
from multiprocessing import connection, get_all_start_methods, get_context, parent_process
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from .._threads import thread_count
from ..errors import HopfuseError, InputError
from .config import KeyConfig, Limits, LogConfig, ServeConfig

log = logging.getLogger("hopfuse.serve")
#: Seconds until a dead worker is replaced.
RESTART_SECONDS = 1.0
#: Seconds that workers have to end beyond the drain time.
GRACE_SECONDS = 1.9
#: Seconds in which a worker carries out an order; after them, it counts as one that refuses.
CHECK_SECONDS = 60.0
#: Seconds between two looks at workers that have orders.
LOOK_SECONDS = 0.5
#: Environment variable with systemd's socket, of units that say when they are ready.
NOTIFY = "NOTIFY_SOCKET"
#: The signal to read the configuration again, where there is one.
HUP = getattr(signal, "SIGHUP", None)
#: Folder with an entry for each GPU of NVIDIA's driver.
CARDS = Path("/proc/driver/nvidia/gpus")
#: What WSL has in place of the driver's folder.
WSL = Path("/dev/dxg")


@dataclass(frozen=True)
class WorkerSlot:
    """The slot of a process among the workers.

    Attributes
    ----------
    number, count : int
    folder : Path
        Folder of the workers' sockets.
    """

    number: int
    count: int
    folder: Path


#: ``answer(config, slot, bound, pipe)`` serves until a signal. Once it listens, it sends ``(0, None)`` by the pipe,
#: and later ``(order.number, error or None)`` for each :class:`Order` of the parent.
Answer = Callable[[ServeConfig, WorkerSlot, socket.socket, connection.Connection], None]


@dataclass(frozen=True)
class Order:
    """What a parent orders a worker to do when the configuration was read again; a file has what can change of it.

    Attributes
    ----------
    number : int
        Counts the times that it was read.
    act : {"check", "use", "refuse"}
        Say whether it can be used; use it; count that it is not used.
    """

    number: int
    act: Literal["check", "use", "refuse"]

    def write(self, config: ServeConfig, folder: Path) -> None:
        """Write what can change, for this order and others of its number; the user alone can read it."""
        file = self._file(folder)
        file.touch(0o600)
        file.write_bytes(msgspec.msgpack.encode((config.keys, config.limits, config.log)))
        if self.read(config, folder) != config:
            raise InputError(
                "type", "keys", "{field} has a filter by a date or a time, which metadata cannot have; give a text"
            )

    def read(self, own: ServeConfig, folder: Path) -> ServeConfig:
        """Return a configuration with what has changed."""
        keys, limits, log = msgspec.msgpack.decode(
            self._file(folder).read_bytes(), type=tuple[dict[str, KeyConfig], Limits, LogConfig]
        )
        return msgspec.structs.replace(own, keys=keys, limits=limits, log=log)

    def remove(self, folder: Path) -> None:
        """Remove the file; what remains is removed with the folder."""
        with contextlib.suppress(OSError):
            self._file(folder).unlink()

    def _file(self, folder: Path) -> Path:
        return folder / f"config-{self.number}"


@dataclass(eq=False)
class _Worker:
    """A process, and the pipe on which it says that it is ready, its error, and its answers to orders.

    It has at most one order at a time, ``asked`` since ``since``. ``done`` is the order that it answered last, and
    ``error`` the answer. ``uses`` is the number of the configuration that it uses.
    """

    slot: WorkerSlot
    process: Any
    pipe: connection.Connection
    uses: int
    ready: bool = False
    fault: HopfuseError | None = None
    is_over: bool = False
    asked: Order | None = None
    since: float = 0.0
    done: Order | None = None
    error: HopfuseError | None = None

    def answers(self) -> bool:
        """Return whether the process runs and answers requests."""
        return self.ready and not self.is_over and self.process.is_alive()

    def kill(self) -> None:
        """End the process at once."""
        self.is_over = True
        self.process.kill()

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
            self.done, self.asked, self.error = self.asked, None, error
            if self.done is not None and self.done.act == "use" and error is None:
                self.uses = number
        elif error is None:
            self.ready = True
        else:
            self.fault = error

    def order(self, order: Order) -> None:
        """Send an order unless the worker has one, so that the pipe is never full, or has answered this one."""
        if self.asked is None and self.done != order:
            self.asked, self.since = order, time.monotonic()
            with contextlib.suppress(OSError):
                self.pipe.send(order)

    def obeyed(self, order: Order) -> bool:
        """Return whether it has carried out an order."""
        return self.uses >= order.number if order.act == "use" else self.done == order and self.error is None


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
            "most that many workers, or set HOPFUSE_BACKEND=cpu in the environment",
            given=config.workers,
            allowed=len(cards),
        )
    config = msgspec.structs.replace(config, threads=config.threads or max(1, thread_count(None) // config.workers))
    with kept_port(config) as port, tempfile.TemporaryDirectory(prefix="hopfuse-serve-") as folder:
        _Parent(answer, port, cards, _Rollout(config, Path(folder), reloader)).run()


class _Rollout:
    """Gives a configuration that was read again to all workers, or to none.

    All workers that answer requests check it, also those that begin to meanwhile; one that ends is left out. If none
    refuses it, or is silent for ``CHECK_SECONDS``, it is decided: workers that start from then on start with it, and
    those that answer use it. One that cannot, is silent, or still starts with the one before is killed and replaced.
    """

    def __init__(self, config: ServeConfig, folder: Path, reloader: Rereading) -> None:
        self.config, self.number = config, 0  # what is decided
        self.folder, self._reloader = folder, reloader
        self.hups = self._seen = self._tries = 0
        self._steps: Generator[None, None, None] | None = None

    def go_on(self, workers: list[_Worker]) -> bool:
        """Do what can be done now; return whether a worker has an order, so that time may decide."""
        while True:
            if self._steps is None:
                if self._seen == self.hups or not any(one.answers() for one in workers):
                    return False
                self._seen = self.hups
                self._steps = self._reload(workers)
            try:
                next(self._steps)
                return True
            except StopIteration:
                self._steps = None

    def _reload(self, workers: list[_Worker]) -> Generator[None, None, None]:
        """Read the configuration again, and use it in all workers if none refuses it; yield while they answer."""
        self._tries += 1
        check = Order(self._tries, "check")
        try:
            found = self._reloader.next()
            if found is None:
                return
            check.write(found.config, self.folder)
            for one in (yield from self._failing(workers, check)):
                raise self._problem(one, check)
        except Exception as error:  # perhaps one of a program's own function that reads the configuration
            check.remove(self.folder)
            for one in workers:
                if one.answers():
                    one.order(Order(check.number, "refuse"))
            self._reloader.refuse(error)
            return
        before, self.config = self.config, msgspec.structs.replace(found.config, threads=self.config.threads)
        self.number = check.number
        if self.config != before:
            for one in workers:
                if not one.ready:
                    log.warning("worker %d is killed, since it starts with the configuration before", one.slot.number)
                    one.kill()
        use = Order(self.number, "use")
        while failing := (yield from self._failing(workers, use)):
            for one in failing:
                log.error("worker %d is killed: %s", one.slot.number, self._problem(one, use))
                one.kill()
        use.remove(self.folder)
        self._reloader.take(found)

    def _failing(self, workers: list[_Worker], order: Order) -> Generator[None, None, list[_Worker]]:
        """Order all workers that answer requests to do something; yield until they have, and return who could not."""
        begun = time.monotonic()
        while True:
            ones = [one for one in workers if one.answers()]
            left = [one for one in ones if not one.obeyed(order)]
            waits = [one for one in left if one.done != order]
            for one in waits:
                one.order(order)
            now = time.monotonic()
            if ones and all(now >= max(begun, one.since) + CHECK_SECONDS for one in waits):
                return left
            yield

    @staticmethod
    def _problem(one: _Worker, order: Order) -> HopfuseError:
        if one.done == order and one.error is not None:
            return one.error
        return HopfuseError(
            "failed",
            None,
            "worker {worker} did not answer within {seconds:g} s",
            worker=one.slot.number,
            seconds=CHECK_SECONDS,
        )


class _Parent:
    """Starts workers, replaces those that die, and stops all of them."""

    def __init__(self, answer: Answer, port: socket.socket, cards: list[str], rollout: _Rollout) -> None:
        self._answer, self._port, self._cards, self._rollout = answer, port, cards, rollout
        count = rollout.config.workers
        self._slots = [WorkerSlot(number, count, rollout.folder) for number in range(count)]
        self._context: Any = get_context("fork")
        self._woken, self._wake = os.pipe()
        self._signals = 0

    def run(self) -> None:
        before = {kind: signal.signal(kind, self._signalled) for kind in (signal.SIGTERM, signal.SIGINT)}
        if HUP is not None:
            before[HUP] = signal.signal(HUP, self._hung_up)
        workers = [self._start(slot) for slot in self._slots]
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
        self._rollout.hups += 1
        os.write(self._wake, b".")

    def _start(self, slot: WorkerSlot) -> _Worker:
        own, its = self._context.Pipe()
        process = self._context.Process(target=self._work, args=(slot, its), name=f"hopfuse-{slot.number}")
        process.start()
        its.close()
        return _Worker(slot, process, own, self._rollout.number)

    def _work(self, slot: WorkerSlot, pipe: connection.Connection) -> None:
        """Run as a worker."""
        for kind in (signal.SIGTERM, signal.SIGINT):
            signal.signal(kind, signal.SIG_DFL)
        if HUP is not None:
            signal.signal(HUP, signal.SIG_IGN)  # the parent's matter; a terminal sends it to all
        threading.Thread(target=_end_with_parent, name="hopfuse-parent", daemon=True).start()
        if self._cards:
            os.environ["CUDA_VISIBLE_DEVICES"] = self._cards[slot.number]
        try:
            with _bound(self._port.family, self._port.getsockname(), shared=True) as bound:
                self._answer(self._rollout.config, slot, bound, pipe)
        except HopfuseError as error:
            pipe.send((0, error))

    def _watch(self, workers: list[_Worker]) -> None:
        """Return after a signal; raise the error of a worker if none is ready."""
        waiting = False
        while not self._signals:
            waits: list[Any] = [self._woken, *(one.pipe for one in workers if not one.fault)]
            heard = connection.wait(
                [*waits, *(one.process.sentinel for one in workers)], LOOK_SECONDS if waiting else None
            )
            if self._woken in heard:
                os.read(self._woken, 4096)
            for one in workers:
                if one.pipe in heard:
                    was_ready = one.ready
                    one.hear()
                    if one.ready and not was_ready and all(each.ready for each in workers):
                        notify_ready()
            waiting = self._rollout.go_on(workers)
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
                dead.slot.number,
                code,
                dead.fault or "no message",
            )
            connection.wait([self._woken], RESTART_SECONDS)
        if self._signals:
            return dead
        dead.close()
        return self._start(dead.slot)

    def _stop(self, workers: list[_Worker]) -> None:
        """Let workers finish open requests; a second signal kills them at once."""
        asked, until = self._signals, time.monotonic() + self._rollout.config.limits.drain_seconds + GRACE_SECONDS
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


def cards_of(environment: Mapping[str, str], driver: Path | None = None) -> list[str]:
    """Return the GPUs that kernels would use, as in CUDA_VISIBLE_DEVICES; none if they use the CPU.

    CUDA is not loaded, since it does not survive a fork.

    Parameters
    ----------
    environment : mapping of str to str
        Environment variables.
    driver : Path, optional
        The driver's folder with an entry for each GPU. WSL has none; name the GPUs there in CUDA_VISIBLE_DEVICES.

    Examples
    --------
    >>> from hopfuse.serve import cards_of
    >>> cards_of({"HOPFUSE_BACKEND": "cpu"})
    []
    """
    driver = CARDS if driver is None else driver
    has_driver = driver.is_dir() or WSL.exists()
    if environment.get("HOPFUSE_BACKEND", "") not in ("", "auto", "cuda") or not has_driver:
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
