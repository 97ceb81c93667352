"""Split texts into terms, with a Snowball stemmer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import chain
from typing import Any

from .._validation import check_choice, check_type
from ..errors import InputError, MissingExtraError
from ..text import RULE, fold, read_words, unaccented


def bm25s() -> Any:
    """Import bm25s, or raise an error that says how to install it."""
    try:
        return import_module("bm25s")
    except ModuleNotFoundError as error:
        raise MissingExtraError("bm25s", "lexical", "BM25") from error


def listed_stopwords(stopwords: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return stop words in lower case, ascending.

    Parameters
    ----------
    stopwords : str, sequence of str, or None
        A language for which bm25s has a list, the words themselves, or None for no stop words. ``"english"`` is
        Lucene's short list; ``"english_plus"`` is longer and includes question words.

    Raises
    ------
    InputError
        An unknown language, or a list with entries that are not strings.
    MissingExtraError
        ``bm25s`` is not installed.

    Examples
    --------
    >>> from hopfuse.lexical import listed_stopwords
    >>> listed_stopwords(["The", "a"]), "who" in listed_stopwords("english_plus")
    (('a', 'the'), True)
    """
    if stopwords is None:
        return ()
    try:
        words = list(bm25s().tokenization.Tokenizer(stopwords=stopwords).stopwords)
    except ValueError:
        raise InputError(
            "choice",
            "stopwords",
            "{field} is {given!r}; allowed: {allowed}",
            given=stopwords,
            allowed="a language for which bm25s has a list, such as 'english' or 'german', a list of words, or None",
        ) from None
    for word in words:
        check_type(word, "stopwords", str, "a list of strings")
    return tuple(sorted({word.lower() for word in words}))


class Keys(dict[str, str | None]):
    """The keys of words, which all forms of a word share; None for stop words. A table of one call, filled as it reads.

    A key is the word's stem. Under reading rules from 2 on it has no accents, so that a word is also found as it is
    typed without them.

    Parameters
    ----------
    stopwords : sequence of str
    stemmer : str or None
        A Snowball algorithm.
    rule : int
        The reading rule of the words.

    Raises
    ------
    InputError
        An unknown algorithm.
    MissingExtraError
        ``PyStemmer`` is not installed, and a stemmer is given.

    Examples
    --------
    >>> from hopfuse.lexical import Keys
    >>> keys = Keys(["the"], "english")
    >>> keys["cafés"], keys["the"], keys.key("the")
    ('cafe', None, 'the')
    """

    def __init__(self, stopwords: Sequence[str], stemmer: str | None, rule: int = RULE) -> None:
        super().__init__((fold(word, rule=rule), None) for word in stopwords)
        self._stemmer = snowball_stemmer(stemmer)  # one per table, because stemmers are not thread-safe
        if self._stemmer is not None:
            self._stemmer.maxCacheSize = 0  # the table holds every word that was stemmed
        self._rule = rule

    def key(self, word: str) -> str:
        """Return the key of a word, also of a stop word."""
        (key,) = self._keys([word])
        return key

    def learn(self, words: Iterable[str]) -> None:
        """Add the keys of many words, faster than one by one."""
        fresh = [word for word in words if word not in self]
        self.update(zip(fresh, self._keys(fresh), strict=True))

    def _keys(self, words: list[str]) -> list[str]:
        stems: list[str] = words if self._stemmer is None else self._stemmer.stemWords(words)
        return stems if self._rule == 1 else list(map(unaccented, stems))

    def __missing__(self, word: str) -> str:
        key = self[word] = self.key(word)
        return key


class Tokenizer:
    """Split texts into terms: words of at least two characters, folded, without stop words, stemmed.

    :func:`hopfuse.text.segment` says what a word is, also in scripts without spaces.

    Parameters
    ----------
    stopwords : sequence of str
    stemmer : str or None
        A Snowball algorithm.
    rule : int
        The reading rule.

    Raises
    ------
    InputError
        An unknown algorithm.
    MissingExtraError
        ``PyStemmer`` is not installed, and a stemmer is given.

    Examples
    --------
    >>> from hopfuse.lexical import Tokenizer
    >>> Tokenizer(["the"], "english").terms_of(["The engines of Babbage.", "艾瑞克"])
    [['engin', 'of', 'babbag'], ['艾瑞', '瑞克']]
    """

    def __init__(self, stopwords: Sequence[str], stemmer: str | None, rule: int = RULE) -> None:
        self._options = list(stopwords), stemmer, rule
        snowball_stemmer(stemmer)  # raises now, not at the first search

    def terms_of(self, texts: list[str]) -> list[list[str]]:
        """Return the terms of each text, in order."""
        keys, rule = Keys(*self._options), self._options[2]
        rows = [read_words(text, "terms", rule=rule) for text in texts]
        keys.learn(set(chain.from_iterable(rows)))
        return [[term for word in row if (term := keys[word]) is not None] for row in rows]


def snowball_stemmer(name: str | None) -> Any:
    """Return a new PyStemmer stemmer, which is not thread-safe, or None if ``name`` is None.

    Parameters
    ----------
    name : str or None
        A Snowball algorithm.

    Raises
    ------
    InputError
        An unknown algorithm.
    MissingExtraError
        ``PyStemmer`` is not installed.

    Examples
    --------
    >>> from hopfuse.lexical import snowball_stemmer
    >>> snowball_stemmer("english").stemWord("kings"), snowball_stemmer(None)
    ('king', None)
    """
    if name is None:
        return None
    try:
        package = import_module("Stemmer")
    except ModuleNotFoundError as error:
        raise MissingExtraError("PyStemmer", "lexical", f"stemming by {name!r}") from error
    check_choice(name, "stemmer", package.algorithms())
    return package.Stemmer(name)
