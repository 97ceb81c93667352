"""What a batch found, as rows of an index: how many bytes it takes is known before anything of it is read."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..retriever import Retriever
from ..types import Hits
from .errors import damaged
from .schema import HitOut, NoteOut, ResultOut
from .snapshots import IndexSnapshot, SentPassage

log = logging.getLogger("hopfuse.serve")
#: Bytes that a hit takes beside its strings, and a value of a trace, about.
HIT_BYTES, VALUE_BYTES = 128, 24
#: Bytes of hits that are read and encoded by one call.
RUN_BYTES = 2**20
#: Bytes of the longest passages that are kept for other answers.
KEPT_BYTES = 2**13
#: Bytes of hits of a batch up to which a bound of them will do: an answer of so few is not counted.
FEW_BYTES = 2**18


class Sizes:
    """The bytes of the hits of a batch.

    Parameters
    ----------
    sent : ndarray of int64, shape (B, k)
        Of the id and of what is returned beside it; 0 at padding.
    is_long : ndarray of bool, shape (B, k)
        Whether the passage is too long to be kept for other answers.
    """

    def __init__(self, sent: NDArray[np.int64], is_long: NDArray[np.bool_]) -> None:
        self.sent, self.is_long = sent, is_long
        self.of_query: list[int] = sent.sum(axis=1).tolist()


@dataclass(eq=False, slots=True)
class QueryRanking:
    """The ranking of a query, best first, whose passages need not be read yet.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
    scores : ndarray of float32, shape (n,)
    sizes : ndarray of int64, shape (n,)
        Bytes of the id of each hit, and of the strings that are returned beside it.
    is_long : ndarray of bool, shape (n,)
        Passages that are not kept for other answers.
    nbytes : int
        What the answer takes, about.
    trace : dict or None
    notes : list of NoteOut
    hits : list of HitOut or None
        The hits, if they have been read.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    sizes: NDArray[np.int64]
    is_long: NDArray[np.bool_]
    nbytes: int
    trace: dict[str, Any] | None
    notes: list[NoteOut]
    hits: list[HitOut] | None = None

    def __len__(self) -> int:
        return len(self.rows)


class HitReader:
    """Reads the hits of a request. Passages that several answers have share their strings, unless they are long.

    Parameters
    ----------
    snapshot : IndexSnapshot
    retriever : Retriever
    fields : frozenset of str
        The fields of a passage to return beside id and score.
    """

    def __init__(self, snapshot: IndexSnapshot, retriever: Retriever, fields: frozenset[str]) -> None:
        self._snapshot, self._fields = snapshot, fields
        self._ranks_passages = retriever.recipe.ranks == "passages"
        self._ids: Any = retriever.recipe.hit_ids(snapshot.index)

    @property
    def has_numbers(self) -> bool:
        """Whether ids are integers."""
        return len(self._ids) > 0 and isinstance(self._ids[0], int)

    def sizes(self, hits: Hits) -> Sizes:
        """Return the bytes of the hits of a batch; nothing of them is read. Those of a few short ones are a bound."""
        given = np.arange(hits.ids.shape[1]) < np.asarray(hits.counts)[:, None]
        sent, longest = np.zeros(hits.ids.shape, np.int64), self._snapshot.longest
        if self._ranks_passages and longest <= KEPT_BYTES and longest * sent.size <= FEW_BYTES:
            return Sizes(given * longest, np.zeros(hits.ids.shape, np.bool_))
        rows, index = hits.ids[given], self._snapshot.index
        is_long = np.zeros(hits.ids.shape, np.bool_)
        own = self._ids.lengths(rows)
        if self._fields and self._ranks_passages:
            parts = {
                "title": index.titles.lengths(rows),
                "text": index.texts.lengths(rows),
                "metadata": index.metadata.lengths(rows),
            }
            is_long[given] = sum(parts.values()) > KEPT_BYTES
            own = own + sum(parts[name] for name in self._fields)
        elif "title" in self._fields:
            own = 2 * own
        sent[given] = own
        return Sizes(sent, is_long)

    def read(
        self, found: QueryRanking, places: Iterable[int], long: dict[int, SentPassage] | None = None
    ) -> list[HitOut]:
        """Return some of the hits.

        Parameters
        ----------
        found : QueryRanking
        places : iterable of int
        long : dict, optional
            The long passages that were read before, which gets those that are read now.
        """
        rows, scores, is_long = found.rows.tolist(), found.scores.tolist(), found.is_long.tolist()
        if not (self._fields and self._ranks_passages):
            return [self._named(self._ids[rows[at]], scores[at]) for at in places]
        hits, passage_of = [], self._snapshot.passage
        for at in places:
            passage = self._long(rows[at], long) if is_long[at] else passage_of(rows[at])
            hits.append(HitOut(passage.id, scores[at], *self._shown(passage)))
        return hits

    def _named(self, id: str | int, score: float) -> HitOut:
        """Return the hit of an entity, whose name is its title, or of a passage without other fields."""
        if not self._fields:
            return HitOut(id, score)
        return HitOut(id, score, str(id) if "title" in self._fields else None, "" if "text" in self._fields else None)

    def _long(self, row: int, known: dict[int, SentPassage] | None) -> SentPassage:
        """Return a long passage, with the requested fields alone."""
        if known is None:
            return self._snapshot.part_of(row, self._fields)
        if row not in known:
            known[row] = self._snapshot.part_of(row, self._fields)
        return known[row]

    def _shown(self, passage: SentPassage) -> tuple[Any, ...]:
        """Return title, text and metadata; None for fields that are not requested or missing."""
        fields, metadata = self._fields, passage.metadata
        return (
            passage.title if "title" in fields else None,
            passage.text if "text" in fields else None,
            metadata if "metadata" in fields else None,
        )

    def runs(self, found: QueryRanking, places: Sequence[int] | None = None) -> Iterator[list[HitOut]]:
        """Yield the hits, or some of them, in runs that are read and encoded by one call each.

        Raises
        ------
        RefusalError
            500: a file of the index is damaged.
        """
        run, room = list[int](), RUN_BYTES
        for at in range(len(found)) if places is None else places:
            if room <= 0:
                yield self._run(found, run)
                run, room = [], RUN_BYTES
            run.append(at)
            room -= HIT_BYTES + int(found.sizes[at])
        if run:
            yield self._run(found, run)

    def _run(self, found: QueryRanking, run: Sequence[int], long: dict[int, SentPassage] | None = None) -> list[HitOut]:
        if found.hits is not None:
            return [found.hits[at] for at in run]
        try:
            return self.read(found, run, long)
        except FormatError:
            log.exception("the files of index %s are damaged", self._snapshot.name)
            raise damaged() from None

    def results(self, found: Sequence[QueryRanking]) -> list[ResultOut]:
        """Return results whole; equal passages share their strings. See :meth:`runs` for errors."""
        long = dict[int, SentPassage]()
        return [ResultOut(self._run(one, range(len(one)), long), one.trace, one.notes) for one in found]


def found_of(hits: Hits, sizes: Sizes, query: int, trace: dict[str, Any] | None, notes: list[NoteOut]) -> QueryRanking:
    """Return the ranking of one query of a batch."""
    count = int(hits.counts[query])
    nbytes = sizes.of_query[query] + HIT_BYTES * count + (0 if trace is None else bytes_of(trace))
    ids, scores = hits.ids[query, :count], hits.scores[query, :count]
    return QueryRanking(ids, scores, sizes.sent[query, :count], sizes.is_long[query, :count], nbytes, trace, notes)


def bytes_of(value: Any) -> int:
    """Return about how many bytes a value has as JSON.

    Examples
    --------
    >>> bytes_of({"name": "Ankara", "path": [1, 2]}) == 3 * 24 + len("nameAnkarapath") + 2 * 24
    True
    """
    left, total = [value], 0
    while left:
        one = left.pop()
        total += VALUE_BYTES
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, dict):
            total += sum(map(len, one))
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one
        elif isinstance(one, np.ndarray):
            total += VALUE_BYTES * one.size
    return total
