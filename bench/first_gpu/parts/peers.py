"""The benchmarks on the GPU: hopfuse alone, then beside the GPU peers, which are skipped if absent.

Each row has calls that begin after a rest, and calls one right after another, with minima, medians and clocks.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ...cases import CASES
from ...runner import launch
from ...settings import Settings
from ..card import BACKEND, require_card
from ..journal import FailedError, Journal
from ..sizes import Sizes
from . import CALLS

#: Whole searches, for which there is no GPU peer.
RECIPES = ("phasegraph-hotpotqa", "guided-walk")


def run(journal: Journal, sizes: Sizes, folder: Path, *cases: str) -> str:
    """Run some cases, or all others; note every row at once, so that none is lost if a peer hangs."""
    require_card()
    settings = Settings(quick=sizes.is_quick, repeats=sizes.repeats, backend=BACKEND)
    rows: list[dict[str, Any]] = []
    for case in cases or [name for name in CASES if name not in CALLS]:
        about = CASES[case]
        for peer in (None, *about.gpu_peers) if about.gpu_peers or case in RECIPES else ():
            rows += launch(case, peer, settings)
            journal.note(rows=rows)
    counts = Counter(row["status"] for row in rows)
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    if counts["error"]:
        reason = next(row["reason"] for row in rows if row["status"] == "error")
        raise FailedError(f"rows: {summary}; the first error: {reason}")
    return f"rows: {summary}"
