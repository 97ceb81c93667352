"""Positions in a question where a word that may be a name cannot be one, or must be one."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..text import fold
from .function_words import AUXILIARIES, DETERMINERS, PREPOSITIONS

_BEFORE, _AFTER = re.compile(r"([\w'’]+)\s*$"), re.compile(r"^\s*(\w+)")
#: A preposition is not followed by another in these positions, except for those that form pairs ("out of").
_NO_PREPOSITION_AFTER = (PREPOSITIONS - {"as", "along", "like", "off", "out", "than", "up"}) | {"where"}
#: Auxiliary verbs that are followed by a subject in a question. After forms of "be", a preposition may end a clause.
_SUBJECT_AFTER = AUXILIARIES - {"am", "is", "are", "was", "were", "be", "been", "being"}


#: Verbs that say where a place is, and what it is part of.
_PLACING = frozenset(["belong", "belongs", "lay", "lie", "lies", "sat", "sit", "sits", "stand", "stands", "stood"])
_VERBS = AUXILIARIES | _PLACING
#: Determiners that are always followed by their noun.
_BEFORE_NOUN = frozenset(["a", "an", "every", "my", "our", "same", "the", "their", "your"])


class Neighbours(NamedTuple):
    """The folded words before and after a mention; empty at either end of the text or next to a punctuation mark.

    ``opens`` says whether the word before is the first of the text.
    """

    before: str
    after: str
    opens: bool


def neighbours(text: str, start: int, end: int) -> Neighbours:
    """Return the words next to a mention.

    Examples
    --------
    >>> neighbours("WHERE IS TIME?", 9, 13)
    Neighbours(before='is', after='', opens=False)
    """
    before, after = _BEFORE.search(text[:start]), _AFTER.search(text[end:])
    first, second = ("" if found is None else fold(found[1]) for found in (before, after))
    return Neighbours(first, second, before is not None and not text[: before.start()].strip())


def is_common_noun(beside: Neighbours) -> bool:
    """Return whether a determiner or a possessive precedes a word, as in "what time" and "the country's time".

    "Which" is a determiner at the start of a question; elsewhere it may be a relative pronoun ("in which bath lies").

    Examples
    --------
    >>> texts = ("what time", "my country's time", "which time", "where is time", "the country in which time lies")
    >>> [is_common_noun(neighbours(text, text.index("time"), text.index("time") + 4)) for text in texts]
    [True, True, True, False, False]
    """
    if beside.before == "which":
        return beside.opens
    return beside.before in DETERMINERS or beside.before.endswith(("'s", "’s", "s'", "s’"))


def is_no_preposition(word: str, beside: Neighbours) -> bool:
    """Return whether a preposition stands where English has none, so that it is a name: "the country where of is".

    Examples
    --------
    >>> texts = ("the country where of is", "what is of importance", "does of have a port", "the capital of of")
    >>> [is_no_preposition("of", neighbours(text, text.rindex("of"), text.rindex("of") + 2)) for text in texts]
    [True, False, True, True]
    >>> texts = ("the country that of belongs to", "what is in the box that of opens")
    >>> [is_no_preposition("of", neighbours(text, text.rindex("of"), text.rindex("of") + 2)) for text in texts]
    [True, False]
    """
    if word not in PREPOSITIONS:
        return False
    verb_after = beside.after in _VERBS
    if beside.before in _SUBJECT_AFTER or beside.before == "that":
        return verb_after
    return beside.before in _NO_PREPOSITION_AFTER and (verb_after or not beside.after)


def is_no_determiner(word: str, beside: Neighbours) -> bool:
    """Return whether a determiner that needs a noun stands without one, so that it is a name: "where same is".

    Examples
    --------
    >>> texts = ("the country of same", "does same have a port", "in the same country", "is it the same")
    >>> [is_no_determiner("same", neighbours(text, text.index("same"), text.index("same") + 4)) for text in texts]
    [True, True, False, False]
    """
    alone = not beside.after or beside.after in _VERBS
    return word in _BEFORE_NOUN and alone and beside.before not in DETERMINERS
