"""The use of capitals in a question, and whether a mention is capitalised like a name of the index."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import NamedTuple

_WORD = re.compile(r"\w[\w\u0300-\u036f]*")
_SENTENCE_END = re.compile(r"[.?!:;]\s|\n")
EMPHASISED = 4  # letters from which a word in capitals may be any name; shorter words are abbreviations


class Casing(NamedTuple):
    """The use of capitals in a text.

    Attributes
    ----------
    tells : bool
        Whether case distinguishes names from other words: apart from the first words of sentences and words in
        capitals, there are words in lower case and words that begin with a capital, and function words are in lower
        case. False for a text in one case or in Title Case.
    starts : frozenset of int
        Offsets of the first words of sentences, whose capitals carry no information; empty for a text in one case.
    is_one_case : bool
        Whether all letters are in lower case except in words in capitals, or all in upper case.
    emphasis : bool
        Whether words in capitals stand beside other letters, as "ISO" in "the ISO number of peru". They show nothing
        about the other words.
    """

    tells: bool
    starts: frozenset[int]
    is_one_case: bool
    emphasis: bool = False


def casing_of(text: str, function_words: Set[str]) -> Casing:
    """Return the use of capitals in a text.

    Examples
    --------
    >>> from hopfuse.extract.function_words import ENGLISH
    >>> [casing_of(text, ENGLISH).tells for text in ("Where is Of?", "where is of", "WHERE IS OF", "Where Is It In?")]
    [True, False, False, False]
    >>> casing_of("the ISO number of peru", ENGLISH)
    Casing(tells=False, starts=frozenset(), is_one_case=True, emphasis=True)
    """
    if text.islower() or text.isupper():
        return Casing(False, frozenset(), True)
    emphasis = any(map(in_capitals, _WORD.findall(text)))
    if emphasis and _WORD.sub(lambda word: "" if in_capitals(word[0]) else word[0], text).islower():
        return Casing(False, frozenset(), True, emphasis)
    starts, after = set[int](), 0
    lower = capital = lower_functions = capital_functions = 0
    for word in _WORD.finditer(text):
        first, letters = word.start(), word.group()
        if not starts or (first > after + 1 and _SENTENCE_END.search(text, after, first)):
            starts.add(first)
        elif letters.islower():
            lower += 1
            lower_functions += letters in function_words
        elif letters != letters.lower() and letters != "I" and not in_capitals(letters):
            capital += 1
            capital_functions += letters.lower() in function_words
        after = word.end()
    tells = lower > 0 and capital > 0 and lower_functions >= capital_functions
    return Casing(tells, frozenset(starts), False, emphasis)


def in_capitals(written: str) -> bool:
    """Return whether a word has several letters, all capitals."""
    return len(written) > 1 and written.isupper()


def fits(written: str, name: str, function_words: Set[str]) -> bool:
    """Return whether the capitals of a mention agree with those of a name, in a text whose case is informative.

    For a name of one word, the first letters must agree in case. An abbreviation must be in capitals in both; a longer
    word in capitals may be any name. For a name of several words with capitals, the mention must have a capitalised
    word other than a function word, since people write "Bank Of England" and "the first Pan-African conference".

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
    """Return whether a name has a capital letter; digits and letters without case do not count."""
    return name != name.lower()


def _begins_in_capitals(word: str) -> bool:
    return word[0].isupper()


def _word_fits(written: str, name: str) -> bool:
    if name == name.lower():
        return not written[0].isupper() or written.isupper()
    if len(name) > 1 and name.isupper():
        return written == name
    if in_capitals(written):
        return len(written) >= EMPHASISED
    return written[0].isupper() and name[0].isupper()
