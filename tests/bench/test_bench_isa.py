"""Rows of an instruction set that was chosen by name: beside the best one, and apart from other rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import hopfuse as hf
import pytest
from bench_rows import row

from bench import __main__ as command
from bench import bars, report, series
from bench.cases import BESIDE_BEST_ISA, CASES
from bench.peers.best_isa import BestIsa
from bench.runner import DEFAULT, pairs
from bench.settings import Settings

QUICK = Settings(quick=True, repeats=1, threads=1)
HELD = "### Held to other instructions"


def measured(tmp_path: Path, *options: str) -> list[dict[str, Any]]:
    """Return the rows of a run in processes of its own."""
    file = tmp_path / "rows.jsonl"
    status = command.main(["--quick", "--repeats", "1", "--threads", "1", "--out", str(file), *options])
    assert status == 0
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_main_cases_are_beside_the_best_isa_if_one_is_chosen() -> None:
    assert "best-isa" not in {peer for _, peer in pairs(DEFAULT)}
    found = pairs(("ppr-topk-hotpotqa", "fusion-rrf"), isa="avx2")
    assert [peer for _, peer in found] == ["igraph", "scipy", "best-isa", "ranx"]
    assert pairs(("phasegraph-hotpotqa",), isa="avx2") == [("phasegraph-hotpotqa", "best-isa")]
    assert pairs(("fusion",), alone=True, isa="avx2") == [("fusion", None)]


def test_a_run_is_held_to_the_isa_and_its_rows_name_it(tmp_path: Path) -> None:
    rows = measured(tmp_path, "--isa", "baseline", "--case", "phasegraph-hotpotqa")
    assert {one["isa"] for one in rows} == {"baseline"}
    assert {one["peer"] for one in rows} == {"best-isa"}
    assert {kernel.rpartition("_")[2] for one in rows for kernel in one["kernels"]} == {"baseline"}
    assert "on the best instruction set" in rows[0]["peer_note"]


def test_an_isa_that_does_not_run_here_is_skipped_with_the_reason(tmp_path: Path) -> None:
    rows = measured(tmp_path, "--isa", "mmx", "--case", "tiny-fusion")
    assert [one["status"] for one in rows] == ["skip"]
    assert "HOPFUSE_ISA is 'mmx', but this machine runs" in rows[0]["reason"]


@pytest.mark.parametrize("case", BESIDE_BEST_ISA)
def test_the_process_of_the_best_isa_answers_the_same_calls(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    monkeypatch.setenv("HOPFUSE_DATA", "nowhere")
    workload = CASES[case].load(QUICK)
    batch = max(workload.batches)
    best = BestIsa(workload, 1)
    try:
        answer = best.answer(best.run(batch))
        assert workload.compare(batch, workload.run(batch, 0), answer)["queries"] == batch
    finally:
        best.close()


def test_the_process_of_the_best_isa_chooses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPFUSE_ISA", "baseline")
    best = BestIsa.__new__(BestIsa)
    _, environment = best.program()
    assert "HOPFUSE_ISA" not in environment
    assert environment["PATH"]
    assert hf.backend_info()["backends"]["cpu"]["runnable"][0] != "baseline"


def test_rows_with_an_isa_stand_in_a_table_of_their_own() -> None:
    free = row("dense-200k", "numpy-matmul", 32, 9.0)
    held = [
        row("dense-200k", peer, 32, ratio, ours=0.02) | {"isa": "avx2"}
        for peer, ratio in (("best-isa", 0.5), ("numpy-matmul", 4.0), ("faiss", 6.0))
    ]
    alone = report.render([free], "a.jsonl")
    page = report.render([free, *held], "a.jsonl")
    before, _, after = page.partition(HELD)
    assert HELD not in alone
    assert page.replace(HELD + after.partition("\n## ")[0] + "\n", "") == alone
    assert "| 200,000 × 384 | NumPy | - | 32 | 10.0 ms |" in before
    assert "| 200,000 × 384, `avx2` | 32 | 20.0 ms | 0.50× | NumPy | 80.0 ms | 4.00× |" in after


def test_rows_with_an_isa_of_a_machine_without_others_have_its_name() -> None:
    held = row("fusion", "best-isa", 1000, 0.5) | {"isa": "avx2"}
    page = report.render([held], "a.jsonl")
    assert "## On A CPU, 2 cores" in page
    assert "| Boltzmann fusion of 2 lists of 1,000, `avx2` | 1,000 | 10.0 ms | 0.50× | - | - | - |" in page


def test_rows_with_an_isa_are_in_the_file_of_timings_but_reach_no_target_and_no_chart() -> None:
    held = row("ppr-hotpotqa", "igraph", 64, 100.0) | {"isa": "avx2"}
    files = report.files([held], "a.jsonl")
    (line,) = csv.DictReader(files["results/performance-timings.csv"].splitlines())
    assert (line["isa"], line["ratio"]) == ("avx2", "100.0")
    assert set(files) == {"performance.md", "results/performance-timings.csv"}
    assert bars.lines([held]) == bars.lines([])
    assert series.timed([held]) == []
