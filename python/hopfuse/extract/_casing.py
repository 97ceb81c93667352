"""The case of a name in a question beside the index's, and whether the question's case says anything at all."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import NamedTuple

_WORD = re.compile(r"\w[\w\u0300-\u036f]*")
_SENTENCE_END = re.compile(r"[.?!:;]\s|\n")
EMPHASISED = 4  # letters: a word of so many capitals may be any name, a shorter one is an abbreviation


class Casing(NamedTuple):
    """The use of capitals in a text.

    Attributes
    ----------
    tells : bool
        Its case tells names from other words: it has words in lower case and others with capitals, apart from those
        that begin a sentence, and its function words are in lower case. A text in one case, or in Title Case, does not.
    starts : frozenset of int
        Offsets of the words that begin a sentence, whose capital says nothing; not read of a text in one case.
    """

    tells: bool
    starts: frozenset[int]


def casing_of(text: str, function_words: Set[str]) -> Casing:
    """Read how a text uses capitals.

    Examples
    --------
    >>> from hopfuse.extract.function_words import ENGLISH
    >>> [casing_of(text, ENGLISH).tells for text in ("Where is Of?", "where is of", "WHERE IS OF", "Where Is It In?")]
    [True, False, False, False]
    """
    if text.islower() or text.isupper():
        return Casing(False, frozenset())
    starts, after = set[int](), 0
    lower = capital = lower_functions = capital_functions = 0
    for word in _WORD.finditer(text):
        first, letters = word.start(), word.group()
        if not starts or (first > after + 1 and _SENTENCE_END.search(text, after, first)):
            starts.add(first)
        elif letters.islower():
            lower += 1
            lower_functions += letters in function_words
        elif letters != letters.lower() and letters != "I":
            capital += 1
            capital_functions += letters.lower() in function_words
        after = word.end()
    tells = lower > 0 and capital > 0 and lower_functions >= capital_functions
    return Casing(tells, frozenset(starts))


def fits(written: str, name: str, function_words: Set[str]) -> bool:
    """Return whether a mention is written with the capitals that its name has, where the case of a text says something.

    A name of one word: with a capital first letter if the name has one, and without if not. An abbreviation is all
    capitals in both; a longer word that is all capitals may be any name. A name of several words with capitals: one of
    them, but not a function word, has one; people write "Bank Of England", "the first Pan-African conference".

    Examples
    --------
    >>> from hopfuse.extract.function_words import ENGLISH
    >>> mentions = ("Bank of England", "bank of england", "BANK OF ENGLAND", "Bank Of England")
    >>> [fits(written, "Bank of England", ENGLISH) for written in mentions]
    [True, False, True, True]
    >>> fits("us", "US", ENGLISH), fits("US", "Us", ENGLISH), fits("TBILISI", "Tbilisi", ENGLISH)
    (False, False, True)
    """
    if written == name:
        return True
    ours, theirs = _WORD.findall(written), _WORD.findall(name)
    if not ours or not theirs:
        return True
    if len(ours) == len(theirs) == 1:
        return _word_fits(ours[0], theirs[0])
    return not any(map(_begins_in_capitals, theirs)) or any(
        _begins_in_capitals(word) and word.lower() not in function_words for word in ours
    )


def has_capital(name: str) -> bool:
    """Return whether a name has a capital; digits, and letters of scripts without case, are none."""
    return name != name.lower()


def _begins_in_capitals(word: str) -> bool:
    return word[0].isupper()


def _word_fits(written: str, name: str) -> bool:
    if name == name.lower():
        return not written[0].isupper() or written.isupper()
    if len(name) > 1 and name.isupper():
        return written == name
    if written.isupper() and len(written) > 1:
        return len(written) >= EMPHASISED
    return written[0].isupper() and name[0].isupper()
