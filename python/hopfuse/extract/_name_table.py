"""The names of an index as :class:`EntityLinker` finds them: spellings, and the entities that each may mean."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from .._arrays.rows import RowNumbers
from ..index import Index
from ..index.numbers import Entity, EntityTable, entity_numbers, family_of
from ..index.subset import PartOf
from ..text import SIGNS, fold, script_of
from ..types.derived import Continued
from ._evidence import EMPHASISED, in_capitals
from ._name_finder import ExactNames, FoldedNames, Spelling, spellings
from .gazetteer import Kind

_HINT = re.compile(r"(?P<name>.*\S)\s+\((?P<hint>[^()]*\w[^()]*)\)")
_VOWELS = frozenset("AEIOUY")
_DROPPED = re.compile(r"['’.]")
_OTHER_SIGNS, _WORDS = re.compile(r"[^\w\s]|_"), re.compile(r"\w+")


class Sense(NamedTuple):
    """An entity that a surface may refer to, and the spelling of its name.

    ``hint`` is the text in parentheses at the end of the entity's name, and ``is_short`` says whether the form is its
    name without this text.
    """

    entity: int
    kind: Kind
    form: str
    hint: str = ""
    is_short: bool = False


class Surface(NamedTuple):
    """What a surface may be: its senses, those without codes, and whether it is one word that is always capitalised."""

    senses: list[Sense]
    without_codes: list[Sense]
    is_capital_word: bool


class _Entry(NamedTuple):
    """A sense of a spelling, whose entity is a number of the table: is it a code, and its place among the names.

    Names come before aliases, and these before names without hints; in each of the three, an entity's spellings are
    numbered.
    """

    sense: Sense
    is_code: bool
    kind: int
    place: int


class _NameTable(EntityTable):
    """The spellings of the names of all states of an index, by number.

    Attributes
    ----------
    rule, min_length, function_words
        As of the linker.
    spellings : list of Spelling
    entries : list of list of _Entry
        The senses of each spelling.
    is_signed, is_functional : list of bool
        Whether a spelling begins with a sign, and whether it has function words alone.
    """

    def __init__(self, rule: int, min_length: int, function_words: frozenset[str]) -> None:
        super().__init__()
        self.rule, self.min_length, self.function_words = rule, min_length, function_words
        self.spellings = list[Spelling]()
        self.entries = list[list[_Entry]]()
        self.is_signed, self.is_functional = list[bool](), list[bool]()
        self._number = dict[Spelling, int]()
        self._apostrophes = dict[str, list[int]]()
        self.finder = ExactNames(self.spellings) if rule == 1 else FoldedNames(self.spellings)

    def _add(self, entities: list[Entity]) -> None:
        for entity in entities:
            self._add_entity(entity)
        self.finder.add()

    def _add_entity(self, entity: Entity) -> None:
        codes = _codes(entity.name, entity.aliases, self.function_words) if entity.aliases else ()
        known = set[int]()
        for kind, senses in enumerate(() if entity.is_word else _senses(entity, self.rule)):
            place = 0
            for sense in senses:
                has_apostrophe = "'" in sense.form or "’" in sense.form
                for spelling in _first_spellings(sense.form) if self.rule == 1 else spellings(sense.form):
                    place += 1
                    if _size(spelling.text) < self.min_length:
                        continue
                    key = self._key(spelling)
                    if key not in known:
                        known.add(key)
                        self.entries[key].append(_Entry(sense, sense.form in codes, kind, place))
                    if has_apostrophe:
                        self._apostrophes.setdefault(spelling.text, []).append(entity.number)

    def _key(self, spelling: Spelling) -> int:
        """Return the number of a spelling, a new one if it is new."""
        key = self._number.setdefault(spelling, len(self.spellings))
        if key == len(self.spellings):
            self.entries.append([])
            self.is_signed.append(spelling.text[0] in SIGNS)
            self.is_functional.append(all(word in self.function_words for word in spelling.text.split()))
            self.spellings.append(spelling)
        return key

    def with_apostrophe(self, key: int) -> Sequence[int]:
        """Return the entities that have a name with an apostrophe of this spelling."""
        return self._apostrophes.get(self.spellings[key].text, ())


class NamesInIndex:
    """The names of an index: those of the entities of its table that it has.

    A state of an index that changes shares the table with the others, and a part with its whole.

    Parameters
    ----------
    table : _NameTable
    numbers : RowNumbers
        The rows of the table's entities in the index.
    """

    def __init__(self, table: _NameTable, numbers: RowNumbers) -> None:
        self._table, self._numbers = table, numbers
        self._surfaces = dict[int, Surface | None]()

    @classmethod
    def of(cls, index: Index, min_length: int, function_words: frozenset[str]) -> NamesInIndex:
        """Return the names of an index; those with fewer characters after folding are ignored.

        The names of a later state of an index are continued from those of an earlier one that is in use.
        """
        return _names_of(min_length, function_words).get(index)

    def continued(self, index: Index) -> NamesInIndex | None:
        """Return the names of a later state of the index; None if they must be made anew."""
        numbers = entity_numbers(index)
        if index.name_rule != self._table.rule or not self._table.continued(index, numbers, self._numbers):
            return None
        return NamesInIndex(self._table, numbers)

    def part(self, of: PartOf[Index]) -> NamesInIndex:
        """Return the names of a part of the index."""
        return NamesInIndex(self._table, of.numbers(self._numbers))

    def __len__(self) -> int:
        """Return the number of spellings."""
        return sum(self.surface(key) is not None for key in range(len(self._table.spellings)))

    def spans(self, text: str) -> list[tuple[int, int, int]]:
        """Return the places of spellings: start, end and number, also of spellings that the index does not have."""
        return self._table.finder.spans(text, self)

    def surface(self, key: int) -> Surface | None:
        """Return what a spelling may be; None if it names nothing."""
        try:
            return self._surfaces[key]
        except KeyError:
            found = self._surfaces[key] = self._surface(key)
            return found

    def _surface(self, key: int) -> Surface | None:
        found = [(entry.sense._replace(entity=row), entry.is_code) for entry, row in self._entries(key)]
        if not found:
            return None
        found.sort()
        senses = [sense for sense, _ in found]
        without_codes = [sense for sense, is_code in found if not is_code]
        return Surface(senses, without_codes, _is_capital_word(self.key(key), senses))

    def _entries(self, key: int) -> Iterator[tuple[_Entry, int]]:
        """Yield the entries of a spelling, with the rows of their entities."""
        for entry in self._table.entries[key]:
            row = self._numbers.get(entry.sense.entity)
            if row >= 0:
                yield entry, row

    def key(self, key: int) -> str:
        """Return the text of a spelling."""
        return self._table.spellings[key].text

    def is_signed(self, key: int) -> bool:
        """Return whether a spelling begins with a sign that belongs to it."""
        return self._table.is_signed[key]

    def is_functional(self, key: int) -> bool:
        """Return whether a spelling has function words alone."""
        return self._table.is_functional[key]

    def order(self, key: int) -> tuple[int, int, int]:
        """Return the place of a spelling among those of the index, as its names, aliases and short names are read."""
        return min((entry.kind, row, entry.place) for entry, row in self._entries(key))

    def has_apostrophe(self, key: int) -> bool:
        """Return whether a name with the spelling has an apostrophe."""
        return any(self._numbers.get(number) >= 0 for number in self._table.with_apostrophe(key))

    def first(self, keys: Sequence[int]) -> int | None:
        """Return the spelling of the first name among those of several spellings, None if there is none."""
        return min((key for key in keys if self.surface(key) is not None), key=self.order, default=None)


@lru_cache(maxsize=16)
def _names_of(min_length: int, function_words: frozenset[str]) -> Continued[Index, NamesInIndex]:
    """Return the names of indexes for the options of a linker."""

    def made(index: Index) -> NamesInIndex:
        numbers = entity_numbers(index)
        return NamesInIndex(_NameTable(index.name_rule, min_length, function_words).fill(index, numbers), numbers)

    return Continued(made, lambda index, _, names: names.continued(index), family_of)


def _size(name: str) -> int:
    """Return the number of characters of a name; one Han character says as much as two others."""
    return 2 if len(name) == 1 and script_of(name) == "Han" else len(name)


def _is_capital_word(key: str, senses: Sequence[Sense]) -> bool:
    return " " not in key and all(sense.form[0].isupper() for sense in senses)


def _senses(entity: Entity, rule: int) -> Iterator[list[Sense]]:
    """Yield the senses of an entity: its name, its aliases, and its name without a hint."""
    number, name = entity.number, entity.name.strip()
    found = _HINT.fullmatch(name) if rule != 1 else None
    hint = "" if found is None else found["hint"]
    yield [Sense(number, "exact", name)] if name else []
    yield [Sense(number, "alias", alias.strip(), hint) for alias in entity.aliases if alias.strip()]
    yield [] if found is None else [Sense(number, "alias", found["name"], found["hint"], True)]


def _codes(name: str, aliases: Sequence[str], function_words: Collection[str]) -> set[str]:
    """Return the aliases of up to three capitals that are not the initials of one of the entity's names.

    In lower case they could be words, so one of consonants alone, such as XML, is none.

    Examples
    --------
    >>> sorted(_codes("Bank of Egypt", ["BOE", "BE", "EG", "BNK"], ("of",))), sorted(_codes("Euro", ["EUR"], ("of",)))
    (['EG'], ['EUR'])
    """
    codes = set()
    for alias in aliases:
        if in_capitals(alias) and alias.isalpha() and len(alias) < EMPHASISED and _VOWELS & set(alias):
            names = [_WORDS.findall(one) for one in (name, *aliases) if one != alias]
            whole = {"".join(word[0] for word in one).upper() for one in names}
            whole |= {"".join(w[0] for w in one if w.lower() not in function_words).upper() for one in names}
            if alias not in whole:
                codes.add(alias)
    return codes


def _first_spellings(form: str) -> Iterator[Spelling]:
    """Yield a name as rule 1 finds it: folded, and also without accents and punctuation marks, as people type it.

    A sign of :data:`SIGNS` at its start stays.

    Examples
    --------
    >>> for name in ("St. Louis", "Saint-Denis", "São Paulo", "+1-242"):
    ...     print([spelling.text for spelling in _first_spellings(name)])
    ['st. louis', 'st louis']
    ['saint-denis', 'saint denis']
    ['são paulo', 'sao paulo']
    ['+1-242', '+1 242']
    """
    whole = fold(form, rule=1)
    if whole.isascii() and whole.replace(" ", "").isalnum():
        yield Spelling(whole)
        return
    plain = "".join(c for c in unicodedata.normalize("NFKD", whole) if not unicodedata.combining(c))
    plain = fold(plain, rule=1)
    signs = [one[:1] if one[:1] in SIGNS else "" for one in (whole, plain)]
    bare = [
        sign + " ".join(_OTHER_SIGNS.sub(" ", _DROPPED.sub("", one)).split())
        for sign, one in zip(signs, (whole, plain), strict=True)
    ]
    every = (one.strip() for one in (whole, plain, *(fold(one, rule=1) for one in bare)))
    yield from map(Spelling, dict.fromkeys(one for one in every if one))
