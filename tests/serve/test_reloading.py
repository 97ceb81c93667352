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
import time
from pathlib import Path

import httpx
import processes
import pytest
from hopfuse.serve import new_key
from serve.limits_page import rows
from serve.served import save, until

KEYS = {name: new_key() for name in ("a", "b")}
QUESTION = {"queries": [{"text": "What is far from Ankara?", "vector": [1.0] * 8, "entities": ["Ankara"]}], "k": 12}

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no SIGHUP")


#: A server that says when it has read its file, and waits so many seconds for workers. Worker 0 does not use what it
#: has accepted, if there is a file of the fault.
PROGRAM = """
import logging, os, signal, sys
from pathlib import Path
from hopfuse.serve import ServeConfig, reloading, run, workers

file, workers.CHECK_SECONDS = Path(sys.argv[1]), float(sys.argv[2])
log, use = logging.getLogger("hopfuse.serve"), reloading.use

def read():
    text = file.read_text()
    log.info("the server has read its file")
    return ServeConfig.read(text)

async def used(service, config):
    if service.worker == 0 and (file.parent / "raises").exists():
        raise OSError("no memory")
    if service.worker == 0 and (file.parent / "stops").exists():
        os.kill(os.getpid(), signal.SIGSTOP)
    await use(service, config)

reloading.use = used
run(ServeConfig.read(file.read_text()), reread=read)
"""


class Serving:
    """``hopfuse serve --config FILE`` as a process, and its log; with ``seconds``, the program above."""

    def __init__(self, folder, workers, seconds=None):
        self.file, self.workers = folder / "serve.toml", workers
        self.head = f'port = 0\nthreads = 1\nworkers = {workers}\n[indexes.cities]\npath = "{folder / "index"}"\n'
        self.head += "words = 'none'\n[log]\nformat = 'json'\n"
        self.write(keys=("a",))
        command = [sys.executable, "-m", "hopfuse", "serve", "--config", str(self.file)]
        if seconds is not None:
            command = [sys.executable, "-c", PROGRAM, str(self.file), str(seconds)]
        self.lines, self._more = [], threading.Condition()
        self.process = processes.Popen(command, stderr=subprocess.PIPE, text=True)
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
        self.hang_up()
        return self.wait(lambda: self.said(part)[before:])[0]

    def hang_up(self):
        os.kill(self.process.pid, signal.SIGHUP)

    def reload_until_used(self):
        """Read the file again, until no worker was too slow to check it."""
        while not self.said("changed: "):
            self.reload("the configuration ")

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
            time.sleep(0.01)

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


@contextlib.contextmanager
def serving(folder, workers, seconds=None):
    save(folder / "index")
    one = Serving(folder, workers, seconds)
    try:
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{one.url}/health/ready").status_code == 200:
                    break
            time.sleep(0.01)
        one.all_answer()
        yield one
    finally:
        one.process.terminate()
        one.process.wait()
        one._reader.join()
        one.process.stderr.close()


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.full)])
def server(request, tmp_path):
    with serving(tmp_path, request.param) as one:
        yield one


@pytest.fixture
def patient(tmp_path):
    """Two workers, for which the parent waits as long as they take."""
    with serving(tmp_path, 2, 3600) as one:
        yield one


@pytest.fixture
def hasty(tmp_path):
    """Two workers, for which the parent waits for a moment."""
    with serving(tmp_path, 2, 2) as one:
        yield one


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
    for filter in ("nope = 1", "tenant = 2026-01-01"):
        server.write(keys=("a", "b"), filters={"b": f"filter = {{ {filter} }}"})
        server.reload("stays")
        assert (server.posts("a"), server.posts("b")) == ({200}, {401})
    assert set(server.reloads("a")) == set(range(server.workers))
    assert until(lambda: all(one == {"used": 0, "refused": 5} for one in server.reloads("a").values()))
    server.write()  # without keys
    server.reload("a restart is needed")
    assert server.posts("b") == {401}
    server.file.unlink()
    server.reload("stays")
    assert (server.posts("a"), server.posts("b")) == ({200}, {401})
    assert until(lambda: all(one == {"used": 1, "refused": 6} for one in server.reloads("a").values()))


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


def test_a_signal_during_a_reload_is_not_lost(patient):
    """The keys that the second one withdraws are not valid afterwards."""
    first = patient.children()[0]
    os.kill(first, signal.SIGSTOP)  # the first reload waits for it
    patient.write(keys=("a", "b"))
    patient.hang_up()
    patient.wait(lambda: patient.said("has read its file"))
    patient.write(keys=("b",))
    patient.hang_up()
    os.kill(first, signal.SIGCONT)
    patient.wait(lambda: len(patient.said("changed: ")) == 2)
    assert (patient.posts("a"), patient.posts("b")) == ({401}, {200})


@pytest.mark.full
def test_a_worker_that_dies_during_a_reload_is_left_out(patient):
    """Its replacement has the keys that the others have, whenever it starts."""
    first = patient.children()[0]
    os.kill(first, signal.SIGSTOP)  # it checks nothing
    patient.write(keys=("b",))
    patient.hang_up()
    patient.wait(lambda: patient.said("has read its file"))
    os.kill(first, signal.SIGKILL)
    patient.wait(lambda: patient.said("changed: "))
    assert not patient.said("stays")
    patient.wait(lambda: patient.said("is replaced"))
    patient.all_answer()
    assert (patient.posts("a"), patient.posts("b")) == ({401}, {200})
    os.kill(patient.children()[0], signal.SIGKILL)
    patient.wait(lambda: len(patient.said("is replaced")) == 2)
    patient.write(keys=("a",))
    patient.reload("changed: ")  # before its replacement starts, or while it does
    patient.all_answer()
    assert (patient.posts("a"), patient.posts("b")) == ({200}, {401})


@pytest.mark.full
def test_a_stopped_worker_does_not_block_the_parent_however_many_keys_there_are(patient):
    many = [f'[keys.k{at}]\nsha256 = "{at:064x}"\nfilter = {{ tenant = "a" }}\n' for at in range(4000)]
    stopped, other = patient.children()
    os.kill(stopped, signal.SIGSTOP)
    patient.write(keys=("b",), more="".join(many))
    patient.hang_up()
    patient.wait(lambda: patient.said("has read its file"))
    os.kill(other, signal.SIGKILL)
    patient.wait(lambda: patient.said("is replaced"))
    os.kill(stopped, signal.SIGCONT)
    assert len(names_in(patient.wait(lambda: patient.said("changed: "))[0])) == 4002
    patient.all_answer()
    assert (patient.posts("a"), patient.posts("b")) == ({401}, {200})


@pytest.mark.full
def test_a_silent_worker_refuses(hasty):
    first = hasty.children()[0]
    os.kill(first, signal.SIGSTOP)
    hasty.write(keys=("b",))
    assert hasty.reload("stays")["level"] == "error"
    os.kill(first, signal.SIGCONT)
    assert (hasty.posts("a"), hasty.posts("b")) == ({200}, {401})
    hasty.reload_until_used()
    assert (hasty.posts("a"), hasty.posts("b")) == ({401}, {200})


@pytest.mark.full
@pytest.mark.parametrize("fault", ["raises", "stops"])
def test_a_worker_that_does_not_use_what_it_accepted_is_replaced(hasty, fault):
    (hasty.file.parent / fault).touch()
    hasty.write(keys=("b",))
    hasty.reload_until_used()
    assert hasty.wait(lambda: hasty.said("is killed"))
    hasty.wait(lambda: hasty.said("is replaced"))
    hasty.all_answer()
    assert (hasty.posts("a"), hasty.posts("b")) == ({401}, {200})


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
