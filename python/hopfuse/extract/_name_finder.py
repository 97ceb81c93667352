"""Find names in questions as their index folds them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from threading import Lock
from typing import NamedTuple, Protocol

from ..text import (
    FoldedText,
    as_written,
    canonical_key,
    cyrillic_cases,
    cyrillic_names,
    finnish_cases,
    finnish_name,
    fold_with_offsets,
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


class NamesThere(Protocol):
    """Which of all names an index has: those of other states and of other passages are not there."""

    def has_apostrophe(self, key: int) -> bool:
        """Return whether a name with the spelling has an apostrophe."""
        ...

    def first(self, keys: Sequence[int]) -> int | None:
        """Return the spelling of the first name among those of several spellings, None if there is none."""
        ...


class ExactNames:
    """Finds names by rule 1, which are written as in the index but for case.

    Parameters
    ----------
    names : sequence of Spelling
        The list may grow; :meth:`add` says so.
    """

    def __init__(self, names: Sequence[Spelling]) -> None:
        self._names, self._table, self._known = names, SpellingTable({}), 0

    def add(self) -> None:
        """Find the names that were added to the list too."""
        self._table.add({self._names[at].text: at for at in range(self._known, len(self._names))})
        self._known = len(self._names)

    def spans(self, text: str, there: NamesThere) -> list[tuple[int, int, int]]:
        """Return the places of spellings: start, end, and number."""
        return self._table.places(fold_with_offsets(text, rule=1)) if text else []


class FoldedNames:
    """Finds names by rule 2: as written, without signs and accents, joined, and without the endings of cases.

    Only names that have an apostrophe are found in "l'eau" and "Bob's", which otherwise are two words. A possessive at
    the end of a name is joined after "St" or "Saint" only.

    Parameters
    ----------
    names : sequence of Spelling
        The list may grow; :meth:`add` says so.
    """

    def __init__(self, names: Sequence[Spelling]) -> None:
        self._names, self._known = names, 0
        self._whole, self._stems = SpellingTable({}, may_stand), SpellingTable({}, may_stand)
        self._finnish = _FinnishNames(names)

    def add(self) -> None:
        """Find the names that were added to the list too; not in two threads at a time."""
        fresh = range(self._known, len(self._names))
        self._whole.add({self._names[at].text: at for at in fresh if not self._names[at].is_stem})
        self._stems.add({self._names[at].text: at for at in fresh if self._names[at].is_stem})
        self._known = len(self._names)

    def spans(self, text: str, there: NamesThere) -> list[tuple[int, int, int]]:
        """Return the places of spellings; those that are nearer to a name come first."""
        if not text:
            return []
        written = as_written(text)
        found = dict.fromkeys(self._whole.places(written))
        bare = without_signs(written)
        if bare is not written:
            places = self._whole.places(bare)
            found |= dict.fromkeys(p for p in places if p not in found and self._is_one_name(text, p, there))
        whole = joined(written)
        if whole is not None:
            found |= dict.fromkeys(place for place in self._whole.places(whole) if place not in found)
        stems = cyrillic_cases(bare) if self._stems else None
        if stems is not None:
            found |= dict.fromkeys(self._stems.places(stems))
        cases = finnish_cases(bare)
        if cases is not None:
            found |= dict.fromkeys(place for place in self._finnish.places(cases, there) if place not in found)
        return list(found)

    def _is_one_name(self, text: str, place: tuple[int, int, int], there: NamesThere) -> bool:
        """Return whether a place where an apostrophe was left out is not two words, nor a common word with a prefix."""
        start, end, number = place
        if there.has_apostrophe(number):
            return True
        name, mention = self._names[number].text, as_written(text[start:end]).text
        if mention in _ARABIC_WORDS and prefix_before(text, start):
            return False
        if "'" not in mention:
            return True
        if " " not in name:
            return _TWO_WORDS.fullmatch(mention) is None
        return _POSSESSIVE.search(mention) is None or name.startswith(_SAINTS)


class _FinnishNames:
    """The names as they are in all Finnish cases, read when the first Finnish question is."""

    def __init__(self, names: Sequence[Spelling]) -> None:
        self._names, self._known, self._reading = names, 0, Lock()
        self._group = dict[str, int]()
        self._members: list[list[int]] = []  # the names that have a Finnish form in common
        self._table: SpellingTable | None = None

    def places(self, text: FoldedText, there: NamesThere) -> Iterator[tuple[int, int, int]]:
        """Yield the places of names; of several names that are the same in Finnish, the first one's."""
        for start, end, group in self._read().places(text):
            number = there.first(self._members[group])
            if number is not None:
                yield start, end, number

    def _read(self) -> SpellingTable:
        with self._reading:
            table = SpellingTable({}, may_stand) if self._table is None else self._table
            for at in range(self._known, len(self._names)):
                name = self._names[at]
                if not name.is_stem:
                    group = self._group.setdefault(finnish_name(name.text), len(self._members))
                    if group == len(self._members):
                        self._members.append([])
                    self._members[group].append(at)
                self._known = at + 1
            if len(table) < len(self._group):
                table.add(dict(islice(self._group.items(), len(table), None)))
            self._table = table
            return table
