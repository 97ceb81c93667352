"""Plots as inline SVG that takes its colours from the page, in one style.

Matplotlib is imported at the first plot; the extra ``eval`` installs it.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar
from xml.etree import ElementTree

import numpy as np

from .._validation import import_extra
from ..evaluate.curves import Curve, Grid, Reliability, ScoreDistribution
from .text import printable, shorten

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Colours of the plots, and their names in the page's style sheet.
INK, _GRID, PAPER, _LOST = "#1c1c1e", "#d0d0d1", "#fdfdfc", "#c0392b"
SERIES = ("#1f6fb2", "#b85c00", "#1d8a5f", "#8a4fb0", "#b3263e", "#6b6b6b")
WON = SERIES[2]
_CSS = {INK: "currentColor", _GRID: "var(--rule)", PAPER: "var(--paper)", _LOST: "var(--lost)"}
_CSS |= {colour: f"var(--c{at})" for at, colour in enumerate(SERIES)}
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "hopfuse",
    "text.parse_math": False,
    "font.size": 10,
    "font.sans-serif": ["DejaVu Sans"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _GRID,
    "legend.frameon": False,
    "axes.titlesize": 10,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}


def styled(draw: Callable[_P, _R]) -> Callable[_P, _R]:
    """Draw with the common style, without warnings of missing glyphs: the browser has more fonts than Matplotlib."""

    @wraps(draw)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        matplotlib = import_extra("matplotlib", "drawing plots")
        with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")
            return draw(*args, **kwargs)

    return drawn


def _new_figure(width: float, height: float) -> Any:
    figure = import_module("matplotlib.figure")
    return figure.Figure(figsize=(width / 72, height / 72), layout="constrained")


def new_axes(width: float, height: float) -> tuple[Any, Any]:
    figure = _new_figure(width, height)
    return figure, figure.add_subplot()


def add_legend(figure: Any) -> None:
    """Put a legend above the plot, if any artist has a label."""
    handles, _ = figure.axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(loc="outside upper left", ncols=4, fontsize=9)


def as_svg(figure: Any, label: str, tips: Sequence[tuple[Any, str]] = ()) -> str:
    """Return a figure as an ``<svg>`` element with tooltips and the page's colours."""
    titles = {}
    for at, (artist, words) in enumerate(tips):
        artist.set_gid(f"tip{at}")
        titles[f"tip{at}"] = printable(words)
    drawn = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(drawn, format="svg", transparent=True, metadata=nothing)
    root = ElementTree.fromstring(drawn.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in (
                "metadata",
                "clipPath",
                "style",
            ):  # a style would apply to the whole page
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        given = {name.replace("{http://www.w3.org/1999/xlink}", "xlink:"): v for name, v in element.attrib.items()}
        element.attrib.clear()
        element.attrib.update({name: v for name, v in given.items() if name not in ("clip-path", "version")})
        if "style" in given:
            element.set("style", _themed(given["style"]))
        if given.get("id") in titles:
            title = ElementTree.Element("title")
            title.text = titles[given["id"]]
            element.insert(0, title)
    used = {element.get("xlink:href", "")[1:] for element in root.iter()}
    for element in root.iter():
        if element.get("id") not in (None, *used):
            del element.attrib["id"]
    for name in ("width", "height"):
        del root.attrib[name]
    root.attrib.update({"role": "img", "aria-label": printable(label)})
    return ElementTree.tostring(root, encoding="unicode")


def _themed(style: str) -> str:
    for colour, name in _CSS.items():
        style = style.replace(colour, name)
    return style


#: Maximum number of curves: the page has this many colours.
MAX_CURVES = 6


# ---- Plots -----------------------------------------------------------------------------------------------------------


@styled
def difference_bars(differences: Sequence[tuple[str, float]]) -> str:
    """Draw a bar for every query whose difference is not 0, in descending order, with the query's id as its tooltip.

    Parameters
    ----------
    differences : sequence of (str, float)
        The id of each query, and the value of the run minus that of the baseline.

    Returns
    -------
    str
        An ``<svg>`` element, or a paragraph if no query differs.

    Raises
    ------
    MissingExtraError
        Matplotlib is not installed. All functions of this module raise it.

    Examples
    --------
    >>> from hopfuse.report import difference_bars
    >>> svg = difference_bars([("q1", -0.5), ("q2", 1.0), ("q3", 0.0)])
    >>> svg.count("<title>"), svg.index("q2") < svg.index("q1"), "q3" in svg
    (2, True, False)
    """
    shown = sorted(((query, d) for query, d in differences if d != 0), key=lambda pair: -pair[1])
    if not shown:
        return "<p>No query differs.</p>"
    figure, axes = new_axes(640, 150)
    values = [d for _, d in shown]
    bars = axes.bar(range(len(shown)), values, color=[WON if d > 0 else _LOST for d in values])
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set(xlim=(-0.5, max(len(shown), 20) - 0.5), xticks=[])
    axes.spines["bottom"].set_visible(False)
    tips = [(bar, f"{query}: {d:+.3g}") for bar, (query, d) in zip(bars, shown, strict=True)]
    return as_svg(figure, f"differences of {len(shown)} queries, from {min(values):+.3g} to {max(values):+.3g}", tips)


@styled
def histogram(found: ScoreDistribution, x_label: str = "score") -> str:
    """Draw the distributions of the scores of relevant and other hits, as shares of each kind.

    Parameters
    ----------
    found : ScoreDistribution
    x_label : str
        Label of the scores.

    Returns
    -------
    str
        An ``<svg>`` element with a legend, or a paragraph if there is no score. A kind without hits is left out.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, score_distribution
    >>> from hopfuse.report import histogram
    >>> found = score_distribution(hf.Hits([[3, 1, 2]], [[0.9, 0.8, 0.1]]), Qrels(["a"], [[3, 1]]), bins=4)
    >>> "relevant (2)" in histogram(found)
    True
    """
    series = {"relevant": found.relevant, "other": found.other}
    if not any(counts.any() for counts in series.values()):
        return "<p>No scores.</p>"
    figure, axes = new_axes(420, 190)
    for at, (name, counts) in enumerate(series.items()):
        size = int(counts.sum())
        if size:
            style = {"color": SERIES[at], "label": f"{name} ({size:,})"}
            axes.stairs(counts / size, found.edges, fill=True, alpha=0.15, color=SERIES[at])
            axes.stairs(counts / size, found.edges, linewidth=1.4, **style)
    low, high = float(found.edges[0]), float(found.edges[-1])
    axes.set(xlabel=printable(x_label), yticks=[], xlim=(low, high), ylim=(0, None))
    axes.spines["left"].set_visible(False)
    add_legend(figure)
    return as_svg(figure, f"distribution of {x_label}, of relevant hits and of others")


@styled
def curve_plot(curves: Sequence[Curve], option: str, metric: str, baseline: float | None = None) -> str:
    """Draw a metric, in percent, against an option, with 95 % bands.

    The x axis is logarithmic if the values are positive and span a factor of 20 or more.

    Parameters
    ----------
    curves : sequence of Curve
        At least one, with two points or more; the first six are drawn.
    option, metric : str
        Labels of x and y.
    baseline : float, optional
        The baseline's mean, in [0, 1], drawn as a dashed line.

    Returns
    -------
    str
        An ``<svg>`` element with a legend; the tooltip of a point has its numbers.

    Examples
    --------
    >>> from hopfuse.evaluate import Curve, Estimate
    >>> from hopfuse.report import curve_plot
    >>> points = ((0.0, Estimate(0.5, 9, 0.4, 0.6)), (1.0, Estimate(0.7, 9, 0.6, 0.8)))
    >>> "70.0 (60.0 .. 80.0)" in curve_plot([Curve("rrf", {}, points)], "alpha", "hit@1")
    True
    """
    figure, axes = new_axes(440, 260)
    tips: list[tuple[Any, str]] = []
    for curve, colour in zip(curves[:MAX_CURVES], SERIES, strict=False):
        x = [value for value, _ in curve.points]
        y = [100 * e.mean for _, e in curve.points]
        ends = [(e.mean, e.mean) if e.low is None or e.high is None else (e.low, e.high) for _, e in curve.points]
        low, high = 100 * np.array(ends).T
        axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
        axes.plot(x, y, color=colour, linewidth=1.8, label=printable(curve.label) or None)
        for at, (value, e) in enumerate(curve.points):
            (point,) = axes.plot([value], [y[at]], "o", color=colour, markersize=5)
            interval = "" if e.low is None else f" ({low[at]:.1f} .. {high[at]:.1f})"
            tips.append((point, f"{value:.6g}: {y[at]:.1f}{interval}"))
    if baseline is not None:
        axes.axhline(100 * baseline, color=INK, linestyle="--", linewidth=1, label="baseline")
    values = [value for curve in curves[:MAX_CURVES] for value, _ in curve.points]
    if min(values) > 0 and max(values) >= 20 * min(values):
        axes.set_xscale("log")
    axes.set(xlabel=printable(option), ylabel=printable(f"{metric}, %"))
    add_legend(figure)
    return as_svg(figure, f"{metric} against {option}", tips)


@styled
def heat_map(grid: Grid) -> str:
    """Draw a coloured cell for each value, y growing upwards, with the value in the cell if it fits.

    With temperature as x, coupling as y, and the magnetisation or a metric as value, it is the phase diagram of a
    mean-field model.

    Parameters
    ----------
    grid : Grid

    Returns
    -------
    str
        An ``<svg>`` element with its scale; the tooltip of a cell has its numbers.

    Examples
    --------
    >>> from hopfuse.evaluate import Grid
    >>> from hopfuse.report import heat_map
    >>> svg = heat_map(Grid([0.5, 2.0], [0.0, 1.0], [[0.1, 0.1], [0.9, float("nan")]], "T", "J", "mean |m|"))
    >>> svg.count("<title>"), "T 0.5, J 1: 0.9" in svg
    (3, True)
    """
    rows, columns = grid.values.shape
    figure, axes = new_axes(560, 120 + 26 * rows)
    patches, cm, colors = (import_module(f"matplotlib.{name}") for name in ("patches", "cm", "colors"))
    scale = cm.ScalarMappable(colors.Normalize(np.nanmin(grid.values), np.nanmax(grid.values)), "viridis")
    tips: list[tuple[Any, str]] = []
    for i, j in np.argwhere(~np.isnan(grid.values)).tolist():
        value = float(grid.values[i, j])
        red, green, blue, _ = scale.to_rgba(value)
        cell = axes.add_patch(patches.Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=(red, green, blue)))
        tips.append((cell, f"{grid.x_label} {grid.x[j]:.6g}, {grid.y_label} {grid.y[i]:.6g}: {value:.6g}"))
        if columns <= 12:
            dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
            axes.text(j, i, f"{value:.3g}", ha="center", va="center", color="#ffffff" if dark else "#111111")
    step = -(-columns // 12)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(-0.5, rows - 0.5))
    axes.set_xticks(range(0, columns, step), [f"{x:.6g}" for x in grid.x[::step]])
    axes.set_yticks(range(rows), [f"{y:.6g}" for y in grid.y])
    axes.set(xlabel=printable(grid.x_label), ylabel=printable(grid.y_label))
    axes.grid(visible=False)
    low, high = scale.get_clim()
    axes.set_title(f"{printable(grid.label)}: {low:.3g} (dark) to {high:.3g} (light)", loc="left")
    return as_svg(figure, f"{grid.label} over {grid.x_label} and {grid.y_label}", tips)


@styled
def stacked_bars(rows: Sequence[tuple[str, Mapping[str, float]]], x_label: str) -> str:
    """Draw a horizontal bar for each row with its parts stacked: positive ones to the right, the others to the left.

    Parameters
    ----------
    rows : sequence of (str, mapping of str to float)
        A label and the parts of its bar by name.
    x_label : str
        Label of the parts.

    Returns
    -------
    str
        An ``<svg>`` element with a legend, or a paragraph if there is no part; each part has a tooltip.

    Examples
    --------
    >>> from hopfuse.report import stacked_bars
    >>> svg = stacked_bars([("Notes", {"walk": 1.0, "hub": -0.05}), ("Engine", {"walk": 0.5})], "score")
    >>> svg.count("<title>"), "Notes: hub -0.05" in svg
    (3, True)
    """
    names = list(dict.fromkeys(name for _, parts in rows for name in parts))
    if not names:
        return "<p>Nothing to draw.</p>"
    figure, axes = new_axes(720, 80 + 22 * len(rows))
    tips: list[tuple[Any, str]] = []
    ends = np.zeros((2, len(rows)))
    for at, name in enumerate(names):
        for row, (label, parts) in enumerate(rows):
            value = parts.get(name, 0.0)
            if value:
                side = int(value > 0)
                (bar,) = axes.barh([row], [value], left=ends[side, row], height=0.7, color=SERIES[at % len(SERIES)])
                ends[side, row] += value
                tips.append((bar, f"{label}: {name} {value:.4g}"))
        axes.barh([0], [0], color=SERIES[at % len(SERIES)], label=printable(name))
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [printable(shorten(label, 34)) for label, _ in rows])
    axes.set(xlabel=printable(x_label), ylim=(len(rows) - 0.5, -0.5))
    axes.grid(visible=False)
    add_legend(figure)
    return as_svg(figure, f"{x_label} of {len(rows)} rows, by {', '.join(names)}", tips)


@styled
def reliability_plot(found: Reliability, path: str | os.PathLike[str]) -> None:
    """Plot the share of relevant documents against the score, with intervals and counts, to an image file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, reliability
    >>> from hopfuse.report import reliability_plot
    >>> found = reliability(hf.Hits([[4, 7]], [[0.9, 0.2]]), Qrels(["a"], [[4]]), bins=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "plot.svg")
    ...     reliability_plot(found, path)
    ...     path.exists()
    True
    """
    figure = _new_figure(360, 400)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    held = found.counts > 0
    share, score = found.relevant_share[held], found.mean_score[held]
    spread = np.maximum([share - found.low[held], found.high[held] - share], 0.0)
    top.plot([0, 1], [0, 1], color="0.7", linestyle="--", label="score = share")
    top.errorbar(score, share, yerr=spread, marker="o", capsize=3, label="documents, 95 % interval")
    top.set(ylabel="share relevant", xlim=(0, 1), ylim=(0, 1))
    top.legend(loc="upper left")
    bottom.bar(found.edges[:-1], found.counts, width=np.diff(found.edges), align="edge", color="0.6")
    bottom.set(xlabel="score", ylabel="documents")
    figure.savefig(path)
