"""Keep the results of experiments as JSON, from which :mod:`.pages` writes the documentation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Any

from hopfuse.evaluate import Comparison, Evaluation

from bench.machine import ROOT

RECORDED = ROOT / "experiments" / "results"
DIGITS = 6


def write_results(path: Path, results: Any) -> None:
    """Write results as JSON, with numbers rounded to DIGITS."""
    path.write_text(json.dumps(_rounded(results), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_results(path: Path) -> dict[str, Any]:
    """Read results."""
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def figures(result: Evaluation, compared: Sequence[str]) -> dict[str, Any]:
    """Return the means of every run by group, and its comparisons with the baseline over all queries by some metrics.

    The mean of no queries is None. ``low`` and ``high`` are the 95 % interval of the run's own mean.
    """
    groups = {
        group.label: {
            "questions": group.queries,
            "means": {
                run: {m: _or_none(result.estimate(run, m, group=group.label).mean) for m in result.metrics}
                for run in result.runs
            },
        }
        for group in result.groups
    }
    against = {run: {m: _compared(result, run, m) for m in compared} for run in result.runs if run != result.baseline}
    return {"groups": groups, "baseline": result.baseline, "against baseline": against}


def _compared(result: Evaluation, run: str, metric: str) -> dict[str, Any]:
    c, e = result.comparison(run, metric), result.estimate(run, metric)
    return {"low": e.low, "high": e.high, "wins": c.wins, "losses": c.losses, "p": c.p_value, "p_holm": c.p_holm}


def comparison_row(c: Comparison) -> dict[str, Any]:
    """Return what a comparison found: the difference, its interval, queries won and lost, and p."""
    return {
        "difference": c.difference,
        "low": c.low,
        "high": c.high,
        "wins": c.wins,
        "losses": c.losses,
        "p": c.p_value,
    }


def _or_none(value: float) -> float | None:
    return None if isnan(value) else value


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
