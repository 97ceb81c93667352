"""Processes of Python that begin with hopfuse imported: forks of one process, the template, which has no threads.

:class:`Popen` and :func:`run` take what those of :mod:`subprocess` do, for ``python -m MODULE``, ``python -c CODE`` and
``python SCRIPT`` with arguments. A process has its own environment, folder, streams and end, and takes signals. What it
lacks is the start of an interpreter and the imports, most of a second each. Tests of the start, of what is imported,
and of variables that are read then, need :mod:`subprocess` itself.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import multiprocessing.process
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import types
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

#: What commands and servers import, where it is installed.
IMPORTED = (
    *("hopfuse.cli.app", "hopfuse.serve", "hopfuse.serve.server", "hopfuse.offline", "hopfuse.adapters"),
    *("uvicorn.protocols.http.httptools_impl", "uvicorn.loops.auto", "uvicorn.lifespan.on", "bm25s", "pyarrow"),
)
_STATUS = struct.Struct("i")
_REQUEST_BYTES = 2**20


# ---- The template ------------------------------------------------------------------------------------------------


def serve_forks(control: socket.socket) -> tuple[list[str], dict[str, str], str] | None:
    """Fork for each request, and tell how each process ended; return the request in the process, None at the end."""
    ended, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes)
    running: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([control, ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
            _tell_ends(running)
        if control not in ready:
            continue
        request, fds, _, _ = socket.recv_fds(control, _REQUEST_BYTES, 4)
        if not request:
            return None
        *streams, told = fds
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            for one in (ended, wakes, control.detach(), *fds, *running.values()):
                os.close(one)
            return tuple(json.loads(request))
        running[pid] = told
        for stream in streams:
            os.close(stream)
        control.send(_STATUS.pack(pid))


def _tell_ends(running: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            told = running.pop(found[0])
            with contextlib.suppress(BrokenPipeError):
                os.write(told, _STATUS.pack(os.waitstatus_to_exitcode(found[1])))
            os.close(told)


def begin(arguments: Sequence[str], environment: Mapping[str, str], folder: str) -> None:
    """Become the process that a command asks for."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    multiprocessing.process.ORIGINAL_DIR = folder  # from which processes that it spawns find its script
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    first, *rest = arguments
    sys.path[:0] = ["" if first in ("-c", "-m") else os.path.dirname(first), *paths]
    if first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first != "-c":
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")
    else:
        what, *rest = rest
        sys.argv = ["-c", *rest]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), vars(main))


def _template(number: int) -> None:
    with warnings.catch_warnings():  # for imports alone: what a command warns of is said
        warnings.simplefilter("ignore")
        for name in IMPORTED:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()
    request = serve_forks(socket.socket(fileno=number))
    if request is not None:
        begin(*request)


# ---- Who asks ----------------------------------------------------------------------------------------------------


@functools.cache
def template() -> tuple[socket.socket, threading.Lock]:
    """The connection to this process's template, which is started once."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-P", str(Path(__file__)), str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours, threading.Lock()


class Forked:
    """A fork of the template, with what tests use of :class:`subprocess.Popen`."""

    def __init__(
        self,
        command: Sequence[Any],
        *,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        cwd: Any = None,
        env: Mapping[str, str] | None = None,
        text: bool = False,
    ) -> None:
        program, *arguments = map(os.fspath, command)
        assert program == sys.executable, "another program than Python is no fork of it"
        self.args, self.returncode = command, None
        theirs = list[int]()
        self.stdin, self.stdout, self.stderr = (
            self._stream(at, given, theirs, text) for at, given in enumerate((stdin, stdout, stderr))
        )
        self._told, told = os.pipe()
        given = dict(os.environ if env is None else env)
        request = json.dumps([arguments, given, os.fspath(cwd or os.getcwd())]).encode()
        control, lock = template()
        with lock:
            socket.send_fds(control, [request], [*theirs, told])
            self.pid = _STATUS.unpack(control.recv(_STATUS.size))[0]
        for one in (*theirs, told):
            os.close(one)

    @staticmethod
    def _stream(number: int, given: Any, theirs: list[int], text: bool) -> IO[Any] | None:
        """Append what the process has as a stream, and return this process's end of a pipe."""
        if given == subprocess.DEVNULL:
            theirs.append(os.open(os.devnull, os.O_RDWR))
        elif given == subprocess.STDOUT:
            theirs.append(os.dup(theirs[1]))
        elif given != subprocess.PIPE:
            theirs.append(os.dup(number if given is None else given if isinstance(given, int) else given.fileno()))
        else:
            ends = os.pipe()
            theirs.append(ends[number > 0])
            raw = os.fdopen(ends[number == 0], "rb" if number else "wb")
            return io.TextIOWrapper(raw) if text else raw
        return None

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], timeout)[0]:
            self.returncode = _STATUS.unpack(os.read(self._told, _STATUS.size))[0]
            os.close(self._told)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Read both outputs to their ends, and wait."""
        if self.stdin is not None:
            self.stdin.close()
        read: dict[IO[Any], Any] = {}
        both = [stream for stream in (self.stdout, self.stderr) if stream is not None]
        threads = [threading.Thread(target=lambda one=one: read.update({one: one.read()})) for one in both]
        for one in threads:
            one.start()
        for one in threads:
            one.join(timeout)
        self.wait(timeout)
        for one in both:
            one.close()
        return read.get(self.stdout), read.get(self.stderr)

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


def _run_forked(
    command: Sequence[Any],
    *,
    check: bool = False,
    capture_output: bool = False,
    timeout: float | None = None,
    **more: Any,
) -> subprocess.CompletedProcess[Any]:
    if capture_output:
        more |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = Forked(command, **more)
    out, err = process.communicate(timeout)
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


#: Whether processes are forks of the template.
FORKS = sys.platform == "linux"
Popen: Any = Forked if FORKS else subprocess.Popen
run: Any = _run_forked if FORKS else subprocess.run

if __name__ == "__main__":
    _template(int(sys.argv[1]))
