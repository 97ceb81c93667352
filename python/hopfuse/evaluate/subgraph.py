"""The part of a graph that leads a walk from its seeds to its hits, laid out from left to right."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .path_words import arrow

Key = tuple[str, int, int]
"""A node's kind, its number and its column."""
HIT = "hit"


class Node(NamedTuple):
    """A place in the drawing: its column from the left, its place in the column, what it is and what it is called."""

    column: int
    row: int
    kind: str
    name: str


class Link(NamedTuple):
    """From a node to one further right.

    ``edge``: its type, or ``"in"`` from an entity to the hit that mentions it. ``strength``: of the strongest path that
    takes it. ``words``: what it says, as an arrow. ``through``: its places in the columns between, which it has for
    itself.
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
        """How many there are."""
        return 1 + max((node.column for node in self.nodes.values()), default=-1)

    @property
    def rows(self) -> int:
        """Of the highest column."""
        between = (row for link in self.links for row in link.through)
        return 1 + max((*(node.row for node in self.nodes.values()), *between), default=-1)


def subgraph(hits: Sequence[Mapping[str, Any]]) -> Subgraph:
    """Lay out the strongest paths of hits: seeds left, what lies between by its steps from them, hits right.

    A node that paths of several seeds have is drawn once for each number of steps that it is away from one.

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
    """The steps before the hit; a passage that is the hit itself, and leads nowhere else, is drawn as that alone."""
    end = _key(path[-1], len(path) - 1)
    own = len(path) > 1 and end[:2] == ("passage", hit["passage"]) and end not in inner
    return path[:-1] if own else path


def _take(filled: list[int], column: int) -> int:
    """The next free place of a column."""
    filled[column] += 1
    return filled[column] - 1


def _key(step: Mapping[str, Any], column: int) -> Key:
    return step["kind"], step["number"], column


def _link(
    links: dict[tuple[Key, Key], Link], start: Key, end: Key, step: Mapping[str, Any], through: tuple[int, ...] = ()
) -> None:
    """Of several paths along a link the strongest counts."""
    made = Link(start, end, step["edge"], step["strength"], arrow(step), through)
    known = links.setdefault((start, end), made)
    if known.strength < made.strength:
        links[start, end] = known._replace(strength=made.strength)
