"""Runs every (case, peer) pair in its own process and collects the rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .cases import CASES
from .machine import QUIET_CORES, ROOT, OtherLoad
from .probes import PROBES
from .settings import BACKEND_VARIABLE, THREAD_VARIABLES, Settings

Row = dict[str, Any]
Launch = Callable[[str, str | None, Settings], list[Row]]


def launch(case: str, peer: str | None, settings: Settings) -> list[Row]:
    """Rows from a fresh process, whose thread pools and backend are set before any library is loaded."""
    task = json.dumps({"case": case, "peer": peer, "settings": settings.as_dict()})
    bounds = dict.fromkeys(THREAD_VARIABLES, str(settings.threads))
    environment = os.environ | bounds | {BACKEND_VARIABLE: settings.backend}
    child = subprocess.run(
        (sys.executable, "-m", "bench.worker"), input=task, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    rows = [json.loads(line) for line in child.stdout.splitlines()]
    if child.returncode:
        reason = f"the process ended with status {child.returncode}; its message is above"
        rows.append({"case": case, "peer": peer, "status": "error", "reason": reason})
    return rows


#: Everything that can be asked for, and what is measured unasked.
NAMES = (*PROBES, *CASES)
DEFAULT = (*PROBES, *(name for name, case in CASES.items() if not case.by_name))


def pairs(names: Sequence[str], backend: str = "cpu", alone: bool = False) -> list[tuple[str, str | None]]:
    """(case, peer) of the named cases; a case without peers is measured alone. The CPU has no peer on a GPU."""
    beside = {} if alone else {name: case.beside(backend) for name, case in CASES.items()}
    return [(name, peer) for name in names for peer in beside.get(name) or (None,)]


def run(
    names: Sequence[str],
    settings: Settings,
    retries: int = 0,
    patience: float = 0.0,
    start: Launch = launch,
    *,
    alone: bool = False,
) -> Iterator[Row]:
    """Rows of all pairs, in order; each pair's quietest try of up to ``retries`` more.

    Before each try, up to ``patience`` seconds are spent waiting for a machine that is quiet. With ``alone``, no peer
    is measured.
    """
    for case, peer in pairs(names, settings.backend, alone):
        wait_for_quiet(patience)
        best = start(case, peer, settings)
        for _ in range(retries):
            if _disturbance(best) <= QUIET_CORES:
                break
            wait_for_quiet(patience)
            best = min(best, start(case, peer, settings), key=_disturbance)
        yield from best


def wait_for_quiet(patience: float) -> bool:
    """Wait for two seconds in which other programs use next to nothing; False if none came in time."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        load = OtherLoad()
        time.sleep(2.0)
        if (load.stop() or 0.0) <= QUIET_CORES:
            return True
    return False


def _disturbance(rows: list[Row]) -> float:
    """The most that other programs took while a row was measured; a wrong answer is never tried away."""
    if any(row["status"] == "error" for row in rows):
        return -1.0
    return max((row["load"]["other_cores"] or 0.0 for row in rows if row["status"] == "ok"), default=0.0)
