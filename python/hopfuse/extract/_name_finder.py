"""Find names in questions as their index folds them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from ..text import (
    as_written,
    canonical_key,
    cyrillic_cases,
    cyrillic_names,
    finnish_cases,
    finnish_name,
    function_words,
    joined,
    may_stand,
    name_spellings,
    prefix_before,
    unaccented,
    without_signs,
)
from .gazetteer import SpellingTable

#: A word with an elided article before it ("l'eau"), or with a possessive or a verb after it ("Bob's", "we'll").
_TWO_WORDS = re.compile(r"(?:[cdjlmnst]|qu)'\w+|\w+'(?:s|t|d|m|ll|re|ve)", re.IGNORECASE)
_POSSESSIVE = re.compile(r"'s$", re.IGNORECASE)
#: Words that no name is after a prefix, however it is spelled: "and on" is not "and Ali".
_ARABIC_WORDS = frozenset(function_words("arabic"))
#: Beginnings of names that end in a possessive: "St Johns", "Saint Andrews".
_SAINTS = ("st ", "saint ")


class Spelling(NamedTuple):
    """A way to write a name: its folded text, and whether it lacks the endings of its words."""

    text: str
    is_stem: bool = False


def spellings(name: str) -> Iterator[Spelling]:
    """Yield the ways to write a name by which :class:`FoldedNames` finds it.

    Examples
    --------
    >>> [spelling.text for spelling in spellings("São Paulo")], [spelling.text for spelling in spellings("Москва")]
    (['são paulo', 'sao paulo'], ['москва', 'москв'])
    """
    yield from map(Spelling, name_spellings(name))
    yield from (Spelling(stem, True) for stem in cyrillic_names(name))


def distance(written: str, name: str) -> int:
    """Return how far a mention is from a name: 0 if they fold to the same, then by signs, by accents, by endings.

    Examples
    --------
    >>> [distance(text, "São Paulo") for text in ("SÃO PAULO", "São-Paulo", "sao paulo")], distance("Москве", "Москва")
    ([0, 1, 2], 3)
    """
    if as_written(written).text == as_written(name).text:
        return 0
    keys = canonical_key(written), canonical_key(name)
    if keys[0] == keys[1]:
        return 1
    plain = [unaccented(key) for key in keys]
    bare = [without_signs(as_written(one)).text for one in (written, name)]
    return 2 if plain[0] == plain[1] or bare[0] == bare[1] else 3


class FoldedNames:
    """Finds names by rule 2: as written, without signs and accents, joined, and without the endings of cases.

    Parameters
    ----------
    names : sequence of Spelling
    with_apostrophe : set of str
        The spellings, without signs, of names that have an apostrophe. Only these are found in "l'eau" and "Bob's",
        which otherwise are two words. A possessive at the end of a name is joined after "St" or "Saint" only.

    Examples
    --------
    >>> FoldedNames([*spellings("St Johns"), *spellings("Bobs")], set()).spans("Bob's car in St. John’s.")
    [(13, 23, 0)]
    """

    def __init__(self, names: Sequence[Spelling], with_apostrophe: set[str]) -> None:
        self._with_apostrophe, self._names = with_apostrophe, names
        whole, stems = ({n.text: at for at, n in enumerate(names) if n.is_stem == one} for one in (False, True))
        self._whole, self._stems = SpellingTable(whole, may_stand), SpellingTable(stems, may_stand)

    def spans(self, text: str) -> list[tuple[int, int, int]]:
        """Return the places of spellings; those that are nearer to a name come first."""
        if not text:
            return []
        written = as_written(text)
        found = dict.fromkeys(self._whole.places(written))
        bare = without_signs(written)
        if bare is not written:
            places = self._whole.places(bare)
            found |= dict.fromkeys(place for place in places if place not in found and self._is_one_name(text, place))
        whole = joined(written)
        if whole is not None:
            found |= dict.fromkeys(place for place in self._whole.places(whole) if place not in found)
        stems = cyrillic_cases(bare) if self._stems else None
        if stems is not None:
            found |= dict.fromkeys(self._stems.places(stems))
        cases = finnish_cases(bare)
        if cases is not None:
            found |= dict.fromkeys(place for place in self._finnish.places(cases) if place not in found)
        return list(found)

    @cached_property
    def _finnish(self) -> SpellingTable:
        """The names as they are in all Finnish cases, made for the first Finnish question."""
        numbers: dict[str, int] = {}
        for at, name in enumerate(self._names):
            if not name.is_stem:
                numbers.setdefault(finnish_name(name.text), at)
        return SpellingTable(numbers, may_stand)

    def _is_one_name(self, text: str, place: tuple[int, int, int]) -> bool:
        """Return whether a place where an apostrophe was left out is not two words, nor a common word with a prefix."""
        start, end, number = place
        name = self._names[number].text
        if name in self._with_apostrophe:
            return True
        mention = as_written(text[start:end]).text
        if mention in _ARABIC_WORDS and prefix_before(text, start):
            return False
        if "'" not in mention:
            return True
        if " " not in name:
            return _TWO_WORDS.fullmatch(mention) is None
        return _POSSESSIVE.search(mention) is None or name.startswith(_SAINTS)
