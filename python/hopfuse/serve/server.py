"""Run the application by uvicorn, or MCP over stdio."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

import uvicorn

from ..errors import InputError
from .admission import RESERVE, Connections
from .app import make_app
from .config import Limits, ServeConfig
from .connections import protocol
from .errors import RefusalError
from .logs import start_logging
from .mcp import serve_stdio
from .reloading import Orders, Reloader
from .service import END_SECONDS, Service
from .workers import HUP, NOTIFY, WorkerSlot, check_port, kept_port, notify_ready, run_workers, url_of

log = logging.getLogger("hopfuse.serve")
#: Python's switch interval, in seconds. With the default of 5 ms the event loop would wait several times for the
#: searching threads in each answer.
SWITCH_SECONDS = 0.0001
#: Open files of a process besides its connections: those of indexes, encoders and the event loop.
OTHER_FILES = 448
#: Seconds beyond the drain time for answers to be sent, and for the process to end.
FLUSH_SECONDS = 0.4
LAST_SECONDS = 1.5


class Server(uvicorn.Server):
    """uvicorn's server, which tells when it listens, and accepts the connections that wait before it stops to.

    When it stops, open requests are answered for ``drain_seconds``; the others are then refused. If ``alone``, the
    process ends at most ``LAST_SECONDS`` later, whatever hangs in it.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        service: Service,
        ready: Callable[[], None],
        reload: Callable[[], Awaitable[None]] | None = None,
        *,
        alone: bool = False,
    ) -> None:
        super().__init__(config)
        self._service, self._ready, self._alone = service, ready, alone
        self._drain = service.config.limits.drain_seconds
        config.timeout_graceful_shutdown = self._drain + FLUSH_SECONDS  # type: ignore[assignment]  # any number will do
        self._reload = reload
        self._reloads: set[asyncio.Future[None]] = set()
        self._turn = asyncio.Lock()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        if self._reload is not None and HUP is not None and _is_main_thread():
            asyncio.get_running_loop().add_signal_handler(HUP, self._begin_reload)
        self._ready()

    def _begin_reload(self) -> None:
        task = asyncio.ensure_future(self._reload_in_turn())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def _reload_in_turn(self) -> None:
        async with self._turn:
            assert self._reload is not None
            await self._reload()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop to listen, refuse requests that wait for a change, and finish the other open ones."""
        self._service.refuse_waiting()
        self._service.ends = time.monotonic() + self._drain + END_SECONDS
        await asyncio.sleep(0)  # the event loop accepts what waits; the system would reset these connections
        over = asyncio.get_running_loop().call_later(self._drain, self._service.refuse_open)
        try:
            await super().shutdown(sockets)
        finally:
            over.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop at a signal."""
        if self._alone and not self.should_exit:  # here, since the event loop may hang
            for seconds, act in ((LAST_SECONDS, _say_last), (LAST_SECONDS + 0.2, partial(os._exit, 1))):
                timer = threading.Timer(self._drain + seconds, act)
                timer.daemon = True
                timer.start()
        super().handle_exit(sig, frame)


def _say_last() -> None:
    hanging = [one.name for one in threading.enumerate() if not one.daemon or one.name.startswith("hopfuse-")]
    log.critical("the process ends, although these threads have not: %s", ", ".join(hanging))


def make_server(config: ServeConfig, encoders: Mapping[str, Any] | None = None) -> uvicorn.Server:
    """Return a uvicorn server, whose ``run()`` serves until a signal.

    Parameters
    ----------
    config : ServeConfig
    encoders : mapping of str to Encoder, optional
        As in :class:`Service`.

    Examples
    --------
    >>> from hopfuse.serve import ServeConfig, make_server
    >>> config = ServeConfig.read("", {"port": 8001, "indexes": {"wiki": {"path": "wiki-index"}}})
    >>> make_server(config).config.port
    8001
    """
    return _server(Service(config, encoders))


def _server(
    service: Service,
    ready: Callable[[], None] = lambda: None,
    *,
    start_first: bool = False,
    alone: bool = False,
    reloader: Reloader | None = None,
) -> Server:
    config, limits, connections = service.config, service.config.limits, Connections(service.config)
    service.metrics.watch_connections(lambda: connections.count)
    return Server(
        uvicorn.Config(
            make_app(service, start_first=start_first),
            host=config.host,
            port=config.port,
            http=protocol(config, connections, service.metrics.answered),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=max(1, round(limits.idle_seconds)),
        ),
        service,
        ready,
        None if reloader is None else partial(reloader.reload, service),
        alone=alone,
    )


def run(
    config: ServeConfig,
    encoders: Mapping[str, Any] | None = None,
    *,
    reread: Callable[[], ServeConfig] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM, then finish open requests. SIGHUP reads the configuration again.

    Parameters
    ----------
    config : ServeConfig
    encoders : mapping of str to Encoder, optional
        As in :class:`Service`.
    reread : callable, optional
        Returns the configuration as it is now, at SIGHUP. Keys, limits and the log then change; the log says what else
        needs a restart. An error is logged, and the configuration before stays. By default SIGHUP is only logged.

    Raises
    ------
    HopfuseError
        An index, a recipe or an encoder cannot be used.

    Examples
    --------
    >>> from hopfuse.serve import ServeConfig, run
    >>> config = ServeConfig.read("", {"indexes": {"wiki": {"path": "wiki-index"}}})
    >>> run(config)  # doctest: +SKIP
    """
    reloader = Reloader(config, reread)
    with _process(config):
        allow_files(config.limits)
        if HUP is not None and _is_main_thread():
            signal.signal(HUP, signal.SIG_IGN)  # until the server answers
        if config.workers > 1:
            run_workers(config, partial(_answer, encoders), reloader)
            return
        if not config.share_port:
            check_port(config)
        service = Service(config, encoders, alone=True)
        _end_at_bus_error(service)
        service.open_all()
        if not config.share_port:
            _server(service, notify_ready, start_first=NOTIFY in os.environ, alone=True, reloader=reloader).run()
            return
        with kept_port(config) as port:
            log.info("process %d starts at %s", os.getpid(), url_of(port))
            _server(service, notify_ready, start_first=True, alone=True, reloader=reloader).run(sockets=[port])


def allow_files(limits: Limits) -> None:
    """Raise this process's limit of open files so far that all connections fit, or log that they do not.

    Systems allow 1024 files by default, and more if a process asks for them.

    Parameters
    ----------
    limits : Limits
    """
    try:
        import resource
    except ModuleNotFoundError:  # Windows, which has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + RESERVE + OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        log.warning(
            "the system allows %d open files, and limits.connections = %d may need %d; set LimitNOFILE= or ulimit -n",
            allowed,
            limits.connections,
            wanted,
        )


def _answer(
    encoders: Mapping[str, Any] | None,
    config: ServeConfig,
    slot: WorkerSlot,
    bound: socket.socket,
    pipe: Connection,
) -> None:
    """Serve as a worker until a signal."""
    start_logging(config.log, slot.number)
    service = Service(config, encoders, slot, alone=True)
    _end_at_bus_error(service)
    service.open_all()
    _server(service, Orders(service, pipe, slot.folder).begin, start_first=True, alone=True).run(sockets=[bound])


def run_stdio(config: ServeConfig, encoders: Mapping[str, Any] | None = None, *, key: str = "") -> None:
    """Serve the Model Context Protocol on standard input and output, until the input ends.

    Parameters
    ----------
    config : ServeConfig
    encoders : mapping of str to Encoder, optional
        As in :class:`Service`.
    key : str
        The caller's key, if the configuration has keys.

    Raises
    ------
    HopfuseError
        As in :func:`run`, or the key is not one of the configuration's.
    MissingExtraError
        The package ``mcp`` is not installed.

    Examples
    --------
    >>> from hopfuse.serve import ServeConfig, run_stdio
    >>> config = ServeConfig.read("", {"indexes": {"wiki": {"path": "wiki-index"}}})
    >>> run_stdio(config)  # doctest: +SKIP
    """
    with _process(config):
        service = Service(config, encoders)
        try:
            principal = service.keys.principal(f"Bearer {key}")
        except RefusalError as refusal:
            if refusal.code == "expired":
                raise
            raise InputError(
                "unauthorized",
                "HOPFUSE_KEY",
                "{field} is none of the configuration's keys; set it in the environment to the caller's key",
            ) from None
        with contextlib.redirect_stdout(sys.stderr):  # encoders may print, and standard output is the protocol's
            service.open_all()
        asyncio.run(serve_stdio(service, principal))


def _is_main_thread() -> bool:
    """Return whether this thread may handle signals."""
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def _process(config: ServeConfig) -> Iterator[None]:
    """Start logging, shorten the switch interval, and let threads share memory."""
    start_logging(config.log)
    _share_freed()
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


# ---- Memory ----------------------------------------------------------------------------------------------------------
# glibc gives each thread a place of its own to allocate in, where what was freed stays: a server with a dozen threads,
# whose requests differ, then takes twice what it uses.


#: Parameters of glibc's mallopt, by the variables with which an operator sets them: the number of places; the bytes
#: from which on a block is mapped alone; and the free bytes that stay at the end of a place. The last two are the
#: largest to which glibc raises them by itself: with one place, smaller ones would give memory back and ask for it
#: again in every call of NumPy.
_PARAMETERS = {
    "MALLOC_ARENA_MAX": (-8, 1),
    "MALLOC_MMAP_THRESHOLD_": (-3, 1 << 25),
    "MALLOC_TRIM_THRESHOLD_": (-1, 1 << 26),
}
#: A variable that sets all of them.
_TUNABLES = "GLIBC_TUNABLES"


def _share_freed() -> None:
    """Let the threads of this process allocate in one place from now on; only glibc has several."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or _TUNABLES in os.environ:
        return
    for variable, (parameter, value) in _PARAMETERS.items():
        if variable not in os.environ:
            mallopt(parameter, value)


# ---- Bus errors ------------------------------------------------------------------------------------------------------
# If a mapped file is truncated in place, the system sends SIGBUS to a thread that reads a page beyond its end. Python's
# own handlers run later, and the thread would read again, so this one is called by the system itself; it never returns.


#: The exit code: EX_IOERR of sysexits.h.
_EXIT = 74
#: The services of this process, whose indexes are looked at.
_SERVICES: list[Service] = []
_KEPT: list[Any] = []  # what the system calls must not be collected


def _end_at_bus_error(service: Service) -> None:
    """From now on, log a bus error with the indexes of a service that are shorter than they were, and end."""
    number = getattr(signal, "SIGBUS", None)
    _SERVICES[:] = [service]
    if number is None or _KEPT:
        return
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int)
    _KEPT.append(kind(_end))
    function = ctypes.CDLL(None).signal
    function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_int, kind]
    function(number, _KEPT[0])


def _end(number: int) -> None:
    try:
        names = [name for service in _SERVICES for name, one in service.snapshots.items() if one.is_shortened()]
        what = f"of index {', '.join(names)} " if names else ""
        message = "a file %swas truncated while it was open, or the disk cannot read it; the server ends"
        record = logging.LogRecord("hopfuse.serve", logging.CRITICAL, __file__, 0, message, (what,), None)
        handlers = logging.getLogger().handlers
        line = handlers[0].format(record) if handlers else record.getMessage()
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{line}\n".encode())
    finally:
        os._exit(_EXIT)
