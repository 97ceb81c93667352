"""Counts over runs: seeds that go on after the last run's, totals at unchanged code, commands that repeat a failure."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import soak

sys.path.insert(0, str(Path(__file__).parents[2] / ".ci"))

import full_checks
import soak_checks
from soak_checks import PARTS, Row
from workplace import ROOT


def row(part: str, first: int, last: int, count: int = 10, commit: str = "abc", failures: tuple[int, ...] = ()) -> Row:
    return Row(part, first, last, commit, count, list(failures), 1800.0, "a machine", "2026-01-01")


def test_the_parts_are_those_that_can_be_run_and_their_paths_exist() -> None:
    assert set(PARTS) == set(soak.PARTS)
    assert set(full_checks.SHORT) <= set(PARTS)
    assert [path for part in PARTS.values() for path in part.paths if not (ROOT / path).exists()] == []


def test_seeds_go_on_after_the_last_one_of_the_part_whether_it_failed_or_not() -> None:
    rows = [row("kills", 0, 4), row("power", 0, 90), row("kills", 5, 6, failures=(7,))]
    assert soak_checks.next_seed("kills", rows) == 8
    assert soak_checks.next_seed("damages", rows) == 0
    assert soak_checks.next_seed("damages", [row("damages", 0, -1, failures=(0,))]) == 1


def test_two_parts_at_a_time_take_the_minutes_together() -> None:
    assert [soak_checks.share(60, parts) for parts in (1, 2, 3, 7)] == [3600, 3600, 1800, 900]


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


FAILING = """
import sys
assert sys.argv[1:] == ["kills", "--from", "3", "--seconds", "60"], sys.argv
print('{"seed": 3, "count": 100}')
print('{"seed": 4, "count": 100}')
sys.exit("AssertionError: 7 != 8")
"""


def test_a_failure_names_its_seed_and_the_command_that_repeats_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "soak.py").write_text(FAILING)
    monkeypatch.setattr(soak_checks, "commit", lambda: "abc1234")
    made = soak_checks.count(Path(sys.executable), tmp_path, {}, "kills", 3, 60)
    assert (made.first, made.last, made.count, made.failures, made.commit) == (3, 4, 200, [5], "abc1234")
    said = capsys.readouterr().out
    assert "AssertionError: 7 != 8" in said
    assert "kills FAILED with seed 5; to repeat it at abc1234:" in said
    assert "\n  .venv/bin/python tests/soak.py kills --from 5 --seeds 1\n" in said
