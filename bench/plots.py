"""``python -m bench --plots``: plots of recorded rows, with matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from . import series
from .ceilings import Ceilings
from .limits import GATHER, READ
from .text import ACCESS

Row = dict[str, Any]
#: Makes the same rows give the same bytes.
STABLE = {"svg.hashsalt": "hopfuse"}


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write an SVG file to ``folder`` for each plot that the rows have data for, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with mpl.rc_context(STABLE):
        for name, figure in figures(rows):
            written.append(folder / f"{name}.svg")
            figure.savefig(written[-1], metadata={"Date": None})
    return written


def figures(rows: Sequence[Row]) -> Iterator[tuple[str, Figure]]:
    """Yield the name and figure of each plot that the rows have data for."""
    by_batch, by_size = series.latency(rows), series.throughput(rows)
    if by_batch:
        title = "Personalized PageRank, hotpotqa graph"
        yield "latency", _lines(by_batch, title, "queries in a call", "seconds a call")
    if by_size:
        title = f"Personalized PageRank, generated graphs, {series.BATCH} queries in a call"
        yield "throughput", _lines(by_size, title, "stored entries", "queries a second")
    ceilings, points = Ceilings([row for row in rows if row["status"] == "ok"]), series.passes(rows)
    if ceilings and points:
        yield "roofline", _roofline(ceilings, points)


def _lines(lines: series.Lines, title: str, across: str, up: str) -> Figure:
    figure, axes = _axes(title, across, up)
    for name, points in lines.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.legend()
    return figure


def _roofline(ceilings: Ceilings, points: Sequence[series.Point]) -> Figure:
    """Plot a line for the limit of each level and access, and a point for each measured pass."""
    figure, axes = _axes("A float32 pass", "operations per byte", "GFLOP/s")
    ends = [0.5 * min(p.intensity for p in points), 1.5 * max(p.intensity for p in points)]
    for (level, access), rate in ceilings.rates.items():
        style = {READ: "-", GATHER: "--"}.get(access, ":")
        axes.plot(ends, [rate * x for x in ends], style, label=f"{level}, {ACCESS[access]}: {rate:.3g} GB/s")
    for point in points:
        axes.plot(point.intensity, 1e-9 * point.rate, "k.")
        axes.annotate(point.label, (point.intensity, 1e-9 * point.rate), fontsize="xx-small")
    axes.legend(fontsize="x-small")
    return figure


def _axes(title: str, across: str, up: str) -> tuple[Figure, Any]:
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    axes.set(title=title, xlabel=across, ylabel=up, xscale="log", yscale="log")
    axes.grid(True, which="both", alpha=0.3)
    return figure, axes
