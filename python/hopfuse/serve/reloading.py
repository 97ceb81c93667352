"""Read the configuration again on SIGHUP, and use what can change while the server runs: keys, limits and the log.

With workers, their parent reads it, and they check it, since they have the indexes (:mod:`.workers`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec

from ..errors import HopfuseError
from .config import ServeConfig, table_of
from .keys import KeyRing
from .service import Service
from .workers import Order

log = logging.getLogger("hopfuse.serve")
#: Limits, and fields of the log, that are read only at the start.
AT_START = {
    "limits": {
        "address_connections",
        "batch",
        "connections",
        "drain_seconds",
        "encoder_threads",
        "idle_seconds",
        "key_bytes",
        "key_connections",
        "key_requests",
        "part_bytes",
        "queue_bytes",
        "queue_requests",
        "tool_bytes",
    },
    "log": {"format"},
}
#: Seconds between two looks whether the server has started.
SOON = 0.05


@dataclass(frozen=True)
class ConfigChanges:
    """What a configuration changes: the configuration that is used, and the names of what differs in it.

    Attributes
    ----------
    config : ServeConfig
    made, later : list of str
        Names of what is used at once, and of what needs a restart.
    """

    config: ServeConfig
    made: list[str]
    later: list[str]


class Reloader:
    """Reads the configuration of a server again.

    Parameters
    ----------
    config : ServeConfig
        The configuration with which the server started.
    read : callable, optional
        Reads it again; None if it came from no file.
    """

    def __init__(self, config: ServeConfig, read: Callable[[], ServeConfig] | None) -> None:
        self._config, self._read = config, read

    def next(self) -> ConfigChanges | None:
        """Return what has changed; None, after a line in the log, if there is nothing to read.

        Raises
        ------
        HopfuseError, OSError
            The configuration cannot be read, or used; a program's own function may raise any error.
        """
        if self._read is None:
            log.warning("the configuration is not read again: the server was started without a file")
            return None
        return changes(self._config, self._read())

    def take(self, found: ConfigChanges) -> None:
        """Compare the next configuration with this one, which is used."""
        self._config = found.config
        log.info("the configuration was read again; %s", "changed: " + ", ".join(found.made) if found.made else "equal")
        if found.later:
            log.warning("a restart is needed to change: %s", ", ".join(found.later))

    def refuse(self, error: Exception) -> None:
        """Say that the configuration is not used."""
        reason = error.strerror if isinstance(error, OSError) else error
        unknown = None if isinstance(error, HopfuseError | OSError) else error
        log.error("the configuration is not used, and the one before stays: %s", reason, exc_info=unknown)

    async def reload(self, service: Service) -> None:
        """Read the configuration again, and use it if it is valid."""
        try:
            found = await asyncio.to_thread(self.next)
            while service.status == "starting":
                await asyncio.sleep(SOON)
            if found is None:
                return
            await service.check_keys(found.config.keys)
        except Exception as error:  # perhaps one of a program's own function that reads the configuration
            service.metrics.config_reloads.labels("refused").inc()
            self.refuse(error)
            return
        await use(service, found.config)
        self.take(found)


async def use(service: Service, config: ServeConfig) -> None:
    """Use a configuration in a service."""
    keys = await asyncio.to_thread(KeyRing, config.keys)
    _change(service.config, config)
    service.keys = keys
    service.metrics.config_reloads.labels("used").inc()


class Orders:
    """Answers the parent of a worker.

    Parameters
    ----------
    service : Service
    pipe : Connection
        To the parent.
    folder : Path
        With the files of orders.
    """

    def __init__(self, service: Service, pipe: Connection, folder: Path) -> None:
        self._service, self._pipe, self._folder = service, pipe, folder
        self._checked = 0

    def begin(self) -> None:
        """Tell the parent that the worker answers, and wait for orders on a thread."""
        self._pipe.send((0, None))
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, args=(loop,), name="orders", daemon=True).start()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            try:
                order = self._pipe.recv()
                self._pipe.send((order.number, self._answer(order, loop)))
            except (EOFError, OSError):  # the parent has ended
                return

    def _answer(self, order: Order, loop: asyncio.AbstractEventLoop) -> HopfuseError | None:
        """Carry out an order on the event loop; return the error."""
        try:
            config = None if order.act == "refuse" else order.read(self._service.config, self._folder)
            asyncio.run_coroutine_threadsafe(self._obey(order, config), loop).result()
        except HopfuseError as error:
            return error
        except Exception as error:
            log.exception("the configuration cannot be used")
            reason = str(error) or type(error).__name__
            return HopfuseError("failed", None, "it cannot be used: {reason}", reason=reason)
        return None

    async def _obey(self, order: Order, config: ServeConfig | None) -> None:
        """Check a configuration, use it, or count that it was refused; what is used was checked before."""
        if config is None:
            self._service.metrics.config_reloads.labels("refused").inc()
            return
        if self._checked != order.number:
            await self._service.check_keys(config.keys)
            self._checked = order.number
        if order.act == "use":
            await use(self._service, config)


def changes(before: ServeConfig, after: ServeConfig) -> ConfigChanges:
    """Return how a configuration differs from the one that is used.

    Examples
    --------
    >>> from hopfuse.serve import ServeConfig
    >>> text = '[indexes.wiki]\\npath = "a"\\n[limits]\\nk = {}\\nbatch = {}\\n'
    >>> found = changes(ServeConfig.read(text.format(100, 8)), ServeConfig.read(text.format(200, 16)))
    >>> found.made, found.later, found.config.limits.k, found.config.limits.batch
    (['limits.k'], ['limits.batch'], 200, 8)
    """
    made: list[str] = []
    later: list[str] = []
    used: dict[str, Any] = {}
    for name in ServeConfig.__struct_fields__:
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        if name in AT_START:
            fields = _differing(old, new)
            now = [field for field in fields if field not in AT_START[name]]
            used[name] = msgspec.structs.replace(old, **{field: getattr(new, field) for field in now})
            made += [f"{name}.{field}" for field in now]
            later += [f"{name}.{field}" for field in fields if field in AT_START[name]]
        elif name == "keys" and bool(old) == bool(new):
            used[name] = new
            made += [table_of(name, key) for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
        elif name == "indexes":
            later += [table_of(name, one) for one in sorted({*old, *new}) if old.get(one) != new.get(one)]
        else:
            later.append(name)
    return ConfigChanges(msgspec.structs.replace(before, **used), made, later)


def _change(own: ServeConfig, config: ServeConfig) -> None:
    """Change a service's own configuration, which all parts of it hold, in place."""
    msgspec.structs.force_setattr(own, "keys", config.keys)
    for table in AT_START:
        part, new = getattr(own, table), getattr(config, table)
        for field in _differing(part, new):
            if field not in AT_START[table]:
                msgspec.structs.force_setattr(part, field, getattr(new, field))


def _differing(old: Any, new: Any) -> list[str]:
    return [field for field in old.__struct_fields__ if getattr(old, field) != getattr(new, field)]
