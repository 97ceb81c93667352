"""Evidence that a word is a name: capitals, the function words beside it, and how many passages have it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Hashable, Set
from copy import copy
from itertools import accumulate
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from numpy.typing import NDArray

from ..index.contents import Contents, text_to_index
from ..index.numbers import NumberedTable, passage_numbers, read_rows
from ..text import fold, splits_word

# ---- Function words of English ---------------------------------------------------------------------------------------

_DETERMINERS = """
a an the this these those my our your his her its their what whose
every each all any some no such same other another own most much many few less least more several enough
"""
_AUXILIARIES = """
am is are was were be been being do does did doing done have has had having
can could may might must shall should will would ought
"""
_PREPOSITIONS = """
aboard about above across after against along alongside amid among amongst around as at before behind below beneath
beside besides between beyond by despite down during except for from in inside into like near of off on onto opposite
out outside over past per since than through throughout till to toward towards under underneath until up upon versus via
with within without
"""
_OTHERS = """
that i me mine myself we us ours ourselves you yours yourself yourselves he him himself she hers herself
it itself they them theirs themselves one ones oneself
who whom which when where why how whoever whatever whichever whenever wherever however
and but or nor so yet if unless although though because whereas while whether
not neither either both only just also too very
here there then now ever never again once still already always often
anybody anyone anything everybody everyone everything nobody nothing none somebody someone something
isn't aren't wasn't weren't don't doesn't didn't haven't hasn't hadn't can't couldn't won't wouldn't shouldn't
please tell give show list name else
"""

#: Words that precede a noun and show that it is not a name: articles, possessives, quantifiers. "That" and "which" are
#: not among them, because they are relative pronouns too.
DETERMINERS = frozenset(_DETERMINERS.split())
AUXILIARIES = frozenset(_AUXILIARIES.split())
PREPOSITIONS = frozenset(_PREPOSITIONS.split())
#: English function words, lower case: articles, pronouns, question words, auxiliary verbs, prepositions, conjunctions,
#: quantifiers and the most frequent adverbs; and the verbs that a question begins with where it is a request.
ENGLISH = DETERMINERS | AUXILIARIES | PREPOSITIONS | frozenset(_OTHERS.split())

# ---- Capitals --------------------------------------------------------------------------------------------------------

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


# ---- Words beside a mention ------------------------------------------------------------------------------------------


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


class _Neighbours(NamedTuple):
    """The folded words before and after a mention; empty at either end of the text or next to a punctuation mark.

    ``opens`` says whether the word before is the first of the text.
    """

    before: str
    after: str
    opens: bool


def neighbours(text: str, start: int, end: int) -> _Neighbours:
    """Return the words next to a mention.

    Examples
    --------
    >>> neighbours("WHERE IS TIME?", 9, 13)
    _Neighbours(before='is', after='', opens=False)
    """
    before, after = _BEFORE.search(text[:start]), _AFTER.search(text[end:])
    first, second = ("" if found is None else fold(found[1]) for found in (before, after))
    return _Neighbours(first, second, before is not None and not text[: before.start()].strip())


def is_common_noun(beside: _Neighbours) -> bool:
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


def is_no_preposition(word: str, beside: _Neighbours) -> bool:
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


def is_no_determiner(word: str, beside: _Neighbours) -> bool:
    """Return whether a determiner that needs a noun stands without one, so that it is a name: "where same is".

    Examples
    --------
    >>> texts = ("the country of same", "does same have a port", "in the same country", "is it the same")
    >>> [is_no_determiner("same", neighbours(text, text.index("same"), text.index("same") + 4)) for text in texts]
    [True, True, False, False]
    """
    alone = not beside.after or beside.after in _VERBS
    return word in _BEFORE_NOUN and alone and beside.before not in DETERMINERS


# ---- Passages that contain words, counted and kept -------------------------------------------------------------------

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")
#: The sum of the sizes of what is kept, and what each entry adds to its own size.
_MOST, _EACH = 1 << 19, 64


class BoundedCache(Generic[_K, _V]):
    """Keeps results until their sizes add up to a bound, and then starts over; threads may share it.

    Examples
    --------
    >>> kept = BoundedCache()
    >>> kept.keep("a", 0.5, 1)
    >>> kept.get("a"), kept.get("b")
    (0.5, None)
    """

    def __init__(self) -> None:
        self._known, self._size = dict[_K, _V](), 0
        self._lock = Lock()

    def get(self, key: _K) -> _V | None:
        """Return what is kept for a key, or None."""
        return self._known.get(key)

    def keep(self, key: _K, value: _V, size: int) -> None:
        """Keep a value for a key; one that is larger than the bound is not kept."""
        size += _EACH
        if size > _MOST:
            return
        with self._lock:
            if self._size + size > _MOST:
                self._known, self._size = {}, 0
            if key not in self._known:
                self._size += size
            self._known[key] = value


class _TextChunk(NamedTuple):
    """Concatenated texts of passages: where each begins, and the number of its passage."""

    text: str
    begin: list[int]
    numbers: list[int]


class _PassageTexts(NumberedTable):
    """The texts of the passages of all states of an index, in chunks each of which is at least twice the next."""

    def __init__(self, rule: int) -> None:
        super().__init__()
        self._rule = rule
        self.chunks: tuple[_TextChunk, ...] = ()

    def _read(self, index: Contents, numbers: list[int], rows: list[int]) -> None:
        texts = map(text_to_index, read_rows(index.titles, rows), read_rows(index.texts, rows))
        parts = [fold(text, rule=self._rule, case_sensitive=True) for text in texts]
        begin = list(accumulate((len(text) + 1 for text in parts), initial=0))
        chunk, kept = _TextChunk("\n".join(parts), begin, numbers), list(self.chunks)
        while kept and len(kept[-1].numbers) < 2 * len(chunk.numbers):
            first, after = kept.pop(), chunk
            begin = [*first.begin, *(at + first.begin[-1] for at in after.begin[1:])]
            chunk = _TextChunk(f"{first.text}\n{after.text}", begin, first.numbers + after.numbers)
        self.chunks = (*kept, chunk)


class PassageCounts:
    """Counts the passages of an index that contain words.

    Parameters
    ----------
    index : Index
    rule : int
        The reading rule of the words.
    """

    def __init__(self, index: Contents, rule: int) -> None:
        self._rule, self._numbers = rule, passage_numbers(index)
        self._texts = _PassageTexts(rule).fill(index, self._numbers)

    def of_state(self, index: Contents) -> PassageCounts:
        """Return the counts in another state of the index; the texts are continued."""
        numbers = passage_numbers(index)
        if not self._texts.continued(index, numbers, self._numbers):
            return PassageCounts(index, self._rule)
        other = copy(self)
        other._numbers = numbers
        return other

    def count(self, words: str, most: int, allow: NDArray[Any] | None = None) -> int:
        """Return the number of passages that contain these words between word boundaries, at most ``most``.

        Parameters
        ----------
        words : str
            In lower case; capitalised occurrences, such as in longer names, are not counted.
        most : int
        allow : ndarray of bool, shape (P,), optional
            Count only these passages.
        """
        found = 0
        for chunk in self._texts.chunks:
            found += self._count(chunk, words, most - found, allow)
        return found

    def _count(self, chunk: _TextChunk, words: str, most: int, allow: NDArray[Any] | None) -> int:
        text, begin, numbers = chunk
        found, at = 0, text.find(words) if most > 0 else -1
        while at >= 0 and found < most:
            passage = bisect_right(begin, at) - 1
            row, end = self._numbers.get(numbers[passage]), at + len(words)
            if row < 0 or (allow is not None and not allow[row]):
                at = begin[passage + 1]
            elif splits_word(text, at) or splits_word(text, end):
                at += 1
            else:
                found += 1
                at = begin[passage + 1]
            at = text.find(words, at)
        return found
