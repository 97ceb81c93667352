"""Bars are computed from rows: met, missed, or not measured."""

from __future__ import annotations

import copy

import pytest
from bench_rows import LIMITS, row

from bench import bars
from bench.report import render


def line(rows: list[dict], *words: str) -> list[str]:
    """The only bar with these words in its name."""
    found = [line for line in bars.lines(rows) if all(word in line[0] for word in words)]
    assert len(found) == 1, found
    return found[0]


def test_without_rows_nothing_is_met_or_missed() -> None:
    assert {line[-1] for line in bars.lines([])} == {"not measured"}
    assert len(bars.lines([])) == len(bars.RATIOS) + 2


@pytest.mark.parametrize(("ratio", "verdict"), [(80.0, "met"), (79.9, "missed")])
def test_a_ratio_is_held_against_its_bar(ratio: float, verdict: str) -> None:
    found = line([row("ppr-hotpotqa", "igraph", 64, ratio)], "all scores", "igraph")
    assert found[1] == "80×"
    assert found[-1] == verdict


def test_of_two_peers_the_faster_one_counts_and_both_must_be_there() -> None:
    slow, fast = row("dense-11k-4096", "faiss", 32, 9.0), row("dense-11k-4096", "numpy-matmul", 32, 2.9)
    assert line([slow], "11k")[-1] == "not measured"
    assert line([slow, fast], "11k")[2:] == ["2.90×", "-", "missed"]


def test_rows_of_the_quick_mode_or_of_a_device_are_no_measurement() -> None:
    for other in ({"quick": True}, {"device": {"device": "a GPU"}}):
        assert line([row("ppr-hotpotqa", "igraph", 1, 99.0) | other], "one query")[-1] == "not measured"


def test_the_limit_is_the_peers_time_over_that_of_the_bytes() -> None:
    timed = row("fusion-rrf", "ranx", 10_000, 70.0, ours=0.1)
    timed["moved"] = {"gathered": 0, "streamed": 100_000_000, "state": 0, "touched": 100_000_000}
    assert line([timed], "reciprocal")[3] == "-"
    assert line([timed, *LIMITS], "reciprocal")[2:] == ["70.0×", "700×", "met"]  # 7 s over 1e8 bytes at 10 GB/s


def test_a_limit_below_the_bar_is_named_with_the_share_that_was_reached() -> None:
    timed = row("fusion-rrf", "ranx", 10_000, 35.0, ours=0.1)
    timed["moved"] = {"gathered": 0, "streamed": 700_000_000, "state": 0, "touched": 700_000_000}
    found = line([timed, *LIMITS], "reciprocal")
    assert found[2:] == ["35.0×", "50.0×", "the limit is below the bar: 70% of it, met"]
    timed["ratio"]["of_medians"] = 34.0
    assert line([timed, *LIMITS], "reciprocal")[-1] == "the limit is below the bar: 68% of it, missed"
    timed["gate"]["oracle"]["proven"] = 0.9
    assert line([timed, *LIMITS], "reciprocal")[-1].endswith("; not every list is proven")


@pytest.mark.parametrize(("proven", "verdict"), [(1.0, "met"), (0.5, "missed")])
def test_lists_count_as_certified_only_where_all_are(proven: float, verdict: str) -> None:
    timed = row("ppr-topk-hotpotqa", "igraph", 64, 181.0)
    timed["gate"]["oracle"]["proven"] = proven
    found = line([timed], "certified")
    assert found[2] == f"181×, {proven:.0%} of the lists proven"
    assert found[-1] == verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(0.9 / 0.61, "met"), (0.9 / 0.59, "missed"), (-1.0, "not measured")])
def test_a_pass_is_held_to_its_share_of_the_bandwidth(seconds: float, verdict: str) -> None:
    timed = row("ppr-batches", "scipy", 64, 9.0)
    moved = {"gathered": 10**10, "streamed": 4 * 10**9, "state": 10_000, "touched": 30_000}  # 0.5 s and 0.4 s
    timed["pass"] = {"seconds": seconds, "moved": moved}
    assert line([timed], "bandwidth")[-1] == "not measured"
    found = line([timed, *LIMITS], "bandwidth")
    assert found[-1] == verdict
    if seconds > 0:
        assert found[3] == "15.6 GB/s out of L3"


@pytest.mark.parametrize(("p95", "verdict"), [(0.049, "met"), (0.050, "missed")])
def test_the_pipeline_is_held_to_its_95th_percentile(p95: float, verdict: str) -> None:
    timed = row("phasegraph-hotpotqa", None, 32, None)
    timed["hopfuse"]["p95"] = p95
    assert line([timed], "PhaseGraph")[-1] == verdict


def test_the_page_has_bars_and_ceilings() -> None:
    rows = [row("ppr-hotpotqa", "igraph", 64, 81.0), *copy.deepcopy(LIMITS)]
    page = render(rows, "a.jsonl")
    assert page.index("## Bars") < page.index("## Ceilings") < page.index("## ppr-hotpotqa")
    assert "| 80× | 81.0× | - | met |" in page
    assert "| L3 | rows of 128 bytes at random |" in page
    assert "## limits" not in page
    assert "## Ceilings" not in render(rows[:1], "a.jsonl")
