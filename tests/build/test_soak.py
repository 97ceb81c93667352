"""Counts over runs: seeds that go on after the last run's, totals at unchanged code, commands that repeat a failure."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import draws
import processes
import pytest
import soak

sys.path.insert(0, str(Path(__file__).parents[2] / ".ci"))

import code_parts
import soak_checks
from soak_checks import PARTS, Clone, Row, Running
from workplace import ROOT


def row(part: str, first: int, last: int, count: int = 10, commit: str = "abc", failures: tuple[int, ...] = ()) -> Row:
    return Row(part, first, last, commit, count, list(failures), 1800.0, "a machine", "2026-01-01")


def test_the_parts_are_those_that_can_be_run_and_their_paths_exist() -> None:
    assert set(PARTS) == set(soak.PARTS)
    assert set(code_parts.SHORT) <= set(PARTS)
    assert [path for part in PARTS.values() for path in part.paths if not (ROOT / path).exists()] == []
    rooms = {path.name for path in (ROOT / "kernels").iterdir() if path.is_dir()}
    assert rooms - {"simt"} == {path.removeprefix("kernels/") for path in soak_checks.KERNELS} - {"bindings"}


def test_seeds_go_on_after_the_last_one_of_the_part_whether_it_failed_or_not() -> None:
    rows = [row("kills", 0, 4), row("power", 0, 90), row("kills", 5, 6, failures=(7,))]
    assert soak_checks.next_seed("kills", rows) == 8
    assert soak_checks.next_seed("damages", rows) == 0
    assert soak_checks.next_seed("damages", [row("damages", 0, -1, failures=(0,))]) == 1


def test_two_lanes_take_the_minutes_and_the_parts_what_they_need() -> None:
    assert soak_checks.lanes_of({"kills": 3600}) == [{"kills": 3600}, {}]
    assert soak_checks.lanes_of(dict.fromkeys("abcde", 90)) == [dict.fromkeys("ace", 90), dict.fromkeys("bd", 90)]
    assert soak_checks.lanes_of({"a": 100, "b": 400, "c": 200}) == [{"b": 400}, {"c": 200, "a": 100}]
    assert soak_checks.share(100, [300], left=1000) == 100
    assert soak_checks.share(100, [300], left=200) == 50
    assert soak_checks.share(300, [], left=150) == 150
    assert soak_checks.share(300, [], left=-1) == 0


def test_what_is_missing_to_the_goals_is_of_code_that_has_not_changed() -> None:
    rows = [row("kills", 0, 99, 10_000), row("power", 0, 9, 40_000), row("damages", 0, 9, 900, commit="old")]
    found = soak_checks.missing(rows, lambda one: one.commit != "old")
    assert "kills" not in found
    assert (found["power"], found["damages"], found["histories"]) == (60_000, 1_000_000, 2_000)
    assert soak_checks.missing([row(name, 0, 1, part.goal) for name, part in PARTS.items()], lambda _: True) == {}


def test_needs_are_those_of_the_last_run_with_a_margin() -> None:
    rows = [row("power", 0, 9, 9), row("power", 10, 19, 1_800), row("power", 20, 19, 0)]
    assert soak_checks.needs({"power": 400, "kills": 5_000}, rows) == {"power": 500, "kills": 2_250}


def test_rows_are_kept_and_totals_are_those_of_code_that_has_not_changed(tmp_path: Path) -> None:
    record = tmp_path / "results" / "soak.jsonl"
    for one in (row("kills", 0, 4, count=500), row("kills", 5, 6, count=200, commit="old", failures=(7,))):
        soak_checks.append(record, one)
    rows = soak_checks.rows_of(record)
    assert rows[1] == row("kills", 5, 6, count=200, commit="old", failures=(7,))
    lines = soak_checks.table_of(rows, lambda one: one.commit != "old")
    assert "| kills | kills of an index's writer | 500 | 10,000 | 0 | abc | 30 | 700 |" in lines
    assert "| power | losses of power in histories of changes | 0 | 100,000 | 0 | - | 0 | 0 |" in lines


def test_a_part_counts_seed_by_seed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    folders = []

    def part(place: soak.Place, seed: int) -> int:
        folders.append(place.fresh())
        assert seed < 9, "a fault"
        return 10 * seed

    monkeypatch.setitem(soak.PARTS, "kills", part)
    soak.main(["kills", "--from", "5", "--seeds", "2"])
    soak.main(["kills", "--from", "7", "--seconds", "0"])
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"seed": seed, "count": 10 * seed} for seed in (5, 6, 7)
    ]
    with pytest.raises(AssertionError, match="a fault"):
        soak.main(["kills", "--from", "8", "--seeds", "5"])
    assert len(set(folders)) == 5
    assert not any(folder.exists() for folder in folders)
    capsys.readouterr()
    soak.main(["kills", "--from", "2", "--seconds", "600", "--count", "60"])
    assert len(capsys.readouterr().out.splitlines()) == 3  # 20 + 30 + 40


def test_temporary_files_of_a_seed_are_removed_and_processes_that_are_left_fail_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, started = [], []

    def part(place: soak.Place, seed: int) -> int:
        made.append(Path(tempfile.mkdtemp()))
        if seed:
            started.append(subprocess.Popen(["sleep", "600"]))
        return 1

    monkeypatch.setitem(soak.PARTS, "power", part)
    soak.main(["power", "--seeds", "1"])
    try:
        with pytest.raises(AssertionError, match="seed 1 left processes"):
            soak.main(["power", "--from", "1", "--seeds", "1"])
    finally:
        started[0].kill()
        started[0].wait()
    assert not any(folder.exists() for folder in made)
    assert tempfile.gettempdir() != str(made[0].parent)


UNTIL_TOLD = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    print('{"seed": 0, "count": 100}', flush=True)
    while True:
        time.sleep(0.01)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interrupted_run_keeps_what_was_counted_and_starts_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "soak.py").write_text(UNTIL_TOLD)
    heads = iter(["abc1234"])  # HEAD is read once, as it may go on meanwhile
    monkeypatch.setattr(soak_checks, "commit", lambda: next(heads))
    monkeypatch.setattr(soak_checks, "prepare", lambda name: Clone(name, tmp_path, Path(sys.executable), {}))
    waited = []

    def interrupt(tasks: list[Any]) -> None:
        waited.append(tasks)
        if len(waited) == 1:
            wait(tasks, timeout=1.0)
            raise KeyboardInterrupt
        wait(tasks)

    monkeypatch.setattr(soak_checks, "wait", interrupt)
    record = tmp_path / "rows.jsonl"
    with pytest.raises(KeyboardInterrupt):
        soak_checks.run([{"kills": 600, "power": 600}, {"damages": 600}], 10, None, record, {})
    rows = soak_checks.rows_of(record)
    assert {one.part for one in rows} <= {"kills", "damages"}
    found = {(one.first, one.last, one.count, tuple(one.failures), one.commit) for one in rows}
    assert found == {(0, 0, 100, (), "abc1234")}


def test_a_seed_draws_examples_of_a_file_and_a_failing_one_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "_as_in_the_full_tier", lambda _: contextlib.nullcontext())
    monkeypatch.setattr("hypothesis.core.global_force_seed", None)  # restored after the test
    test = tmp_path / "test_sums.py"
    test.write_text(DRAWN.format(most=3))
    assert draws.property_tests(tmp_path) == [test]
    with pytest.raises(AssertionError, match=r"test_numbers_are_small(.|\n)*the number is [4-9]"):
        draws.draw_examples(test, 0, 50)
    other = tmp_path / "test_others.py"
    other.write_text(DRAWN.format(most=9))
    assert draws.draw_examples(other, 0, 50) == 10


DRAWN = """
from hypothesis import given, settings, strategies as st

@settings(max_examples=50)
@given(st.integers(0, 9))
def test_numbers_are_small(number):
    assert number <= {most}, f"the number is {{number}}"
"""

FAILING = """
import sys
assert sys.argv[1:] == ["kills", "--from", "3", "--seconds", "60"], sys.argv
print('{"seed": 3, "count": 100}')
print('{"seed": 4, "count": 100}')
sys.exit("AssertionError: 7 != 8")
"""


def test_a_failure_names_its_seed_and_the_command_that_repeats_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "soak.py").write_text(FAILING)
    clone = Clone("abc1234", tmp_path, Path(sys.executable), {})
    made = soak_checks.count(Running(), clone, "kills", 3, "--seconds", "60")
    assert (made.first, made.last, made.count, made.failures, made.commit) == (3, 4, 200, [5], "abc1234")
    said = capsys.readouterr().out
    assert "AssertionError: 7 != 8" in said
    assert "kills FAILED with seed 5; to repeat it at abc1234:" in said
    assert "\n  .venv/bin/python tests/soak.py kills --from 5 --seeds 1\n" in said


def test_a_fork_that_a_seed_leaves_fails_it_and_what_ran_before_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork is a child of the template, and has its command."""
    if not processes.FORKS:
        pytest.skip("processes are no forks here")
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    before, left = processes.Popen(sleeps), []

    def part(place: soak.Place, seed: int) -> int:
        if seed:
            left.append(processes.Popen(sleeps))
        return 1

    monkeypatch.setitem(soak.PARTS, "power", part)
    try:
        soak.main(["power", "--seeds", "1"])
        with pytest.raises(AssertionError, match="seed 1 left processes"):
            soak.main(["power", "--from", "1", "--seeds", "1"])
    finally:
        for one in (before, *left):
            one.kill()
            one.wait()
