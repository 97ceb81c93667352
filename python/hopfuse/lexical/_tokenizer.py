"""Split texts into terms with bm25s's tokenizer and a Snowball stemmer."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ..errors import InputError, MissingExtraError


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
            "{field} is {given!r}; allowed: a language for which bm25s has a list, such as 'english' or "
            "'german', a list of words, or None",
            given=stopwords,
        ) from None
    if not all(isinstance(word, str) for word in words):
        raise InputError("UNSORTED", "stopwords", "{field} is {given!r}; a list may hold only strings", given=stopwords)
    return tuple(sorted({word.lower() for word in words}))


class Tokenizer:
    """Split texts into terms: words of at least two characters, in lower case, without stop words, stemmed.

    Parameters
    ----------
    stopwords : sequence of str
    stemmer : str or None
        A Snowball algorithm.

    Raises
    ------
    InputError
        An unknown algorithm.
    MissingExtraError
        ``bm25s`` is not installed, or ``PyStemmer`` and a stemmer is given.

    Examples
    --------
    >>> from hopfuse.lexical import Tokenizer
    >>> Tokenizer(["the"], "english").terms_of(["The engines of Babbage."])
    [['engin', 'of', 'babbag']]
    """

    def __init__(self, stopwords: Sequence[str], stemmer: str | None) -> None:
        self._stopwords = list(stopwords)
        self._stemmer = stemmer
        snowball_stemmer(stemmer)  # raises now, not at the first search

    def terms_of(self, texts: list[str]) -> list[list[str]]:
        """Return the terms of each text, in order."""
        stemmer = snowball_stemmer(self._stemmer)  # one per call, because stemmers are not thread-safe
        terms: list[list[str]] = bm25s().tokenize(
            texts, stopwords=self._stopwords, stemmer=stemmer, return_ids=False, show_progress=False
        )
        return terms


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
    if not isinstance(name, str) or name not in package.algorithms():
        raise InputError(
            "choice",
            "stemmer",
            "{field} is {given!r}; allowed: None, {names}",
            given=name,
            names=", ".join(package.algorithms()),
        )
    return package.Stemmer(name)
