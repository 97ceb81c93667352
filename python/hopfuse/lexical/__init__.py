"""Lexical search: ranks passages by the words of a question, as one more list for a recipe or :func:`hopfuse.fuse`.

:class:`BM25` uses bm25s and can be stored in an index; :class:`FTS5` needs only SQLite. Both are built from texts, such
as those that :meth:`hopfuse.Index.texts_to_index` returns. May import the public API; third-party libraries lazily.
"""

from ._tokenizer import Keys, Tokenizer, listed_stopwords, snowball_stemmer
from .bm25 import BM25
from .fts5 import FTS5
from .legs import leg_of, words_of

__all__ = ["BM25", "FTS5", "Keys", "Tokenizer", "leg_of", "listed_stopwords", "snowball_stemmer", "words_of"]
