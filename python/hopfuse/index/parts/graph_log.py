"""The graph after the batches of a log, and its edges as passages state them.

A graph that an earlier merge made is continued: entries of edges that no change concerns are copied, the others are
summed anew of all their statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arrays import native
from ..._arrays.csr import Change
from ..._arrays.distinct import distinct
from ...types import EdgeStatements, Graph, Incidence
from ...types.edge_statements import UNKNOWN
from ..file.rows import is_whole
from ..file.sections import ArraysOrSections, MadeSection
from ..log.lineage import MergeResult
from ..log.records import Slots
from ..log.rows import DeltaRows, Places
from ..membership import deleted_later
from .graph import build, statements_kept_of

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


class LiveEdges(NamedTuple):
    """Which statements of edges exist after some batches."""

    alive: Mask
    """Of the generation's statements, then of those of the batches: shape (I,)."""
    total: int
    """How many exist."""
    known: int
    """How many of them are not of an unknown passage."""


class _Before(NamedTuple):
    """What is continued: a generation, or what an earlier merge made."""

    graph: Graph
    live: LiveEdges
    slots: Slots
    passages: Rows  # slots by row
    entities: Rows
    deletions: int  # of edges, in the batches


def merge(
    base: Graph, known: EdgeStatements | None, log: DeltaRows, at: Places, before: MergeResult | None = None
) -> tuple[dict[str, Any], ArraysOrSections]:
    """Return the graph of all remaining edges, in the order of their statements, and its sections.

    The first result also has which statements exist, for the next merge.
    """
    stated = _Statements(base, known, log)
    graph, live = _continued(_before(base, stated, before), stated, at) or _summed(stated, at)
    Incidence.kept_of(graph, at.passages.size)  # for the counts of the index, and for recipes
    sections: dict[str, Any] = dict(build(graph, at.passages.size))
    if live.known or live.total != graph.counts_of_types().sum():  # else the graph determines the statements
        sections |= stated.sections(live, at)
    return {"graph": graph, "live_edges": live}, sections


# ---- The statements of a generation and of batches ----


class _Statements:
    """The statements of a generation and of the batches after it, numbered in their order.

    An end is the slot of a passage, or -1 minus the slot of an entity.
    """

    def __init__(self, base: Graph, known: EdgeStatements | None, log: DeltaRows) -> None:
        self.base, self.log = base, log
        self._own = statements_kept_of(base) if known is None else known
        self.first = len(self._own)
        self.count = self.first + log.added("edge.type")

    @property
    def slots(self) -> Slots:
        """The slots after the batches."""
        return self.log.after

    def ends(self, chosen: Rows) -> Rows:
        """Return the ends of some statements, which ascend: (n, 2)."""
        return self._of("edge.end", chosen, lambda own: _by_slot(self._own.ends[own], self.log.before.passages))

    def types(self, chosen: Rows) -> NDArray[np.uint8]:
        """Return the types of some statements, which ascend."""
        return self._of("edge.type", chosen, lambda own: self._own.types[own]).astype(np.uint8)

    def weights(self, chosen: Rows) -> NDArray[np.float64]:
        """Return the weights of some statements, which ascend."""
        return self._of("edge.weight", chosen, lambda own: self._own.weights[own])

    def passages(self, chosen: Rows) -> Rows:
        """Return the slots of the passages that make some statements, which ascend."""
        return self._of("edge.passage", chosen, lambda own: self._own.passages[own].astype(np.int64))

    def known(self, chosen: Rows) -> int:
        """Return how many of some statements, which ascend, are not of an unknown passage."""
        return int(np.count_nonzero(self.passages(chosen) != UNKNOWN)) if chosen.size else 0

    def batches(self, chosen: Rows) -> Rows:
        """Return the batches of some statements, which ascend, -1 for the generation."""
        own = np.searchsorted(chosen, self.first)
        return np.concatenate([np.full(own, -1), self.log.batch("edge.type")[chosen[own:] - self.first]])

    def _of(self, name: str, chosen: Rows, own: Callable[[Rows], NDArray[Any]]) -> NDArray[Any]:
        cut = np.searchsorted(chosen, self.first)
        added = self.log[name][chosen[cut:] - self.first]
        return np.concatenate([own(chosen[:cut]), added]) if cut else added

    def between(self, pairs: Rows) -> Rows:
        """Return the statements between some pairs of ends, (n, 2), ascending."""
        codes, number = np.unique(pairs, return_inverse=True)
        a, b = number.reshape(-1, 2).T
        if not self.base.directed:
            a, b = np.minimum(a, b), np.maximum(a, b)
        passages, entities = np.full(self.slots.passages, -1, np.int32), np.full(self.slots.entities, -1, np.int32)
        is_passage: Mask = codes >= 0
        passages[codes[is_passage]] = np.flatnonzero(is_passage)
        entities[-1 - codes[~is_passage]] = np.flatnonzero(~is_passage)
        pairs = distinct(a * codes.size + b)
        how: dict[str, Any] = {"size": codes.size, "directed": self.base.directed, "pairs": pairs}
        own, added = self._tables(passages, entities)
        return self._found(lambda **given: native().find_pairs(**given, **how), {"number": own}, {"number": added})

    def losing(self, passages: Mask, entities: Mask) -> Rows:
        """Return the statements at or by some passages, or at some entities, by slot, ascending."""
        by = np.concatenate([np.zeros(2, np.bool_), passages]).view(np.uint8)
        own, added = self._tables(passages.view(np.uint8), entities.view(np.uint8))
        return self._found(
            native().find_gone,
            {"end_gone": own, "passage_gone": by, "passages": self._own.passages},
            {"end_gone": added, "passage_gone": by, "passages": self.log["edge.passage"]},
        )

    def _tables(self, passages: NDArray[Any], entities: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return a table by slots as one by the generation's ends, which are nodes, and one by those of batches."""
        first = self.log.before
        own = np.concatenate([passages[: first.passages], entities[: first.entities]])
        return own, np.concatenate([entities[::-1], passages])

    def _found(self, find: Callable[..., int], own: Mapping[str, Any], added: Mapping[str, Any]) -> Rows:
        """Return what a search in the generation's statements and in those of the batches finds."""
        found, start, parts = [], 0, ((self._own.ends, 0, own), (self.log["edge.end"], -self.slots.entities, added))
        for ends, lowest, given in parts:
            room = np.empty(len(ends), np.int64)
            count = find(ends=ends, lowest=lowest, out_found=room, **given)
            found.append(room[:count] + start)
            start += len(ends)
        return np.concatenate(found)

    def sections(self, live: LiveEdges, at: Places) -> dict[str, MadeSection]:
        """Return the sections ``edge.*`` of those that exist, which are made when they are read."""
        own, log = self._own, self.log
        is_own, is_added = live.alive[: self.first], live.alive[self.first :]

        def ends() -> Iterator[NDArray[Any]]:
            yield at.nodes_of(log.before).astype(np.int32)[own.ends[is_own]]
            yield at.nodes(log["edge.end"][is_added]).astype(np.int32)

        def passages() -> Iterator[NDArray[Any]]:
            place = np.append(at.passage, [UNKNOWN, -1]).astype(np.int32)  # at -2 and -1
            yield place[own.passages[is_own]]
            yield place[log["edge.passage"][is_added]]

        def rows(of: NDArray[Any], name: str) -> Callable[[], Iterator[NDArray[Any]]]:
            return lambda: iter((of[is_own], log[name][is_added].astype(of.dtype, copy=False)))

        made: dict[str, tuple[Any, Callable[[], Iterator[NDArray[Any]]]]] = {
            "edge.end": (np.int32, ends),
            "edge.weight": (np.float64, rows(own.weights, "edge.weight")),
            "edge.type": (np.uint8, rows(own.types, "edge.type")),
            "edge.passage": (np.int32, passages),
        }
        shapes = {"edge.end": (live.total, 2)}
        return {
            name: MadeSection(name, shapes.get(name, (live.total,)), dtype, make)
            for name, (dtype, make) in made.items()
        }


# ---- A graph that is continued ----


def _before(base: Graph, stated: _Statements, merged: MergeResult | None) -> _Before:
    if merged is not None:
        made, at, log = merged.made, merged.at, merged.log
        rows = at.passages, at.entities
        return _Before(made["graph"], made["live_edges"], log.after, *rows, log.added("delete.edge"))
    slots = stated.log.before
    own = np.arange(stated.first)
    live = LiveEdges(np.ones(own.size, np.bool_), own.size, stated.known(own))
    return _Before(base, live, slots, np.arange(slots.passages), np.arange(slots.entities), 0)


def _continued(before: _Before, stated: _Statements, at: Places) -> tuple[Graph, LiveEdges] | None:
    """Return the graph and its statements, or None if the graph cannot be continued."""
    if before.graph.edge_type_names != tuple(stated.log.edge_types) or not before.graph.keeps_order:
        return None
    earlier = before.live.alive.size
    alive = np.concatenate([before.live.alive, np.ones(stated.count - earlier, np.bool_)])
    node, new = _nodes(before, at), np.arange(earlier, stated.count)
    lost = _lost(before, stated, at) if (node < 0).any() else np.zeros(0, np.int64)
    alive[lost] = False
    alive[new] = _may_exist(stated, new, at)
    again, gone = _concerned(before, stated, at, alive, lost)
    change = Change(
        node,
        at.passages.size + at.entities.size,
        _columns(at.nodes(stated.ends(again))),
        stated.weights(again),
        stated.types(again),
        (*_columns(at.nodes(stated.ends(gone))), stated.types(gone)),
    )
    came = new[alive[new]]
    went = np.flatnonzero(before.live.alive & ~alive[:earlier]) if lost.size or gone.size else lost
    total, known = before.live.total + came.size - went.size, stated.known(came) - stated.known(went)
    return before.graph.continued(change), LiveEdges(alive, total, before.live.known + known)


def _concerned(before: _Before, stated: _Statements, at: Places, alive: Mask, lost: Rows) -> tuple[Rows, Rows]:
    """Return the statements of which edges are summed anew, and those that are gone from edges between remaining nodes.

    ``alive`` loses those that later batches delete.
    """
    log, earlier = stated.log, before.live.alive.size
    came = earlier + np.flatnonzero(alive[earlier:])
    ends, old = stated.ends(came), before.slots
    joined = ends[((ends < old.passages) & (ends >= -old.entities)).all(axis=1)]
    gone = lost[(at.nodes(stated.ends(lost)) >= 0).all(axis=1)] if lost.size else lost
    deletions = log["delete.edge"][before.deletions :]
    pairs = np.concatenate([joined, stated.ends(gone), deletions[:, :2]]) if gone.size or len(deletions) else joined
    if not len(pairs):
        return came, gone
    found = stated.between(pairs)
    if len(deletions):
        when = log.batch("delete.edge")[before.deletions :]
        deleted = found[_deleted(stated, found, deletions, when) & alive[found]]
        alive[deleted] = False
        gone = np.union1d(gone, deleted)
    return np.union1d(came[alive[came]], found[alive[found]]), gone


def _lost(before: _Before, stated: _Statements, at: Places) -> Rows:
    """Return the earlier statements that have now lost an end or the passage that makes them."""
    passages, entities = np.zeros(stated.slots.passages, np.bool_), np.zeros(stated.slots.entities, np.bool_)
    passages[before.passages] = at.passage[before.passages] < 0
    entities[before.entities] = at.entity[before.entities] < 0
    found = stated.losing(passages, entities)
    return found[: np.searchsorted(found, before.live.alive.size)]


def _may_exist(stated: _Statements, chosen: Rows, at: Places) -> Mask:
    """Return which statements have both ends, and the passage that makes them if there is one."""
    by = stated.passages(chosen)
    exist: Mask = np.asarray((at.nodes(stated.ends(chosen)) >= 0).all(axis=1))
    made = np.flatnonzero(by >= 0)
    exist[made] &= at.passage[by[made]] >= 0
    return exist


def _nodes(before: _Before, at: Places) -> NDArray[np.int32]:
    """Return the new node of each node, -1 if it is gone."""
    passages, entities = _rows_of(at.passage, before.passages), _rows_of(at.entity, before.entities)
    node = np.empty(passages.size + entities.size, np.int32)
    node[: passages.size] = passages
    others = node[passages.size :]
    others[:] = entities
    others += np.int32(at.passages.size)
    if entities.size and entities.min() < 0:
        others[entities < 0] = -1
    return node


def _rows_of(place: Rows, slots: Rows) -> Rows:
    """Return the rows of some slots, often of all of them up to one."""
    return place[: slots.size] if is_whole(slots, slots.size) else place[slots]


def _columns(pairs: Rows) -> tuple[Rows, Rows]:
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def _deleted(stated: _Statements, chosen: Rows, gone: Rows, when: Rows) -> Mask:
    """Return which statements a later batch deletes: ``gone`` has ends and types of edges, ``when`` the batches."""
    directed = stated.base.directed
    edges = np.stack([_pairs(stated.ends(chosen), directed), stated.types(chosen).astype(np.int64)], axis=1)
    deleted = np.stack([_pairs(gone[:, :2], directed), gone[:, 2]], axis=1)
    return deleted_later(edges, stated.batches(chosen), deleted, when)


# ---- A graph that is summed of all statements ----


def _summed(stated: _Statements, at: Places) -> tuple[Graph, LiveEdges]:
    alive, names = _exist(stated, at), stated.log.edge_types
    kept = np.flatnonzero(alive)
    src, dst = _columns(at.nodes(stated.ends(kept)))
    graph = Graph.from_edges(
        src,
        dst,
        stated.weights(kept),
        num_nodes=at.passages.size + at.entities.size,
        directed=stated.base.directed,
        edge_type=stated.types(kept) if len(names) > 1 else None,
        edge_type_names=names,
    )
    return graph, LiveEdges(alive, kept.size, stated.known(kept))


def current(
    base: Graph, known: EdgeStatements | None, log: DeltaRows, at: Places
) -> tuple[Rows, NDArray[Any], NDArray[Any], Rows]:
    """Return the statements of edges that exist, by slots: ends, numbers of types, weights, and passages.

    An end is the slot of a passage, or -1 minus the slot of an entity.
    """
    stated = _Statements(base, known, log)
    kept = np.flatnonzero(_exist(stated, at))
    return stated.ends(kept), stated.types(kept).astype(np.int64), stated.weights(kept), stated.passages(kept)


def _exist(stated: _Statements, at: Places) -> Mask:
    """Return which statements exist."""
    log, chosen = stated.log, np.arange(stated.count)
    alive = _may_exist(stated, chosen, at)
    if log.has("delete.edge"):
        alive &= ~_deleted(stated, chosen, log["delete.edge"], log.batch("delete.edge"))
    return alive


def _by_slot(nodes: NDArray[np.int32], first: int) -> Rows:
    """Return ends by slot of nodes of a generation, whose entities begin at node ``first``."""
    wide = nodes.astype(np.int64)
    return np.where(wide < first, wide, first - 1 - wide)


def _pairs(ends: NDArray[Any], directed: bool) -> NDArray[np.int64]:
    """Encode pairs of ends, each from -2**31 to 2**31 - 1, as single numbers."""
    a, b = (ends.astype(np.int64) + 2**31).astype(np.uint64).T
    if not directed:
        a, b = np.minimum(a, b), np.maximum(a, b)
    pairs: NDArray[np.int64] = (a << np.uint64(32) | b).view(np.int64)
    return pairs
