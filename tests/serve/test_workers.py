"""Several processes behind one port: who answers, their counters together, their deaths, their end; and the log."""

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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hopfuse as hf
import httpx
import processes
import pytest
from hopfuse.errors import InputError
from hopfuse.serve import ServeConfig, cards_of, merge_metrics, run
from offline.ray_space import Space, missing
from refusals import refused
from serve.served import Letters, configured, running, save

QUESTION = "What is far from Ankara?"
BODY = {"queries": [{"text": QUESTION, "vector": [1.0] * 8}], "k": 3}
CONFIG = "port = 0\nworkers = {workers}\nthreads = 1\nfollow_seconds = 0.02\n[log]\nformat = 'json'\nrequests = true\n"


class Serving:
    """``hopfuse serve`` with workers, as a process."""

    def __init__(self, folder, config):
        command = [sys.executable, "-m", "hopfuse", "serve", f"cities={folder}", "--config", str(config)]
        self.process = processes.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(r"answer at (http://\S+?)\"", line)
            if found:
                self.url = found[1]
                # Requests are logged, and a server whose log nobody reads waits.
                self.reader = threading.Thread(target=self.read)
                self.reader.start()
                return
        raise AssertionError("".join(self.lines))

    def read(self):
        self.lines += self.process.stderr

    def get(self, path):
        """An answer, by a connection of its own.

        None listens until a worker is ready, and the system resets the connections of one that is killed.
        """
        while True:
            with contextlib.suppress(httpx.ConnectError, httpx.ReadError):
                return httpx.get(f"{self.url}{path}", timeout=60)
            time.sleep(0.01)

    def workers(self, count):
        """The processes of the workers, once so many answer."""
        while len({self.get("/health/ready").json()["worker"] for _ in range(8)}) < count:
            time.sleep(0.01)
        pid = self.process.pid
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.reader.join()
        self.process.stderr.close()
        return self.process.wait()


@pytest.fixture
def folder(tmp_path):
    return save(tmp_path / "index")


@contextlib.contextmanager
def serving(folder, tmp_path, count=2, limits=""):
    config = tmp_path / "serve.toml"
    config.write_text(CONFIG.format(workers=count) + limits)
    one = Serving(folder, config)
    try:
        yield one
    finally:
        if one.process.returncode is None:
            one.stop()


def samples(page, name):
    return {row.rpartition(" ")[0]: float(row.rpartition(" ")[2]) for row in page.splitlines() if row.startswith(name)}


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="it reads the workers' processes from /proc")
def test_workers_answer_together_follow_together_and_stop_together(folder, tmp_path):
    with serving(folder, tmp_path) as server:
        assert len(server.workers(2)) == 2
        with hf.Index.open(folder, writable=True) as live, live.change() as change:
            change.add_passages([{"id": "n", "text": "New."}], vectors=Letters().encode_passages(["New."]))
        answers = [httpx.post(f"{server.url}/v1/search", json=BODY | {"at_least": 1}, timeout=60) for _ in range(12)]
        assert {answer.json()["seq"] for answer in answers} == {1}
        assert len({answer.text.partition('"seq"')[0] for answer in answers}) == 1
        page = server.get("/metrics").text
        assert samples(page, "hopfuse_worker_up") == {f'hopfuse_worker_up{{worker="{at}"}}': 1.0 for at in (0, 1)}
        assert sum(samples(page, 'hopfuse_requests_total{route="/v1/search"').values()) == 12
        assert server.stop() == 0
    said = [json.loads(line) for line in server.lines]
    requests = [line for line in said if line.get("route") == "/v1/search"]
    assert len(requests) == 12
    keys = {"time", "level", "logger", "worker", "method", "route", "status", "ms", "key", "index", "queries", "seq"}
    assert set(requests[0]) == keys | {"batch", "client", "queued_ms"}
    assert {(line["method"], line["status"], line["batch"], line["index"]) for line in requests} == {
        ("POST", 200, 1, "cities")
    }
    assert QUESTION not in "".join(server.lines)


@pytest.mark.full
def test_a_worker_that_dies_is_replaced(folder, tmp_path):
    with serving(folder, tmp_path) as server:
        first = server.workers(2)
        os.kill(first[0], signal.SIGKILL)
        while set(server.workers(2)) == set(first):
            pass
        assert server.stop() == 0
    assert any("ended with exit code -9" in line for line in server.lines)


@pytest.mark.full
def test_workers_end_with_a_parent_that_is_killed(folder, tmp_path):
    with serving(folder, tmp_path) as server:
        assert len(server.workers(2)) == 2
        server.process.kill()
        server.reader.join()  # until the last worker has closed its log
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/health/live")


@pytest.mark.full
def test_stopping_workers_refuse_the_requests_that_wait_for_a_change(folder, tmp_path):
    with serving(folder, tmp_path) as server, ThreadPoolExecutor(8) as pool:
        server.workers(2)
        late = [BODY | {"at_least": 1, "timeout_ms": 60_000}] * 8
        asked = [pool.submit(httpx.post, f"{server.url}/v1/search", json=one, timeout=60) for one in late]
        while sum(samples(server.get("/metrics").text, "hopfuse_seq_waiting").values()) < 8:
            pass
        assert server.stop() == 0
        answers = [one.result() for one in asked]
    assert [(one.status_code, one.json()["error"]["code"]) for one in answers] == [(503, "unavailable")] * 8


@pytest.mark.full
def test_workers_divide_the_bytes_of_a_key(folder, tmp_path):
    with serving(folder, tmp_path, limits="[limits]\nkey_bytes = 100000\n") as server:
        server.workers(2)
        padded = json.dumps(BODY)
        for size, status in ((40_000, 200), (60_000, 400)):
            asked = padded + " " * (size - len(padded))
            answers = [httpx.post(f"{server.url}/v1/search", content=asked, timeout=60) for _ in range(8)]
            assert {one.status_code for one in answers} == {status}
        assert {one.json()["error"]["values"]["allowed"] for one in answers} == {50_000}


#: Makes Linux give a connection whose handshake is under way to another server of the port. It belongs to a network.
MIGRATES = Path("/proc/sys/net/ipv4/tcp_migrate_req")


@pytest.mark.full
@pytest.mark.skipif(not MIGRATES.exists(), reason="needs Linux 5.14")
def test_servers_that_share_a_port_restart_in_turn_and_drop_nothing(folder, tmp_path):
    if (reason := missing()) is not None:
        pytest.skip(reason)
    script = Path(__file__).with_name("restarts.py")
    with contextlib.closing(Space()) as space:
        assert space.run("sh", "-c", f"echo 1 > {MIGRATES}").returncode == 0
        done = space.run(sys.executable, script, folder, tmp_path, json.dumps(BODY))
    assert done.returncode == 0, done.stderr
    assert [int(sent) > 10 for sent in done.stdout.split()] == [True] * 8


@pytest.mark.full
def test_an_invalid_worker_setting_is_one_line(tmp_path):
    config = tmp_path / "serve.toml"
    config.write_text(CONFIG.format(workers=2))
    command = [sys.executable, "-m", "hopfuse", "serve", str(tmp_path / "none"), "--config", str(config)]
    done = processes.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("is not a directory; an index is the directory that Index.save wrote")


def named_cards(monkeypatch, folder, **environment):
    """Set an environment whose kernels would use CUDA, with a driver's folder of two cards; return that."""
    driver = folder / "gpus"
    for name in ("0000:01:00.0", "0000:02:00.0"):
        (driver / name).mkdir(parents=True)
    monkeypatch.setattr("hopfuse.serve.workers.CARDS", driver)
    monkeypatch.delenv("HOPFUSE_BACKEND", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return driver


def test_settings_that_workers_cannot_share_are_refused(folder, monkeypatch, tmp_path):
    indexes = {"cities": {"path": folder, "writable": True}}
    with refused(InputError, "conflict", "workers"):
        configured(folder, indexes=indexes, workers=2)
    with running(configured(folder)) as url:
        port = int(url.rpartition(":")[2])
        with refused(InputError, "busy", "port"):
            run(configured(folder, workers=2, port=port), None)
        with refused(InputError, "busy", "port"):
            run(configured(folder, port=port), None)
    named_cards(monkeypatch, tmp_path, CUDA_VISIBLE_DEVICES="0")
    with refused(InputError, "range", "workers", given=2, allowed=1):
        run(configured(folder, workers=2), None)


def test_cards_are_those_that_kernels_would_use(monkeypatch, tmp_path):
    driver = named_cards(monkeypatch, tmp_path)
    assert cards_of({}) == ["0", "1"]
    assert cards_of({}, driver) == cards_of({"HOPFUSE_BACKEND": "cuda"}, driver) == ["0", "1"]
    assert cards_of({}, tmp_path / "none") == []
    assert cards_of({"CUDA_VISIBLE_DEVICES": "3, GPU-ab"}) == ["3", "GPU-ab"]
    assert cards_of({"CUDA_VISIBLE_DEVICES": ""}) == cards_of({"HOPFUSE_BACKEND": "cpu"}) == []
    assert cards_of({"CUDA_VISIBLE_DEVICES": "0"}, tmp_path / "none") == []


def test_counters_of_workers_are_told_apart_and_nothing_is_lost(folder):
    with running(configured(folder)) as url:
        assert httpx.post(f"{url}/v1/search", json=BODY).status_code == 200
        assert httpx.post(f"{url}/v1/search", json=BODY | {"k": -1}).status_code == 400
        page = httpx.get(f"{url}/metrics").content
    assert b'hopfuse_refusals_total{code="range"} 1.0' in page
    assert b'hopfuse_request_seconds_count{stage="total"} 1.0' in page
    both = merge_metrics({0: page, 1: page, 2: None}).decode()
    for row in page.decode().splitlines():
        if row.startswith("hopfuse"):
            name = row.rpartition(" ")[0]
            labelled = [one for one in both.splitlines() if re.sub(r',?worker="\d"', "", one).replace("{}", "") == row]
            assert len(labelled) == 2, name
        elif row.startswith("# TYPE hopfuse"):
            assert both.count(row) == 1
    assert 'hopfuse_worker_up{worker="2"} 0.0' in both


def test_requests_are_logged_with_texts_only_where_it_is_asked_for(folder, caplog):
    caplog.set_level("INFO")
    for text, says in (
        ("[log]\nrequests = true\n", False),
        ("[log]\nrequests = true\ntexts = true\n", True),
        ("", None),
    ):
        caplog.clear()
        with running(configured(folder, text)) as url:
            assert httpx.post(f"{url}/v1/search", json={"queries": [QUESTION]}).status_code == 200
            assert httpx.post(f"{url}/v1/search", json={"queries": [QUESTION], "k": -1}).status_code == 400
        lines = [one for one in caplog.records if getattr(one, "request", {}).get("route") == "/v1/search"]
        assert len(lines) == (0 if says is None else 2)
        if says is not None:
            assert (QUESTION in lines[0].getMessage()) == says
            assert lines[0].request.get("texts") == ([QUESTION] if says else None)
            assert (lines[1].request["status"], lines[1].request["code"]) == (400, "range")


def test_the_log_is_configured_by_key():
    with refused(InputError, "choice", "log.format"):
        ServeConfig.read("[log]\nformat = 'xml'\n[indexes.a]\npath = 'x'\n")
