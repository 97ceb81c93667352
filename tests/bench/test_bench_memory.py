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
    walks = found["walk_bytes_a_node"]
    assert list(walks) == ["B=1", "B=8", "B=32"]
    assert walks["B=32"] > 128, "its scores alone"
    assert walks["B=1"] <= walks["B=8"] <= walks["B=32"], "all above what there was before the first walk"
    assert found["threads"] == 1
    assert found["machine"]["cores"] > 0
