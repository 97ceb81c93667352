"""Bars are computed from rows: met, missed, or not measured."""

from __future__ import annotations

import copy
import csv

import pytest
from bench_rows import LIMITS, row

from bench import bars
from bench.report import files


def line(rows: list[dict], *words: str) -> list[str]:
    """Return the AVX2 machine's cells of the only bar with these words in its name."""
    found = [line for line in bars.lines(rows) if all(word in line[0] for word in words)]
    assert len(found) == 1, found
    assert found[0][-1] == "not measured"
    return found[0][1:3]


def test_without_rows_nothing_is_met_or_missed() -> None:
    lines = bars.lines([])
    assert {(line[2], line[4]) for line in lines} == {("not measured", "not measured")}
    assert len(lines) == len(bars.RATIOS) + len(bars.LATENCIES) + 1
    assert len({line[0] for line in lines}) == len(lines)


@pytest.mark.parametrize(("ratio", "verdict"), [(80.0, "met"), (79.9, "missed")])
def test_a_ratio_is_compared_with_its_bar(ratio: float, verdict: str) -> None:
    found = line([row("ppr-hotpotqa", "igraph", 64, ratio)], "all scores", "igraph", "64")
    assert found == ["80.0×", f"{ratio}×: {verdict}"]


def test_each_kind_of_machine_has_a_bar_and_rows_of_its_own() -> None:
    avx2 = row("dense-200k", "numpy-matmul", 32, 4.0)
    avx512 = row("dense-200k", "numpy-matmul", 32, 14.0)
    avx512 |= {"machine": avx512["machine"] | {"flags": ["avx2", "avx512f", "avx512_vnni"]}}
    arm = row("dense-200k", "numpy-matmul", 8, 99.0)
    arm |= {"machine": arm["machine"] | {"flags": ["asimd"]}}
    found = {line[0]: line[1:] for line in bars.lines([avx2, avx512, arm])}
    held = "dense, 200k (`dense-200k`), B = {}, against numpy-matmul"
    assert found[held.format(32)] == ["3.50×", "4.00×: met", "15.0×", "14.0×: missed"]
    assert found[held.format(8)] == ["5.00×", "not measured", "7.00×", "not measured"]


def test_of_two_peers_the_faster_one_counts_and_both_must_be_there() -> None:
    slow, fast = row("dense-11k-4096", "faiss", 32, 9.0), row("dense-11k-4096", "numpy-matmul", 32, 1.9)
    assert line([slow], "dense-11k", "32")[-1] == "not measured"
    assert line([slow, fast], "dense-11k", "32")[-1] == "1.90×: missed"


def test_a_bar_may_be_of_the_95th_percentile() -> None:
    timed = row("busy-phasegraph", "earlier-commit", 32, 9.0)
    timed["hopfuse"]["p95"], timed["peer_time"]["p95"] = 2.0, 3.0
    assert line([timed], "busy-phasegraph", "earlier-commit")[-1] == "1.50×: missed"


def test_rows_of_the_quick_mode_or_a_device_do_not_count_as_measured() -> None:
    for other in ({"quick": True}, {"device": {"device": "a GPU"}}):
        timed = row("ppr-hotpotqa", "igraph", 1, 99.0) | other
        assert line([timed], "all scores", "B = 1,", "igraph")[-1] == "not measured"


def test_the_limit_is_the_peers_time_over_that_of_the_bytes() -> None:
    timed = row("fusion-rrf", "ranx", 10_000, 80.0, ours=0.1)
    timed["moved"] = {"gathered": 0, "streamed": 100_000_000, "state": 0, "touched": 100_000_000}
    assert line([timed], "reciprocal", "ranx")[-1] == "80.0×: met"
    shown = "80.0× (limit 800×): met"  # 8 s over 1e8 bytes at 10 GB/s
    assert line([timed, *LIMITS], "reciprocal", "ranx")[-1] == shown


def test_a_limit_below_the_bar_is_named_with_the_share_that_was_reached() -> None:
    timed = row("fusion-rrf", "ranx", 10_000, 35.0, ours=0.1)
    timed["moved"] = {"gathered": 0, "streamed": 700_000_000, "state": 0, "touched": 700_000_000}
    assert line([timed, *LIMITS], "reciprocal", "ranx")[-1] == "35.0× (limit 50.0×, 70% of it): met"
    timed["ratio"]["of_medians"] = 34.0
    assert line([timed, *LIMITS], "reciprocal", "ranx")[-1] == "34.0× (limit 50.0×, 68% of it): missed"


def test_of_two_machines_of_a_kind_the_later_counts_with_limits_of_its_own() -> None:
    moved = {"gathered": 0, "streamed": 100_000_000, "state": 0, "touched": 100_000_000}
    other = {"machine": LIMITS[0]["machine"] | {"cpu": "Another CPU"}}
    first, later = (row("fusion-rrf", "ranx", 10_000, ratio, ours=0.1) | {"moved": moved} for ratio in (80.0, 90.0))
    assert line([*LIMITS, first, later | other], "reciprocal", "ranx")[-1] == "90.0×: met"
    assert line([*LIMITS, later | other, first], "reciprocal", "ranx")[-1] == "80.0× (limit 800×): met"


@pytest.mark.parametrize(("proven", "verdict"), [(1.0, "met"), (0.5, "missed")])
def test_lists_count_as_proven_only_where_all_are(proven: float, verdict: str) -> None:
    timed = row("ppr-topk-100", "ppr-out", 64, 0.9)
    timed["gate"]["oracle"]["proven"] = proven
    assert line([timed], "ppr-topk-100`")[-1] == f"0.90×, {proven:.0%} of the lists proven: {verdict}"


@pytest.mark.parametrize(("seconds", "verdict"), [(0.5 / 0.61, "met"), (0.5 / 0.59, "missed"), (-1.0, "not measured")])
def test_a_pass_is_compared_with_its_share_of_the_bandwidth(seconds: float, verdict: str) -> None:
    timed = row("ppr-batches", "scipy", 64, 9.0)
    moved = {"gathered": 10**10, "streamed": 4 * 10**9, "state": 10_000, "touched": 30_000}  # 0.5 s and 0.4 s
    timed["pass"] = {"seconds": seconds, "moved": moved}
    assert line([timed], "bandwidth")[-1] == "not measured"
    found = line([timed, *LIMITS], "bandwidth")[-1]
    assert found.endswith(verdict)
    if seconds > 0:
        assert "GB/s of 28.0 out of L3" in found


@pytest.mark.parametrize(("p95", "verdict"), [(0.050, "met"), (0.051, "missed")])
def test_the_pipeline_is_compared_by_its_95th_percentile(p95: float, verdict: str) -> None:
    timed = row("phasegraph-hotpotqa", None, 32, None)
    timed["hopfuse"]["p95"] = p95
    assert line([timed], "PhaseGraph whole")[-1].endswith(verdict)


def test_targets_and_ceilings_are_files() -> None:
    rows = [row("ppr-hotpotqa", "igraph", 64, 81.0), *copy.deepcopy(LIMITS)]
    found = files(rows, "a.jsonl")
    targets = list(csv.DictReader(found["results/performance-targets.csv"].splitlines()))
    assert len(targets) == len(bars.lines(rows))  # of the only kind of machine that has rows
    (target,) = (line for line in targets if line["verdict"] == "met")
    assert (target["at_least"], target["measured"], target["processors"]) == ("80.0×", "81.0×", "AVX2")
    bandwidth = list(csv.DictReader(found["results/performance-bandwidth.csv"].splitlines()))
    assert [(line["level"], line["access"], float(line["median"])) for line in bandwidth][:2] == [
        ("L2", "in order", 80.0),
        ("L2", "rows of 128 bytes at random", 40.0),
    ]
    assert "results/performance-bandwidth.csv" not in files(rows[:1], "a.jsonl")


def test_missed_targets_are_listed_with_their_case() -> None:
    rows = [row("ppr-hotpotqa", "igraph", 64, 40.0), row("ppr-hotpotqa", "scipy", 64, 20.0)]
    (miss,) = bars.missed(rows)
    assert (miss.case, miss.batch, miss.held, miss.measured) == ("ppr-hotpotqa", 64, "80.0×", "40.0×")
