"""Programs that ask an index and then fork their workers: a server that preloads its application, a data loader."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import hopfuse as hf
import numpy as np
import pytest
from compare import assert_bitwise
from hopfuse import _native

pytestmark = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")

PASSAGES, ENTITIES, DIM, QUESTIONS = 20_000, 200, 64, 6
WORKERS, PATIENCE = 2, 600
#: The server's first process asks with two threads before it forks, so that it has a pool of threads and workspaces; a
#: worker starts with none. It answers when all workers have been asked, so that each is.
APP = f"""
import json, multiprocessing, os
import hopfuse as hf
import numpy as np
from hopfuse import _native

recipe = hf.recipes.PhaseGraph(hf.Index.open("index"), threads=2)
vectors = np.load("vectors.npy")
asked = multiprocessing.get_context("fork").Barrier({WORKERS})

def scores():
    entities = [[question] for question in range(len(vectors))]
    return recipe.search(vectors=vectors, entities=entities, k=5).hits.scores.tolist()

loaded, started = scores(), [_native.pool_size()]

def application(environ, start_response):
    asked.wait({PATIENCE})
    before, answered = _native.pool_size(), scores()
    start_response("200 OK", [("Content-Type", "application/json")])
    threads = [*started, before, _native.pool_size()]
    answer = {{"process": os.getpid(), "threads": threads, "loaded": loaded, "answered": answered}}
    return [json.dumps(answer).encode()]
"""


class Questions(NamedTuple):
    """An index whose searches are worth two threads, and vectors of questions; question q is about entity q."""

    index: hf.Index
    vectors: np.ndarray[Any, Any]

    def scores(self, threads: int) -> np.ndarray[Any, Any]:
        recipe = hf.recipes.PhaseGraph(self.index, threads=threads)
        entities = [[question] for question in range(QUESTIONS)]
        return recipe.search(vectors=self.vectors, entities=entities, k=5).hits.scores


@pytest.fixture(scope="module")
def questions() -> Questions:
    rng = np.random.default_rng(0)
    graph = hf.Graph.from_edges(
        rng.integers(0, PASSAGES, 60_000),
        PASSAGES + rng.integers(0, ENTITIES, 60_000),
        num_nodes=PASSAGES + ENTITIES,
    )
    index = hf.Index.build(
        passages=[{"text": ""}] * PASSAGES,
        vectors=rng.standard_normal((PASSAGES, DIM)).astype(np.float32),
        graph=graph,
        entities=[f"entity {e}" for e in range(ENTITIES)],
    )
    return Questions(index, rng.standard_normal((QUESTIONS, DIM)).astype(np.float32))


# ---- A server ------------------------------------------------------------------------------------------------------


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a socket in a folder, which needs no free port."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@pytest.fixture
def server(questions: Questions, tmp_path: Path) -> Iterator[str]:
    """Return the socket of a gunicorn that has loaded the application and then forked its workers."""
    pytest.importorskip("gunicorn", reason="gunicorn is not installed")
    questions.index.save(tmp_path / "index")
    np.save(tmp_path / "vectors.npy", questions.vectors)
    (tmp_path / "app.py").write_text(APP)
    path, log = os.path.relpath(tmp_path / "socket"), tmp_path / "log"  # a socket's path has 107 characters at most
    options = ("--preload", f"--workers={WORKERS}", "--timeout=0", "--bind=unix:socket")
    with log.open("w") as lines:
        command = (sys.executable, "-m", "gunicorn", *options, "app:application")
        child = subprocess.Popen(command, cwd=tmp_path, stdout=lines, stderr=lines)
    try:
        wait_for(path, child, log)
        yield path
    finally:
        child.terminate()
        child.wait(PATIENCE)


def wait_for(path: str, child: subprocess.Popen[bytes], log: Path) -> None:
    """Return as soon as the server listens."""
    while child.poll() is None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            if os.path.exists(path) and probe.connect_ex(path) == 0:
                return
        time.sleep(0.05)
    pytest.fail(log.read_text())


def get(path: str) -> dict[str, Any]:
    connection = UnixConnection(path)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    found: dict[str, Any] = json.loads(answer.read())
    return found


def test_each_worker_of_a_server_that_preloads_answers_as_before_the_fork(server: str, questions: Questions) -> None:
    expected = questions.scores(threads=1).tolist()
    with ThreadPoolExecutor(WORKERS) as pool:
        found = list(pool.map(get, [server] * WORKERS))
    assert len({answer["process"] for answer in found}) == WORKERS
    for answer in found:
        assert answer["loaded"] == expected
        assert answer["answered"] == expected
        assert answer["threads"] == [1, 0, 1]


# ---- A data loader -------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:This process")  # Python 3.12 warns of forks beside threads
def test_workers_of_a_data_loader_call_hopfuse(questions: Questions) -> None:
    data = pytest.importorskip("torch.utils.data", reason="torch is not installed")
    expected = questions.scores(threads=2)  # which starts the pool before the loader forks

    class Scores(data.Dataset):  # type: ignore[misc, name-defined]
        def __len__(self) -> int:
            return 4

        def __getitem__(self, item: int) -> tuple[int, np.ndarray[Any, Any]]:
            return _native.pool_size(), questions.scores(threads=2)

    loader = data.DataLoader(Scores(), batch_size=None, num_workers=WORKERS, multiprocessing_context="fork")
    started, found = zip(*loader, strict=True)
    assert started == (0, 0, 1, 1)  # the first of each worker, then the second
    for scores in found:
        assert_bitwise(np.asarray(scores), expected)
