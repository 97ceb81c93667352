"""The tests that run on a GPU: ``pytest -m gpu``, with the GPU's driver in place of the emulated one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

from ...errors import UnavailableError
from ..card import BACKEND, require_card
from ..journal import FailedError, Journal
from ..report import ROOT
from ..sizes import Sizes

#: Processes that share the tests, if pytest-xdist is installed; each takes some memory of the GPU.
PROCESSES = 12
#: Elements of a JUnit file for a test that did not pass.
FAULTS = ("failure", "error")


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Count outcomes, and list the tests that failed with the first line of the reason."""
    require_card()
    if find_spec("pytest") is None:
        raise UnavailableError("pytest is not installed; pip install 'hopfuse[dev]'")
    file = folder / "tests.xml"
    file.unlink(missing_ok=True)
    pytest = (sys.executable, "-m", "pytest", "-m", "gpu", "-p", "no:cacheprovider", f"--junitxml={file}")
    side_by_side = () if find_spec("xdist") is None else ("-n", str(min(PROCESSES, os.cpu_count() or 1)))
    command = (*pytest, "--benchmark-disable", *side_by_side, *sizes.tests)
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"HOPFUSE_TESTS_DRIVER": BACKEND}, check=False)
    if not file.exists():
        raise FailedError(f"pytest ended with status {done.returncode} before it had results")
    outcomes, faults = read(file)
    journal.note(outcomes=outcomes, faults=faults)
    if faults or done.returncode:
        raise FailedError(f"{len(faults)} tests failed; pytest ended with status {done.returncode}")
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())


def read(file: Path) -> tuple[dict[str, int], dict[str, str]]:
    """Return the number of tests by outcome, and the reasons of failures by name."""
    outcomes, faults = Counter[str](), dict[str, str]()
    for test in ElementTree.parse(file).iter("testcase"):
        wrong = next((child for child in test if child.tag in FAULTS), None)
        skipped = test.find("skipped") is not None
        outcomes["failed" if wrong is not None else "skipped" if skipped else "passed"] += 1
        if wrong is not None:
            faults[f"{test.get('classname')}::{test.get('name')}"] = (wrong.get("message") or "").split("\n")[0]
    return dict(outcomes), faults
