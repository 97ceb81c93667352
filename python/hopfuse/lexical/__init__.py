"""Lexical search: ranks passages by the words of a question, as one more list for a recipe or :func:`hopfuse.fuse`.

:class:`BM25` uses bm25s and can be stored in an index; :class:`FTS5` needs only SQLite. Both are built from texts, such
as those that :meth:`hopfuse.Index.texts_to_index` returns. May import the public API; third-party libraries lazily.
"""

from ._tokenizer import (
    ENGLISH_PLUS,
    Keys,
    Tokenizer,
    asking_words,
    listed_stopwords,
    snowball_stemmer,
    stemmer_named,
    stemmer_of,
)
from .bm25 import BM25
from .fts5 import FTS5, KINDS, leg_of, words_of

__all__ = [
    "BM25",
    "ENGLISH_PLUS",
    "FTS5",
    "KINDS",
    "Keys",
    "Tokenizer",
    "asking_words",
    "leg_of",
    "listed_stopwords",
    "snowball_stemmer",
    "stemmer_named",
    "stemmer_of",
    "words_of",
]
