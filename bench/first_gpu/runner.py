"""Run parts one after the other, each in its own process group, which is killed at its time limit."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .parts import Part
from .report import ROOT, Report

#: Characters of a part's output to put into the report; all of it is in the folder beside the report.
TAIL = 4000
#: Seconds to wait for a killed process, because one that hangs in the driver may never end.
GRACE = 30.0


class Ended(NamedTuple):
    """The exit status of a process (None if it was killed at its limit) and its wall time."""

    status: int | None
    seconds: float


def run(
    parts: Sequence[Part], report: Report, is_quick: bool, minutes: float | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each part after adding it to the report.

    All parts share a kernel cache that is empty before the first. With ``minutes`` they end in that time: parts have
    their short limits, and those for which no time is left are skipped.
    """
    end = None if minutes is None else time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="first-gpu-") as cache:
        environment = os.environ | {"HOPFUSE_CUDA_CACHE": cache, "PYTHONUNBUFFERED": "1"}
        for part in parts:
            limit = part.limit if end is None else min(part.short or part.limit, end - time.monotonic())
            if limit > 0:
                outcome = run_part(Part(**{**part._asdict(), "limit": limit}), report.folder, is_quick, environment)
            else:
                outcome = _left_out(part)
            report.add(outcome)
            yield outcome
    report.end()


def run_part(part: Part, folder: Path, is_quick: bool, environment: dict[str, str]) -> dict[str, Any]:
    """Return the outcome that the part wrote, or how its process ended if it wrote none."""
    result, log = folder / f"{part.name}.json", folder / f"{part.name}.txt"
    result.unlink(missing_ok=True)
    task = json.dumps({"part": part._asdict(), "folder": str(folder), "quick": is_quick})
    ended = run_limited((sys.executable, "-m", "bench.first_gpu.worker", task), log, part.limit, environment)
    found = {"status": "running", "about": "", "details": {}}
    if result.exists():
        found = json.loads(result.read_text(encoding="utf-8"))
    if found["status"] == "running" or ended.status != 0:  # a part may also crash after it wrote its outcome
        before = f", after it reported: {found['about']}" if found["about"] else ""
        found |= {"status": "timed out" if ended.status is None else "crashed", "about": _how(ended, part) + before}
    return {
        "name": part.name,
        "status": found["status"],
        "about": found["about"],
        "seconds": round(ended.seconds, 2),
        "limit": part.limit,
        "details": found["details"],
        "output": _tail(log),
    }


def _left_out(part: Part) -> dict[str, Any]:
    about = {"name": part.name, "status": "skipped", "about": "no time was left"}
    return {**about, "seconds": 0.0, "limit": 0.0, "details": {}, "output": ""}


def run_limited(command: Sequence[str], log: Path, limit: float, environment: dict[str, str]) -> Ended:
    """Run a command with its output in a file; kill it and its children at the time limit."""
    begin = time.monotonic()
    with log.open("wb") as output:
        child = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            status = child.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            seconds = time.monotonic() - begin
            with contextlib.suppress(ProcessLookupError):  # children that outlived a crash
                os.killpg(child.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(GRACE)
    return Ended(status, seconds)


def _how(ended: Ended, part: Part) -> str:
    if ended.status is None:
        return f"it was killed after {part.limit:g} s"
    if ended.status < 0:
        return f"its process was ended by {signal.Signals(-ended.status).name}"
    return f"its process ended with status {ended.status}"


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-TAIL:]
