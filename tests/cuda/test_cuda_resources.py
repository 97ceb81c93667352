"""Every kernel keeps the budget that its comment states, on every architecture."""

from __future__ import annotations

from pathlib import Path

from audit import audit_file
from nvrtc import ROOT, Nvrtc

PROBES = ROOT / "bench" / "first_gpu" / "probes.cu"


def test_budgets(cubins: Nvrtc, source: Path, architecture: int) -> None:
    complaints = audit_file(cubins, source, architecture)
    assert not complaints, "\n".join(complaints)


def test_budgets_of_the_probes(compiler: Nvrtc, architecture: int) -> None:
    """Kernels of the bench, which only a GPU and the emulator run."""
    assert audit_file(compiler, PROBES, architecture) == []
