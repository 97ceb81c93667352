"""Questions typed in one case, as they would be written, and the words of a question beside its names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...index import Index
from ...text import fold, unaccented
from .seeding import Seed

_LONG = re.compile(r"\w\w+")


def is_one_case(text: str) -> bool:
    """Return whether all letters that have a case are in lower case except in words in capitals, or all in upper case.

    Examples
    --------
    >>> [is_one_case(text) for text in ("the ISO number", "THE ISO NUMBER", "The ISO number")]
    [True, True, False]
    """
    if text.islower() or text.isupper():
        return True
    has_capitals = any(map(str.isupper, _LONG.findall(text)))
    return has_capitals and _LONG.sub(lambda word: "" if word[0].isupper() else word[0], text).islower()


def spelled(texts: Sequence[str], mentions: Sequence[Sequence[Any]], index: Index) -> list[str]:
    """Return questions as an encoder should read them, which the recipes do before they encode.

    Many encoders know names by their capitals.

    In a question in one case in which a matcher found names, these are written as in the index, the first letter is a
    capital, and the rest is in lower case, except words in capitals beside words in lower case. Other questions are
    returned as they are.

    Parameters
    ----------
    texts : sequence of str, B entries
    mentions : sequence of B sequences
        What a matcher found in each question. Only matches with a ``start`` count.
    index : Index
        The index whose entities the matches number.

    Examples
    --------
    >>> import hopfuse as hf
    >>> index = hf.Index.build(
    ...     passages=[{"text": "Reading is a town."}], entities=["Reading"], graph=[{"src": 0, "dst": 1}]
    ... )
    >>> texts = ["in which county is reading", "IS READING A TOWN?", "Is Reading A TOWN?"]
    >>> hf.recipes.spelled(texts, hf.extract.EntityLinker(index).match(texts), index)
    ['In which county is Reading', 'Is Reading a town?', 'Is Reading A TOWN?']
    """
    return [
        _sentence(text, found, index) if found and is_one_case(text) else text
        for text, found in zip(texts, (_found(row) for row in mentions), strict=True)
    ]


def _found(row: Sequence[Any]) -> list[Any]:
    """Return the matches, one for each place in the text, an entity's own name before an alias."""
    found = [one for one in row if hasattr(one, "entity") and getattr(one, "start", -1) >= 0]
    by_start = {one.start: one for one in sorted(found, key=lambda one: one.kind == "exact")}
    return [by_start[start] for start in sorted(by_start)]


def _sentence(text: str, found: Sequence[Any], index: Index) -> str:
    lowered: Callable[[str], str] = str.lower if text.isupper() else str
    pieces, kept = list[str](), 0
    for one in found:
        pieces += [lowered(text[kept : one.start]), form_of(one.entity, one.surface, index)]
        kept = one.start + len(one.surface)
    sentence = "".join([*pieces, lowered(text[kept:])])
    return sentence if found[0].start == 0 else sentence[:1].upper() + sentence[1:]


def form_of(entity: int, typed: str, index: Index) -> str:
    """Return the name or alias of an entity as the index writes it, with capitals, accents and signs; else as typed.

    A name with a text in parentheses at its end may be typed without it.
    """
    wanted = _letters(typed)
    return next((form for form in _forms(entity, index) if form == typed or _letters(form) == wanted), typed)


def _forms(entity: int, index: Index) -> Iterator[str]:
    """Yield the name and the aliases of an entity, and the name without a text in parentheses at its end."""
    name = index.entity_names[entity]
    yield name
    yield from index.entity_aliases[entity]
    if name.endswith(")"):
        yield name.rpartition(" (")[0]


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, unaccented(fold(name))))


# ---- The words beside the names --------------------------------------------------------------------------------------

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
        kept.append(_without_names(text, [*(typed for _, typed in found), *written]))
    return kept


def _without_names(text: str, names: Sequence[str]) -> str:
    """Return a text without some names, removed wherever their words occur in sequence.

    Examples
    --------
    >>> _without_names("Is São Paulo's mayor from SAO or São Paulo?", ["são paulo", "Paulo"])
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
    >>> from hopfuse.recipes._parts.spelling import Capitalised
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
