"""Run every pair of a case and a peer in its own process, and collect the rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .cases import BESIDE_BEST_ISA, CASES
from .machine import QUIET_CORES, ROOT, OtherLoad
from .probes import PROBES
from .settings import BACKEND_VARIABLE, ISA_VARIABLE, THREAD_VARIABLES, Settings

Row = dict[str, Any]
Launch = Callable[[str, str | None, Settings], list[Row]]


def launch(case: str, peer: str | None, settings: Settings) -> list[Row]:
    """Return rows from a new process, whose threads, backend and ISA are set before any library is loaded."""
    task = json.dumps({"case": case, "peer": peer, "settings": settings.as_dict()})
    bounds = dict.fromkeys(THREAD_VARIABLES, str(settings.threads))
    environment = os.environ | bounds | {BACKEND_VARIABLE: settings.backend, ISA_VARIABLE: settings.isa}
    child = subprocess.run(
        (sys.executable, "-m", "bench.worker"), input=task, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    rows = [json.loads(line) for line in child.stdout.splitlines()]
    if child.returncode:
        reason = f"the process ended with status {child.returncode}; its message is above"
        rows.append({"case": case, "peer": peer, "status": "error", "reason": reason})
    return rows


#: All cases, and those measured by default.
NAMES = (*PROBES, *CASES)
DEFAULT = (*PROBES, *(name for name, case in CASES.items() if not case.by_name))


def pairs(
    names: Sequence[str], backend: str = "cpu", alone: bool = False, isa: str = ""
) -> list[tuple[str, str | None]]:
    """Return (case, peer) of the named cases, None for a case without peers.

    GPU peers need a GPU backend. With an ISA, hopfuse on the best one is another peer.
    """
    beside = {} if alone else {name: case.beside(backend) for name, case in CASES.items()}
    if isa and not alone:
        beside |= {name: (*beside[name], "best-isa") for name in BESIDE_BEST_ISA}
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
    """Yield the rows of all pairs, in order, each from the quietest of up to 1 + ``retries`` tries.

    Before each try, wait up to ``patience`` seconds for a quiet machine. With ``alone``, peers are not measured.
    """
    for case, peer in pairs(names, settings.backend, alone, settings.isa):
        wait_for_quiet(patience)
        best = start(case, peer, settings)
        for _ in range(retries):
            if _disturbance(best) <= QUIET_CORES:
                break
            wait_for_quiet(patience)
            best = min(best, start(case, peer, settings), key=_disturbance)
        yield from best


def wait_for_quiet(patience: float) -> bool:
    """Wait for two seconds in which other programs are nearly idle; return False if there were none in time."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        load = OtherLoad()
        time.sleep(2.0)
        if (load.stop() or 0.0) <= QUIET_CORES:
            return True
    return False


def _disturbance(rows: list[Row]) -> float:
    """Return the highest load by other programs during a row; -1 for a wrong answer, which must not be retried."""
    if any(row["status"] == "error" for row in rows):
        return -1.0
    return max((row["load"]["other_cores"] or 0.0 for row in rows if row["status"] == "ok"), default=0.0)
