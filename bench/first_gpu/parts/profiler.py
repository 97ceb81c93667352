"""NVIDIA's ncu on the kernels of a search: bytes, sectors, occupancy and time of each."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path

from ...errors import UnavailableError
from ..card import require_card
from ..journal import FailedError, Journal
from ..report import ROOT
from ..sizes import Sizes

PROGRAM = "ncu"
METRICS = (
    "gpu__time_duration.sum",
    "dram__bytes.sum",
    "lts__t_sectors.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "smsp__inst_executed.sum",
    "launch__registers_per_thread",
)
KERNELS = "regex:ppr_|dense_|topk_|fuse_"


def run(journal: Journal, sizes: Sizes, folder: Path) -> str:
    """Note the metrics of each launch of one search, which is not recorded."""
    require_card()
    program = shutil.which(PROGRAM)
    if program is None:
        raise UnavailableError(f"{PROGRAM} is not on PATH; it is part of the CUDA toolkit")
    clocks = ("--clock-control", "none")  # a card's settings are its owner's, and the searches run at these clocks
    asked = ("--csv", *clocks, "--metrics", ",".join(METRICS), "--kernel-name", KERNELS)
    size = ("small",) if sizes.is_quick else ("musique",)
    command = (program, *asked, sys.executable, "-m", "bench.first_gpu.once", *size)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    (folder / "ncu.csv").write_text(done.stdout, encoding="utf-8")
    launches = read(done.stdout)
    journal.note(status=done.returncode, launches=launches, errors=done.stderr[-2000:])
    if done.returncode or not launches:
        raise FailedError(f"{PROGRAM} ended with status {done.returncode} and {len(launches)} launches")
    return f"{len(launches)} launches of {len({one['kernel'] for one in launches})} kernels"


def read(text: str) -> list[dict[str, str]]:
    """Return the metrics of each launch; the tool's own messages begin with ==."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    launches = dict[str, dict[str, str]]()
    for row in csv.DictReader(lines):
        of = launches.setdefault(row["ID"], {"kernel": row["Kernel Name"]})
        of[row["Metric Name"]] = f"{row['Metric Value']} {row['Metric Unit']}".strip()
    return list(launches.values())
