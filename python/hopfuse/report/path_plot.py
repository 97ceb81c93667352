"""Plot the paths from seeds to hits."""

from __future__ import annotations

from importlib import import_module
from math import log10
from typing import Any

from .paths import Link, Subgraph
from .svg import INK, PAPER, SERIES, WON, add_legend, as_svg, new_axes, styled
from .text import printable, shorten

#: Decades of strength between the thinnest and the widest edge.
DECADES = 4.0
#: A colour and a line style for each type of edge; ``in``: an entity is in the passage.
_EDGES = {
    "relation": (SERIES[0], "-"),
    "synonym": (SERIES[3], "--"),
    "context": (SERIES[2], ":"),
    "in": (SERIES[5], "-"),
}


@styled
def subgraph_plot(laid: Subgraph) -> str:
    """Draw seeds on the left, hits on the right, and the edges between, by type and with a width by path strength.

    Parameters
    ----------
    laid : Subgraph

    Returns
    -------
    str
        An ``<svg>`` element with a legend and tooltips, or a paragraph if there is no edge.

    Examples
    --------
    >>> from hopfuse.report import subgraph, subgraph_plot
    >>> step = {"kind": "entity", "number": 4, "name": "<Ada>", "edge": None, "strength": 1.0}
    >>> svg = subgraph_plot(subgraph([{"passage": 0, "id": "p0", "title": "Notes", "paths": [[step]]}]))
    >>> svg.count("<title>"), "&lt;Ada&gt;" in svg
    (3, True)
    """
    if not laid.links:
        return "<p>No walk.</p>"
    figure, axes = new_axes(300 * laid.columns, 70 + 34 * laid.rows)
    axes.set(xlim=(-0.32, laid.columns - 0.68), ylim=(laid.rows - 0.3, -0.9))
    axes.axis("off")
    tips = [(_edge(axes, laid, link), _edge_text(laid, link)) for link in laid.links]
    patches = import_module("matplotlib.patches")
    for node in laid.nodes.values():
        colour = WON if node.kind in ("passage", "hit") else INK
        box = patches.Rectangle((node.column - 0.3, node.row - 0.36), 0.6, 0.72, facecolor=PAPER, edgecolor=colour)
        box.set_linewidth(2 if node.kind == "hit" else 1)
        axes.add_patch(box)
        axes.text(node.column, node.row, printable(shorten(node.name, 28)), ha="center", va="center")
        tips.append((box, node.name))
    for column in range(laid.columns):
        title = "seeds" if column == 0 else "hits" if column == laid.columns - 1 else f"step {column}"
        axes.text(column, -0.7, title, ha="center", va="center")
    lowest: dict[tuple[int, int], int] = {}
    for end, words in sorted((laid.nodes[link.end][:2], link.words) for link in laid.links if link.edge == "relation"):
        lowest[end] = lowest.get(end, -1) + 1  # stack the names of the relations that lead to the same box
        place = end[0] - 0.31, end[1] + 0.38 * lowest[end]
        axes.text(*place, printable(shorten(words, 24)), ha="right", va="center", fontsize=8, zorder=3)
    for name, (colour, line) in _EDGES.items():
        axes.plot([], [], color=colour, linestyle=line, linewidth=2, label=name)
    add_legend(figure)
    return as_svg(figure, f"{len(laid.nodes)} nodes and {len(laid.links)} edges from the seeds to the hits", tips)


def _edge(axes: Any, laid: Subgraph, link: Link) -> Any:
    """Draw an edge between two boxes, straight across the columns in between."""
    start, end = laid.nodes[link.start], laid.nodes[link.end]
    path, patches = (import_module(f"matplotlib.{name}") for name in ("path", "patches"))
    x, y = start.column + 0.3, float(start.row)
    points, codes = [(x, y)], [path.Path.MOVETO]
    for column, row in enumerate((*link.through, end.row), start.column + 1):
        to = column - 0.3
        points += [(x + 0.2, y), (to - 0.2, row), (to, row)]
        codes += [path.Path.CURVE4] * 3
        x, y = (column + 0.3, row) if column < end.column else (to, row)
        if column < end.column:
            points.append((x, y))
            codes.append(path.Path.LINETO)
    colour, line = _EDGES.get(link.edge, (SERIES[4], "-"))
    strongest = max(one.strength for one in laid.links)
    style = {"edgecolor": colour, "linestyle": line, "linewidth": edge_width(link.strength, strongest)}
    return axes.add_patch(
        patches.PathPatch(path.Path(points, codes), facecolor="none", alpha=0.75, zorder=0.5, **style)
    )


def edge_width(strength: float, strongest: float) -> float:
    """Return the width of an edge, linear in the logarithm of its strength.

    Examples
    --------
    >>> edge_width(1.0, 1.0), round(edge_width(0.01, 1.0), 9), edge_width(0.0, 1.0)
    (5.0, 2.9, 0.8)
    """
    decades = log10(strength / strongest) if strength > 0 else -DECADES
    return 0.8 + 4.2 * max(0.0, 1.0 + decades / DECADES)


def _edge_text(laid: Subgraph, link: Link) -> str:
    start, end = laid.nodes[link.start], laid.nodes[link.end]
    return f"{start.name} {link.words} {end.name}, strength {link.strength:.3g}"
