"""Search a part of an index: map questions to the part's numbers, and results to the whole index's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._validation import is_whole
from ...errors import InputError
from ...index import Index, IndexPart
from ...types import Hits, Seeds
from ...types.hits import PAD_ID, PAD_SCORE
from .mentions import Mention, unknown_entity

_PADS = {"ids": PAD_ID, "scores": PAD_SCORE}
_NUMBERED = {"passage": "passages", "entity": "entities", "fact": "facts", "triple": "facts"}


class Group:
    """The questions of a batch that see the same passages, and the part of the index with these passages."""

    def __init__(self, rows: NDArray[np.int64], part: IndexPart, whole: Index, batch: int) -> None:
        self.rows, self.part = rows, part
        self.nodes = np.concatenate([part.passages, whole.num_passages + part.entities])
        self._whole, self._all = whole, rows.size == batch
        self._left: list[list[Mention]] = [[] for _ in rows]

    def of(self, given: Any) -> Any:
        """Return this group's rows of an argument that has a row per question; None for None."""
        if given is None or self._all:
            return given
        return given[self.rows] if hasattr(given, "shape") else [given[b] for b in self.rows.tolist()]

    def mentions(self, given: Any) -> Any:
        """Return this group's mentions with the part's numbers; traces list those that it does not have."""
        if given is None:
            return None
        found = []
        for row, left in zip(self.of(given), self._left, strict=True):
            if isinstance(row, str) or not isinstance(row, Iterable):
                found.append(row)  # the search refuses it
                continue
            left.clear()
            found.append([one for one in (self._mention(mention, left) for mention in row) if one is not None])
        return found

    def traces(self, given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return this group's traces with the whole index's numbers."""
        told = []
        for b, left, trace in zip(self.rows.tolist(), self._left, given, strict=True):
            one = self.trace(trace)
            if isinstance(one["query"], int):
                one["query"] = b
            if "allowed" in one:
                one["allowed"] = self.part.passages.size
            if "left_out" in one:
                one["left_out"] = [self._left_out(mention) for mention in left]
            told.append(one)
        return told

    def _left_out(self, mention: Mention) -> dict[str, Any]:
        name = self._whole.entity_names[mention.entity]
        surface = mention.surface or name
        about = {"match": mention.kind, "similarity": 1.0, "passage_frequency": 0, "weight": 0.0}
        return {"entity": mention.entity, "name": name, "surface": surface, **about}

    def _mention(self, mention: Any, left: list[Mention]) -> Any:
        number = getattr(mention, "entity", mention)
        if not is_whole(number):
            return mention
        if not 0 <= number < self._whole.num_entities:
            raise unknown_entity(int(number), self._whole.num_entities, "entities")
        at = int(np.searchsorted(self.part.entities, number))
        here = at < self.part.entities.size and self.part.entities[at] == number
        if not hasattr(mention, "entity"):
            if not here:
                left.append(Mention(int(number), "", "given"))
            return at if here else None
        about = getattr(mention, "confidence", 1.0), getattr(mention, "start", -1)
        whole = Mention(int(number), mention.surface, mention.kind, *about)
        if not here:
            left.append(whole)
        return whole._replace(entity=at) if here else None

    def trace(self, given: Any) -> Any:
        """Return a trace, or a part of one, with the whole index's numbers."""
        if isinstance(given, list | tuple):
            return type(given)(self.trace(one) for one in given)
        if not isinstance(given, dict):
            return given
        kind = given.get("kind")
        named = {"number": kind} if kind in ("passage", "entity") else {}
        found = {}
        for key, one in given.items():
            rows = _NUMBERED.get(str(named.get(key, key)))
            found[key] = int(getattr(self.part, rows)[one]) if rows and type(one) is int else self.trace(one)
        return found


def joined_hits(parts: Sequence[tuple[Group, Hits]], rows: Sequence[NDArray[np.int64]], batch: int, width: int) -> Hits:
    """Return the hits of a batch from those of its groups.

    Parameters
    ----------
    parts : sequence of (group, hits)
    rows : sequence of ndarray of int64
        For each group, the ids in the whole index by the ids of its part.
    batch : int
    width : int
        The smallest width of the result.
    """
    width = max([width, *(hits.ids.shape[1] for _, hits in parts)])
    made: dict[str, NDArray[Any]] = {}
    for (group, hits), ids in zip(parts, rows, strict=True):
        own = dict(vars(hits))
        held = np.arange(hits.ids.shape[1]) < np.asarray(hits.counts)[:, None]
        own["ids"] = np.where(held, ids[np.where(held, hits.ids, 0)] if ids.size else PAD_ID, PAD_ID)
        for name, array in own.items():
            if name not in made:
                shape = (batch, width) if array.ndim == 2 else (batch,)
                made[name] = np.full(shape, _PADS.get(name, 0), array.dtype)
            if array.ndim == 2:
                made[name][group.rows, : array.shape[1]] = array
            else:
                made[name][group.rows] = array
    kind = type(parts[0][1])
    return kind.unchecked(**made)


def joined_seeds(parts: Sequence[tuple[Group, Seeds]], batch: int) -> Seeds:
    """Return the seeds of a batch, as nodes of the whole index."""
    width = max(seeds.nodes.shape[1] for _, seeds in parts)
    nodes, weights = np.full((batch, width), PAD_ID, np.int64), np.zeros((batch, width))
    for group, seeds in parts:
        held = seeds.nodes >= 0
        own = group.nodes[np.where(held, seeds.nodes, 0)] if group.nodes.size else seeds.nodes
        nodes[group.rows, : seeds.nodes.shape[1]] = np.where(held, own, PAD_ID)
        weights[group.rows, : seeds.nodes.shape[1]] = seeds.weights
    return Seeds(nodes, weights)


def in_order(parts: Sequence[tuple[Group, Sequence[Any]]], batch: int) -> list[Any]:
    """Return the values of all questions in order, from those of each group."""
    placed: list[Any] = [None] * batch
    for group, values in parts:
        for b, value in zip(group.rows.tolist(), values, strict=True):
            placed[b] = value
    return placed


def _no_part(field: str, kind: str, method: str, what: str, fix: str) -> InputError:
    return InputError(
        "unsupported",
        field,
        "{field}, a {kind}, has no {method}, so it would {what} outside the allowed passages; give {fix}, or pass "
        "allow_scope='results'",
        kind=kind,
        method=method,
        what=what,
        fix=fix,
    )


class UnknownMatcher:
    """Replaces a matcher that has no ``part``, and refuses to match."""

    def __init__(self, name: str) -> None:
        self._name = name

    def match(self, texts: Sequence[str]) -> Any:
        """Refuse to match."""
        raise _no_part(
            "matcher", self._name, "part(part)", "match names", "entities=, or a matcher such as EntityLinker(index)"
        )


def part_of_matcher(matcher: Any, part: IndexPart) -> Any:
    """Return the matcher of a part of the index."""
    if matcher is None:
        return None
    return matcher.part(part) if callable(getattr(matcher, "part", None)) else UnknownMatcher(type(matcher).__name__)


def part_of_leg(leg: Any, rows: NDArray[np.int64]) -> Any:
    """Return the lexical leg over some rows alone."""
    if leg is None:
        return None
    if not callable(getattr(leg, "part", None)):
        raise _no_part("lexical", type(leg).__name__, "part(rows)", "count words", "BM25 or FTS5")
    return leg.part(rows)
