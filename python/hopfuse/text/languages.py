"""Languages: their names and tags, the words that tell them, and the words that only ask."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise

from ..errors import InputError
from .folding import fold, script_of, unaccented
from .language_words import ASKING_AFTER, COMMON_WORDS, FUNCTION_WORDS, QUESTION_WORDS
from .segments import runs_in

#: ISO 639-1 codes of languages by their English names, which are those of Snowball's stemmers where there is one.
LANGUAGES: Mapping[str, str] = {
    "arabic": "ar",
    "armenian": "hy",
    "basque": "eu",
    "bengali": "bn",
    "bulgarian": "bg",
    "burmese": "my",
    "catalan": "ca",
    "chinese": "zh",
    "croatian": "hr",
    "czech": "cs",
    "danish": "da",
    "dutch": "nl",
    "english": "en",
    "esperanto": "eo",
    "estonian": "et",
    "finnish": "fi",
    "french": "fr",
    "german": "de",
    "greek": "el",
    "hebrew": "he",
    "hindi": "hi",
    "hungarian": "hu",
    "indonesian": "id",
    "irish": "ga",
    "italian": "it",
    "japanese": "ja",
    "khmer": "km",
    "korean": "ko",
    "lao": "lo",
    "lithuanian": "lt",
    "nepali": "ne",
    "norwegian": "no",
    "persian": "fa",
    "polish": "pl",
    "portuguese": "pt",
    "romanian": "ro",
    "russian": "ru",
    "serbian": "sr",
    "sesotho": "st",
    "slovak": "sk",
    "spanish": "es",
    "swedish": "sv",
    "tamil": "ta",
    "thai": "th",
    "turkish": "tr",
    "ukrainian": "uk",
    "urdu": "ur",
    "vietnamese": "vi",
    "yiddish": "yi",
}
_BY_CODE = {code: name for name, code in LANGUAGES.items()} | {"nb": "norwegian", "nn": "norwegian", "iw": "hebrew"}
#: Scripts that one language alone is written in, or most texts by far.
_OF_SCRIPT = {
    "Greek": "greek",
    "Hebrew": "hebrew",
    "Thai": "thai",
    "Lao": "lao",
    "Burmese": "burmese",
    "Khmer": "khmer",
    "Hangul": "korean",
    "kana": "japanese",
    "Han": "chinese",
}
_KANA = re.compile("[\u3041-\u30ff]")
#: A text is in the language with most function words, if these are at least this share of its words.
SHARE, FEWEST = 0.12, 8


def _listed(words: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {language: frozenset(unaccented(fold(word)) for word in text.split()) for language, text in words.items()}


_FUNCTION, _ASKING = _listed(FUNCTION_WORDS), _listed(QUESTION_WORDS)
#: Pairs of words of which the second one asks, too.
_PAIRS = {
    language: {(before, unaccented(fold(word))) for before, text in words.items() for word in text.split()}
    for language, words in ASKING_AFTER.items()
}
#: The words that tell the language of a question.
_TELLING = {language: _FUNCTION.get(language, frozenset()) | asking for language, asking in _ASKING.items()}
#: The languages of each word that tells some.
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words_of in _FUNCTION.items():
    for _word in _words_of:
        _LANGUAGES_OF.setdefault(_word, []).append(_language)


def language_named(given: str, field: str = "language") -> str:
    """Return the English name of a language, in lower case, as its Snowball stemmer is named if there is one.

    Parameters
    ----------
    given : str
        A name in any case, an ISO 639-1 code, or a tag that begins with one.
    field : str
        The argument, for the error.

    Raises
    ------
    InputError
        Another language; the error lists all.

    Examples
    --------
    >>> from hopfuse.text import language_named
    >>> language_named("French"), language_named("fr"), language_named("pt-BR")
    ('french', 'french', 'portuguese')
    """
    name = given.strip().lower() if isinstance(given, str) else ""
    if name in LANGUAGES:
        return name
    code = re.split("[-_]", name)[0]
    if code in _BY_CODE:
        return _BY_CODE[code]
    raise InputError(
        "choice",
        field,
        "{field} is {given!r}, which is not a language that texts are read in; allowed: {allowed}",
        given=given,
        allowed=", ".join(f"{language} ({code})" for language, code in LANGUAGES.items()),
    )


def language_of(text: str) -> str | None:
    """Return the language of a text, by its function words or its script; None if there are too few words to tell.

    Examples
    --------
    >>> from hopfuse.text import language_of
    >>> language_of("Le serveur est dans la salle, et les clients ne sont pas dans le couloir.")
    'french'
    >>> language_of("艾瑞克能打开哪里？"), language_of("サーバーは部屋にあります")
    ('chinese', 'japanese')
    """
    script = script_of(text)
    if script in _OF_SCRIPT:
        return "japanese" if script == "Han" and _KANA.search(text) else _OF_SCRIPT[script]
    words = _words(text)
    if len(words) < FEWEST:
        return None
    counts = Counter(language for word in words for language in _LANGUAGES_OF.get(word, ()))
    best = max(_FUNCTION, key=lambda language: counts[language])
    return best if counts[best] >= SHARE * len(words) else None


def function_words(language: str) -> tuple[str, ...]:
    """Return the most frequent function words of a language, ascending; none for one that is told by its script.

    Examples
    --------
    >>> from hopfuse.text import function_words
    >>> "dans" in function_words("french"), function_words("thai")
    (True, ())
    """
    return tuple(FUNCTION_WORDS.get(language, "").split())


def question_words(question: str, language: str | None = None) -> frozenset[str]:
    """Return the words that only ask, in the language of a question, folded and without accents.

    The language is the one with most function and question words in the question, each word once. ``language``, in
    which the passages are read, counts one more, and wins a tie: "comment syntax in Python" asks nothing in English.
    A word may ask only after another one: "many" in "how many".

    Parameters
    ----------
    question : str
    language : str, optional

    Examples
    --------
    >>> from hopfuse.text import question_words
    >>> "comment" in question_words("Comment configurer un serveur DNS ?", "english")
    True
    >>> "comment" in question_words("comment syntax in Python", "english")
    False
    """
    said = _words(question)
    words = frozenset(said)
    counts = {one: len(words & telling) for one, telling in _TELLING.items()}
    if language in counts:
        counts[language] += 1
    best = max(counts, key=lambda one: (counts[one], one == language))
    if not counts[best]:
        return frozenset()
    return _ASKING[best].union(second for _, second in _PAIRS.get(best, set()).intersection(pairwise(said)))


def common_words(language: str) -> tuple[str, ...]:
    """Return the few words that are in most texts of a language, ascending; none if it has no list.

    Examples
    --------
    >>> from hopfuse.text import common_words
    >>> common_words("turkish"), common_words("thai")
    (('bir', 'bu', 'da', 'de', 'ile', 've'), ())
    """
    return tuple(COMMON_WORDS.get(language, "").split())


def resembles(text: str, language: str, best: str) -> bool:
    """Return whether a text has at least half as many function words of a language as of the best one for it.

    Related languages, such as Danish and Norwegian, share most of them.

    Examples
    --------
    >>> from hopfuse.text import resembles
    >>> text = "Le serveur est dans la salle, et les clients ne sont pas dans le couloir."
    >>> resembles(text, "english", "french"), resembles(text, "french", "french")
    (False, True)
    """
    if language == best:
        return True
    counts = [sum(word in _FUNCTION.get(one, ()) for word in _words(text)) for one in (language, best)]
    return best in _FUNCTION and 2 * counts[0] >= counts[1]


def is_told(language: str) -> bool:
    """Return whether :func:`language_of` can tell a language.

    Examples
    --------
    >>> from hopfuse.text import is_told
    >>> is_told("french"), is_told("basque")
    (True, False)
    """
    return language in _FUNCTION or language in _OF_SCRIPT.values()


def shares_of(values: Iterable[str | None]) -> dict[str, float]:
    """Return the share of each value among those that are known, the largest first.

    Examples
    --------
    >>> from hopfuse.text import shares_of
    >>> shares_of(["french", None, "german", "french", "french"])
    {'french': 0.75, 'german': 0.25}
    """
    counts = Counter(value for value in values if value is not None)
    total = sum(counts.values())
    return {value: count / total for value, count in counts.most_common()}


def _words(text: str) -> list[str]:
    return [unaccented(word) for word in runs_in(fold(text)) if not word.isdigit()]
