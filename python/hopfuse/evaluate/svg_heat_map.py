"""A value over two parameters, as inline SVG."""

from __future__ import annotations

from html import escape
from math import floor, isnan, log10

import numpy as np

from .grid import Grid
from .svg_axes import CHARACTER, svg, text

WIDTH, CELL_HEIGHT, LEFT, TOP = 560, 26, 64, 58
#: From low to high, dark to light, so that the order is seen without colours too (R, G, B).
RAMP = np.array([[53, 28, 96], [52, 84, 150], [32, 142, 140], [110, 195, 95], [250, 228, 70]], np.float64)


def heat_map(grid: Grid) -> str:
    """A cell for each crossing, y growing upwards, with its value in it where that fits; a dash where there is none.

    With temperature as x, coupling as y and the magnetisation or a metric as value it is the phase diagram of a
    mean-field model.

    Parameters
    ----------
    grid : Grid

    Returns
    -------
    str
        An ``<svg>`` element with its scale; a cell's tooltip has its numbers.

    Examples
    --------
    >>> from hopfuse.evaluate import Grid, heat_map
    >>> drawn = heat_map(Grid([0.5, 2.0], [0.0, 1.0], [[0.1, 0.1], [0.9, float("nan")]], "T", "J", "mean |m|"))
    >>> drawn.count('class="cell"'), "T 0.5, J 1: 0.9" in drawn
    (3, True)
    """
    rows, columns = grid.values.shape
    wide = (WIDTH - LEFT - 8) / columns
    bottom = TOP + rows * CELL_HEIGHT
    low, high = float(np.nanmin(grid.values)), float(np.nanmax(grid.values))
    size = max(abs(low), abs(high))
    places = 2 - floor(log10(size)) if size > 0 else 0
    words = {v: f"{round(v, places) + 0.0:.6g}" for v in (low, high, *grid.values.ravel().tolist()) if not isnan(v)}
    written = max(map(len, words.values())) * CHARACTER + 4 <= wide
    parts = [text(8, 14, grid.label), *_scale(words[low], words[high]), text(8, TOP - 10, grid.y_label)]
    for i, y in enumerate(grid.y.tolist()):
        down = bottom - (i + 1) * CELL_HEIGHT
        parts.append(text(LEFT - 6, down + CELL_HEIGHT / 2 + 4, f"{y:.6g}", "end"))
        for j, x in enumerate(grid.x.tolist()):
            value, at = float(grid.values[i, j]), LEFT + j * wide
            middle = (at + wide / 2, down + CELL_HEIGHT / 2 + 4)
            if isnan(value):
                parts.append(text(*middle, "-", "middle"))
                continue
            share = (value - low) / (high - low) if high > low else 0.5
            parts.append(
                f'<rect class="cell" x="{at:.1f}" y="{down:.1f}" width="{wide:.1f}" height="{CELL_HEIGHT}" '
                f'fill="{colour(share)}"><title>{_tooltip(grid, x, y, value)}</title></rect>'
            )
            if written:
                parts.append(text(*middle, words[value], "middle", "on-dark" if share < 0.55 else "on-light"))
    step = max(1, -(-int(max(len(f"{x:.6g}") for x in grid.x.tolist()) * CHARACTER + 6) // int(max(wide, 1))))
    for j in range(0, columns, step):
        parts.append(text(LEFT + (j + 0.5) * wide, bottom + 16, f"{grid.x[j]:.6g}", "middle"))
    parts.append(text((LEFT + WIDTH) / 2, bottom + 33, grid.x_label, "middle"))
    return svg(parts, f"{grid.label} over {grid.x_label} and {grid.y_label}", WIDTH, bottom + 42)


def colour(share: float) -> str:
    """The colour of a share of the range, 0 the lowest and 1 the highest.

    Examples
    --------
    >>> colour(0.0), colour(0.125), colour(1.0)
    ('#351c60', '#34387b', '#fae446')
    """
    at = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    below = min(int(at), len(RAMP) - 2)
    mixed = RAMP[below] + (at - below) * (RAMP[below + 1] - RAMP[below])
    return "#" + "".join(f"{round(part):02x}" for part in mixed.tolist())


def _scale(low: str, high: str) -> list[str]:
    steps, left = 24, WIDTH - 238
    parts = [
        f'<rect x="{left + 5 * at}" y="4" width="5.2" height="12" fill="{colour(at / (steps - 1))}"/>'
        for at in range(steps)
    ]
    return [*parts, text(left - 6, 14, low, "end"), text(left + 5 * steps + 6, 14, high)]


def _tooltip(grid: Grid, x: float, y: float, value: float) -> str:
    return escape(f"{grid.x_label} {x:.6g}, {grid.y_label} {y:.6g}: {value:.6g}")
