"""Timings of the bench's cases for regression runs: ``pytest -m speed tests/bench --benchmark-autosave``.

hopfuse alone, in one process; answers are proven before they are timed. ``HOPFUSE_BENCH_QUICK=1`` takes tiny inputs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.cases import CASES
from bench.cases.base import Workload
from bench.errors import UnavailableError
from bench.settings import Settings

SETTINGS = Settings(quick=bool(os.environ.get("HOPFUSE_BENCH_QUICK")), threads=len(os.sched_getaffinity(0)))


@pytest.fixture(scope="module", params=[name for name, case in CASES.items() if not case.by_name])
def workload(request: pytest.FixtureRequest) -> Workload:
    """A case, loaded once for its batch sizes."""
    try:
        return CASES[request.param].load(SETTINGS)
    except UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.mark.speed
@pytest.mark.parametrize("at", [0, -1], ids=["smallest batch", "largest batch"])
def test_speed(workload: Workload, at: int, benchmark: Any) -> None:
    batch = workload.batches[at]
    workload.check(batch, workload.run(batch, 0))
    benchmark.extra_info.update(workload.sizes, batch=batch)
    benchmark(workload.run, batch, 0)


@pytest.mark.full
def test_a_regression_run_proves_and_times_and_is_not_run_unasked(root: Path) -> None:
    tests = "tests/bench/test_bench_speed.py"
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", tests, "-k")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment |= {"HOPFUSE_BENCH_QUICK": "1", "HOPFUSE_TESTS": "full"}
    asked, unasked = (
        subprocess.run((*command, *more), cwd=root, env=environment, capture_output=True, text=True, check=False)
        for more in (("fusion-rrf", "-m", "speed"), ("fusion-rrf",))
    )
    assert asked.returncode == 0, asked.stdout
    cases = [name for name, case in CASES.items() if "fusion-rrf" in name and not case.by_name]
    assert f"{2 * len(cases)} passed" in asked.stdout
    assert "Median" in asked.stdout
    assert "passed" not in unasked.stdout
