"""``python -m bench.drop_ins``: results are checked before they are timed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from bench.drop_ins.__main__ import main
from bench.drop_ins.rows import Row, compared


def test_networkx_and_its_backend_are_compared() -> None:
    pytest.importorskip("networkx", minversion="3.4", reason="the comparison needs networkx (extra dev)")
    pytest.importorskip("scipy", reason="networkx's pagerank needs scipy (extra dev)")
    from bench.drop_ins import networkx_rows

    rows = list(networkx_rows.rows((200,), turns=1))
    assert [row.case.split(", ")[1] for row in rows] == ["undirected"] * 3 + ["directed"] * 3
    assert all(row.own_ms > 0 < row.ours_ms for row in rows)
    assert str(rows[0]).startswith("| NetworkX, undirected, 200 nodes | ")


def test_answers_that_differ_are_not_timed() -> None:
    calls: list[str] = []
    with pytest.raises(SystemExit, match=r"a case: scores differ by 1\.0; 0\.5 is allowed"):
        compared(
            "a case",
            lambda: calls.append("own"),
            lambda: calls.append("ours"),
            lambda own, ours: 1.0,
            most=0.5,
            turns=9,
        )
    assert calls == ["own", "ours"]


def test_rows_are_appended_with_their_machine_and_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(data: Path) -> list[Row]:
        return [compared("a case", lambda: 1, lambda: 1, lambda own, ours: 0.0, most=0.5, turns=3, sizes={"nodes": 7})]

    file = tmp_path / "rows.jsonl"
    monkeypatch.setattr("bench.drop_ins.__main__.CASES", {"networkx": rows})
    monkeypatch.setattr("logging.disable", lambda level: None)
    monkeypatch.setattr("sys.argv", ["bench.drop_ins", "networkx", "--busy", "--out", str(file)])
    for _ in range(2):
        main()
    first, second = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    assert first["sizes"] == second["sizes"] == {"nodes": 7}
    assert (first["busy"], first["turns"], first["machine"]["cores"]) == (True, 3, os.cpu_count())
    assert first["ratio"] == first["own_ms"] / first["ours_ms"]
