"""Processes in a network with loopback alone: Ray would listen on the machine's own interface."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SECRET = "0123456789abcdef" * 4
LIMIT = 600.0


def missing() -> str | None:
    """Why there can be no such network here."""
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    done = subprocess.run(["unshare", *_KINDS, "true"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no namespaces here: {done.stderr.strip()}"


_KINDS = ("--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc")


class Space:
    """Namespaces of network and processes; whatever was started there ends with it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # paths of sockets may have 107 bytes
        up = "ip link set lo up && echo up && exec sleep infinity"
        self._holder = subprocess.Popen(["unshare", *_KINDS, "sh", "-c", up], stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "up\n"
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text(encoding="utf-8")
        self._first = int(children.split()[0])
        self._name = os.readlink(f"/proc/{self._first}/ns/pid")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            "HOME": str(self.folder),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": SECRET,
            "RAY_TMPDIR": str(self.folder),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",  # by default Ray gives way to all other processes
        }

    def start(self, *command: object, **environment: str) -> subprocess.Popen[str]:
        words = ["nsenter", "-t", str(self._first), "-n", "-p", "-m", "--", *map(str, command)]
        both = {**self.environment, **environment}
        return subprocess.Popen(words, env=both, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *command: object, **environment: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*command, **environment)
        out, err = process.communicate(timeout=LIMIT)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def program(self, name: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
        """Start a program of ``ray_programs``."""
        return self.start(sys.executable, "-m", "offline.ray_programs", name, *arguments, **environment)

    def ray(self, *words: object) -> None:
        done = self.run(Path(sys.executable).with_name("ray"), *words)
        assert done.returncode == 0, done.stdout + done.stderr

    def pids(self, word: str = "") -> list[int]:
        """The processes here whose command line has a word, by the machine's numbers."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                here = os.readlink(place / "ns" / "pid") == self._name
                line = (place / "cmdline").read_bytes().decode(errors="replace") if here else ""
            except OSError:
                continue
            if line and word in line and int(place.name) != self._first:
                found.append(int(place.name))
        return sorted(found)

    def kill(self, pid: int) -> None:
        assert pid in self.pids()
        os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        self._holder.kill()
        self._holder.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)


def until(true: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    """Wait for something, while a process runs."""
    end = time.monotonic() + LIMIT
    while not true():
        if process is not None and process.poll() is not None:
            out, err = process.communicate()
            raise AssertionError(f"the program ended with {process.returncode}:\n{out}\n{err}")
        assert time.monotonic() < end
        time.sleep(0.02)
