"""Questions typed in one case, as they would be written: many encoders know names by their capitals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...index import Index
from ...text import fold, unaccented

_WORD = re.compile(r"\w\w+")


def is_one_case(text: str) -> bool:
    """Return whether all letters that have a case are in lower case except in words in capitals, or all in upper case.

    Examples
    --------
    >>> [is_one_case(text) for text in ("the ISO number", "THE ISO NUMBER", "The ISO number")]
    [True, True, False]
    """
    if text.islower() or text.isupper():
        return True
    has_capitals = any(map(str.isupper, _WORD.findall(text)))
    return has_capitals and _WORD.sub(lambda word: "" if word[0].isupper() else word[0], text).islower()


def spelled(texts: Sequence[str], mentions: Sequence[Sequence[Any]], index: Index) -> list[str]:
    """Return questions as an encoder should read them, which the recipes do before they encode.

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
