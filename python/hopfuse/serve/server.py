"""Run the application by uvicorn, or MCP over stdio."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

import uvicorn

from ..errors import InputError
from .app import make_app
from .buserror import end_at_bus_error
from .config import ServeConfig
from .connections import protocol
from .errors import RefusalError
from .logs import start_logging
from .mcp import serve_stdio
from .reloading import Reloader
from .service import Service
from .workers import HUP, NOTIFY, Place, check_port, kept_port, notify_ready, run_workers, url_of

log = logging.getLogger("hopfuse.serve")
#: Python's switch interval, in seconds. With the default of 5 ms the event loop would wait several times for the
#: searching threads in each answer.
SWITCH_SECONDS = 0.0001


class Server(uvicorn.Server):
    """uvicorn's server, which tells when it listens, and accepts the connections that wait before it stops to."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], reload: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        super().__init__(config)
        self._ready, self._reload = ready, reload
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
        """Stop to listen, and finish open requests."""
        await asyncio.sleep(0)  # the event loop accepts what waits; the system would reset these connections
        await super().shutdown(sockets)


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
    reloader: Reloader | None = None,
) -> Server:
    config, limits = service.config, service.config.limits
    return Server(
        uvicorn.Config(
            make_app(service, start_first=start_first),
            host=config.host,
            port=config.port,
            http=protocol(limits),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=max(1, round(limits.idle_seconds)),
            timeout_graceful_shutdown=max(1, round(limits.drain_seconds)),
        ),
        ready,
        None if reloader is None else partial(reloader.reload, service),
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
        if HUP is not None and _is_main_thread():
            signal.signal(HUP, signal.SIG_IGN)  # until the server answers
        if config.workers > 1:
            run_workers(config, partial(_answer, encoders, reloader), reloader)
            return
        if not config.share_port:
            check_port(config)
        service = Service(config, encoders, alone=True)
        end_at_bus_error(service)
        service.open_all()
        if not config.share_port:
            _server(service, notify_ready, start_first=NOTIFY in os.environ, reloader=reloader).run()
            return
        with kept_port(config) as port:
            log.info("process %d answers at %s", os.getpid(), url_of(port))
            _server(service, notify_ready, start_first=True, reloader=reloader).run(sockets=[port])


def _answer(
    encoders: Mapping[str, Any] | None,
    reloader: Reloader,
    config: ServeConfig,
    place: Place,
    bound: socket.socket,
    ready: Callable[[], None],
) -> None:
    """Serve as a worker until a signal."""
    start_logging(config.log, place.number)
    service = Service(config, encoders, place, alone=True)
    end_at_bus_error(service)
    service.open_all()
    _server(service, ready, start_first=True, reloader=reloader).run(sockets=[bound])


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
    """Start logging, and shorten the switch interval."""
    start_logging(config.log)
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
