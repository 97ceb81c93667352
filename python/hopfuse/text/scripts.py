"""Scripts, by code points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

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
