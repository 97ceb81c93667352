"""The words of a demo's passages: BM25, kept in the index, where its packages are installed."""

from __future__ import annotations

from .. import Index
from ..errors import MissingExtraError
from ..lexical import BM25, searched_texts

SLOW = "BM25's packages are not installed (extra lexical): SQLite ranks by words, for many times as long"


def with_words(index: Index) -> Index:
    """The index with BM25 of titles and texts; without its packages the index as it is, and SQLite counts the words."""
    try:
        return index.with_lexical(BM25.build(searched_texts(index)).matrix)
    except MissingExtraError:
        return index
