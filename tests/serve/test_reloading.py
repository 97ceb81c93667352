"""SIGHUP: the configuration of a running server is read again, by one process and by workers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
from hopfuse.serve import new_key
from serve.served import save

KEYS = {name: new_key() for name in ("a", "b")}
QUESTION = {"queries": [{"text": "What is far from Ankara?", "vector": [1.0] * 8, "entities": ["Ankara"]}], "k": 12}

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no SIGHUP")


class Serving:
    """``hopfuse serve --config FILE`` as a process, and its log."""

    def __init__(self, folder, workers):
        self.file, self.workers = folder / "serve.toml", workers
        self.head = f'port = 0\nthreads = 1\nworkers = {workers}\n[indexes.cities]\npath = "{folder / "index"}"\n'
        self.head += "words = 'none'\n[log]\nformat = 'json'\n"
        self.write(keys=("a",))
        command = [sys.executable, "-m", "hopfuse", "serve", "--config", str(self.file)]
        self.lines, self._more = [], threading.Condition()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.url = re.search(r"http://[0-9.:]+", self.wait(lambda: self.said("http://127"))[0]["message"])[0]

    def write(self, *, keys=(), more="", filters=None):
        filters = filters or {}
        made = "".join(
            f'[keys.{name}]\nsha256 = "{KEYS[name][1]}"\nrights = ["admin"]\n{filters.get(name, "")}\n' for name in keys
        )
        self.file.write_text(f"{self.head}{more}\n{made}")

    def _read(self):
        for line in self.process.stderr:
            with self._more:
                self.lines.append(json.loads(line) if line.startswith("{") else {"message": line})
                self._more.notify_all()
        with self._more:
            self.lines.append({"message": "-- end of the log"})
            self._more.notify_all()

    def said(self, part):
        return [one for one in self.lines if part in one.get("message", "")]

    def wait(self, found):
        """What ``found`` returns once it is true."""
        with self._more:
            assert self._more.wait_for(lambda: found() or self.said("-- end of the log"), 600)
            assert found(), self.lines
            return found()

    def reload(self, part, count):
        """Read the file again, and wait until so many processes have said something since."""
        before = len(self.said(part))
        os.kill(self.process.pid, signal.SIGHUP)
        return self.wait(lambda: len(self.said(part)) >= before + count and self.said(part)[before:])

    def post(self, key, **more):
        headers = {"Authorization": f"Bearer {KEYS[key][0]}"}
        return httpx.post(f"{self.url}/v1/search", json=QUESTION | more, headers=headers, timeout=60)

    def posts(self, key, **more):
        """The statuses of several requests, on connections of their own."""
        return {self.post(key, **more).status_code for _ in range(4 * self.workers)}


@pytest.fixture(params=[1, 2])
def server(request, tmp_path):
    save(tmp_path / "index")
    one = Serving(tmp_path, request.param)
    try:
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{one.url}/health/ready").status_code == 200:
                    break
        if request.param > 1:
            workers = set()
            while len(workers) < request.param:
                workers.add(httpx.get(f"{one.url}/health/ready").json()["worker"])
        yield one
    finally:
        one.process.terminate()
        one.process.wait()
        one._reader.join()
        one.process.stderr.close()


def names_in(line):
    """The keys of the configuration that a line names."""
    return re.findall(r"\w+\.\w+", line["message"])


def test_keys_limits_and_the_log_change_while_the_server_answers(server):
    processes = 1 if server.workers == 1 else 1 + server.workers  # that say something
    pid = server.process.pid
    assert (server.posts("a"), server.posts("b")) == ({200}, {401})

    server.write(keys=("a", "b"), more="requests = true\n[limits]\nk = 11\nbatch = 16\n")
    lines = server.reload("changed: ", processes)
    assert names_in(lines[0]) == ["keys.b", "limits.k", "log.requests"]
    assert names_in(server.wait(lambda: server.said("a restart is needed"))[0]) == ["limits.batch"]
    assert (server.posts("b", k=11), server.posts("b", k=12)) == ({200}, {400})
    server.wait(lambda: [one for one in server.lines if one.get("key") == "b"])

    # A filter that changes under the same name holds at once.
    for tenant in "ab":
        server.write(keys=("a", "b"), more="[limits]\nk = 12\n", filters={"b": f'filter = {{ tenant = "{tenant}" }}'})
        server.reload("changed: ", processes)
        for _ in range(4 * server.workers):
            hits = server.post("b").json()["results"][0]["hits"]
            assert {hit["metadata"]["tenant"] for hit in hits} == {tenant}

    server.write(keys=("b",))
    server.reload("changed: ", processes)
    assert (server.posts("a"), server.posts("b", k=12)) == ({401}, {200})
    server.reload("equal", processes)
    assert server.process.poll() is None
    assert server.process.pid == pid


def test_a_file_that_cannot_be_used_changes_nothing(server):
    for text in ("k = [", "[limits]\nk = 'many'\n", "[limits]\nnope = 1\n"):
        server.write(keys=("b",), more=text)
        (line, *_) = server.reload("stays", 1)
        assert line["level"] == "error"
        assert (server.posts("a"), server.posts("b")) == ({200}, {401})
    server.write(keys=("a", "b"), filters={"b": "filter = { nope = 1 }"})
    server.reload("stays", server.workers)
    assert (server.posts("a"), server.posts("b")) == ({200}, {401})
    server.write()  # without keys
    server.reload("a restart is needed", server.workers)
    assert server.posts("b") == {401}
    server.file.unlink()
    server.reload("stays", 1)
    assert (server.posts("a"), server.posts("b")) == ({200}, {401})


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="it reads the workers' processes from /proc")
def test_a_worker_that_starts_later_has_the_new_keys(server):
    if server.workers == 1:
        pytest.skip("one process is not replaced")
    server.write(keys=("b",))
    server.reload("changed: ", 1 + server.workers)
    pid = server.process.pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)
    server.wait(lambda: len(server.said("is replaced")) == server.workers)
    workers = set()
    while len(workers) < server.workers:
        with contextlib.suppress(httpx.TransportError):
            workers.add(httpx.get(f"{server.url}/health/ready").json()["worker"])
    assert (server.posts("a"), server.posts("b")) == ({401}, {200})
