"""Paths of data and results, and reading and writing them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench.machine import ROOT

from ..quality import FOLDERS

RESULTS = ROOT / "experiments" / "results" / "fusion.json"
RERANKING = ROOT / "experiments" / "results" / "reranking.json"
PAGE = ROOT / "docs" / "experiments.md"
DIGITS = 6


def folders_of(data: Path, parser: argparse.ArgumentParser) -> list[Path]:
    """Return the question folders of the studies."""
    absent = [name for name in FOLDERS if not (data / name).is_dir()]
    if absent:
        parser.error(f"{data} has no folder {', '.join(absent)}; give --data")
    return [data / name for name in FOLDERS]


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Write results as JSON, with numbers rounded to DIGITS."""
    path.write_text(json.dumps(_rounded(results), ensure_ascii=False) + "\n", encoding="utf-8")


def read_results(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
