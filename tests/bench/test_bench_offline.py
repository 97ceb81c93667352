"""``python -m bench.offline`` on a few queries."""

from __future__ import annotations

import json

from bench import offline


def test_one_worker_and_two_make_equal_bytes(capsys) -> None:
    assert offline.main(["--queries", "1100", "--passages", "60", "--repeats", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equal_bytes"]
    assert found["cpu_seconds_contract"][0] > 0
    assert set(found["peak_mib"]) == {"parent", "largest_worker"}
