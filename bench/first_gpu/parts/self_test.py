"""``hopfuse selftest --report``: every kernel compared with the CPU and timed by events, and leaks of recordings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from ..card import BACKEND, require_card
from ..journal import FailedError, Journal
from ..report import ROOT
from ..sizes import Sizes


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Note the self-test's own report."""
    require_card()
    file = folder / "selftest-report.json"
    file.unlink(missing_ok=True)
    form = ("--quick",) if sizes.is_quick else ()
    command = (sys.executable, "-m", "hopfuse", "selftest", "--backend", BACKEND, "--report", str(file), *form)
    done = subprocess.run(command, cwd=ROOT, check=False)
    if not file.exists():
        raise FailedError(f"hopfuse selftest ended with status {done.returncode} and no report")
    found = json.loads(file.read_text(encoding="utf-8"))
    journal.note(**found)
    if not found["passed"]:
        raise FailedError(f"{sum(not check['equal'] for check in found['checks'])} checks differ from the CPU's")
    return f"{len(found['checks'])} checks and {len(found['kernels'])} kernels are equal"
