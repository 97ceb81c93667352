"""What was freed is given back, and nothing that was answered is kept until a collection."""

import gc
import json
import os
import subprocess
import sys

import httpx
import pytest
from hopfuse.errors import HopfuseError
from serve.nginx import free_port
from serve.served import until

#: A server whose encoder's threads allocate and free one after the other. The growth of memory in MiB is printed.
FREED = """
import contextlib, os, sys, threading, time, urllib.request
import numpy as np
from hopfuse.serve import ServeConfig, run

def resident():
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmRSS"))

turn, all_have_been, kept = threading.Lock(), threading.Barrier(8), []

def work():
    with turn:
        blocks = []
        for _ in range(500):
            blocks.append(np.ones(8000))
            kept.append(np.ones(200))
        blocks.clear()
    all_have_been.wait()

class Frees:
    name, dim, normalize = "letters", 8, False

    def encode_queries(self, texts):
        before = resident()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for one in threads: one.start()
        for one in threads: one.join()
        print(resident() - before, flush=True)
        os._exit(0)

    encode_passages = encode_queries

def ask():
    while True:
        time.sleep(0.05)
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[2]}/v1/search", b'{"queries": ["a"]}')

threading.Thread(target=ask).start()
tables = {"port": int(sys.argv[2]), "indexes": {"cities": {"path": sys.argv[1]}}}
run(ServeConfig.read("", tables), {"cities": Frees()})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_threads_share_what_they_freed(path):
    def growth(**variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
        command = [sys.executable, "-c", FREED, path, str(free_port())]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=environment | variables, timeout=600
        )
        return float(done.stdout)

    alone = growth(MALLOC_ARENA_MAX="16")  # an operator's own choice
    if alone < 200:
        pytest.skip("the threads of this C library share what they freed by themselves")
    assert growth() < alone / 2


#: Bodies that are refused: at decoding, by a check, by the batch.
REFUSED = {
    "syntax": '{"queries": [',
    "value": '{"queries": [{"vector": ["x"]}]}',
    "filter": '{"queries": [{"text": "a", "allow": {"nothing": 1}}]}',
    "many": json.dumps({"queries": ["a"] * 41}),
    "index": '{"queries": ["a"], "index": "none"}',
    "dim": '{"queries": [{"vector": [1, 2]}]}',
    "entity": '{"queries": [{"text": "a", "entities": ["nobody"]}], "strict": true}',
}
#: Blanks that make a body so large that it is decoded on a thread.
BLANKS = " " * 2**15


@pytest.mark.parametrize("kind", REFUSED)
def test_an_error_that_was_answered_is_not_kept(url, kind):
    def errors():
        return sum(isinstance(one, HopfuseError) for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = errors()
        for _ in range(3):
            answer = httpx.post(f"{url}/v1/search", content=REFUSED[kind] + BLANKS, timeout=60)
            assert answer.status_code in (400, 404)
        until(lambda: errors() <= before, 30)
    finally:
        gc.enable()
