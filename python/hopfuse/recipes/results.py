"""Results of a search: arrays of hits, and hits with their ids, titles and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import HopfuseError, InputError
from ..index import Index
from ..types import Hits


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
    """Base class of rankings that print as tables, also in a notebook: of each question's best hits, with its notes.

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
        return _text_table(len(self), self._ranking)

    def _repr_html_(self) -> str:
        return _html_table(len(self), self._ranking)

    def _ranking(self, query: int) -> _QuestionTable:
        """Return what a table shows of a question's hits."""
        hits, number = self._hits(query, _MOST_HITS)
        lines = [_Line(hit.score, hit.id, hit.title or hit.text) for hit in hits]
        notes = self.notes[query] if self.notes else ()
        return _QuestionTable(lines, number - len(hits), [str(note) for note in notes])


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


# ---- Tables, for a terminal and for a notebook -----------------------------------------------------------------------


#: The questions of a result, and the hits of a question, that a table shows.
_MOST_QUESTIONS, _MOST_HITS = 10, 10
#: The most characters of an id, and of a title or text.
_ID_WIDTH, _LABEL_WIDTH = 24, 72
_HEADER = ("rank", "score", "id", "title or text")


class _Line(NamedTuple):
    """A hit: its score, its id, and its title, or its text if it has none."""

    score: float
    id: str | int
    label: str


class _QuestionTable(NamedTuple):
    """The best hits of a question, at most :data:`_MOST_HITS`, how many others it has, and notes about the question."""

    lines: Sequence[_Line]
    others: int = 0
    notes: Sequence[str] = ()


def _text_table(num_questions: int, ranking: Callable[[int], _QuestionTable]) -> str:
    r"""Return a table for each question; control characters of an index are escaped, and whole texts shortened.

    Examples
    --------
    >>> print(_text_table(2, lambda b: _QuestionTable([_Line(0.5, "thames", "A river.\x1b[31m")][: 1 - b])))
    question 0
    rank  score    id      title or text
       1  0.50000  thames  A river.\x1b[31m
    question 1: nothing was found
    """
    out = []
    for b in range(min(num_questions, _MOST_QUESTIONS)):
        found = ranking(b)
        out.append(f"question {b}{'' if found.lines else ': nothing was found'}")
        rows = [_HEADER, *_cells(found)] if found.lines else []
        score, id = (max((len(row[at]) for row in rows), default=0) for at in (1, 2))
        out += [f"{row[0]:>4}  {row[1]:<{score}}  {row[2]:<{id}}  {row[3]}".rstrip() for row in rows]
        out += [f"      {line}" for line in _below(found)]
    return "\n".join(out + _more(num_questions - _MOST_QUESTIONS, "question"))


def _html_table(num_questions: int, ranking: Callable[[int], _QuestionTable]) -> str:
    """Return the tables as HTML, with every text escaped."""
    head = "".join(f"<th>{name}</th>" for name in _HEADER)
    out = []
    for b in range(min(num_questions, _MOST_QUESTIONS)):
        found = ranking(b)
        rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in _cells(found)]
        below = _below(found) if rows else ["nothing was found", *_below(found)]
        rows += [f'<td colspan="4">{escape(line)}</td>' for line in below]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        out.append(f"<table><caption>question {b}</caption><tr>{head}</tr>{body}</table>")
    return "".join(out + [f"<p>{more}</p>" for more in _more(num_questions - _MOST_QUESTIONS, "question")])


def _cells(found: _QuestionTable) -> list[tuple[str, str, str, str]]:
    return [
        (str(rank), f"{line.score:#.5g}", _shown(str(line.id), _ID_WIDTH), _shown(line.label, _LABEL_WIDTH))
        for rank, line in enumerate(found.lines, 1)
    ]


def _below(found: _QuestionTable) -> list[str]:
    return _more(found.others, "hit") + [f"note: {_shown(note, 2 * _LABEL_WIDTH)}" for note in found.notes]


def _shown(text: str, width: int) -> str:
    """Return the beginning of a text in one line, with characters that a terminal may obey escaped."""
    short = " ".join(text[: 4 * width].split())
    if len(short) > width or len(text) > 4 * width:
        short = short[: width - 1] + "…"
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in short)


def _more(number: int, noun: str) -> list[str]:
    return [f"… {number:,} more {noun}{'' if number == 1 else 's'}"] if number > 0 else []
