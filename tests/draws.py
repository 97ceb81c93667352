"""Examples of property tests, drawn by pytest in this process from a seed: what files need is imported once."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent


class Outcomes:
    """A plugin of pytest that counts the examples that passed, and keeps what failed."""

    def __init__(self) -> None:
        self.examples, self.failures = 0, list[str]()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Count the examples of a test."""
        self.examples += sum(map(int, re.findall(r"(\d+) passing", getattr(item, "hypothesis_statistics", ""))))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a failure."""
        if report.failed:
            self.failures.append(f"{report.nodeid}\n{report.longreprtext}")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep an error of a module."""
        if report.failed:
            self.failures.append(f"{report.nodeid}\n{report.longreprtext}")


def property_tests(folder: Path = TESTS) -> list[Path]:
    """Return the files that have property tests."""
    return [path for path in sorted(folder.rglob("test_*.py")) if "@given" in path.read_text(encoding="utf-8")]


def draw_examples(path: Path, seed: int, draws: int) -> int:
    """Draw examples of the property tests of a file; return how many passed, 0 if its tests are left out here."""
    outcomes, said = Outcomes(), io.StringIO()
    options = ["-q", "-p", "no:cacheprovider", "-m", "hypothesis and not emulator", f"--hypothesis-seed={seed}"]
    with _as_in_the_full_tier(draws), contextlib.redirect_stdout(said):
        code = pytest.main([*options, "-n", "0", f"--rootdir={TESTS.parent}", str(path)], plugins=[outcomes])
    gc.unfreeze()  # tests/conftest.py freezes what was collected, which is garbage now
    if code == pytest.ExitCode.INTERRUPTED and not outcomes.failures:
        raise KeyboardInterrupt
    passed = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert passed, "\n".join(outcomes.failures) or said.getvalue()
    return outcomes.examples


@contextlib.contextmanager
def _as_in_the_full_tier(draws: int) -> Iterator[None]:
    """Set what ``tests/tiers.py`` reads when it is first imported."""
    os.environ.update(HOPFUSE_TESTS="full", HOPFUSE_DRAWS=str(draws))
    with contextlib.chdir(TESTS.parent):
        yield
