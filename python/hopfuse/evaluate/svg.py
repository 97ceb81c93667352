"""Two plots as inline SVG: differences per query, and distributions of scores."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from .distributions import ScoreDistribution
from .svg_axes import Axes, legend, nice_ticks, svg, text

WIDTH, HEIGHT, MARGIN = 640, 150, 34
PANEL, PANEL_HEIGHT = 420, 190


def difference_bars(differences: Sequence[tuple[str, float]]) -> str:
    """A bar for every query whose difference is not 0, the largest first; the query's id is its tooltip.

    Parameters
    ----------
    differences : sequence of (str, float)
        A query's id, and its value under a run minus that under the baseline.

    Returns
    -------
    str
        An ``<svg>`` element, classes ``won`` and ``lost``.

    Examples
    --------
    >>> from hopfuse.evaluate.svg import difference_bars
    >>> drawn = difference_bars([("q1", -0.5), ("q2", 1.0), ("q3", 0.0)])
    >>> drawn.count("<rect"), drawn.index("q2") < drawn.index("q1"), "q3" in drawn
    (2, True, False)
    """
    shown = sorted(((query, d) for query, d in differences if d != 0), key=lambda pair: -pair[1])
    if not shown:
        return svg([text(0, 14, "No query differs.")], "no query differs", WIDTH, 20)
    top = max((d for _, d in shown if d > 0), default=0.0)
    bottom = max((-d for _, d in shown if d < 0), default=0.0)
    axes = Axes(MARGIN, WIDTH - 4, 8, HEIGHT - 8, x=(0, max(len(shown), 20)), y=(-bottom, top))
    zero = axes.place_y(0)
    parts = []
    for at, (query, d) in enumerate(shown):
        x, wide = axes.place_x(at), axes.place_x(at + 1) - axes.place_x(at)
        y, tall = axes.place_y(max(d, 0)), abs(axes.place_y(d) - zero)
        parts.append(
            f'<rect class="{"won" if d > 0 else "lost"}" x="{x:.2f}" y="{y:.2f}" '
            f'width="{max(wide * 0.9, 0.3):.2f}" height="{tall:.2f}"><title>{escape(query)}: {d:+.3g}</title></rect>'
        )
    parts.append(f'<line class="axis" x1="{MARGIN}" x2="{WIDTH - 4}" y1="{zero:.2f}" y2="{zero:.2f}"/>')
    ends = sorted({-bottom, 0.0, top})
    parts += [text(MARGIN - 4, axes.place_y(d) + 4, f"{d:+.2g}" if d else "0", "end") for d in ends]
    return svg(parts, f"differences of {len(shown)} queries, from {-bottom:+.3g} to {top:+.3g}", WIDTH, HEIGHT)


def histogram(found: ScoreDistribution, x_label: str = "score") -> str:
    """Outlines of the distributions of relevant and of other hits over one axis, each of area 1.

    Parameters
    ----------
    found : ScoreDistribution
    x_label : str
        What the scores are.

    Returns
    -------
    str
        An ``<svg>`` element with its legend, classes ``series0`` (relevant) and ``series1``. A kind without hits is
        left out.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.evaluate import Qrels, score_distribution
    >>> from hopfuse.evaluate.svg import histogram
    >>> found = score_distribution(hf.Hits([[3, 1, 2]], [[0.9, 0.8, 0.1]]), Qrels(["a"], [[3, 1]]), bins=4)
    >>> drawn = histogram(found)
    >>> drawn.count("<polyline"), "relevant (2)" in drawn
    (2, True)
    """
    series = {"relevant": found.relevant, "other": found.other}
    sizes = {name: int(counts.sum()) for name, counts in series.items()}
    if not any(sizes.values()):
        return svg([text(0, 14, "No scores.")], "no scores", PANEL, 20)
    drawn, below = legend((f"{name} ({size:,})" for name, size in sizes.items()), 8, PANEL, 0)
    peak = max(float((series[name] / size).max()) for name, size in sizes.items() if size)
    low, high = float(found.edges[0]), float(found.edges[-1])
    axes = Axes(10, PANEL - 14, below + 4, PANEL_HEIGHT - 38, x=(low, high), y=(0, peak))
    parts = [drawn, axes.drawn(x_label, "", nice_ticks(low, high, 5), [])]
    parts += [
        _outline(axes, found.edges, series[name] / size, at) for at, (name, size) in enumerate(sizes.items()) if size
    ]
    return svg(parts, f"distribution of {x_label}, of relevant hits and of others", PANEL, PANEL_HEIGHT)


def _outline(axes: Axes, edges: NDArray[np.float64], heights: NDArray[np.float64], at: int) -> str:
    x = np.repeat(edges, 2).tolist()
    y = [0.0, *np.repeat(heights, 2).tolist(), 0.0]
    points = " ".join(f"{axes.place_x(a):.1f},{axes.place_y(b):.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline class="area series{at}" points="{points}"/>'
