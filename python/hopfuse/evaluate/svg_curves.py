"""A metric against an option, as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence

from .curves import Curve
from .svg_axes import Axes, legend, log_ticks, nice_ticks, svg, text

WIDTH, HEIGHT = 440, 260
#: Curves that are drawn: as many as the page has colours.
MOST = 6


def curve_plot(curves: Sequence[Curve], option: str, metric: str, baseline: float | None = None) -> str:
    """Lines with their 95 % bands, in percent; an x over a factor of 20 and more is drawn by its logarithm.

    Parameters
    ----------
    curves : sequence of Curve
        At least one, of two points or more; the first six are drawn, in classes ``series0``, ``series1``, ...
    option, metric : str
        Labels of x and y.
    baseline : float, optional
        The baseline's mean, 0 to 1, drawn as a dashed line.

    Returns
    -------
    str
        An ``<svg>`` element with its legend; a point's tooltip has its numbers.

    Examples
    --------
    >>> from hopfuse.evaluate import Curve, Estimate
    >>> points = ((0.0, Estimate(0.5, 9, 0.4, 0.6)), (1.0, Estimate(0.7, 9, 0.6, 0.8)))
    >>> drawn = curve_plot([Curve("rrf", {}, points)], "alpha", "hit@1")
    >>> drawn.count("<polygon"), drawn.count("<circle"), "70.0 (60.0 .. 80.0)" in drawn
    (1, 2, True)
    """
    shown = curves[:MOST]
    names = [curve.label for curve in shown if curve.label]
    drawn, below = legend(names, 44, WIDTH, 0) if names else ("", 0.0)
    values = [value for curve in shown for value, _ in curve.points]
    ends = [100 * end for curve in shown for _, e in curve.points for end in (e.low, e.high, e.mean) if end is not None]
    ends += [] if baseline is None else [100 * baseline]
    low, high = min(ends), max(ends)
    room = 0.05 * (high - low) or 1.0
    by_log = min(values) > 0 and max(values) >= 20 * min(values)
    axes = Axes(
        44,
        WIDTH - 12,
        below + 26,
        HEIGHT - 42,
        x=(min(values), max(values)),
        y=(max(low - room, 0.0), min(high + room, 100.0)),
        log_x=by_log,
    )
    x_ticks = log_ticks(*axes.x) if by_log else nice_ticks(*axes.x, most=8)
    parts = [drawn, axes.drawn(option, f"{metric}, %", x_ticks, nice_ticks(*axes.y))]
    if baseline is not None:
        y = axes.place_y(100 * baseline)
        parts.append(f'<line class="reference" x1="{axes.left}" x2="{axes.right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(text(axes.right, y - 4, "baseline", "end", "halo"))
    parts += [_band(axes, curve, at) for at, curve in enumerate(shown)]
    parts += [_line(axes, curve, at) for at, curve in enumerate(shown)]
    return svg(parts, f"{metric} against {option}", WIDTH, HEIGHT)


def _band(axes: Axes, curve: Curve, at: int) -> str:
    sure = [(value, e.low, e.high) for value, e in curve.points if e.low is not None and e.high is not None]
    edge = [(value, low) for value, low, _ in sure] + [(value, high) for value, _, high in reversed(sure)]
    return f'<polygon class="band series{at}" points="{_points(axes, edge)}"/>'


def _line(axes: Axes, curve: Curve, at: int) -> str:
    means = [(value, e.mean) for value, e in curve.points]
    parts = [f'<polyline class="series{at}" points="{_points(axes, means)}"/>']
    for value, e in curve.points:
        sure = "" if e.low is None or e.high is None else f" ({100 * e.low:.1f} .. {100 * e.high:.1f})"
        place = f'cx="{axes.place_x(value):.1f}" cy="{axes.place_y(100 * e.mean):.1f}"'
        tip = f"<title>{value:.6g}: {100 * e.mean:.1f}{sure}</title>"
        parts.append(f'<circle class="fill series{at}" {place} r="3">{tip}</circle>')
    return "".join(parts)


def _points(axes: Axes, points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{axes.place_x(x):.1f},{axes.place_y(100 * y):.1f}" for x, y in points)
