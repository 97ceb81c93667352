"""Every kernel keeps the budget that its comment states, on every architecture."""

from __future__ import annotations

from pathlib import Path

from audit import audit_file
from nvrtc import Nvrtc


def test_budgets(cubins: Nvrtc, source: Path, architecture: int) -> None:
    complaints = audit_file(cubins, source, architecture)
    assert not complaints, "\n".join(complaints)
