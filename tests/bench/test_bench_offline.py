"""``python -m bench.offline`` on a few queries."""

from __future__ import annotations

import json

from bench import offline


def test_a_run_that_is_killed_in_the_middle_goes_on(monkeypatch, capsys) -> None:
    monkeypatch.setattr(offline, "MILLION", 1500)
    assert offline.main(["--million", "--passages", "60"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 3 <= found["killed_after_parts"] <= 6
    assert found["summary"].startswith("Scored 1,500 queries into ")
    assert found["queries_a_second"] > 0


def test_one_worker_and_two_make_equal_bytes(capsys) -> None:
    assert offline.main(["--queries", "1100", "--passages", "60", "--repeats", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equal_bytes"]
    assert found["cpu_seconds_contract"][0] > 0
    assert set(found["peak_mib"]) == {"parent", "largest_worker"}
    assert set(found["gains"]) == {"one worker", "two workers"}
    assert all(one["cpu_ms_a_query"] > 0 for one in found["rates"].values())
