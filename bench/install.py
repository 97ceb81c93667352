"""Measure an installation from a checkout: the time to build the wheel, and the size of what each extra installs.

python -m bench.install [--out FILE] [--extra NAME ...] [--wheel FILE]

Builds the wheel of this commit in a copy of its files, without ccache and with pip's isolation, as ``pip install .``
does; then installs the wheel with each extra into an empty folder. ``--wheel`` takes a wheel that was built before, and
keeps the recorded build. Sizes are of files, without bytecode. Writes bench/results/install.json.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .machine import ROOT, commit, machine

OUT = ROOT / "bench" / "results" / "install.json"
EXTRAS = ("", "cli", "arrow", "demo", "atlas", "serve")


def build(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Build the wheel of the commit in a folder; return it, and the time that it took."""
    source, wheels = folder / "source", folder / "wheels"
    source.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", source], input=archive, check=True)
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    made = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-cache-dir", "-w", wheels, source]
    subprocess.run(made, check=True, env={**os.environ, "CCACHE_DISABLE": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = sum(getattr(after, kind) - getattr(before, kind) for kind in ("ru_utime", "ru_stime"))
    (wheel,) = wheels.glob("*.whl")
    return wheel, {"minutes": (time.perf_counter() - begin) / 60, "cpu minutes": spent / 60, "wheel": megabytes(wheel)}


def megabytes(path: Path) -> float:
    """Return the size of a file, or of all files of a folder but bytecode, in MB."""
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file() and f.suffix != ".pyc"]
    return sum(file.stat().st_size for file in files) / 1e6


def installed(wheel: Path, extra: str, folder: Path) -> float:
    """Return the MB that the wheel, with an extra, installs into an empty folder."""
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--target", folder, what], check=True)
    return megabytes(folder)


def main() -> int:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m bench.install", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--extra", dest="extras", action="append", help="only this extra; may be repeated")
    parser.add_argument("--wheel", type=Path, help="an earlier build's wheel")
    parser.add_argument("--keep", type=Path, help="folder for the wheel")
    given = parser.parse_args()
    found = json.loads(given.out.read_text(encoding="utf-8")) if given.wheel else {"machine": machine(), **commit()}
    with tempfile.TemporaryDirectory() as work:
        wheel = given.wheel
        if wheel is None:
            load = os.getloadavg()[0]
            wheel, built = build(Path(work))
            found["build"] = {**built, "load before": load, "load after": os.getloadavg()[0]}
            if given.keep is not None:
                wheel = wheel.rename(given.keep / wheel.name)
            given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        sizes = found.setdefault("installed", {})
        for extra in given.extras if given.extras is not None else EXTRAS:
            sizes[extra or "none"] = installed(wheel, extra, Path(work) / (extra or "none"))
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
