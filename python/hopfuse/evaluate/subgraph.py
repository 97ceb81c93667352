"""The part of a graph that leads a walk from its seeds to its hits, laid out from left to right."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Key = tuple[str, int]
HIT = "hit"


class Node(NamedTuple):
    """A place in the drawing: its column from the left, its place in the column, what it is and what it is called."""

    column: int
    row: int
    kind: str
    name: str


class Link(NamedTuple):
    """From a node to one further right.

    ``edge``: its type, or ``"in"`` from an entity to the hit that mentions it. ``through``: its places in the columns
    between, which it has for itself.
    """

    start: Key
    end: Key
    edge: str
    strength: float
    through: tuple[int, ...] = ()


@dataclass(frozen=True)
class Subgraph:
    """Nodes by (kind, number), a hit under the kind ``"hit"``, and the links between them."""

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

    Parameters
    ----------
    hits : sequence of mapping
        The ``hits`` of a trace of :class:`hopfuse.recipes.PolicyRAG`, each with its ``path``. All paths of a trace are
        of one forest, so a node is always so many steps from its seed.

    Examples
    --------
    >>> path = [
    ...     {"kind": "entity", "number": 4, "name": "Ada", "edge": None, "strength": 1.0},
    ...     {"kind": "passage", "number": 0, "name": "Notes", "edge": "context", "strength": 0.25},
    ... ]
    >>> laid = subgraph([{"passage": 0, "id": "p0", "title": "Notes", "path": path}])
    >>> [(node.column, node.kind, node.name) for node in laid.nodes.values()]
    [(0, 'entity', 'Ada'), (1, 'hit', '1. Notes')]
    >>> laid.links
    (Link(start=('entity', 4), end=('hit', 0), edge='context', strength=0.25, through=()),)
    """
    inner = {_key(step) for hit in hits for step in hit.get("path", [])[:-1]}
    right = max((len(_drawn(hit, inner)) for hit in hits), default=0)
    filled, nodes, links = [0] * (right + 1), dict[Key, Node](), dict[tuple[Key, Key], Link]()
    for at, hit in enumerate(hits):
        path, drawn = hit.get("path", []), _drawn(hit, inner)
        for column, step in enumerate(drawn):
            if _key(step) not in nodes:
                nodes[_key(step)] = Node(column, _take(filled, column), step["kind"], step["name"])
            if column:
                _link(links, drawn[column - 1], _key(step), step)
        here = (HIT, hit["passage"])
        nodes[here] = Node(right, _take(filled, right), HIT, f"{at + 1}. {hit['title'] or hit['id']}")
        if path:
            last = path[-1] if len(drawn) < len(path) else {"edge": "in", "strength": path[-1]["strength"]}
            through = tuple(_take(filled, column) for column in range(len(drawn), right))
            _link(links, drawn[-1], here, last, through)
    return Subgraph(nodes, tuple(links.values()))


def _drawn(hit: Mapping[str, Any], inner: Container[Key]) -> Sequence[Mapping[str, Any]]:
    """The steps before the hit; a passage that is the hit itself, and leads nowhere else, is drawn as that alone."""
    path: Sequence[Mapping[str, Any]] = hit.get("path", [])
    own = len(path) > 1 and _key(path[-1]) == ("passage", hit["passage"]) and _key(path[-1]) not in inner
    return path[:-1] if own else path


def _take(filled: list[int], column: int) -> int:
    """The next free place of a column."""
    filled[column] += 1
    return filled[column] - 1


def _key(step: Mapping[str, Any]) -> Key:
    return step["kind"], step["number"]


def _link(
    links: dict[tuple[Key, Key], Link],
    start: Mapping[str, Any],
    end: Key,
    step: Mapping[str, Any],
    through: tuple[int, ...] = (),
) -> None:
    links.setdefault((_key(start), end), Link(_key(start), end, step["edge"], step["strength"], through))
