"""Search a part of an index: map questions to the part's numbers, and results to the whole index's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._arrays.convert import to_numpy
from ...errors import InputError
from ...index import Index, IndexPart
from ...types import Corpus, Hits, Seeds
from ...types.hits import PAD_ID, PAD_SCORE
from ..protocol import Ranks
from .mentions import Mention
from .questions import QuestionBatch

_PADS = {"ids": PAD_ID, "scores": PAD_SCORE}
_NUMBERED = {"passage": "passages", "entity": "entities", "fact": "facts", "triple": "facts"}


class PassageGroup:
    """The questions of a batch that see the same passages, and the rows of the part with these passages.

    The part itself is not kept: a batch may have many.
    """

    def __init__(self, rows: NDArray[np.int64], part: IndexPart, whole: Index, batch: int) -> None:
        self.rows, self.passages, self.entities, self.facts = rows, part.passages, part.entities, part.facts
        self.nodes = np.concatenate([part.passages, whole.num_passages + part.entities])
        self._whole, self._all = whole, rows.size == batch
        self._left: list[list[Mention]] = [[] for _ in rows]

    def of(self, given: Any) -> Any:
        """Return this group's rows of an argument that has a row per question; None for None."""
        if given is None or self._all:
            return given
        return given[self.rows] if hasattr(given, "shape") else [given[b] for b in self.rows.tolist()]

    def asked(self, whole: QuestionBatch) -> QuestionBatch:
        """Return this group's questions, with the part's numbers of entities; traces list those that it lacks."""
        mentions = whole.mentions
        if mentions is not None:
            rows = zip(self.of(mentions), self._left, strict=True)
            mentions = [None if row is None else [self._mention(one, left) for one in row] for row, left in rows]
        weights = whole.edge_weights
        return QuestionBatch(
            self.rows.size,
            self.of(whole.texts),
            self.of(whole.vectors),
            mentions,
            encoded=self.of(whole.encoded),
            edge_weights=weights if weights is None or weights.ndim == 1 else self.of(weights),
        )

    def traces(self, given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return this group's traces with the whole index's numbers."""
        told = []
        for b, left, trace in zip(self.rows.tolist(), self._left, given, strict=True):
            one = self.trace(trace)
            if isinstance(one["query"], int):
                one["query"] = b
            if "allowed" in one:
                one["allowed"] = self.passages.size
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
        """Return a mention with the part's number; None, and ``left`` has it, if the part does not have the entity."""
        if isinstance(mention, str):
            return mention
        whole = mention if isinstance(mention, Mention) else Mention(mention, "", "given")
        at = int(np.searchsorted(self.entities, whole.entity))
        if at == self.entities.size or self.entities[at] != whole.entity:
            left.append(whole)
            return None
        return whole._replace(entity=at) if whole is mention else at

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
            found[key] = int(getattr(self, rows)[one]) if rows and type(one) is int else self.trace(one)
        return found


def joined(
    parts: Sequence[tuple[PassageGroup, Any]], index: Index, batch: int, k: int, ranks: Ranks, **own: Any
) -> dict[str, Any]:
    """Return the fields of a batch's result, in the whole index's numbers, from the results of its groups.

    Parameters
    ----------
    parts : sequence of (group, result)
    index : Index
    batch, k : int
    ranks : {"passages", "entities"}
        What the hits are.
    **own
        Fields that are joined already.
    """
    rows = [getattr(group, ranks) for group, _ in parts]
    first = parts[0][1]
    made: dict[str, Any] = {"index": index, **own}
    for name in (field.name for field in fields(first)):
        values = [(group, getattr(found, name)) for group, found in parts]
        if name in made:
            continue
        if name == "lists":
            every = [(leg, [(group, lists[leg]) for group, lists in values]) for leg in first.lists]
            made[name] = {leg: _joined_hits(hits, rows, batch, 0) for leg, hits in every}
        elif isinstance(values[0][1], Hits):
            made[name] = _joined_hits(values, rows, batch, k if name == "hits" else 0)
        elif isinstance(values[0][1], Seeds):
            made[name] = _joined_seeds(values, batch)
        elif name == "traces" and first.traces is not None:
            made[name] = in_order([(group, group.traces(traces)) for group, traces in values], batch)
        elif isinstance(values[0][1], np.ndarray):
            made[name] = np.array(in_order(values, batch), values[0][1].dtype)
        else:
            made[name] = None if values[0][1] is None else in_order(values, batch)
    return made


def _joined_hits(
    parts: Sequence[tuple[PassageGroup, Hits]], rows: Sequence[NDArray[np.int64]], batch: int, width: int
) -> Hits:
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


def _joined_seeds(parts: Sequence[tuple[PassageGroup, Seeds]], batch: int) -> Seeds:
    """Return the seeds of a batch, as nodes of the whole index."""
    width = max(seeds.nodes.shape[1] for _, seeds in parts)
    nodes, weights = np.full((batch, width), PAD_ID, np.int64), np.zeros((batch, width))
    for group, seeds in parts:
        held = seeds.nodes >= 0
        own = group.nodes[np.where(held, seeds.nodes, 0)] if group.nodes.size else seeds.nodes
        nodes[group.rows, : seeds.nodes.shape[1]] = np.where(held, own, PAD_ID)
        weights[group.rows, : seeds.nodes.shape[1]] = seeds.weights
    return Seeds(nodes, weights)


def in_order(parts: Sequence[tuple[PassageGroup, Sequence[Any]]], batch: int) -> list[Any]:
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


def collaborators_of(part: IndexPart, index: Index, ranks: Ranks, whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe's collaborators for a part of its index, by the names of the constructor's arguments."""
    made = dict(whole)
    if whole.get("matcher") is not None:
        made["matcher"] = _matcher_of(part, whole["matcher"])
    if whole.get("lexical") is not None:
        made["lexical"] = _leg_of(whole["lexical"], part, index, ranks)
    if whole.get("fact_vectors") is not None:
        made["fact_vectors"] = _vectors_of(whole["fact_vectors"], part.facts)
    return made


def _matcher_of(part: IndexPart, matcher: Any) -> Any:
    return matcher.part(part) if callable(getattr(matcher, "part", None)) else UnknownMatcher(type(matcher).__name__)


def _leg_of(leg: Any, part: IndexPart, index: Index, ranks: Ranks) -> Any:
    if not callable(getattr(leg, "part", None)):
        raise _no_part("lexical", type(leg).__name__, "part(rows)", "count words", "BM25 or FTS5")
    if ranks == "passages" and index.lexical is not None and getattr(leg, "matrix", None) is index.lexical:
        return leg.part(part.passages, matrix=part.index.lexical)
    return leg.part(getattr(part, ranks))


def _vectors_of(vectors: Any, rows: NDArray[np.int64]) -> Any:
    if isinstance(vectors, Corpus):
        return Corpus.from_stored(vectors.vectors[rows], metric=vectors.metric, storage=vectors.storage)
    return to_numpy(vectors, "fact_vectors")[rows]
