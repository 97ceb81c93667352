"""What was freed is given back, and nothing that was answered is kept until a collection."""

import gc
import json
import subprocess
import sys

import httpx
import pytest
from hopfuse.errors import HopfuseError
from hopfuse.serve.memory import PARAMETERS
from serve.test_serving import until

#: Blocks that threads free beside ones that they keep, after a much larger one; the growth in MiB is printed.
FREED = """
import sys, threading
import numpy as np
from hopfuse.serve.memory import give_back_freed

if sys.argv[1] == "give back":
    give_back_freed()

def resident():
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmRSS"))

kept = []

def work():
    blocks = []
    for _ in range(200):
        blocks.append(np.ones(40_000))
        kept.append(np.ones(200))

np.ones(4_000_000)
before = resident()
threads = [threading.Thread(target=work) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_freed_memory_is_given_back(monkeypatch):
    for variable in PARAMETERS:
        monkeypatch.delenv(variable, raising=False)

    def growth(how):
        done = subprocess.run([sys.executable, "-c", FREED, how], check=True, capture_output=True, text=True)
        return float(done.stdout)

    kept = growth("keep")
    if kept < 100:
        pytest.skip("this C library gives freed memory back by itself")
    assert growth("give back") < kept / 4


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
