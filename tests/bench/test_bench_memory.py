"""``python -m bench.memory`` on a small graph."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_bytes_of_a_small_graph() -> None:
    root = Path(__file__).parents[2]
    words = [sys.executable, "-m", "bench.memory", "--stored", "400000", "--threads", "1"]
    found = json.loads(subprocess.run(words, cwd=root, check=True, capture_output=True, text=True).stdout)
    assert found["array_bytes_an_entry"] == 8  # an index and a weight
    assert 24 <= found["array_bytes_a_node"] < 24.01
    assert found["build_bytes_an_entry"] > 8
    assert set(found["walk_bytes_a_node"]) == {"B=1", "B=8", "B=32"}
    assert found["walk_bytes_a_node"]["B=32"] > 128, "its scores alone"
