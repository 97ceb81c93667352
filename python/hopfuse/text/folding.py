"""Scripts by code points, and folding: spellings that readers take for the same become equal strings, with offsets."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from .rules import RULE

# ---- Scripts ---------------------------------------------------------------------------------------------------------


#: First and last code points of scripts.
SCRIPTS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "Latin": ((0x41, 0x24F), (0x1E00, 0x1EFF)),
    "Greek": ((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    "Cyrillic": ((0x400, 0x52F),),
    "Hebrew": ((0x590, 0x5FF),),
    "Arabic": ((0x600, 0x6FF), (0x750, 0x77F), (0x870, 0x8FF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFC)),
    "Indic": ((0x900, 0xDFF),),
    "Thai": ((0xE00, 0xE7F),),
    "Lao": ((0xE80, 0xEFF),),
    "Burmese": ((0x1000, 0x109F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F)),
    "Hangul": ((0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7FF)),
    "Khmer": ((0x1780, 0x17FF),),
    "kana": ((0x3040, 0x312F), (0x31A0, 0x31FF), (0x1AFF0, 0x1B16F)),  # with the marks of Bopomofo
    "Han": ((0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF)),
}
#: Scripts that do not separate words by spaces.
UNSPACED = frozenset(("Thai", "Lao", "Burmese", "Khmer", "kana", "Han"))


def characters(scripts: Iterable[str]) -> str:
    """Return the code points of scripts as the inside of a class of a regular expression.

    Examples
    --------
    >>> import re
    >>> from hopfuse.text import characters
    >>> re.findall(f"[{characters(['Thai'])}]", "a ก b")
    ['ก']
    """
    return "".join(f"{chr(low)}-{chr(high)}" for script in scripts for low, high in SCRIPTS[script])


def script_of(text: str) -> str | None:
    """Return the script of most of a text's letters, ``"other"`` for one that is not listed; None without letters.

    Examples
    --------
    >>> from hopfuse.text import script_of
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


# ---- Folding ---------------------------------------------------------------------------------------------------------

#: Characters that are not seen: soft hyphens, spaces without width, joiners, marks of direction, variation selectors,
#: fillers and tags, which are Unicode's Default_Ignorable_Code_Point.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
#: Vowels and marks of recitation of Arabic, Hebrew and Syriac, and the tatweel, which stretches Arabic words.
_UNWRITTEN = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4"
    "\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07fa\u0898-\u089f\u08ca-\u08e1\u08e3-\u08ff"
)
_ARABIC = characters(["Arabic"])
#: In Persian, a non-joiner separates parts of a word. In Indic scripts, it changes the shape of a letter only.
_BETWEEN_PARTS = re.compile(rf"(?<=[{_ARABIC}])[{_INVISIBLE}]+(?=[{_ARABIC}])")
_DROPPED = re.compile(f"[{_INVISIBLE}{_UNWRITTEN}]|(?<=i)\u0307+")
#: The digit 0 of each script that NFKC leaves alone; 1 to 9 follow.
_ZEROS = (
    *(0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0, 0xF20),
    *(0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0),
    *(0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450),
    *(0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50),
    *(0x1E140, 0x1E2F0, 0x1E950),
)
#: Digits of other scripts, and final consonants with a code point of their own, which older texts write with a virama.
_REPLACED = {zero + digit: str(digit) for zero in _ZEROS for digit in range(10)} | {
    0x9CE: "\u09a4\u09cd",
    0xD7A: "\u0d23\u0d4d",
    0xD7B: "\u0d28\u0d4d",
    0xD7C: "\u0d30\u0d4d",
    0xD7D: "\u0d32\u0d4d",
    0xD7E: "\u0d33\u0d4d",
    0xD7F: "\u0d15\u0d4d",
}
_IN_PLANE = re.sub("[\U00010000-\U0010ffff](?:-.)?", "", f"{_INVISIBLE}{_UNWRITTEN}{''.join(map(chr, _REPLACED))}")
#: All that may be removed or replaced; a class with many characters beyond the basic plane takes many times as long.
_RARE = re.compile(f"[{_IN_PLANE}\u0307\U00010000-\U0010ffff]")
#: Letters whose mark is a part of them, or that another letter stands for where a keyboard lacks them.
_PLAIN = str.maketrans(
    {"ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
    | {"ё": "е", "\u0671": "ا", "أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي", "ی": "ي", "ة": "ه", "ک": "ك"}
)
_ACCENTED = re.compile("(?<=[a-zα-ω])[\u0300-\u036f]+")


class FoldedText(NamedTuple):
    """A folded text, with the offsets of its *segments* in the original.

    A segment is the shortest piece of the original that can be folded independently: a character with the marks (and
    conjoining jamo) that follow it. ``start_at[i]`` is the original start of the segment that begins at folded position
    i, and ``end_at[i]`` the original end of the segment that ends after folded position i; both are -1 inside a
    segment. Characters that folding removes belong to the segment before them.
    """

    text: str
    start_at: Sequence[int]
    end_at: Sequence[int]


def fold(text: str, *, rule: int = RULE, case_sensitive: bool = False) -> str:
    """Return a text in the form in which spellings of a word are equal.

    Rule 1 is NFKC and full case folding. Rule 2 also removes invisible characters (soft hyphens, spaces without width,
    joiners, marks of direction), the vowel signs of Arabic, Hebrew and Syriac, the tatweel, and the dot that the case
    folding of İ leaves. A non-joiner between Arabic letters is a space, because it separates parts of a word in
    Persian. Digits of all scripts become 0 to 9, and final consonants of Malayalam and Bengali a consonant with a
    virama. Marks that carry the word remain, such as the vowels of Indic scripts and Thai.

    Parameters
    ----------
    text : str
    rule : {1, 2}
        The reading rule.
    case_sensitive : bool
        Fold everything but case.

    References
    ----------
    Unicode Standard Annex 15 and chapter 3.13 (NFKC, case folding); Unicode's Default_Ignorable_Code_Point.

    Examples
    --------
    >>> from hopfuse.text import fold
    >>> [fold(text) for text in ("Daten\u00adbank", "ﬁle", "İstanbul", "MASSE", "Maße", "كِتَاب", "２")]
    ['datenbank', 'file', 'istanbul', 'masse', 'masse', 'كتاب', '2']
    """
    if text.isascii():
        return text if case_sensitive else text.lower()
    if rule == 1:
        return _cased(text, case_sensitive)
    return _folded(_parted(text), case_sensitive)


def fold_with_offsets(text: str, *, rule: int = RULE, case_sensitive: bool = False) -> FoldedText:
    """Fold a text in the same way, with offsets.

    Examples
    --------
    >>> from hopfuse.text import fold_with_offsets
    >>> fold_with_offsets("e\u0301\u00adﬁ")
    FoldedText(text='éfi', start_at=[0, 3, -1], end_at=[3, -1, 4])
    """
    if text.isascii():
        return FoldedText(text if case_sensitive else text.lower(), range(len(text)), range(1, len(text) + 1))
    parted = text if rule == 1 else _parted(text)
    pieces: list[str] = []
    start_at: list[int] = []
    end_at: list[int] = []
    for start, end in _segments(parted, rule):
        one = parted[start:end]
        piece = _cased(one, case_sensitive) if rule == 1 else _folded(one, case_sensitive)
        if piece:
            inside = [-1] * (len(piece) - 1)
            pieces.append(piece)
            start_at += [start, *inside]
            end_at += [*inside, end]
    return FoldedText("".join(pieces), start_at, end_at)


def unaccented(folded: str) -> str:
    """Return a folded text as it is typed without accents.

    Marks on Latin and Greek letters are dropped. Letters that have no such form become the usual ones: ø o, đ d, ł l, ı
    i, æ ae, œ oe, þ th, ё е. In Arabic the alef with hamza becomes the bare one, and letters that Persian or the end of
    a word writes in another way become those of Arabic. Marks of other scripts remain.

    Examples
    --------
    >>> from hopfuse.text import fold, unaccented
    >>> [unaccented(fold(name)) for name in ("São Paulo", "Łódź", "Tromsø", "Đà Nẵng", "Пётр", "की")]
    ['sao paulo', 'lodz', 'tromso', 'da nang', 'петр', 'की']
    """
    if folded.isascii():
        return folded
    decomposed = unicodedata.normalize("NFD", folded.translate(_PLAIN)).translate(_PLAIN)
    return unicodedata.normalize("NFC", _ACCENTED.sub("", decomposed))


def in_word(folded: str, at: int) -> bool:
    """Return whether the character at a position, or the one that its mark belongs to, is part of a word.

    Examples
    --------
    >>> from hopfuse.text import in_word
    >>> [in_word("a-b", at) for at in range(3)]
    [True, False, True]
    """
    while at > 0 and unicodedata.category(folded[at])[0] == "M":
        at -= 1
    return folded[at].isalnum() or folded[at] == "_"


def splits_word(folded: str, cut: int) -> bool:
    """Return whether a cut before a position separates two characters of a word.

    Examples
    --------
    >>> from hopfuse.text import splits_word
    >>> splits_word("ab c", 1), splits_word("ab c", 2)
    (True, False)
    """
    return 0 < cut < len(folded) and in_word(folded, cut - 1) and in_word(folded, cut)


def _cased(text: str, case_sensitive: bool) -> str:
    """Return a text in NFKC or, with ``case_sensitive=False``, its full case folding in NFKC."""
    text = unicodedata.normalize("NFKC", text)
    return text if case_sensitive else unicodedata.normalize("NFKC", text.casefold())


def _parted(text: str) -> str:
    """Replace non-joiners that separate parts of a word by as many spaces."""
    if "\u200c" not in text:
        return text
    return _BETWEEN_PARTS.sub(lambda found: " " * len(found[0]) if "\u200c" in found[0] else found[0], text)


def _folded(text: str, case_sensitive: bool) -> str:
    """Fold a text by rule 2, until nothing changes; only characters that are removed or replaced need a second pass."""
    once = _cased(text, case_sensitive)
    while _RARE.search(once):
        kept = _DROPPED.sub("", once).translate(_REPLACED)
        if kept == once:
            break
        once = _cased(kept, case_sensitive)
    return once


def _segments(text: str, rule: int) -> Iterator[tuple[int, int]]:
    start = 0
    for at in range(1, len(text)):
        if not _attaches(text[at], rule):
            yield start, at
            start = at
    yield start, len(text)


@lru_cache(maxsize=1 << 16)
def _attaches(character: str, rule: int) -> bool:
    """Return whether folding may merge or reorder a character with the one before it, or remove it."""
    if rule != 1 and _DROPPED.match(character):
        return True
    if character < "\u0300":
        return False
    first = unicodedata.normalize("NFKD", character)[0]
    hangul_vowel_or_tail = "\u1160" <= first <= "\u11ff"
    kirat_rai_vowel = "\U00016d63" <= first <= "\U00016d6a"
    removed = rule != 1 and _DROPPED.match(first) is not None
    return unicodedata.category(first)[0] == "M" or hangul_vowel_or_tail or kirat_rai_vowel or removed
