"""The report: a JSON file that is complete after each part.

This module and the runner import only the standard library, so that a broken installation can be reported.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Statuses that are not a problem.
FINE = ("passed", "skipped")


class Report:
    """The report so far.

    Parameters
    ----------
    path : Path
        Its file; a folder beside it takes the output and files of each part.
    is_quick : bool
    """

    def __init__(self, path: Path, is_quick: bool) -> None:
        self.path, self.folder = path.resolve(), path.resolve().with_suffix(".parts")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.content: dict[str, Any] = {
            "began": now(),
            "ended": None,
            "quick": is_quick,
            "machine": about_machine(),
            "parts": [],
        }
        self.write()

    def add(self, outcome: dict[str, Any]) -> None:
        """Add the outcome of a part, and write the report."""
        self.content["parts"].append(outcome)
        self.write()

    def end(self) -> None:
        self.content["ended"] = now()
        self.write()

    def is_clean(self) -> bool:
        """Return whether no part failed, crashed or ran out of time."""
        return all(outcome["status"] in FINE for outcome in self.content["parts"])

    def write(self) -> None:
        write_json(self.path, self.content)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file atomically."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(new, path)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def about_machine() -> dict[str, Any]:
    """Return the system, the commit, and the GPUs as nvidia-smi lists them; None for what is not available."""
    fields = ("name", "driver_version", "memory.total", "compute_cap", "display_active", "persistence_mode")
    return {
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "cores": os.cpu_count(),
        "commit": _output("git", "describe", "--always", "--dirty", "--abbrev=12"),
        "nvidia_smi": _output("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv"),
    }


def _output(program: str, *arguments: str) -> str | None:
    path = shutil.which(program)
    if path is None:
        return None
    try:
        done = subprocess.run((path, *arguments), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"
    return (done.stdout if done.returncode == 0 else done.stdout + done.stderr).strip()
