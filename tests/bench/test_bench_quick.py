"""The quick mode, end to end, in its own processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import hopfuse as hf
import pytest

from bench import limits
from bench.cases import CASES
from bench.peers import PEERS
from bench.peers.earlier_commit import VARIABLE
from bench.probes import PROBES
from bench.runner import DEFAULT, NAMES, pairs

FIELDS = {
    "case", "peer", "status", "data", "sizes", "threads", "isa", "quick", "gate", "hopfuse", "peer_time", "ratio",
    "peer_timed_queries", "peer_note", "moved", "pass", "kernels", "load", "machine", "backend", "device", "commit",
    "modified", "versions", "clocks", "in_a_row",
}  # fmt: skip
LIMIT_FIELDS = {
    "case", "peer", "status", "level", "access", "sizes", "rate", "threads", "quick", "load", "machine", "commit",
    "modified", "versions",
}  # fmt: skip
SUMMARY = {"n", "min", "q1", "median", "q3", "p95", "max"}


def bench(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``python -m bench`` in the repository."""
    return subprocess.run(
        (sys.executable, "-m", "bench", *arguments),
        cwd=root,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )


def read(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture(scope="module")
def quick(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict], str]:
    """Rows and standard output of one quick run of everything."""
    file = tmp_path_factory.mktemp("bench") / "rows.jsonl"
    done = bench(root, "--quick", "--repeats", "2", "--out", str(file), HOPFUSE_DATA="nowhere")
    assert done.returncode == 0, done.stdout + done.stderr
    return read(file), done.stdout


@pytest.mark.full
def test_every_pair_is_measured_or_skipped_for_a_missing_peer(quick: tuple[list[dict], str]) -> None:
    rows, _ = quick
    assert {(row["case"], row["peer"]) for row in rows} == set(pairs(DEFAULT))
    for row in (r for r in rows if r["case"] not in PROBES):
        assert row["status"] == ("ok" if row["peer"] is None or is_there(row["peer"]) else "skip"), row


def is_there(peer: str) -> bool:
    """Return whether its modules are installed, or, for an earlier commit, its Python is set."""
    installed = all(find_spec(module.split(".")[0]) for module in PEERS[peer].modules)
    return installed and (peer != "earlier-commit" or bool(os.environ.get(VARIABLE)))


@pytest.mark.full
def test_rows_have_all_fields(quick: tuple[list[dict], str]) -> None:
    for row in (r for r in quick[0] if r["status"] == "ok" and r["case"] not in PROBES):
        assert set(row) == FIELDS
        assert row["quick"] is True
        assert row["threads"] == 2
        assert row["sizes"]["batch"] >= 1
        assert set(row["hopfuse"]) == SUMMARY
        assert 0 < row["hopfuse"]["min"] <= row["hopfuse"]["median"] <= row["hopfuse"]["max"]
        assert row["kernels"]
        assert row["gate"]["oracle"]["error"] <= row["gate"]["oracle"]["tolerance"]
        assert row["machine"]["cores"] >= 1
        assert (row["backend"], row["device"]) == ("cpu", None)
        assert {"hopfuse", "numpy", "python", "compiler"} <= set(row["versions"])
        if row["peer"] is None:
            assert row["ratio"] is None
        else:
            assert set(row["peer_time"]) == SUMMARY
            assert row["ratio"]["of_medians"] > 0
            assert row["ratio"]["of_pairs"] > 0
            assert row["gate"]["peer"]["error"] <= row["gate"]["peer"]["tolerance"]
            assert set(PEERS[row["peer"]].packages) <= set(row["versions"])


@pytest.mark.full
def test_limits_are_measured_for_every_level_or_skipped_with_a_reason(quick: tuple[list[dict], str]) -> None:
    rows = [row for row in quick[0] if row["case"] == limits.CASE]
    assert rows
    if rows[0]["status"] == "skip":
        assert "cache" in rows[0]["reason"] or "compiler" in rows[0]["reason"]
        return
    assert {"L2", "L3", "memory"} <= {row["level"] for row in rows}
    assert {row["access"] for row in rows} - {limits.MULTIPLY} == {limits.READ, limits.GATHER, limits.GATHER_ONE}
    if "avx512_vnni" in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        assert [row["level"] for row in rows if row["access"] == limits.MULTIPLY] == [limits.REGISTERS]
    for row in rows:
        assert set(row) == LIMIT_FIELDS
        assert row["rate"]["min"] > 0


def test_what_takes_long_runs_only_by_its_name() -> None:
    each = {f"fuse-{name.replace('_', '-')}" for name in hf.fusion.METHODS}
    assert set(NAMES) - set(DEFAULT) == {"ppr-1e8", *each}
    assert set(NAMES) == {*PROBES, *CASES}


@pytest.mark.full
def test_rows_name_no_folder_and_no_host(quick: tuple[list[dict], str], root: Path) -> None:
    text = json.dumps(quick[0])
    assert str(root) not in text
    assert os.uname().nodename not in text


@pytest.mark.full
def test_the_table_shows_every_measured_row(quick: tuple[list[dict], str]) -> None:
    rows, output = quick
    for row in (r for r in rows if r["status"] == "ok"):
        assert row["case"] in output
        assert (row["peer"] or "-") in output
    assert "hopfuse bench" in output


def test_absent_data_is_a_reported_skip(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    arguments = ("--case", "phasegraph-hotpotqa", "--repeats", "1", "--out", str(file))
    done = bench(root, *arguments, HOPFUSE_DATA=str(tmp_path))
    assert done.returncode == 0
    (row,) = read(file)
    assert row["status"] == "skip"
    assert "HOPFUSE_DATA" in row["reason"]
    assert str(tmp_path) not in row["reason"]
    assert "skip" in done.stdout
