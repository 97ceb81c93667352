"""Plots show the rows' values; the same rows give the same files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from bench_rows import LIMITS, row

from bench import __main__ as command
from bench import series

PASS = {"seconds": 2e-3, "moved": {"gathered": 4_000_000, "streamed": 1_000_000, "state": 900, "touched": 900}}
ROWS = [
    row("ppr-batches", "scipy", 4, 5.0, ours=0.02),
    row("ppr-batches", "scipy", 1, 3.0, ours=0.01) | {"pass": PASS},
    row("ppr-1e4", "scipy", 64, 10.0, ours=0.5, data="generated"),
    row("ppr-1e4", "igraph", 64, 20.0, ours=0.5, data="generated"),
    row("ppr-1e4", "igraph", 1, 20.0, data="generated"),
    row("fusion", "numpy-fusion", 64, 2.0),
    *LIMITS,
    {"case": "ppr-batches", "peer": "numba", "status": "skip", "reason": "absent"},
]


def test_latency_by_batch() -> None:
    assert series.latency(ROWS) == {"hopfuse": [(1, 0.01), (4, 0.02)], "scipy": [(1, 0.03), (4, 0.1)]}


def test_queries_a_second_by_size() -> None:
    found = series.throughput(ROWS)
    assert found == {"hopfuse": [(1000, 128.0)], "scipy": [(1000, 12.8)], "igraph": [(1000, 6.4)]}


def test_a_pass_is_two_operations_a_gathered_value() -> None:
    (point,) = series.passes(ROWS)
    assert point == ("batches, B = 1", 2_000_000 / 5_000_000, pytest.approx(1e9))
    assert not series.passes([ROWS[1] | {"pass": PASS | {"seconds": -1e-5}}])


def test_the_command_draws_what_the_rows_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    names = ["latency.svg", "roofline.svg", "throughput.svg"]
    for folder in ("one", "two"):
        assert command.main(["--plots", str(tmp_path / folder), str(file)]) == 0
        assert sorted(f.name for f in (tmp_path / folder).iterdir()) == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert capsys.readouterr().out.count(".svg") == 6
    file.write_text(json.dumps(ROWS[0]) + "\n")
    assert command.main(["--plots", str(tmp_path / "three"), str(file)]) == 0
    assert [f.name for f in (tmp_path / "three").iterdir()] == ["latency.svg"]


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "bench.plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "rows.jsonl").write_text("")
    assert command.main(["--plots", str(tmp_path), str(tmp_path / "rows.jsonl")]) == 2
    assert "extra eval" in capsys.readouterr().err


def test_a_directory_alone_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--plots", str(tmp_path)])
    assert "at least one file" in capsys.readouterr().err
