"""Tell the languages of texts by their stop words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from ..errors import MissingExtraError
from ..extract.function_words import ENGLISH
from ..lexical import listed_stopwords

#: Languages of bm25s's lists of stop words whose words are separated by spaces.
LANGUAGES = (
    *("danish", "dutch", "english", "french", "german", "italian", "norwegian", "portuguese", "russian", "spanish"),
    *("swedish", "turkish"),
)
#: A text is in the language with most stop words, if these are at least this share of its words.
SHARE, FEWEST = 0.12, 8
_WORD = re.compile(r"[^\W\d_]+")


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language: the project's own for English, else those of bm25s; none without bm25s.

    Examples
    --------
    >>> from hopfuse.diagnose.languages import stop_words
    >>> "dans" in stop_words("french"), "who" in stop_words("english")
    (True, True)
    """
    try:
        listed = frozenset(listed_stopwords(language))
    except MissingExtraError:
        listed = frozenset()
    return listed | ENGLISH if language == "english" else listed


def language_of(text: str) -> str | None:
    """Return the language that most of a text's stop words are of; None if there are too few words to tell.

    Examples
    --------
    >>> from hopfuse.diagnose import language_of
    >>> language_of("Le serveur est dans la salle, et les clients ne sont pas dans le couloir.")
    'french'
    """
    words = _words(text)
    if len(words) < FEWEST:
        return None
    counts = {language: _count(words, language) for language in LANGUAGES}
    best = max(LANGUAGES, key=lambda language: counts[language])
    return best if counts[best] >= SHARE * len(words) else None


def resembles(text: str, language: str, best: str) -> bool:
    """Return whether a text has at least half as many stop words of a language as of the best one for it.

    Related languages, such as Danish and Norwegian, share most of their stop words.

    Examples
    --------
    >>> from hopfuse.diagnose.languages import resembles
    >>> text = "Le serveur est dans la salle, et les clients ne sont pas dans le couloir."
    >>> resembles(text, "english", "french"), resembles(text, "french", "french")
    (False, True)
    """
    words = _words(text)
    return 2 * _count(words, language) >= _count(words, best)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _count(words: Sequence[str], language: str) -> int:
    listed = stop_words(language)
    return sum(word in listed for word in words)


def shares_of(values: Iterable[str | None]) -> dict[str, float]:
    """Return the share of each value among those that are known, the largest first."""
    counts = Counter(value for value in values if value is not None)
    total = sum(counts.values())
    return {value: count / total for value, count in counts.most_common()}
