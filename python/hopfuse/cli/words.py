"""``--words``: which lexical leg ranks an index's passages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from .. import Index
from ..errors import MissingExtraError
from ..lexical import BM25, FTS5, searched_texts

F = TypeVar("F", bound=Callable[..., Any])
WORDS = ("bm25", "fts5")


def words_option(command: F) -> F:
    """``--words``, for :func:`words_of`."""
    return click.option(
        "--words",
        type=click.Choice(WORDS),
        help="BM25, of the index where it was built with --lexical, else counted at the start; or SQLite's, which asks "
        "for longer.  [default: bm25 where bm25s is installed]",
    )(command)


def words_of(index: Index, kind: str | None = None) -> BM25 | FTS5:
    """The lexical leg over an index's passages.

    Parameters
    ----------
    index : Index
    kind : {"bm25", "fts5"}, optional
        By default the index's own BM25; where it has none, BM25 of the titles and texts, or SQLite's where BM25's
        packages are not installed.

    Raises
    ------
    MissingExtraError
        BM25 is asked for, by name or by the index, and its packages are not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> words_of(hf.Index.build(passages=[{"text": "A river."}, {"text": "The sea."}]), "fts5")
    FTS5(passages=2)
    """
    if index.lexical is not None and kind != "fts5":
        return BM25(index.lexical)
    return leg_of(searched_texts(index), kind)


def leg_of(texts: Sequence[str], kind: str | None = None) -> BM25 | FTS5:
    """The same over texts."""
    if kind != "fts5":
        try:
            return BM25.build(texts)
        except MissingExtraError:
            if kind is not None:
                raise
    return FTS5.build(texts)
