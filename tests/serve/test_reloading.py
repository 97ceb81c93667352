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
from serve.limits_page import rows
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

    def reload(self, part):
        """Read the file again, and return the line that has been logged about it since."""
        before = len(self.said(part))
        os.kill(self.process.pid, signal.SIGHUP)
        return self.wait(lambda: self.said(part)[before:])[0]

    def children(self):
        """The processes of the workers."""
        pid = self.process.pid
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def all_answer(self):
        """Wait until every worker answers; none may end by itself meanwhile."""
        workers = set()
        while len(workers) < self.workers:
            assert len(self.said("is replaced")) == len(self.said("exit code -9 "))
            with contextlib.suppress(httpx.TransportError):
                workers.add(httpx.get(f"{self.url}/health/ready").json().get("worker", 0))

    def reloads(self, key):
        """How often each process has used and refused a configuration."""
        page = httpx.get(f"{self.url}/metrics", headers={"Authorization": f"Bearer {KEYS[key][0]}"}, timeout=60).text
        rows = re.findall(
            r'^hopfuse_config_reloads_total\{outcome="(\w+)"(?:,worker="(\d)")?\} (\S+)$', page, re.MULTILINE
        )
        found = {int(worker or 0): {} for _, worker, _ in rows}
        for outcome, worker, count in rows:
            found[int(worker or 0)][outcome] = float(count)
        return found

    def post(self, key, **more):
        headers = {"Authorization": f"Bearer {KEYS[key][0]}"}
        return httpx.post(f"{self.url}/v1/search", json=QUESTION | more, headers=headers, timeout=60)

    def posts(self, key, **more):
        """The statuses of several requests, on connections of their own."""
        return {self.post(key, **more).status_code for _ in range(4 * self.workers)}


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.full)])
def server(request, tmp_path):
    save(tmp_path / "index")
    one = Serving(tmp_path, request.param)
    try:
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{one.url}/health/ready").status_code == 200:
                    break
        one.all_answer()
        yield one
    finally:
        one.process.terminate()
        one.process.wait()
        one._reader.join()
        one.process.stderr.close()


def names_in(line, name=r"\w+\.\w+"):
    """The keys of the configuration that a line names."""
    return re.findall(name, line["message"])


def test_keys_limits_and_the_log_change_while_the_server_answers(server):
    pid = server.process.pid
    assert (server.posts("a"), server.posts("b")) == ({200}, {401})

    server.write(keys=("a", "b"), more="requests = true\n[limits]\nk = 11\nbatch = 16\n")
    assert names_in(server.reload("changed: ")) == ["keys.b", "limits.k", "log.requests"]
    assert names_in(server.wait(lambda: server.said("a restart is needed"))[0]) == ["limits.batch"]
    assert (server.posts("b", k=11), server.posts("b", k=12)) == ({200}, {400})
    server.wait(lambda: [one for one in server.lines if one.get("key") == "b"])

    # A filter that changes under the same name holds at once.
    for tenant in "ab":
        server.write(keys=("a", "b"), more="[limits]\nk = 12\n", filters={"b": f'filter = {{ tenant = "{tenant}" }}'})
        server.reload("changed: ")
        for _ in range(4 * server.workers):
            hits = server.post("b").json()["results"][0]["hits"]
            assert {hit["metadata"]["tenant"] for hit in hits} == {tenant}

    server.write(keys=("b",))
    server.reload("changed: ")
    assert (server.posts("a"), server.posts("b", k=12)) == ({401}, {200})
    server.reload("equal")
    assert server.process.poll() is None
    assert server.process.pid == pid


def test_a_file_that_cannot_be_used_changes_nothing(server):
    for text in ("k = [", "[limits]\nk = 'many'\n", "[limits]\nnope = 1\n"):
        server.write(keys=("b",), more=text)
        assert server.reload("stays")["level"] == "error"
        assert (server.posts("a"), server.posts("b")) == ({200}, {401})
    server.write(keys=("a", "b"), filters={"b": "filter = { nope = 1 }"})
    server.reload("stays")
    assert (server.posts("a"), server.posts("b")) == ({200}, {401})
    assert set(server.reloads("a")) == set(range(server.workers))
    assert all(one == {"used": 0, "refused": 4} for one in server.reloads("a").values())
    server.write()  # without keys
    server.reload("a restart is needed")
    assert server.posts("b") == {401}
    server.file.unlink()
    server.reload("stays")
    assert (server.posts("a"), server.posts("b")) == ({200}, {401})
    assert all(one == {"used": 1, "refused": 5} for one in server.reloads("a").values())


with_workers = pytest.mark.parametrize("server", [2], indirect=True)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="it reads the workers' processes from /proc")
@with_workers
def test_workers_that_start_later_have_what_the_others_have(server):
    """Also after a configuration that only they could refuse, since they have the indexes."""
    server.write(keys=("a", "b"), filters={"b": "filter = { nope = 1 }"})
    line = server.reload("stays")
    assert "keys.b.filter" in names_in(line, r"[\w.]+")
    replaced(server, server.children()[:1])
    assert (server.posts("a"), server.posts("b")) == ({200}, {401})
    server.write(keys=("b",))
    server.reload("changed: ")
    replaced(server, server.children())
    assert (server.posts("a"), server.posts("b")) == ({401}, {200})


def replaced(server, workers):
    """Kill workers, and wait until all answer again."""
    before = len(server.said("is replaced"))
    for one in workers:
        os.kill(one, signal.SIGKILL)
    server.wait(lambda: len(server.said("is replaced")) == before + len(workers))
    server.all_answer()


@pytest.mark.full
@with_workers
def test_a_worker_that_dies_or_starts_during_a_reload(server):
    """What a worker has not checked is not used; one that starts meanwhile has the keys that the others have."""
    first = server.children()[0]
    os.kill(first, signal.SIGSTOP)  # it checks nothing
    server.write(keys=("b",))
    os.kill(server.process.pid, signal.SIGHUP)
    os.kill(first, signal.SIGKILL)
    server.wait(lambda: server.said("stays") or server.said("changed: "))
    server.wait(lambda: server.said("is replaced"))
    server.all_answer()
    used = bool(server.said("changed: "))
    assert (server.posts("a"), server.posts("b")) == (({401}, {200}) if used else ({200}, {401}))
    os.kill(server.children()[0], signal.SIGKILL)
    server.wait(lambda: len(server.said("is replaced")) == 2)
    server.reload("equal" if used else "changed: ")  # before its replacement starts, or while it does
    server.all_answer()
    assert (server.posts("a"), server.posts("b")) == ({401}, {200})


@pytest.mark.full
@with_workers
def test_a_hangup_of_the_terminal_reaches_workers_and_ends_none(server):
    server.write(keys=("b",))
    for one in server.children():
        os.kill(one, signal.SIGHUP)
    assert server.posts("a") == {200}
    server.reload("changed: ")
    assert server.posts("b") == {200}
    assert not server.said("is replaced")


def test_the_page_says_which_limits_need_a_restart(server):
    changed = {row.key: 2**28 if row.default is None else row.default - 1 for row in rows()}
    server.write(keys=("a",), more="[limits]\n" + "".join(f"{key} = {value}\n" for key, value in changed.items()))
    line = server.reload("changed: ")
    later = server.wait(lambda: server.said("a restart is needed"))[0]
    assert set(names_in(line)) == {f"limits.{row.key}" for row in rows() if not row.needs_restart}
    assert set(names_in(later)) == {f"limits.{row.key}" for row in rows() if row.needs_restart}
