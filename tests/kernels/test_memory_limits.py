"""Calls at the edge of memory: a result or MemoryError, and never the end of the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tiers import FULL

STEPS = 60 if FULL else 20
AT_THE_EDGE = """
import json, os, resource, sys, warnings
import numpy as np
import hopfuse as hf
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
if sys.argv[1] == "ppr":
    n = 20_000
    graph = hf.Graph.from_edges(*rng.integers(0, n, (2, 4 * n)), num_nodes=n)
    seeds = [{int(v): 1.0} for v in rng.integers(0, n, 96)]
    def call(batch, threads):
        return hf.ppr_topk(graph, seeds[:batch], 50, threads=threads)
elif sys.argv[1] == "lists":  # each query's list is searched by a thread of the pool, with a workspace of its own
    corpus = hf.Corpus.from_array(rng.standard_normal((20_000, 32)).astype("f4"))
    queries = rng.standard_normal((96, 32)).astype("f4")
    lists = [np.sort(rng.permutation(20_000)[:2_000]) for _ in queries]
    def call(batch, threads):
        return hf.dense_topk(queries[:batch], corpus, 1500, allow=lists[:batch], threads=threads)
else:
    corpus = hf.Corpus.from_array(rng.standard_normal((20_000, 64)).astype("f4"), storage="int8")
    queries = rng.standard_normal((96, 64)).astype("f4")
    def call(batch, threads):
        return hf.dense_topk(queries[:batch], corpus, 2000, threads=threads)
call(1, 1)  # what is derived once and kept
expected = call(96, 1).ids.tobytes()
hf.backends.cpu._native.release_workspaces()
page = resource.getpagesize()
outcomes, steps = {}, int(sys.argv[2])
for step in range(steps):
    room = int(2 ** (14 + 16 * step / (steps - 1)))
    child = os.fork()
    if child == 0:
        held = int(open("/proc/self/statm").read().split()[0]) * page
        resource.setrlimit(resource.RLIMIT_AS, (held + room,) * 2)
        try:
            same = call(96, 4).ids.tobytes() == expected
        except MemoryError:
            os._exit(1)
        os._exit(0 if same else 2)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    outcomes[code] = outcomes.get(code, 0) + 1
print(json.dumps(sorted(outcomes.items())))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer reserves address space itself")
@pytest.mark.parametrize("op", ["ppr", "lists", "scan"])
def test_too_little_memory_is_a_memory_error(op: str) -> None:
    """With 16 KiB more than the process has, which hold no result, to 1 GiB, which holds all that four threads take.

    What is between depends on which threads take part, and on which of them has a heap of its own. Each call takes at
    least a MiB at once: the heap may have some hundred KiB that are free, and whether it does is chance.
    """
    command = [sys.executable, "-c", AT_THE_EDGE, op, str(STEPS)]
    environ = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(1 << 16)}  # else results may fit into what was freed before
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    outcomes = dict(json.loads(done.stdout))
    assert outcomes.keys() == {0, 1}, done.stderr  # both happen, and nothing else
