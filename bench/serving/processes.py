"""Servers in their own processes, and the CPU time and memory of processes on Linux."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..errors import UnavailableError
from ..machine import ROOT

TICK = 1 / os.sysconf("SC_CLK_TCK")
#: Seconds within which a server must start to answer, and stop.
START, STOP = 120.0, 15.0


@dataclass(frozen=True)
class Server:
    """A running server: its port, and its process, whose figures include its children."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.port}"

    def cpu(self) -> float:
        """Return the CPU seconds of all its threads and processes since its start."""
        return sum(_cpu(pid) for pid in _family(self.pid))

    def resident(self) -> float:
        """Return the resident memory of all its processes in MiB."""
        return sum(_resident(pid) for pid in _family(self.pid))

    def holds(self) -> dict[str, float]:
        """Return what all its processes hold: memory in MiB, open descriptors, threads."""
        found = {"memory": self.resident(), "descriptors": 0.0, "threads": 0.0}
        for pid in _family(self.pid):
            with contextlib.suppress(OSError):
                found["descriptors"] += len(os.listdir(f"/proc/{pid}/fd"))
                found["threads"] += len(os.listdir(f"/proc/{pid}/task"))
        return found


@contextlib.contextmanager
def serving(arguments: Sequence[str], ready: str, environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Run ``python -m ARGUMENTS`` with ``{port}`` filled in, until the block ends.

    Parameters
    ----------
    arguments : sequence of str
    ready : str
        Path that is answered below 500 once requests are.
    environment : mapping, optional

    Raises
    ------
    UnavailableError
        It does not start; its last line says why.
    """
    port = _free_port()
    command = [sys.executable, "-m", *(one.format(port=port) for one in arguments)]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            _wait_for(process, f"http://127.0.0.1:{port}{ready}", log)
            yield Server(port, process.pid)
        finally:
            _stop(process)


def _wait_for(process: subprocess.Popen[bytes], url: str, log: IO[str]) -> None:
    end = time.monotonic() + START
    while time.monotonic() < end:
        if process.poll() is not None:
            log.seek(0)
            lines = [line for line in log.read().splitlines() if line.strip()]
            raise UnavailableError(f"it ended with status {process.returncode}: {''.join(lines[-1:])[:300]}")
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except urllib.error.HTTPError as error:
            error.close()
            if error.code < 500:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise UnavailableError(f"it did not answer within {START:g} s")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the server, by force if need be; it leads a session, so all its processes end."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int(_stat(int(folder.name))[1])
            children.setdefault(parent, []).append(int(folder.name))
    found, new = [pid], [pid]
    while new:
        new = [child for one in new for child in children.get(one, [])]
        found += new
    return found


def _cpu(pid: int) -> float:
    try:
        fields = _stat(pid)
    except OSError:
        return 0.0
    return TICK * (int(fields[11]) + int(fields[12]))


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name, which may have blanks; the first one is the state."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _resident(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))
