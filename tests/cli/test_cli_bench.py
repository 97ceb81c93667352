"""``hopfuse bench`` runs the bench of the checkout in the working directory."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import processes
import pytest
from cli.cli_files import AS_DATA, about, command

ROOT = Path(__file__).parents[2]


def bench(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    given = os.environ | AS_DATA
    return processes.run(command("bench", *args), cwd=folder, capture_output=True, text=True, check=False, env=given)


@pytest.mark.parametrize("folder", [".", "tests/bench"])
def test_arguments_go_to_the_bench_of_the_checkout(folder: str) -> None:
    done = bench(ROOT / folder, "--", "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: python -m bench ")
    assert "--repeats" in done.stdout


def test_its_exit_code_and_messages_are_the_benchs() -> None:
    done = bench(ROOT, "--case", "no-such-case")
    assert done.returncode == 2
    assert "no-such-case" in done.stderr


def test_files_are_named_from_where_it_is_started(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    rows = re.findall(r"python -m bench --report ([^`]+)`", page)[0].split()
    done = bench(ROOT / "docs", "--report", *(f"../{name}" for name in rows), "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "performance.md").read_text() == page


def test_outside_a_checkout_the_error_is_one_line(refused_here: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    refusal = refused_here("bench", "--quick")
    assert refusal == about("missing")
    assert str(tmp_path) not in refusal.message


def test_a_folder_named_bench_is_not_a_checkout(refused_here: Any, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "__main__.py").write_text("raise SystemExit('another program')")
    monkeypatch.chdir(tmp_path)
    assert refused_here("bench", "--quick") == about("missing")
