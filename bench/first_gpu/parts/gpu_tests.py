"""The tests that run on a GPU: ``pytest -m gpu``, with the GPU's driver in place of the emulated one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from ...errors import UnavailableError
from ...measured_gpu import FILE
from .. import outcomes
from ..card import BACKEND, require_card
from ..journal import FailedError, Journal
from ..report import ROOT
from ..sizes import Sizes

#: Processes that share the tests, if pytest-xdist is installed; each takes some memory of the GPU.
PROCESSES = 12
#: Seconds after which the outcomes so far are noted again.
NOTED = 5.0


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Count outcomes as they come, and list the tests that failed with the last line of the reason.

    Files that have changed since the last measurement on a GPU come first.
    """
    require_card()
    if find_spec("pytest") is None:
        raise UnavailableError("pytest is not installed; pip install -e '.[dev]'")
    file = folder / "outcomes.jsonl"
    file.unlink(missing_ok=True)
    pytest = (sys.executable, "-m", "pytest", "-m", "gpu", "-p", "no:cacheprovider", "-p", outcomes.__name__)
    side_by_side = () if find_spec("xdist") is None else ("-n", str(min(PROCESSES, os.cpu_count() or 1)))
    first = () if sizes.is_quick else changed(json.loads(FILE.read_text(encoding="utf-8"))["machine"]["commit"])
    command = (*pytest, "--benchmark-disable", *side_by_side, *first, *sizes.tests)
    given = os.environ | {"HOPFUSE_TESTS_DRIVER": BACKEND, outcomes.VARIABLE: str(file)}
    journal.note(changed=list(first))
    done = subprocess.Popen(command, cwd=ROOT, env=given)
    status = None
    while status is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = done.wait(NOTED)
        counts, faults = outcomes.read(file)
        journal.note(outcomes=counts, faults=faults)
    if not counts:
        raise FailedError(f"pytest ended with status {status} before it had results")
    if faults or status:
        raise FailedError(f"{len(faults)} tests failed; pytest ended with status {status}")
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


def changed(commit: str) -> tuple[str, ...]:
    """Return the files of tests that differ from those of a commit; none without git or the commit."""
    command = ("git", "diff", "--name-only", "--diff-filter=d", commit, "--", "tests/**/test_*.py")
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(found.stdout.splitlines())
