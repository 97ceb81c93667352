"""The words of a question other than the names that it mentions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from ...index import Index
from .seeding import Seed
from .spelling import form_of

_WORD = re.compile(r"\w+")
#: The letters that two forms of a word share at least.
_STEM = 4


def other_words(texts: Sequence[str], seeds: Sequence[Sequence[Seed]], index: Index) -> list[str]:
    """Return each text without the names of its seeds, as they were typed and as the index writes them.

    Seeds that are words of the index's texts (``index.words``) are not names. Names are compared word by word, ignoring
    case.
    """
    named = index.num_entities if index.words is None else index.words.first
    kept = []
    for text, row in zip(texts, seeds, strict=True):
        found = [(seed.entity, seed.surface or index.entity_names[seed.entity]) for seed in row if seed.entity < named]
        written = [form_of(entity, typed, index) for entity, typed in found]
        kept.append(without_names(text, [*(typed for _, typed in found), *written]))
    return kept


def without_names(text: str, names: Sequence[str]) -> str:
    """Return a text without some names, removed wherever their words occur in sequence.

    Examples
    --------
    >>> from hopfuse.recipes._parts.other_words import without_names
    >>> without_names("Is São Paulo's mayor from SAO or São Paulo?", ["são paulo", "Paulo"])
    "Is  's mayor from SAO or  ?"
    """
    found = list(_WORD.finditer(text))
    words, cut = [_folded(word.group()) for word in found], [False] * len(found)
    for name in {tuple(map(_folded, _WORD.findall(name))) for name in names}:
        for at in range(len(words) - len(name) + 1):
            if name and words[at] == name[0] and words[at : at + len(name)] == [*name]:
                cut[at : at + len(name)] = [True] * len(name)
    pieces, kept = [], 0
    for word, is_cut in zip(found, cut, strict=True):
        if is_cut:
            pieces.append(text[kept : word.start()])
            kept = word.end()
    return " ".join([*pieces, text[kept:]]) if pieces else text


class Capitalised:
    """The words that a text writes with a capital, other than as its first: "Which Red House?" has "house".

    An index may hold the word's stem: forms that share all but two letters of a longer word, four at least, are one.

    Examples
    --------
    >>> from hopfuse.recipes._parts.other_words import Capitalised
    >>> [word in Capitalised("Which Rivers flow to the sea?") for word in ("river", "which", "sea")]
    [True, False, False]
    """

    def __init__(self, text: str) -> None:
        written = (found.group() for found in list(_WORD.finditer(text))[1:])
        self._words = {_folded(word) for word in written if word != word.lower()}
        self._by_start: dict[str, list[str]] = {}
        for word in self._words:
            self._by_start.setdefault(word[:_STEM], []).append(word)

    def __contains__(self, word: str) -> bool:
        wanted = _folded(word)
        return wanted in self._words or (
            len(wanted) >= _STEM
            and any(
                len(one) >= _STEM
                and abs(len(one) - len(wanted)) <= 3
                and one.startswith(wanted[: max(_STEM, len(wanted) - 2)])
                for one in self._by_start.get(wanted[:_STEM], ())
            )
        )


def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFKC", word).casefold()
