"""Split texts into terms, with a Snowball stemmer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any

from .._validation import check_choice, check_list, check_type, import_extra
from ..errors import InputError
from ..text import RULE, fold, function_words, language_named, question_words, read_words, unaccented

#: A longer list of English stop words, which has question words.
ENGLISH_PLUS = "english_plus"


def bm25s() -> Any:
    """Import bm25s, or raise an error that says how to install it."""
    return import_extra("bm25s", "BM25")


def listed_stopwords(stopwords: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return stop words in lower case, ascending.

    Parameters
    ----------
    stopwords : str, sequence of str, or None
        A language by its name or code (:func:`hopfuse.text.language_named`), the words themselves, or None for no stop
        words. A language has the list of bm25s, else its most frequent function words. ``"english"`` is Lucene's short
        list; ``"english_plus"`` is longer and includes question words.

    Raises
    ------
    InputError
        An unknown language, or a list with entries that are not strings.
    MissingExtraError
        ``bm25s`` is not installed.

    Examples
    --------
    >>> from hopfuse.lexical import listed_stopwords
    >>> listed_stopwords(["The", "a"]), "who" in listed_stopwords("english_plus"), "dans" in listed_stopwords("fr")
    (('a', 'the'), True, True)
    """
    if stopwords is None:
        return ()
    words: Sequence[Any]
    if isinstance(stopwords, str):
        language = stopwords if stopwords == ENGLISH_PLUS else language_named(stopwords, "stopwords")
        try:
            words = list(bm25s().tokenization.Tokenizer(stopwords=language).stopwords)
        except ValueError:  # bm25s has no list
            words = function_words(language)
    else:
        words = check_list(stopwords, "stopwords", "a list of strings, a language or None")
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
        super().__init__(_left_out(tuple(stopwords), rule))
        self._stemmer = snowball_stemmer(stemmer)  # one per table, because stemmers are not thread-safe
        if self._stemmer is not None:
            self._stemmer.maxCacheSize = 0  # the table holds every word that was stemmed
        self._rule = rule

    def key(self, word: str) -> str:
        """Return the key of a word, also of a stop word."""
        (key,) = self._keys([word])
        return key

    def all_of(self, words: Sequence[str]) -> list[str]:
        """Return the key of each word, also of stop words; none is added to the table."""
        return list(self._keys(list(words)))

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


@lru_cache(maxsize=64)
def _left_out(stopwords: tuple[str, ...], rule: int) -> dict[str, str | None]:
    return dict.fromkeys(fold(word, rule=rule) for word in stopwords)


def asking_words(question: str, stopwords: Collection[str], stemmer: str | None, rule: int) -> frozenset[str]:
    """Return the words of a question that only ask, without accents; none without stop words or under rule 1.

    Examples
    --------
    >>> from hopfuse.lexical import asking_words
    >>> "what" in asking_words("What is the sea?", ["the"], "english", 2), asking_words("What?", [], "english", 2)
    (True, frozenset())
    """
    return question_words(question, stemmer) if stopwords and rule != 1 else frozenset()


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
        self._options = tuple(stopwords), stemmer, rule
        snowball_stemmer(stemmer)  # raises now, not at the first search

    def terms_of(self, texts: list[str]) -> list[list[str]]:
        """Return the terms of each text, in order."""
        keys, rule = Keys(*self._options), self._options[2]
        rows = [read_words(text, "terms", rule=rule) for text in texts]
        keys.learn(set(chain.from_iterable(rows)))
        return [[term for word in row if (term := keys[word]) is not None] for row in rows]

    def terms_of_questions(self, questions: list[str]) -> list[list[str]]:
        """Return the terms of each question, without words that only ask, unless it has no others.

        :func:`hopfuse.text.question_words` says which, by the language of the question. If there are no stop words, all
        words count.

        Examples
        --------
        >>> from hopfuse.lexical import Tokenizer
        >>> Tokenizer(["the"], "english").terms_of_questions(["What is the sea?", "Comment va la mer ?", "Who?"])
        [['is', 'sea'], ['va', 'la', 'mer'], ['who']]
        """
        stopwords, stemmer, rule = self._options
        keys = Keys(*self._options)
        found, rows = [], [read_words(question, "terms", rule=rule) for question in questions]
        keys.learn(set(chain.from_iterable(rows)))
        for question, row in zip(questions, rows, strict=True):
            asking = asking_words(question, stopwords, stemmer, rule)
            words = [word for word in row if keys[word] is not None]
            telling = [word for word in words if unaccented(word) not in asking] if asking else words
            found.append([key for word in telling or words if (key := keys[word]) is not None])
        return found


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
    package = _stemmers(name)
    check_choice(name, "stemmer", _algorithms(package))
    return package.Stemmer(name)


def stemmer_named(name: str | None) -> str | None:
    """Return the Snowball algorithm of a name, or of a language by its name or code.

    Raises
    ------
    InputError
        An unknown name, or a language without stemmer.
    MissingExtraError
        ``PyStemmer`` is not installed.

    Examples
    --------
    >>> from hopfuse.lexical import stemmer_named
    >>> stemmer_named("fr"), stemmer_named("porter"), stemmer_named(None)
    ('french', 'porter', None)
    """
    if name is None:
        return None
    known = _algorithms(_stemmers(name))
    try:
        language = name if name in known else language_named(name)
    except InputError:
        language = name
    return check_choice(language, "stemmer", known)


def stemmer_of(language: str) -> str | None:
    """Return the stemmer of a language, given by its English name, or None if Snowball has none.

    Raises
    ------
    MissingExtraError
        ``PyStemmer`` is not installed.

    Examples
    --------
    >>> from hopfuse.lexical import stemmer_of
    >>> stemmer_of("french"), stemmer_of("japanese")
    ('french', None)
    """
    return language if language in _algorithms(_stemmers(language)) else None


def _stemmers(name: Any) -> Any:
    return import_extra("Stemmer", f"stemming by {name!r}")


@cache
def _algorithms(package: Any) -> tuple[str, ...]:
    """Return the names of Snowball's algorithms; the library makes the list anew at each call, which takes long."""
    return tuple(package.algorithms())
