"""End with a line in the log if a mapped file is truncated in place, instead of by a signal without a word.

The system sends SIGBUS to a thread that reads a page beyond the end of a mapped file. Python's own handlers run later,
and the thread would read again, so this one is called by the system itself; it never returns.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
from typing import Any

from .service import Service

#: The exit code: EX_IOERR of sysexits.h.
EXIT = 74
#: The services of this process, whose indexes are looked at.
_SERVICES: list[Service] = []
_KEPT: list[Any] = []  # what the system calls must not be collected


def end_at_bus_error(service: Service) -> None:
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
        os._exit(EXIT)
