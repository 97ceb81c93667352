"""The bench on the card: hopfuse alone, then beside the peers on a GPU, each skipped with its reason where absent."""

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

#: Whole searches, which no library on a GPU has.
RECIPES = ("phasegraph-hotpotqa", "guided-walk")


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Note every row as it comes: a peer that hangs takes none of them away."""
    require_card()
    settings = Settings(quick=sizes.is_quick, repeats=sizes.repeats, backend=BACKEND)
    rows: list[dict[str, Any]] = []
    for case, about in CASES.items():
        for peer in (None, *about.gpu_peers) if about.gpu_peers or case in RECIPES else ():
            rows += launch(case, peer, settings)
            journal.note(rows=rows)
    counts = Counter(row["status"] for row in rows)
    said = ", ".join(f"{count} {status}" for status, count in counts.items())
    if counts["error"]:
        raise FailedError(f"rows: {said}; the first error: {next(r['reason'] for r in rows if r['status'] == 'error')}")
    return f"rows: {said}"
