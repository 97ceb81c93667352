"""The quick self-test under a tool of NVIDIA's compute-sanitizer."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from ...errors import UnavailableError
from ..card import require_card
from ..journal import FailedError, Journal
from ..report import ROOT
from ..sizes import Sizes

PROGRAM = "compute-sanitizer"
#: The wheel that the group ``sanitizer`` installs; its programs are not on PATH.
WHEEL = "nvidia-cuda-sanitizer-api"
#: Further options. Results are copied to the host as one block, with the gaps between arrays.
MORE = {"initcheck": ("--check-api-memory-access", "no")}
#: Exit status of the tool if it finds errors, set by an option.
FOUND = 86
SUMMARY = re.compile(r"^=+ ((?:\w+ )?SUMMARY: .*)$", re.MULTILINE)


def run(journal: Journal, sizes: Sizes, folder: Path, tool: str) -> str:
    """Run the tool, and note its summaries."""
    require_card()
    program = find()
    if program is None:
        raise UnavailableError(f"{PROGRAM} is not installed; pip install {WHEEL}")
    log = folder / f"{tool}.log"
    log.unlink(missing_ok=True)
    asked = (str(program), "--tool", tool, "--error-exitcode", str(FOUND), "--log-file", str(log), *MORE.get(tool, ()))
    done = subprocess.run((*asked, sys.executable, "-m", "bench.first_gpu.sanitized"), cwd=ROOT, check=False)
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    summaries = SUMMARY.findall(text)
    journal.note(program=str(program), summaries=summaries, status=done.returncode, first_lines=text[:4000])
    if done.returncode == FOUND:
        raise FailedError(f"{tool} found errors: {'; '.join(summaries)}")
    if done.returncode or not summaries:
        raise FailedError(f"{tool} or the program under it ended with status {done.returncode}, without a verdict")
    return "; ".join(summaries)


def find() -> Path | None:
    """Return the program on PATH, else that of the wheel, or None."""
    on_path = shutil.which(PROGRAM)
    if on_path is not None:
        return Path(on_path)
    try:
        files = metadata.files(WHEEL) or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.parts[-2:] == ("bin", PROGRAM)), None)
