"""Tell the languages and scripts of texts by their stop words and letters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
#: First and last code points of scripts, and whether they separate words by spaces.
SCRIPTS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "Latin": ((0x41, 0x24F), (0x1E00, 0x1EFF)),
    "Greek": ((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    "Cyrillic": ((0x400, 0x52F),),
    "Hebrew": ((0x590, 0x5FF),),
    "Arabic": ((0x600, 0x6FF), (0x750, 0x77F)),
    "Indic": ((0x900, 0xDFF),),
    "Thai": ((0xE00, 0xE7F),),
    "Lao": ((0xE80, 0xEFF),),
    "Burmese": ((0x1000, 0x109F),),
    "Hangul": ((0x1100, 0x11FF), (0xAC00, 0xD7AF)),
    "Khmer": ((0x1780, 0x17FF),),
    "kana": ((0x3040, 0x30FF),),
    "Han": ((0x3400, 0x9FFF), (0x20000, 0x323AF)),
}
#: Scripts that do not separate words by spaces.
UNSPACED = frozenset(("Thai", "Lao", "Burmese", "Khmer", "kana", "Han"))
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


def script_of(text: str) -> str | None:
    """Return the script of most of a text's letters, ``"other"`` for one that is not listed; None without letters.

    Examples
    --------
    >>> from hopfuse.diagnose import script_of
    >>> script_of("艾瑞克 opens it"), script_of("艾瑞克能打开哪里"), script_of("12")
    ('Latin', 'Han', None)
    """
    counts = Counter(map(_script, filter(str.isalpha, text)))
    return counts.most_common(1)[0][0] if counts else None


@cache
def _script(letter: str) -> str:
    point = ord(letter)
    found = (name for name, ranges in SCRIPTS.items() for low, high in ranges if low <= point <= high)
    return next(found, "other")
