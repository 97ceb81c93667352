"""The process in which hopfuse and one peer are measured; it writes rows to standard output as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import hopfuse as hf

from .errors import GateError, UnavailableError
from .measure import measure
from .probes import PROBES
from .settings import Settings


def rows(case: str, peer: str | None, settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield measured rows; a measurement that is impossible or wrong is a row with status "skip" or "error"."""
    try:
        yield from PROBES[case](settings) if case in PROBES else measure(case, peer, settings)
    except (UnavailableError, ImportError) as reason:
        yield {"case": case, "peer": peer, "status": "skip", "reason": str(reason)}
    except (GateError, hf.errors.BackendError) as wrong:
        yield {"case": case, "peer": peer, "status": "error", "reason": str(wrong)}


def main() -> None:
    """Read a task from standard input, and write its rows."""
    task = json.load(sys.stdin)
    for row in rows(task["case"], task["peer"], Settings(**task["settings"])):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
