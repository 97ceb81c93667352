"""A subgraph as inline SVG: layers from left to right, each edge as its type and its strength have it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10

from .subgraph import Link, Node, Subgraph
from .svg_axes import CHARACTER, svg, text

BOX, HEIGHT, GAP, SPACING = 172, 24, 132, 34
TOP, LINE = 34, 13
#: Decades of strength between the thinnest and the widest edge.
DECADES = 4.0
#: A series' colour for each type of edge; ``in``: an entity is in the passage.
EDGES = {"relation": 0, "synonym": 3, "context": 2, "in": 5}


def drawn_subgraph(laid: Subgraph) -> str:
    """The picture: seeds left, hits right, edges by type, wider the stronger the path is there, relations named.

    Parameters
    ----------
    laid : Subgraph

    Returns
    -------
    str
        An ``<svg>`` element.

    Examples
    --------
    >>> from hopfuse.evaluate.subgraph import subgraph
    >>> step = {"kind": "entity", "number": 4, "name": "<Ada>", "edge": None, "strength": 1.0}
    >>> picture = drawn_subgraph(subgraph([{"passage": 0, "id": "p0", "title": "Notes", "paths": [[step]]}]))
    >>> picture.count("<rect"), picture.count('class="edge in'), "&lt;Ada&gt;" in picture
    (2, 1, True)
    """
    width = max(1, laid.columns) * (BOX + GAP) - GAP + 2
    labels = _labels(laid)
    height = max([TOP + max(1, laid.rows) * SPACING, *(y + LINE for _, y, _ in labels)])
    if not laid.links:
        return svg([text(0, 14, "No walk.")], "no walk", width, 20)
    strongest = max(link.strength for link in laid.links)
    parts = [_title(column, laid.columns) for column in range(laid.columns)]
    parts += [_edge(laid, link, strongest) for link in laid.links]
    parts += [_box(node) for node in laid.nodes.values()]
    parts += [text(x, y + 4, words, "end", "halo") for x, y, words in labels]
    label = f"{len(laid.nodes)} nodes and {len(laid.links)} edges from the seeds to the hits"
    return svg(parts, label, width, height)


def edge_legend() -> str:
    """What the edges look like.

    Examples
    --------
    >>> edge_legend().count("<path")
    4
    """
    parts, x = [], 0.0
    for name, series in EDGES.items():
        parts.append(f'<path class="edge {name} series{series}" stroke-width="2" d="M{x:.1f} 8 H{x + 40:.1f}"/>')
        parts.append(text(x + 46, 12, name))
        x += 64 + CHARACTER * len(name)
    return svg(parts, "types of edges", 480, 18)


def _title(column: int, columns: int) -> str:
    words = "seeds" if column == 0 else "hits" if column == columns - 1 else f"step {column}"
    return text(_left(column) + BOX / 2, 14, words, "middle")


def _edge(laid: Subgraph, link: Link, strongest: float) -> str:
    start, end = laid.nodes[link.start], laid.nodes[link.end]
    said = f"{start.name} {link.words} {end.name}, strength {link.strength:.3g}"
    return (
        f'<path class="edge {link.edge} series{EDGES.get(link.edge, 4)}" '
        f'stroke-width="{_width(link.strength, strongest):.2f}" d="{_line(start, end, link.through)}">'
        f"<title>{escape(said)}</title></path>"
    )


def _line(start: Node, end: Node, through: Sequence[int]) -> str:
    """From box to box, straight across the columns between."""
    x, y = _left(start.column) + BOX, _middle(start.row)
    parts = [f"M{x:.1f} {y:.1f}"]
    for column, row in enumerate((*through, end.row), start.column + 1):
        to, at = _left(column), _middle(row)
        parts.append(f"C{x + GAP / 2:.1f} {y:.1f} {to - GAP / 2:.1f} {at:.1f} {to:.1f} {at:.1f}")
        x, y = to + BOX, at
        if column < end.column:
            parts.append(f"H{x:.1f}")
    return " ".join(parts)


def _labels(laid: Subgraph) -> list[tuple[float, float, str]]:
    """What the relations say, beside the boxes that they lead to; those of one box one below the other."""
    ends = sorted((*laid.nodes[link.end][:2], link.words) for link in laid.links if link.edge == "relation")
    labels, lowest = [], dict[int, float]()
    for column, row, words in ends:
        lowest[column] = max(_middle(row), lowest.get(column, 0.0) + LINE)
        labels.append((_left(column) - 4, lowest[column], shortened(words, int(GAP / CHARACTER))))
    return labels


def _width(strength: float, strongest: float) -> float:
    """By its logarithm: products of probabilities fall fast along a path."""
    decades = log10(strength / strongest) if strength > 0 else -DECADES
    return 0.8 + 4.2 * max(0.0, 1.0 + decades / DECADES)


def _box(node: Node) -> str:
    x, y = _left(node.column), TOP + node.row * SPACING
    box = f'<rect class="node {node.kind}" x="{x:.1f}" y="{y:.1f}" width="{BOX}" height="{HEIGHT}" rx="5"/>'
    label = text(x + BOX / 2, y + 16, shortened(node.name, int((BOX - 8) / CHARACTER)), "middle")
    return f"<g>{box}{label}<title>{escape(node.name)}</title></g>"


def shortened(name: str, most: int) -> str:
    """At most so many characters.

    Examples
    --------
    >>> shortened("Gerald R. Ford", 8)
    'Gerald …'
    """
    return name if len(name) <= most else name[: most - 1] + "…"


def _left(column: int) -> float:
    return 1 + column * (BOX + GAP)


def _middle(row: int) -> float:
    return TOP + row * SPACING + HEIGHT / 2
