"""The pages on GPUs are the output of their formulas, whose counts are those of the kernels."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

from bench import gpu_kernels, gpu_model, measured_gpu, roofline
from bench.gpu_cards import CALIBRATED, CARDS, Card, Constants
from bench.gpu_kernels import MILLION, MUSIQUE, SMALL, Search, Size, Work

SOURCES = Path(__file__).resolve().parents[2] / "kernels" / "cuda"
H200 = CARDS[-1]
#: A GPU that does one thing a second, and constants that add nothing.
SLOW = Card("slow", 1e-9, 0, 1, 16e-12, 1.0, 1e-9, 1e-12, 90, l2_cycle=1, measured=True)
PLAIN = Constants(1.0, 1.0, 10.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
SEARCHES = [(size, batch) for size in (SMALL, MUSIQUE, MILLION) for batch in (1, 32)]


@pytest.mark.parametrize("name", roofline.PAGES)
def test_a_page_is_what_the_formulas_give(name: str) -> None:
    assert (roofline.DOCS / name).read_text(encoding="utf-8") == roofline.PAGES[name]()


def test_the_page_of_formulas_has_no_times_of_cards_that_nobody_measured() -> None:
    page = roofline.formula_page()
    assert "A computed time is no measurement, and only an H200 has checked the formula" in page
    others = [card.name for card in CARDS if not card.measured]
    assert len(others) > 5
    assert [line for line in page.splitlines() if line.startswith("|") and any(name in line for name in others)] == []


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_times_of_a_card_say_what_they_are_worth(card: Card, capsys: pytest.CaptureFixture[str]) -> None:
    roofline.main(["--card", card.name])
    printed = capsys.readouterr().out
    assert printed.startswith(f"{card.name}: computed, in ms.")
    assert ("nobody has measured this card" in printed) != card.measured
    assert printed.count("\n| ") == len(roofline.TABLES) + 2


def test_the_page_of_measurements_says_first_what_ran() -> None:
    page = roofline.measured_page()
    report, earlier = measured_gpu.read(measured_gpu.FILE), measured_gpu.read(measured_gpu.EARLIER)
    opening = page[: page.index("## ")]
    only_earlier = earlier.parts.keys() - report.parts.keys()
    assert {"tests", "selftest", "memcheck", "recordings"} <= only_earlier
    assert all(f"`{part}`" in opening for part in only_earlier)
    assert "with an earlier version" in opening
    assert "No RTX card has run it" in opening
    rows = [*report.details("calls")["rows"], *earlier.details("bench")["rows"]]
    commits = {row["commit"] for row in rows if row["status"] == "ok"}
    machines = (report.whole["machine"]["commit"].removesuffix("-dirty"), earlier.whole["machine"]["commit"])
    assert all(commit in page for commit in (*commits, *machines))


def test_the_page_says_what_failed() -> None:
    report, page = measured_gpu.read(measured_gpu.FILE), measured_gpu.section()
    failed = [name for name, part in report.parts.items() if part["status"] == "failed"]
    assert failed == ["initcheck"]
    assert "**initcheck failed**: it reported 288 reads" in page
    skipped = {row["case"] for row in report.details("calls")["rows"] if row["status"] == "skip"}
    assert {"ppr-hotpotqa", "ppr-topk-hotpotqa"} <= skipped
    assert "Walks beside CuPy, because the data of HotpotQA was not there" in page


def test_a_latency_of_memory_needs_lines_that_were_not_read_before() -> None:
    rates = measured_gpu.read(measured_gpu.FILE).details("rates")
    assert "The latency of memory is left out" in measured_gpu.section()
    assert "a load from memory" not in measured_gpu._rates(rates)
    rates["latency of memory"] |= {"lines": 420_000, "seconds": 6e-7}
    assert "| a load from memory that waits for the one before | 600 ns |" in measured_gpu._rates(rates)


def test_the_page_has_every_search_and_call_measured_on_a_gpu() -> None:
    report, earlier = measured_gpu.read(measured_gpu.FILE), measured_gpu.read(measured_gpu.EARLIER)
    page, searches = measured_gpu.section(), report.details("searches")["rows"]
    assert all(row["equal"] for row in (*earlier.whole["before"], *searches))
    for row, then in zip(searches, earlier.details("searches")["rows"], strict=True):
        times = (then["milliseconds"], row["milliseconds"], 1e3 * row["rested"]["median"])
        assert f"| {row['size']} | {row['batch']} | {' | '.join(f'{ms:.2f} ms' for ms in times)} |" in page
    for row in report.details("calls")["rows"]:
        if row["status"] == "ok" and row["peer"] is not None:
            times = (1e3 * row[side]["median"] for side in ("hopfuse", "peer_time"))
            ratio = f"{row['ratio']['of_medians']:.1f}x"
            assert f"| {' | '.join(f'{ms:.2f} ms' for ms in times)} | {ratio} |" in page
    beside = [row for row in earlier.details("bench")["rows"] if row["status"] == "ok" and row["peer"] == "cupy-spmm"]
    assert len(beside) == 4
    assert all(f"| {row['case']} | {row['sizes']['batch']} | {row['peer']} |" in page for row in beside)


def test_device_time_by_part_is_all_of_it() -> None:
    for row in measured_gpu.read(measured_gpu.FILE).details("searches")["rows"]:
        parts = sum(measured_gpu._sum(row["kernels"], starts) for starts in measured_gpu.PARTS.values())
        assert parts == pytest.approx(sum(taken for _, taken in row["kernels"].values()))


# ---- Calibration


def test_parts_of_a_measured_search_are_all_of_it() -> None:
    rows = measured_gpu.read(measured_gpu.FILE).details("searches")["rows"]
    found = measured_gpu.searches_by_part()
    assert [(size, batch) for size, batch, _ in found] == [(row["size"], row["batch"]) for row in rows]
    for row, (_, _, taken) in zip(rows, found, strict=True):
        assert set(taken) == set(roofline.PARTS)
        assert sum(taken.values()) == pytest.approx(1e3 * row["milliseconds"])
        assert min(taken[part] for part in taken if part != "early passes") > 0
        assert (taken["early passes"] > 0) == (row["batch"] > 1)  # one query's passes are all in one launch


def test_the_frozen_comparison_is_of_the_measurement_and_near_it() -> None:
    rows = [roofline.Compared(**row) for row in roofline.frozen()["parts"]]
    taken = {(size, batch): parts for size, batch, parts in measured_gpu.searches_by_part()}
    assert [taken[row.size, row.batch][row.part] for row in rows] == [row.measured for row in rows]
    large = [row for row in rows if row.measured >= roofline.COMPARED and row.part != "host and gaps"]
    far = [row for row in large if not row.is_close]
    assert len(far) <= 4, far
    assert all(1 / 1.6 < row.ratio < 1.6 for row in large)
    for size, batch in taken:
        of = [row for row in rows if (row.size, row.batch) == (size, batch)]
        assert 0.75 < sum(row.computed for row in of) / sum(row.measured for row in of) < 1.3


# ---- Formula


def seconds(**counts: float) -> float:
    return gpu_model.seconds(Work("part", "kernel", first_near=0, first_steps=0, threads=32, **counts), SLOW, PLAIN)


def test_each_limit_by_hand() -> None:
    assert seconds(memory=7) == 7
    assert seconds(cache=7) == pytest.approx(7)
    assert seconds(doubles=7) == pytest.approx(14 / 16)
    assert seconds(tensor=7) == 7
    assert seconds(far=7, units=2) == 140
    assert seconds(near=7, units=2) == 14
    assert seconds(blocks=32, far=1) == 10
    assert seconds(blocks=33, far=1) == 20  # 32 blocks run at once
    assert seconds(blocks=16, issued=5, steps=1) == 20  # 4 schedulers
    assert seconds(memory=7, far=1, times=3) == 30  # the longest


def test_launches_and_barriers_are_added() -> None:
    work = Work("part", "kernel", times=3, launches=2, memory=1, barriers=1, first_near=0, first_steps=0)
    given = replace(PLAIN, launch=100.0, barrier=1000.0)
    assert gpu_model.seconds(work, SLOW, given) == 3 * (1 + 1000) + 2 * 100


@pytest.mark.parametrize(
    ("registers", "shared", "threads", "blocks"),
    [(32, 0, 256, 8), (64, 0, 256, 4), (33, 0, 256, 6), (32, 50_000, 256, 4), (32, 0, 32, 32)],
)
def test_blocks_at_once(registers: int, shared: int, threads: int, blocks: int) -> None:
    assert SLOW.resident_blocks(threads, registers, shared) == blocks


@pytest.mark.parametrize(("rows", "ahead"), [(1, 4), (8, 8), (8, 1)])
def test_groups_are_those_of_random_rows(rows: int, ahead: int) -> None:
    entries = np.random.default_rng(0).poisson(10.0, (40_000, rows)).max(axis=1)
    groups = -(-entries // ahead)
    mean, variance = gpu_kernels.groups_of(10.0, rows, ahead)
    assert mean == pytest.approx(groups.mean(), rel=0.01)
    assert variance == pytest.approx(groups.var(), rel=0.05)


def test_first_passes_by_hand() -> None:
    """96 rows of 32 queries, 11 times more with each pass: few of a million after three passes."""
    shares = [96e-6 * 11**number for number in range(5)]
    expected = [pytest.approx(pair) for pair in zip(shares[:4], [*shares[1:4], 1.0], strict=True)]
    assert Search(MILLION, 32, H200).early_shares() == expected
    assert Search(Size("tiny", 150, 600, 1, 1), 32, H200).early_shares() == []


def test_a_cache_serves_more_of_a_small_state() -> None:
    shares = [Search(MILLION, 32, replace(H200, l2=l2)).hit_share(1.28e9) for l2 in (0, 30, 60, 1e9)]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (pytest.approx(0, abs=1e-6), pytest.approx(1, abs=1e-6))


@pytest.mark.parametrize(("size", "batch"), SEARCHES)
def test_a_better_card_is_never_slower(size: Size, batch: int) -> None:
    better = [{"bandwidth": 2 * H200.bandwidth}, {"clock": 2 * H200.clock}, {"tensor": inf}, {"multiprocessors": 264}]
    least = sum(gpu_model.parts(Search(size, batch, H200)).values())
    for of in better[:3]:
        assert sum(gpu_model.parts(Search(size, batch, replace(H200, **of))).values()) <= least * 1.0001


@pytest.mark.parametrize(("size", "batch"), SEARCHES)
def test_every_row_names_a_kernel_of_a_file(size: Size, batch: int) -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.cu")))
    names = {work.kernel.split(",")[0] for work, _ in gpu_kernels.works(Search(size, batch, H200))}
    for name in names:
        macro = name.replace("_lL", "_l##L").replace("_TYPE", "_f32").replace("_weighted", "_##name##")
        assert re.search(rf"(?<!\w){re.escape(macro)}(?!\w)", text), name


def test_parts_have_no_other_names() -> None:
    for size, batch in SEARCHES:
        assert set(gpu_model.parts(Search(size, batch, H200))) <= set(roofline.PARTS)


def test_constants_that_were_measured_are_those_of_the_report() -> None:
    report = measured_gpu.read(measured_gpu.FILE)
    rates = report.details("rates")
    gathered = max(one["gigabytes_per_second"] for one in rates["gathers from L2"])
    assert H200.l2_bandwidth == pytest.approx(1e9 * gathered, rel=0.01)
    shorter = [one["gigabytes_per_second"] / one["row_bytes"] for one in rates["gathers from L2"][:3]]
    assert max(shorter) / min(shorter) < 1.05  # rows of less than gpu_kernels.GATHERED bytes take as long
    assert CALIBRATED.barrier == pytest.approx(rates["barrier"]["seconds"], rel=0.01)
    assert CALIBRATED.bandwidth_share <= rates["copy"]["gigabytes_per_second"] / H200.bandwidth
    (kernels,) = (
        row["kernels"] for row in report.details("searches")["rows"] if (row["size"], row["batch"]) == ("musique", 32)
    )
    (microseconds,) = (taken for name, (_, taken) in kernels.items() if "HtoD" in name)
    copied = 32 * (4 * MUSIQUE.dim + 16 * gpu_kernels.SEEDS)
    assert CALIBRATED.host_copies == pytest.approx(copied / (1e-6 * microseconds), rel=0.01)


def test_the_forecast_is_of_every_measured_search() -> None:
    assert roofline.FORECAST.keys() == measured_gpu.milliseconds().keys()


def test_bars_have_what_was_measured_beside_what_is_computed(capsys: pytest.CaptureFixture[str]) -> None:
    roofline.main(["--bars"])
    rows = capsys.readouterr().out.splitlines()[2:]
    measured = measured_gpu.milliseconds()
    assert rows[0].startswith(f"| H200, million, B = 32 | {measured['million', 32]:.2f} | ")
    assert all("* " not in row or "|  |" in row for row in rows if row)


def test_constants_are_of_their_kinds() -> None:
    assert 0 < CALIBRATED.bandwidth_share < 1
    assert 0 < CALIBRATED.issue_share < 1
    assert CALIBRATED.cache_latency < CALIBRATED.memory_latency < 1e-6
