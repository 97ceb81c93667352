"""Number the words of passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..errors import InputError
from ..index import WordInfo
from .extraction import Extraction


class NumberedWords(NamedTuple):
    """Words as entities: how they were read, the most frequent form of each, and their mentions (passage, entity)."""

    info: WordInfo | None
    names: tuple[str, ...]
    mentions: list[tuple[int, int]]


def read_words(extractions: Sequence[Extraction], first: int, info: WordInfo | None = None) -> NumberedWords:
    """Return the words of all passages as the entities ``first``, ``first + 1``, ...

    Words are numbered in the order of first occurrence. The name of a word is its most frequent form, in a tie the
    first one. ``info`` describes how words are read if there are no passages.

    Raises
    ------
    InputError
        Words were read in different ways, or for some passages only.
    """
    number: dict[str, int] = {}
    forms: list[Counter[str]] = []
    mentions: list[tuple[int, int]] = []
    if extractions:
        info = None if extractions[0].words is None else extractions[0].words.info
    for passage, one in enumerate(extractions):
        if (None if one.words is None else one.words.info) != info:
            raise InputError(
                "conflict",
                "extractions",
                "{field} has passages {passage!r} and {other!r}, whose words were read in different ways; read all by "
                "one WordReader",
                passage=extractions[0].id,
                other=one.id,
            )
        if one.words is None:
            continue
        for key, form in zip(one.words.keys, one.words.forms, strict=True):
            at = number.setdefault(key, len(forms))
            if at == len(forms):
                forms.append(Counter())
            forms[at][form] += 1
            mentions.append((passage, first + at))
    names = tuple(counts.most_common(1)[0][0] for counts in forms)
    return NumberedWords(None if info is None else replace(info, first=first), names, mentions)
