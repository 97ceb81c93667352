"""Results of a search: arrays of hits, and hits with their ids, titles and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import HopfuseError, InputError
from ..index import Index
from ..types import Hits
from ._parts.table import MOST_HITS, Line, Ranking, html_table, text_table


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage of a ranking.

    Attributes
    ----------
    id : str or int
        The passage's own id, as the index was built with it.
    row : int
        Its row in the index, 0 .. P - 1.
    score : float
    title, text : str
        Empty if the index has none.
    metadata : dict
        The passage's values by column. Not part of a comparison of hits.
    """

    id: str | int
    row: int
    score: float
    title: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict, compare=False)


def note_data(notes: Iterable[HopfuseError], name: Callable[[str], str] | None = None) -> list[dict[str, Any]]:
    """Return a question's notes as JSON values; ``name`` is as of :meth:`hopfuse.errors.HopfuseError.sentence`.

    Examples
    --------
    >>> from hopfuse.errors import InputError
    >>> from hopfuse.recipes import note_data
    >>> note_data([InputError("unused", "vector", "{field} is given, and nothing reads it")])
    [{'code': 'unused', 'field': 'vector', 'message': 'vector is given, and nothing reads it'}]
    """
    return [{"code": one.code, "field": one.field, "message": one.sentence(name)} for one in notes]


class HitTables:
    """Base class of rankings that print as tables, in a notebook too: of each question's best hits, with its notes.

    A subclass has ``notes`` and defines ``__len__``, the number of questions, and ``_hits(query, most)``.

    Examples
    --------
    >>> import hopfuse as hf
    >>> print(hf.Retriever(hf.Index.from_texts(["The sea.", "A river."]), words="fts5").search("Which sea?"))
    question 0
    rank  score    id  title or text
       1  0.16667  0   The sea.
    """

    notes: Any

    def __len__(self) -> int:
        raise NotImplementedError

    def _hits(self, query: int, most: int) -> tuple[list[Hit], int]:
        """Return a question's best hits, at most ``most``, and the number of all its hits."""
        raise NotImplementedError

    def __str__(self) -> str:
        return text_table(len(self), self._ranking)

    def _repr_html_(self) -> str:
        return html_table(len(self), self._ranking)

    def _ranking(self, query: int) -> Ranking:
        """Return what a table shows of a question's hits."""
        hits, number = self._hits(query, MOST_HITS)
        lines = [Line(hit.score, hit.id, hit.title or hit.text) for hit in hits]
        notes = self.notes[query] if self.notes else ()
        return Ranking(lines, number - len(hits), [str(note) for note in notes])


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult(HitTables):
    """The rankings of a batch of questions: ``result[b]`` is a list of :class:`Hit` for question b, best first.

    Printed, and in a notebook, it is a table of the best hits, with the notes.

    Attributes
    ----------
    hits : Hits
        The rankings as arrays: rows of the index (B, min(k, P)), scores, and counts of valid hits.
    index : Index
        The index that was searched.
    lists : mapping of str to Hits
        The lists that the ranking was made from, with their raw scores.
    traces : list of dict, or None
        One per question if ``trace=True``.
    fell_back : ndarray of bool, shape (B,), or None
        True for questions whose walk reached no passage, as without a seed, so that dense retrieval replaces it. None
        for a recipe without a walk.
    notes : list of list of InputError
        For each question what could not be used of it, such as the name of an entity that the index does not have. A
        note is an error that was not raised; its field is relative to the question: ``"entities[2]"``, ``"text"``.
    """

    hits: Hits
    index: Index = field(repr=False)
    lists: Mapping[str, Hits] = field(default_factory=dict, repr=False)
    traces: list[dict[str, Any]] | None = field(default=None, repr=False)
    fell_back: NDArray[np.bool_] | None = field(default=None, repr=False)
    notes: list[list[InputError]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if not self.notes:
            object.__setattr__(self, "notes", [[] for _ in range(len(self.hits))])

    @property
    def seq(self) -> int:
        """The ``seq`` of the index that was searched: the number of its last change."""
        return self.index.seq

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, query: int) -> list[Hit]:
        if not -len(self) <= query < len(self):
            raise IndexError(f"question {query} is out of range; there are {len(self)}")
        return self._row(self.hits.row(query))

    def __iter__(self) -> Iterator[list[Hit]]:
        return (self[query] for query in range(len(self)))

    def __repr__(self) -> str:
        size = ", ".join(f"{name}={value}" for name, value in zip(("questions", "k"), self.hits.shape, strict=True))
        return f"{type(self).__name__}({size}, valid={int(self.hits.counts.sum())})"

    def _hits(self, query: int, most: int) -> tuple[list[Hit], int]:
        ranked = self.hits.row(query)
        return self._row(ranked[:most]), len(ranked)

    def _row(self, ranked: list[tuple[int, float]]) -> list[Hit]:
        """Return the hits of a ranking of (row, score)."""
        index = self.index
        ids, titles, texts, metadata = index.passage_ids, index.titles, index.texts, index.metadata
        return [Hit(ids[row], row, score, titles[row], texts[row], metadata.row(row)) for row, score in ranked]
