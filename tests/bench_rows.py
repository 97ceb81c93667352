"""Made-up rows of the bench."""

from __future__ import annotations

from bench.stats import summary

MACHINE = {"cpu": "A CPU", "family_model": None, "flags": ["avx2"], "cores": 2, "system": "Linux x86_64"}
QUIET = {"average_before": 0.0, "other_cores": 0.0}


def row(
    case: str, peer: str | None, batch: int, ratio: float | None, ours: float = 0.01, data: str = "made up"
) -> dict:
    """Return a measured row in which the peer took ``ratio`` times as long."""
    theirs = None if ratio is None else ratio * ours
    return {
        "case": case, "peer": peer, "status": "ok", "data": data, "threads": 2, "quick": False,
        "sizes": {"stored_entries": 1000, "batch": batch},
        "gate": {
            "oracle": {"queries": 1, "error": 0.0, "tolerance": 1e-6},
            "peer": None if peer is None else {"queries": 1, "error": 0.0, "tolerance": 1e-6},
        },
        "hopfuse": summary([ours]),
        "peer_time": None if theirs is None else summary([theirs]),
        "ratio": None if ratio is None else {"of_medians": ratio, "of_pairs": ratio},
        "peer_timed_queries": batch, "peer_note": "", "moved": None, "pass": None, "kernels": ["ppr_f32_avx2"],
        "load": QUIET, "machine": MACHINE, "commit": "0123456789ab", "modified": False,
        "versions": {"python": "3.12.0", "compiler": None, "hopfuse": "0.1.0", "numpy": "2.0.0"},
    }  # fmt: skip


def limit(level: str, access: str, holds: int, rate: float) -> dict:
    """Return a measured bandwidth in GB/s."""
    return {
        "case": "limits", "peer": None, "status": "ok", "level": level, "access": access, "quick": False,
        "sizes": {"holds": holds, "array": 1024}, "rate": summary([rate]), "load": QUIET, "threads": 2,
        "machine": MACHINE, "commit": "0123456789ab", "modified": False, "versions": {"python": "3.12.0"},
    }  # fmt: skip


LIMITS = [
    limit(level, access, holds, rate)
    for level, holds, rates in (("L2", 1_000, (80, 40)), ("L3", 20_000, (50, 20)), ("memory", 0, (10, 5)))
    for access, rate in zip(("read", "gather"), rates, strict=True)
]
