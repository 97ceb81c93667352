"""The lexical leg for an index or for texts: BM25, or SQLite's FTS5 where the packages of BM25 are not installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .._validation import check_choice
from ..errors import MissingExtraError
from ..types import TermMatrix
from .bm25 import BM25
from .fts5 import FTS5

#: Kinds of legs by name; what follows "fts5:" is a tokenizer of SQLite.
KINDS = ("auto", "bm25", "fts5", "fts5:unicode61", "fts5:trigram")


class _Texts(Protocol):
    """Give what a lexical leg is made from: the texts, and BM25's matrix if there is one."""

    @property
    def lexical(self) -> TermMatrix | None: ...

    def texts_to_index(self) -> list[str]: ...


def words_of(index: _Texts, kind: str | None = None) -> BM25 | FTS5:
    """Return the lexical leg over an index's passages.

    Parameters
    ----------
    index : Index
    kind : {"auto", "bm25", "fts5", "fts5:unicode61", "fts5:trigram"}, optional
        By default the index's own BM25; without one, BM25 over titles and texts, or SQLite's FTS5 if the packages of
        BM25 are not installed. FTS5 stems English words, unless a tokenizer is named (:meth:`FTS5.build`).

    Raises
    ------
    InputError
        Another kind.
    MissingExtraError
        BM25 is required, by name or by the index, and its packages are not installed.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.lexical.words_of(hf.Index.build(passages=[{"text": "A river."}, {"text": "The sea."}]), "fts5")
    FTS5(passages=2)
    """
    if index.lexical is not None and kind in (None, "auto", "bm25"):
        return BM25(index.lexical)
    return leg_of(index.texts_to_index(), kind)


def leg_of(texts: Sequence[str], kind: str | None = None) -> BM25 | FTS5:
    """Return a lexical leg over texts; see :func:`words_of`.

    Examples
    --------
    >>> import hopfuse as hf
    >>> hf.lexical.leg_of(["A river.", "The sea."], "fts5").search(["sea"], k=1).ids
    array([[1]])
    """
    kind = check_choice("auto" if kind is None else kind, "kind", KINDS)
    name, _, tokenizer = kind.partition(":")
    if name != "fts5":
        try:
            return BM25.build(texts)
        except MissingExtraError:
            if kind == "bm25":
                raise
    return FTS5.build(texts, tokenizer=tokenizer) if tokenizer else FTS5.build(texts)
