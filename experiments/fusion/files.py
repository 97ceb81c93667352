"""Paths of data and results."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..published import FOLDERS
from ..record import RECORDED

RESULTS, RERANKING = RECORDED / "fusion.json", RECORDED / "reranking.json"


def folders_of(data: Path, parser: argparse.ArgumentParser) -> list[Path]:
    """Return the question folders of the studies."""
    absent = [name for name in FOLDERS if not (data / name).is_dir()]
    if absent:
        parser.error(f"{data} has no folder {', '.join(absent)}; give --data")
    return [data / name for name in FOLDERS]
