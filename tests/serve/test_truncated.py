"""A file of an index that is truncated in place while it is served."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import hopfuse as hf
import httpx
import processes
import pytest

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGBUS"), reason="the system has no SIGBUS")

ROWS = [{"id": at, "text": f"Passage {at} is long. " * 400} for at in range(200)]


@pytest.mark.parametrize("reads", ["passages", "searches"])
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.full)])
def test_the_server_ends_with_a_line_that_names_the_index(tmp_path, workers, reads):
    for name in ("whole", "cut"):
        hf.Index.build(passages=ROWS, vectors=[[1.0 + one["id"], 1.0] for one in ROWS]).save(tmp_path / name)
    config = tmp_path / "serve.toml"
    config.write_text(f"port = 0\nthreads = 1\nworkers = {workers}\n[log]\nformat = 'json'\n")
    indexes = [f"{name}={tmp_path / name}" for name in ("whole", "cut")]
    command = [sys.executable, "-m", "hopfuse", "serve", *indexes, "--config", str(config), "--recipe", "hybrid-rrf"]
    with processes.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        url = next(found[0] for line in process.stderr if (found := re.search(r"http://[0-9.]+:\d+", line)))
        ready = 0
        while ready < 8 * workers:
            with contextlib.suppress(httpx.TransportError):
                ready += httpx.get(f"{url}/health/ready").status_code == 200
            time.sleep(0.01)
        (file,) = (tmp_path / "cut").glob("generation-*")
        os.truncate(file, 4096)
        while process.poll() is None:
            time.sleep(0.01)
            with contextlib.suppress(httpx.TransportError):
                if reads == "passages":
                    httpx.get(f"{url}/v1/passages?index=cut&limit=200", timeout=60)
                else:
                    body = {
                        "queries": [{"text": "long", "vector": [1.0, at]} for at in range(10)],
                        "index": "cut",
                        "k": 200,
                    }
                    httpx.post(f"{url}/v1/search", json=body, timeout=60)
        lines = process.stderr.read().splitlines()
    said = [json.loads(line) for line in lines if line.startswith("{")]
    last = [line for line in said if line["level"] == "critical"]
    assert last
    assert {name for line in last for name in re.findall(r"\b(?:cut|whole)\b", line["message"])} == {"cut"}
    assert {line.get("worker") for line in last} <= (set(range(workers)) if workers > 1 else {None})
    assert process.returncode == (74 if workers == 1 else 2)  # the workers that replace them cannot open the index
    assert not [line for line in lines if line.startswith("Traceback")]
