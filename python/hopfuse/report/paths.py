"""Paths of a trace: as text, and as a plot of the graph that they are in."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from math import log10
from typing import Any, NamedTuple

from .plots import INK, PAPER, SERIES, WON, add_legend, as_svg, new_axes, styled
from .text import printable, shorten

#: Number of a fact's passages to name.
NAMED_PASSAGES = 3


def arrow(step: Mapping[str, Any]) -> str:
    """Return the arrow of a step: named by the fact that most passages state, or by the type of the edge.

    A fact's arrow points from head to tail. An index does not store the family of a fact, so if there is no fact, or
    the walk left out some edge between the two nodes, a relation is named by the families that were walked.

    Parameters
    ----------
    step : mapping
        A step of a path of a hit (``paths``), except the first.

    Examples
    --------
    >>> fact = {"relation": "directed", "forward": False}
    >>> step = {"kind": "entity", "edge": "relation", "families": ["creation"], "walked": True, "facts": [fact]}
    >>> arrow(step)
    '←directed—'
    >>> arrow({**step, "walked": False})
    '—creation→'
    >>> arrow({"kind": "entity", "name": "Ada King", "edge": "synonym", "alias": "Ada"})
    '—synonym “Ada”→'
    >>> arrow({"kind": "passage", "edge": "context"})
    '—in→'
    """
    if step.get("facts") and step.get("walked", True):
        relation = step["facts"][0]["relation"]
        return f"—{relation}→" if step["facts"][0]["forward"] else f"←{relation}—"
    if step["edge"] == "synonym" and step.get("alias", step["name"]) != step["name"]:
        return f"—synonym “{step['alias']}”→"
    mention = "in" if step["kind"] == "passage" else "mentions"
    name = mention if step["edge"] == "context" else ", ".join(step.get("families", ())) or step["edge"]
    return f"—{name}→"


def path_words(path: Sequence[Mapping[str, Any]], passage: int) -> str:
    """Return a path from its seed to the hit, as a line of text.

    Parameters
    ----------
    path : sequence of mapping
        One of the ``paths`` of a hit.
    passage : int
        Number of the hit's passage.

    Examples
    --------
    >>> ada = {"kind": "entity", "number": 4, "name": "Ada", "edge": None, "strength": 1.0}
    >>> notes = {"kind": "passage", "number": 0, "name": "Notes", "edge": "context", "strength": 0.25}
    >>> path_words([ada], 0)
    'Ada —in→ this'
    >>> path_words([ada, notes], 0)
    'Ada —in→ passage “Notes”'
    """
    words = [_node(path[0])]
    for step in path[1:]:
        words += [arrow(step), _node(step)]
    there = (path[-1]["kind"], path[-1]["number"]) == ("passage", passage)
    return " ".join(words if there else [*words, "—in→ this"])


def fact_words(path: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return lines on the relations of a path: the families of each step, then its facts and their passages.

    The families are those that the walk takes between the two nodes, not those of a single fact.

    Parameters
    ----------
    path : sequence of mapping
        One of the ``paths`` of a hit.

    Examples
    --------
    >>> fact = {"fact": 7, "head": "Scott", "relation": "directed", "tail": "Alien", "forward": False}
    >>> fact |= {"passages": [{"passage": 0, "id": "a", "title": "Alien"}], "num_passages": 1}
    >>> step = {"kind": "entity", "name": "Scott", "edge": "relation", "families": ["creation"], "facts": [fact]}
    >>> fact_words([{"kind": "entity", "name": "Alien", "edge": None}, step])
    ['Alien and Scott by creation', 'Scott —directed→ Alien, fact 7, stated in Alien']
    >>> fact_words([{"name": "Alien", "edge": None}, {**step, "facts": []}])
    ['Alien and Scott by creation, no fact']
    """
    lines = []
    for before, step in pairwise(path):
        if step["edge"] != "relation":
            continue
        ends = f"{before['name']} and {step['name']} by {', '.join(step['families'])}"
        lines += [ends, *map(_fact, step["facts"])] if step["facts"] else [f"{ends}, no fact"]
    return lines


def _fact(fact: Mapping[str, Any]) -> str:
    titles = [one["title"] or str(one["id"]) for one in fact["passages"][:NAMED_PASSAGES]]
    more = fact["num_passages"] - len(titles)
    stated = ", ".join(titles) + (f" and {more} more" if more else "")
    return f"{fact['head']} —{fact['relation']}→ {fact['tail']}, fact {fact['fact']}, stated in {stated}"


def _node(step: Mapping[str, Any]) -> str:
    return f"passage “{step['name']}”" if step["kind"] == "passage" else str(step["name"])


Key = tuple[str, int, int]
"""A node's kind, its number and its column."""
HIT = "hit"


class Node(NamedTuple):
    """A node of the drawing: its column from the left, its row in the column, its kind and its name."""

    column: int
    row: int
    kind: str
    name: str


class Link(NamedTuple):
    """An edge from a node to one further right.

    ``edge`` is its type, or ``"in"`` from an entity to the hit that mentions it; ``strength`` belongs to the strongest
    path along it; ``words`` is its arrow; ``through`` has the rows reserved for it in the columns between.
    """

    start: Key
    end: Key
    edge: str
    strength: float
    words: str
    through: tuple[int, ...] = ()


@dataclass(frozen=True)
class Subgraph:
    """Nodes by (kind, number, column), a hit under the kind ``"hit"``, and the links between them."""

    nodes: dict[Key, Node]
    links: tuple[Link, ...]

    @property
    def columns(self) -> int:
        """Number of columns."""
        return 1 + max((node.column for node in self.nodes.values()), default=-1)

    @property
    def rows(self) -> int:
        """Number of rows of the tallest column."""
        between = (row for link in self.links for row in link.through)
        return 1 + max((*(node.row for node in self.nodes.values()), *between), default=-1)


def subgraph(hits: Sequence[Mapping[str, Any]]) -> Subgraph:
    """Lay out the strongest paths of hits: seeds on the left, hits on the right, other nodes by steps from a seed.

    A node at different distances from several seeds is drawn once for each distance.

    Parameters
    ----------
    hits : sequence of mapping
        The ``hits`` of a trace of :class:`hopfuse.recipes.PolicyRAG`, each with its ``paths``.

    Examples
    --------
    >>> path = [
    ...     {"kind": "entity", "number": 4, "name": "Ada", "edge": None, "strength": 1.0},
    ...     {"kind": "passage", "number": 0, "name": "Notes", "edge": "context", "strength": 0.25},
    ... ]
    >>> laid = subgraph([{"passage": 0, "id": "p0", "title": "Notes", "paths": [path]}])
    >>> [(node.column, node.kind, node.name) for node in laid.nodes.values()]
    [(0, 'entity', 'Ada'), (1, 'hit', '1. Notes')]
    >>> laid.links
    (Link(start=('entity', 4, 0), end=('hit', 0, 1), edge='context', strength=0.25, words='—in→', through=()),)
    """
    paths = [(hit, path) for hit in hits for path in hit.get("paths", [])]
    inner = {_key(step, column) for _, path in paths for column, step in enumerate(path[:-1])}
    right = max((len(_drawn(hit, path, inner)) for hit, path in paths), default=0)
    filled, nodes, links = [0] * (right + 1), dict[Key, Node](), dict[tuple[Key, Key], Link]()
    for at, hit in enumerate(hits):
        here = (HIT, hit["passage"], right)
        for path in hit.get("paths", []):
            drawn = _drawn(hit, path, inner)
            for column, step in enumerate(drawn):
                key = _key(step, column)
                if key not in nodes:
                    nodes[key] = Node(column, _take(filled, column), step["kind"], step["name"])
                if column:
                    _link(links, _key(drawn[column - 1], column - 1), key, step)
            mention = {"kind": "passage", "edge": "in", "strength": path[-1]["strength"]}
            last = path[-1] if len(drawn) < len(path) else mention
            start = _key(drawn[-1], len(drawn) - 1)
            taken = () if (start, here) in links else range(len(drawn), right)
            _link(links, start, here, last, tuple(_take(filled, column) for column in taken))
        nodes[here] = Node(right, _take(filled, right), HIT, f"{at + 1}. {hit['title'] or hit['id']}")
    return Subgraph(nodes, tuple(links.values()))


def _drawn(
    hit: Mapping[str, Any], path: Sequence[Mapping[str, Any]], inner: Container[Key]
) -> Sequence[Mapping[str, Any]]:
    """Return the steps before the hit, without a last step that is the hit itself and leads nowhere else."""
    end = _key(path[-1], len(path) - 1)
    own = len(path) > 1 and end[:2] == ("passage", hit["passage"]) and end not in inner
    return path[:-1] if own else path


def _take(filled: list[int], column: int) -> int:
    """Return the next free row of a column, and mark it as taken."""
    filled[column] += 1
    return filled[column] - 1


def _key(step: Mapping[str, Any], column: int) -> Key:
    return step["kind"], step["number"], column


def _link(
    links: dict[tuple[Key, Key], Link], start: Key, end: Key, step: Mapping[str, Any], through: tuple[int, ...] = ()
) -> None:
    """Add a link, or raise its strength to that of a stronger path along it."""
    made = Link(start, end, step["edge"], step["strength"], arrow(step), through)
    known = links.setdefault((start, end), made)
    if known.strength < made.strength:
        links[start, end] = known._replace(strength=made.strength)


#: Decades of strength between the thinnest and the widest edge.
_DECADES = 4.0
#: A colour and a line style for each type of edge; ``in``: an entity is in the passage.
_EDGES = {
    "relation": (SERIES[0], "-"),
    "synonym": (SERIES[3], "--"),
    "context": (SERIES[2], ":"),
    "in": (SERIES[5], "-"),
}


# ---- The plot --------------------------------------------------------------------------------------------------------


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
    style = {"edgecolor": colour, "linestyle": line, "linewidth": _edge_width(link.strength, strongest)}
    return axes.add_patch(
        patches.PathPatch(path.Path(points, codes), facecolor="none", alpha=0.75, zorder=0.5, **style)
    )


def _edge_width(strength: float, strongest: float) -> float:
    """Return the width of an edge, linear in the logarithm of its strength.

    Examples
    --------
    >>> _edge_width(1.0, 1.0), round(_edge_width(0.01, 1.0), 9), _edge_width(0.0, 1.0)
    (5.0, 2.9, 0.8)
    """
    decades = log10(strength / strongest) if strength > 0 else -_DECADES
    return 0.8 + 4.2 * max(0.0, 1.0 + decades / _DECADES)


def _edge_text(laid: Subgraph, link: Link) -> str:
    start, end = laid.nodes[link.start], laid.nodes[link.end]
    return f"{start.name} {link.words} {end.name}, strength {link.strength:.3g}"
