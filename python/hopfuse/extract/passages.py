"""Passages that are yet to be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ..index.build import PASSAGES
from ..index.columns import row_ids, texts
from ..index.readers import read_table
from .extraction import Extraction

Progress = Callable[[int, int], None]


class Passage(NamedTuple):
    """A text, what it is called, and what it is told apart by."""

    id: str
    title: str
    text: str


class Reader(Protocol):
    """What finds entities and facts in passages."""

    def read(self, passages: Any, *, progress: Progress | None = None) -> list[Extraction]:
        """An extraction for each passage, in their order."""
        ...


def listed_passages(source: Any) -> list[Passage]:
    """The rows of a table of passages, as :meth:`hopfuse.Index.build` takes them: a path, an Arrow table, mappings.

    Raises
    ------
    InputError
        What is no such table, an id twice, a text that is no string.

    Examples
    --------
    >>> listed_passages([{"text": "Ada wrote notes."}])
    [Passage(id='0', title='', text='Ada wrote notes.')]
    """
    table = read_table(source, PASSAGES)
    columns: Sequence[Sequence[str]] = (row_ids(table), texts(table, "title", default=""), texts(table, "text"))
    return [Passage(*row) for row in zip(*columns, strict=True)]
