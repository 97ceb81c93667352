"""A plugin of pytest that appends each outcome to a file, so that those of a run that is killed are kept."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

VARIABLE = "HOPFUSE_TEST_OUTCOMES"


def pytest_runtest_logreport(report: Any) -> None:
    """Append a test's outcome once it is known; with pytest-xdist, in the process that starts the others."""
    file = os.environ.get(VARIABLE)
    if not file or "PYTEST_XDIST_WORKER" in os.environ:
        return
    if report.when == "call" or report.outcome != "passed":
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = str(report.longrepr if crash is None else crash.message).partition("\n")[0]
        line = json.dumps({"test": report.nodeid, "outcome": report.outcome, "reason": reason})
        with open(file, "a", encoding="utf-8") as out:
            out.write(line + "\n")


def read(file: Path) -> tuple[dict[str, int], dict[str, str]]:
    """Return the number of tests by outcome, and the reasons of failures by name."""
    outcomes, faults = dict[str, str](), dict[str, str]()
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for line in lines:
        found = json.loads(line)
        if outcomes.get(found["test"]) != "failed":  # also if it fails after it passed
            outcomes[found["test"]] = found["outcome"]
        if found["outcome"] == "failed":
            faults[found["test"]] = found["reason"]
    return dict(Counter(outcomes.values())), faults
