"""Cut folded text into words, and text of scripts without spaces into pairs of characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

from .folding import SCRIPTS, UNSPACED, characters, fold
from .rules import RULE

#: What is a word: as the reader of words takes it, or as BM25.
Style = Literal["words", "terms"]
#: Scripts whose pairs of characters may be of both.
_EAST_ASIAN = ("Han", "kana")
_OTHERS = tuple(sorted(UNSPACED.difference(_EAST_ASIAN)))
_UNSPACED = re.compile(f"[{characters((*sorted(UNSPACED), 'Hangul'))}]")
#: Signs that put the next consonant below the one before, in Khmer and Burmese.
_STACKING = "\u17d2\u1039"
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_FIRST_RUN = re.compile(r"\w+")
_FIRST_TERM = re.compile(r"\b\w\w+\b")


def segment(folded: str, style: Style = "words", *, rule: int = RULE) -> list[tuple[int, int]]:
    """Return the places (start, end) of the words of a folded text.

    A word is a run of letters, digits and marks. As ``"words"``, a number keeps its points and commas, a single letter
    is no word, which apostrophes and initials leave, and an underscore separates. As ``"terms"``, a word has at least
    two characters, underscores included, and points and commas separate.

    Under rule 2, scripts without spaces are cut apart from others and give overlapping pairs of characters: Han and
    kana together, Thai, Lao, Khmer and Burmese. A character is a letter with its marks. A lone one is a word itself.
    Hangul gives the word and, if it has more than two characters, its pairs, because endings follow without a space.
    Under rule 1, a whole run of any script is a word, and as ``"terms"`` marks separate.

    References
    ----------
    Luk and Kwok, A comparison of Chinese document indexing strategies and retrieval models, ACM TALIP 1, 2002.

    Examples
    --------
    >>> from hopfuse.text import segment
    >>> for text in ("ada's 2nd engine: 1,234.5 parts, u.s.", "東京タワー 2階", "서울의 강", "ไปไหน"):
    ...     print([text[start:end] for start, end in segment(text)])
    ['ada', '2nd', 'engine', '1,234.5', 'parts']
    ['東京', '京タ', 'タワ', 'ワー', '2', '階']
    ['서울의', '서울', '울의', '강']
    ['ไป', 'ปไ', 'ไห', 'หน']
    """
    if rule == 1:
        return list(_first_rule(folded, style))
    if folded.isascii() or not _UNSPACED.search(folded):
        return [found.span() for found in _patterns(folded).spaced(folded, style).finditer(folded)]
    return list(_mixed(folded, style))


def words_in(folded: str, style: Style = "words", *, rule: int = RULE) -> list[str]:
    """Return the words of a folded text, in order.

    Examples
    --------
    >>> from hopfuse.text import words_in
    >>> words_in("snake_case, 3.14", "terms"), words_in("snake_case, 3.14")
    (['snake_case', '14'], ['snake', 'case', '3.14'])
    """
    if rule != 1 and (folded.isascii() or not _UNSPACED.search(folded)):
        return _patterns(folded).spaced(folded, style).findall(folded)
    return [folded[start:end] for start, end in segment(folded, style, rule=rule)]


def read_words(text: str, style: Style = "words", *, rule: int = RULE) -> list[str]:
    """Return the words of a text, folded. Under rule 1, terms are in lower case only.

    Examples
    --------
    >>> from hopfuse.text import read_words
    >>> read_words("Daten\u00adbank der SOCIE\u0301TE\u0301, 艾瑞克")
    ['datenbank', 'der', 'société', '艾瑞', '瑞克']
    """
    folded = text.lower() if rule == 1 and style == "terms" else fold(text, rule=rule)
    return words_in(folded, style, rule=rule)


def spaced(folded: str, *, pairs: bool = True) -> str:
    """Return a folded text with spaces around the words of scripts without spaces; the rest stays as it is.

    Parameters
    ----------
    folded : str
    pairs : bool
        Words as :func:`segment` cuts them. Without, single characters, and Hangul as it is.

    Examples
    --------
    >>> from hopfuse.text import spaced
    >>> spaced("c言語で, 2階"), spaced("c言語で, 2階", pairs=False)
    ('c 言語 語で , 2 階 ', 'c 言 語 で , 2 階 ')
    """
    if folded.isascii() or not _UNSPACED.search(folded):
        return folded
    patterns = _patterns(folded)

    def words(found: re.Match[str]) -> str:
        if not pairs and found.lastgroup == "Hangul":
            return found[0]
        places = _places(patterns, found) if pairs else _units(patterns, found)
        return f" {' '.join(found.string[start:end] for start, end in places)} "

    return patterns.apart.sub(lambda found: patterns.runs.sub(words, found[0]), folded)


def runs_in(folded: str) -> list[str]:
    """Return the runs of letters, digits, underscores and marks of a folded text.

    Examples
    --------
    >>> from hopfuse.text import runs_in
    >>> runs_in("a snake_case, की")
    ['a', 'snake_case', 'की']
    """
    if folded.isascii():
        return _FIRST_RUN.findall(folded)
    return _patterns(folded).run.findall(folded)


class _Patterns(NamedTuple):
    bare: dict[Style, re.Pattern[str]]  # for text without marks
    marked: dict[Style, re.Pattern[str]]
    first: re.Pattern[str]  # words of rule 1
    run: re.Pattern[str]  # of any characters of words
    apart: re.Pattern[str]  # runs of characters of scripts without spaces
    runs: re.Pattern[str]  # those of one script, by name
    unit: re.Pattern[str]
    mark: re.Pattern[str]

    def spaced(self, folded: str, style: Style) -> re.Pattern[str]:
        """Return the pattern for a text without characters of scripts without spaces."""
        bare = folded.isascii() or not self.mark.search(folded)
        return (self.bare if bare else self.marked)[style]


def _patterns(folded: str) -> _Patterns:
    """Return the patterns for a text; a class with characters beyond the basic plane takes many times as long."""
    return _compiled(_BEYOND.search(folded) is not None)


@cache
def _compiled(beyond: bool) -> _Patterns:
    """Return the patterns, which include marks such as Indic vowels; ``\\w`` does not."""
    points = [chr(point) for point in range(0x300, 0x1F000) if unicodedata.category(chr(point))[0] == "M"]
    in_plane = "".join(point for point in points if point < "\U00010000")
    marks = "".join(points) if beyond else in_plane
    scripts = {one: "".join(filter(str.isalnum, _listed(one))) for one in (*_OTHERS, "kana")}
    scripts |= {one: characters([one]) for one in ("Han", "Hangul")}
    runs = {"pairs": scripts["Han"] + scripts["kana"], **{one: scripts[one] for one in (*_OTHERS, "Hangul")}}
    named = "|".join(f"(?P<{name}>[{inside}][{inside}{marks}]*)" for name, inside in runs.items())
    letter, apart = r"[^\W_]", "".join(scripts.values())

    def words(run: str) -> re.Pattern[str]:
        return re.compile(rf"\d+(?:[.,]\d+)+(?!{letter})|{run}|\d")

    def marked(letter: str) -> str:
        return rf"{letter}(?:{letter}|[{marks}])[{marks}]*(?:{letter}+[{marks}]*)*"

    return _Patterns(
        {"words": words(rf"{letter}{{2,}}"), "terms": re.compile(r"\w{2,}")},
        {"words": words(marked(letter)), "terms": re.compile(marked(r"\w"))},
        re.compile(rf"\d+(?:[.,]\d+)+(?!{letter})|{letter}(?:{letter}|[{in_plane}])*"),
        re.compile(rf"\w[\w{marks}]*"),
        re.compile(f"[{apart}][{apart}{marks}]*"),
        re.compile(named),
        re.compile(rf"[^{marks}][{marks}]*(?:(?<=[{_STACKING}])[^{marks}][{marks}]*)*"),
        re.compile(f"[{marks}]"),
    )


def _listed(script: str) -> Iterator[str]:
    return (chr(point) for low, high in SCRIPTS[script] for point in range(low, high + 1))


def _mixed(folded: str, style: Style) -> Iterator[tuple[int, int]]:
    """Yield the words of a text that may have characters of scripts without spaces."""
    patterns, done = _patterns(folded), 0
    pattern = patterns.spaced(folded, style)
    for found in patterns.apart.finditer(folded):
        start, end = found.span()
        yield from (word.span() for word in pattern.finditer(folded, done, start))
        for run in patterns.runs.finditer(folded, start, end):
            yield from _places(patterns, run)
        done = end
    yield from (word.span() for word in pattern.finditer(folded, done))


def _places(patterns: _Patterns, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the words of a run of a script without spaces."""
    units = _units(patterns, found)
    if len(units) == 1 or (found.lastgroup == "Hangul" and len(units) > 2):
        yield units[0][0], found.end()
    yield from ((before[0], after[1]) for before, after in pairwise(units))


def _units(patterns: _Patterns, found: re.Match[str]) -> list[tuple[int, int]]:
    """Return the places of the characters of a run, with their marks."""
    folded, (start, end) = found.string, found.span()
    if patterns.mark.search(folded, start, end) is None:
        return [(at, at + 1) for at in range(start, end)]
    return [unit.span() for unit in patterns.unit.finditer(folded, start, end)]


def _first_rule(folded: str, style: Style) -> Iterator[tuple[int, int]]:
    if style == "terms":
        yield from (found.span() for found in _FIRST_TERM.finditer(folded))
        return
    for found in _compiled(False).first.finditer(folded):
        start, end = found.span()
        if end - start > 1 or not folded[start].isalpha():
            yield start, end
