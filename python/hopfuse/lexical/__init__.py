"""Passages by the words of a question, as one more list for a recipe or for :func:`hopfuse.fuse`.

:class:`BM25` through bm25s, which an index keeps; :class:`FTS5` where there is SQLite alone. Both are built of texts:
:meth:`hopfuse.Index.texts_to_index` gives those of an index.
"""

from ._tokenizer import Tokenizer, listed_stopwords, snowball_stemmer
from .bm25 import BM25
from .fts5 import FTS5

__all__ = ["BM25", "FTS5", "Tokenizer", "listed_stopwords", "snowball_stemmer"]
