"""Stacked bars as inline SVG: what each of some totals is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from .svg_axes import CHARACTER, Axes, legend, nice_ticks, svg, text
from .svg_subgraph import shortened

WIDTH, LABEL, BAR = 720, 220, 22


def stacked_bars(rows: Sequence[tuple[str, Mapping[str, float]]], x_label: str) -> str:
    """A bar for each row, its parts one behind the other: those above 0 to the right, the others to the left.

    Parameters
    ----------
    rows : sequence of (str, mapping of str to float)
        A label, and its parts. A part has the colour of its name's place among all names.
    x_label : str
        What the parts are.

    Returns
    -------
    str
        An ``<svg>`` element with its legend; each part is a ``<rect>`` with a tooltip.

    Examples
    --------
    >>> drawn = stacked_bars([("Notes", {"walk": 1.0, "hub": -0.05}), ("Engine", {"walk": 0.5})], "score")
    >>> drawn.count("<rect"), "Notes: hub -0.05" in drawn
    (5, True)
    """
    names = list(dict.fromkeys(name for _, parts in rows for name in parts))
    if not names:
        return svg([text(0, 14, "Nothing to draw.")], "nothing to draw", WIDTH, 20)
    head, below = legend(names, LABEL, WIDTH, 0)
    high = max(sum(v for v in parts.values() if v > 0) for _, parts in rows)
    low = min(sum(v for v in parts.values() if v < 0) for _, parts in rows)
    bottom = below + 6 + BAR * len(rows)
    axes = Axes(LABEL, WIDTH - 14, below, bottom, x=(low, high), y=(0, 1))
    drawn = [head, axes.drawn(x_label, "", nice_ticks(low, high), [])]
    for at, (label, parts) in enumerate(rows):
        y = below + 6 + BAR * at
        words = text(LABEL - 6, y + 12, shortened(label, int(LABEL / CHARACTER)), "end")
        drawn.append(f"<g>{words}<title>{escape(label)}</title></g>")
        drawn += _parts(axes, label, parts, names, y)
    zero = axes.place_x(0)
    drawn.append(f'<line class="axis" x1="{zero:.1f}" x2="{zero:.1f}" y1="{below}" y2="{bottom}"/>')
    return svg(drawn, f"{x_label} of {len(rows)} rows, by {', '.join(names)}", WIDTH, bottom + 38)


def _parts(axes: Axes, label: str, parts: Mapping[str, float], names: Sequence[str], y: float) -> list[str]:
    ends, drawn = {True: 0.0, False: 0.0}, []
    for name, value in parts.items():
        if value:
            begin = ends[value > 0]
            ends[value > 0] += value
            left, right = sorted((axes.place_x(begin), axes.place_x(begin + value)))
            drawn.append(
                f'<rect class="fill series{names.index(name) % 6}" x="{left:.2f}" y="{y:.1f}" '
                f'width="{right - left:.2f}" height="{BAR - 7}">'
                f"<title>{escape(f'{label}: {name} {value:.4g}')}</title></rect>"
            )
    return drawn
