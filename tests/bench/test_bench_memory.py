"""``python -m bench.memory`` on a small graph."""

from __future__ import annotations

import json
import sys

import pytest

from bench import memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_bytes_of_a_small_graph(capsys) -> None:
    memory.main(["--stored", "40000", "--threads", "1"])
    found = json.loads(capsys.readouterr().out)
    assert found["array_bytes_an_entry"] == 8  # an index and a weight
    assert 24 <= found["array_bytes_a_node"] < 24.01
    assert found["build_bytes_an_entry"] > 0
    assert set(found["walk_bytes_a_node"]) == {"B=1", "B=8", "B=32"}
