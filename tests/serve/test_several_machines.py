"""Three servers behind nginx, over one folder and over copies: restarted and brought to new versions under load."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading

import hopfuse as hf
import httpx
import processes
import pytest
from serve.nginx import free_port, nginx, program
from serve.served import save

pytestmark = pytest.mark.full

SEARCH = {"queries": [{"text": "x", "vector": [1.0] * 8, "entities": ["Ankara"]}], "k": 3}
#: Time after which nginx tries a server again that was not ready: fail_timeout of the example, and a little more.
FAIL_SECONDS = 1.5


class Server:
    """``hopfuse serve`` on a port of its own."""

    def __init__(self, folder, port, tmp_path):
        file = tmp_path / f"{port}.toml"
        file.write_text(
            f'port = {port}\nthreads = 1\nfollow_seconds = 0.02\npublic = true\n[proxies]\ntrusted = ["127.0.0.1"]\n'
            f'[indexes.cities]\npath = "{folder}"\nwords = "none"\n'
        )
        self.command = [sys.executable, "-m", "hopfuse", "serve", "--public", "--config", str(file)]
        self.url = f"http://127.0.0.1:{port}"
        self.start()

    def start(self):
        self.process = processes.Popen(self.command, stderr=subprocess.DEVNULL)

    def wait_until_ready(self):
        while True:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/health/ready").status_code == 200:
                    return
            assert self.process.poll() is None

    def seq(self):
        return httpx.get(f"{self.url}/v1/indexes").json()["indexes"][0]["seq"]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait() in (0, -signal.SIGTERM)


class Load:
    """Clients that search and read through the proxy all the time."""

    def __init__(self, url, trust, clients=3):
        self.statuses, self.seqs, self._end = [], [], threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(url, trust)) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def _run(self, url, trust):
        with httpx.Client(base_url=url, verify=trust, timeout=60) as client:
            while not self._end.is_set():
                answer = client.post("/v1/search", json=SEARCH)
                self.statuses.append(answer.status_code if answer.status_code == 200 else answer.text)
                if answer.status_code == 200:
                    self.seqs.append(answer.json()["seq"])
                self.statuses.append(client.get("/v1/passages/p3").status_code)

    def answers(self, more):
        """Wait for so many more answers."""
        end = len(self.statuses) + more
        while len(self.statuses) < end:
            self._end.wait(0.01)

    def end(self):
        self._end.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def cluster(request, tmp_path):
    """Three servers, over the folder or over copies of it, and the load of clients behind nginx."""
    program("nginx", "nginx-light")
    folder = save(tmp_path / "index")
    folders = [folder] * 3
    if request.param == "copies":
        folders = [str(tmp_path / f"copy{at}") for at in range(3)]
        for copy in folders:
            hf.Index.open(folder).copy_to(copy)
    ports = [free_port() for _ in folders]
    servers = [Server(one, port, tmp_path) for one, port in zip(folders, ports, strict=True)]
    with contextlib.ExitStack() as stack:
        for one in servers:
            stack.callback(one.stop)
            one.wait_until_ready()
        tls, _, trust = stack.enter_context(nginx(tmp_path / "nginx", ports))
        load = Load(f"https://localhost:{tls}", trust)
        stack.callback(load.end)
        yield folder, folders, servers, load


def changed(folder, count):
    """Change the index so many times, and return its seq."""
    with hf.Index.open(folder, writable=True) as live:
        for at in range(count):
            with live.change() as change:
                change.replace_passages([{"id": "p5", "text": f"Changed {at}.", "title": ""}], vectors=[[1.0 + at] * 8])
        return live.refresh().seq


@pytest.mark.parametrize("cluster", ["folder", "copies"], indirect=True)
def test_new_versions_and_restarts_fail_no_request(cluster):
    folder, folders, servers, load = cluster
    load.answers(30)
    for _ in range(2):
        seq = changed(folder, 3)
        for copy in sorted(set(folders) - {folder}):  # one after the other, as cron would
            done = processes.run([sys.executable, "-m", "hopfuse", "snapshot", folder, copy], check=False)
            assert done.returncode == 0
        while {one.seq() for one in servers} != {seq}:
            pass
        load.answers(30)
        for one in servers:
            one.stop()
            load.answers(20)
            one.start()
            one.wait_until_ready()
            threading.Event().wait(FAIL_SECONDS)
            load.answers(20)
    load.end()
    assert set(load.statuses) == {200}
    assert len(load.statuses) > 300
    assert {0, seq} <= set(load.seqs)
