"""Rankings as tables, for a terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

#: The questions of a result, and the hits of a question, that a table shows.
MOST_QUESTIONS, MOST_HITS = 10, 10
#: The most characters of an id, and of a title or text.
ID_WIDTH, LABEL_WIDTH = 24, 72
_HEADER = ("rank", "score", "id", "title or text")


class Line(NamedTuple):
    """A hit: its score, its id, and its title, or its text if it has none."""

    score: float
    id: str | int
    label: str


class Ranking(NamedTuple):
    """The best hits of a question, at most :data:`MOST_HITS`, how many others it has, and notes about the question."""

    lines: Sequence[Line]
    others: int = 0
    notes: Sequence[str] = ()


def text_table(num_questions: int, ranking: Callable[[int], Ranking]) -> str:
    r"""Return a table for each question; control characters of an index are escaped, and whole texts shortened.

    Examples
    --------
    >>> print(text_table(2, lambda b: Ranking([Line(0.5, "thames", "A river.\x1b[31m")][: 1 - b])))
    question 0
    rank  score    id      title or text
       1  0.50000  thames  A river.\x1b[31m
    question 1: nothing was found
    """
    out = []
    for b in range(min(num_questions, MOST_QUESTIONS)):
        found = ranking(b)
        out.append(f"question {b}{'' if found.lines else ': nothing was found'}")
        rows = [_HEADER, *_cells(found)] if found.lines else []
        score, id = (max((len(row[at]) for row in rows), default=0) for at in (1, 2))
        out += [f"{row[0]:>4}  {row[1]:<{score}}  {row[2]:<{id}}  {row[3]}".rstrip() for row in rows]
        out += [f"      {line}" for line in _below(found)]
    return "\n".join(out + _more(num_questions - MOST_QUESTIONS, "question"))


def html_table(num_questions: int, ranking: Callable[[int], Ranking]) -> str:
    """Return the tables as HTML, with every text escaped."""
    head = "".join(f"<th>{name}</th>" for name in _HEADER)
    out = []
    for b in range(min(num_questions, MOST_QUESTIONS)):
        found = ranking(b)
        rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in _cells(found)]
        below = _below(found) if rows else ["nothing was found", *_below(found)]
        rows += [f'<td colspan="4">{escape(line)}</td>' for line in below]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        out.append(f"<table><caption>question {b}</caption><tr>{head}</tr>{body}</table>")
    return "".join(out + [f"<p>{more}</p>" for more in _more(num_questions - MOST_QUESTIONS, "question")])


def _cells(found: Ranking) -> list[tuple[str, str, str, str]]:
    return [
        (str(rank), f"{line.score:#.5g}", _shown(str(line.id), ID_WIDTH), _shown(line.label, LABEL_WIDTH))
        for rank, line in enumerate(found.lines, 1)
    ]


def _below(found: Ranking) -> list[str]:
    return _more(found.others, "hit") + [f"note: {_shown(note, 2 * LABEL_WIDTH)}" for note in found.notes]


def _shown(text: str, width: int) -> str:
    """Return the beginning of a text in one line, with characters that a terminal may obey escaped."""
    short = " ".join(text[: 4 * width].split())
    if len(short) > width or len(text) > 4 * width:
        short = short[: width - 1] + "…"
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in short)


def _more(number: int, noun: str) -> list[str]:
    return [f"… {number:,} more {noun}{'' if number == 1 else 's'}"] if number > 0 else []
