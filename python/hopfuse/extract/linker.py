"""Link names in questions to the entities of an index."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.rows import PartNumbers
from .._validation import check_number, check_whole, checked_texts, wrong_type
from ..index import Index, IndexPart
from ..index.search_filter import read_allow
from ..text import SIGNS, fold, prefix_before, read_words, script_of
from ..types import Incidence
from ._evidence import (
    EMPHASISED,
    ENGLISH,
    BoundedCache,
    Casing,
    PassageCounts,
    casing_of,
    fits,
    has_capital,
    in_capitals,
    is_common_noun,
    is_no_determiner,
    is_no_preposition,
    neighbours,
)
from ._name_finder import FoldedNames, Spelling, distance, spellings
from .gazetteer import Gazetteer, Kind, Match

LEAST_CONFIDENCE = 0.4
LEAST_OF_ONLY_NAME = 1e-4
"""Smaller link probabilities are not distinguished, so that not all passages with a very common word are counted."""
OWN_COUNTS = 0.25
"""A part of fewer of the index's passages counts words in its own texts, not in those of all passages."""
_HINT = re.compile(r"(?P<name>.*\S)\s+\((?P<hint>[^()]*\w[^()]*)\)")
_VOWELS = frozenset("AEIOUY")
_DROPPED = re.compile(r"['’.]")
_OTHER_SIGNS, _WORDS = re.compile(r"[^\w\s]|_"), re.compile(r"\w+")
_WORDS_BESIDE = re.compile(r"(\w+)\W*$"), re.compile(r"^\W*(\w+)")


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


class _Surface(NamedTuple):
    """What a surface may be: its senses, those without codes, and whether it is one word that is always capitalised."""

    senses: list[Sense]
    without_codes: list[Sense]
    is_capital_word: bool


class EntityLinker:
    """Finds the entities of an index that questions name, and distinguishes names from common words.

    Questions are folded as the names are: case, invisible characters and the kinds of apostrophes, hyphens and spaces
    do not matter. Accents, apostrophes, hyphens and the dots of abbreviations may be left out or added: "Sao Paulo",
    "St Johns", "Jean Luc", "USA". Of several names at one place, the nearest to the question's spelling is meant. A
    name begins and ends at a word boundary, or stands where :func:`hopfuse.text.may_stand` says: inside text of
    scripts without spaces, before a Korean particle, after an Arabic or Hebrew prefix. Russian names are found in all
    cases (:func:`hopfuse.text.cyrillic_cases`). A name in the form "Mercury (planet)" is also found as "Mercury": if
    the question has all words in the parentheses, the other entities of this name are not meant, else one whose whole
    name it is comes first. Mentions are then filtered:

    - If the case of a question distinguishes names from other words (some words are capitalised, most are not), a
      name must be written as in the index: "Reading" is the town, "reading" is not. Otherwise (in a question in one
      case or in Title Case, or for its first word), the mention is uncertain. Its ``confidence`` is the link
      probability: the share of the entity's passages among these and the index's passages that contain the words in
      lower case; after a prefix, the words are also those with the prefix, so that "Lebanon" is not "to Banan".
      Mentions with a confidence below ``least`` are dropped: "time" is not the town if a thousand passages contain
      the word and two the town.
    - Function words ("of", "it", "where is") are not names, unless they are written as names: "the country where Of
      is".
    - A code, an alias of up to three capitals, with a vowel, that are not the initials of the entity's name, must be
      in capitals beside words that are not: "EUR", not "eur"; but "xml" is XML. A sign at the start of a name belongs
      to it: ".it" and "+39", not "it" and "39".
    - Words in capitals show nothing about the case of the others: in "the ISO number of peru", Peru is found.
    - Of overlapping mentions that remain, the longest wins, then the leftmost.
    - A question in one case that names nothing so far probably has a name that is a common word: "where is time". The
      most probable of the dropped words is found, however small its link probability is. It must stand where a name
      can: first, or after a function word other than a determiner ("in time", not "what time" or "local time"), and
      not before a word that it forms a phrase with in the index's passages, in lower case ("time zone"). A preposition
      is found only where it cannot be one: "the country where of is"; and a determiner only without its noun: "where
      same lies".

    Parameters
    ----------
    index : Index
        Provides the names and aliases of entities, and passages for frequencies.
    min_length : int, at least 1
        Names and aliases with fewer characters after folding are ignored; a name of one Han character counts as two.
    function_words : collection of str
        In lower case, by default English.
    least : float, above 0, at most 1
        The smallest confidence of a mention, except of the only name of a question in one case.

    Raises
    ------
    InputError
        min_length below 1, function words given as one string, or ``least`` out of its range.
    MissingExtraError
        ``pyahocorasick`` is not installed.

    References
    ----------
    Link probability: Mihalcea and Csomai, Wikify!, CIKM 2007; Milne and Witten, Learning to link with Wikipedia, CIKM
    2008.

    Examples
    --------
    >>> import hopfuse as hf
    >>> from hopfuse.extract import EntityLinker
    >>> index = hf.Index.build(
    ...     passages=[{"text": "Of is a town of Turkey."}, {"text": "The capital of Turkey is Ankara."}],
    ...     entities=["Of", "Turkey", "Ankara"],
    ...     graph=[{"src": p, "dst": e} for p, e in ((0, 2), (0, 3), (1, 3), (1, 4))],
    ... )
    >>> linker = EntityLinker(index)
    >>> for question in ("capital of the country of ankara", "What is the capital of the country where Of is?"):
    ...     print([match.surface for match in linker.match([question])[0]])
    ['ankara']
    ['Of']
    """

    def __init__(
        self,
        index: Index,
        *,
        min_length: int = 2,
        function_words: Collection[str] = ENGLISH,
        least: float = LEAST_CONFIDENCE,
    ) -> None:
        check_whole(min_length, "min_length")
        if isinstance(function_words, str):
            raise wrong_type(function_words, "function_words", "a collection of words: [word]")
        check_number(least, "least", above=0, high=1)
        self._rule = index.name_rule
        self._min_length = min_length
        self._index, self._least, self._frequencies = index, float(least), index.passage_frequency
        self._function_words = frozenset(function_words)
        senses: dict[Spelling, dict[int, Sense]] = {}
        with_apostrophe = set[str]()
        for sense in _senses(index):
            for spelling in _first_spellings(sense.form) if self._rule == 1 else spellings(sense.form):
                if _size(spelling.text) >= min_length:
                    senses.setdefault(spelling, {}).setdefault(sense.entity, sense)
                    if "'" in sense.form or "’" in sense.form:
                        with_apostrophe.add(spelling.text)
        codes = _codes(index, self._function_words)
        self._keys = [spelling.text for spelling in senses]
        self._surfaces: dict[int, _Surface | None] = {
            at: _surface(self._keys[at], sorted(found.values()), codes) for at, found in enumerate(senses.values())
        }
        self._signed = [key[0] in SIGNS for key in self._keys]
        self._functional = [all(word in self._function_words for word in key.split()) for key in self._keys]
        self._finder: FoldedNames | Gazetteer = (
            Gazetteer(self._keys, min_length=1) if self._rule == 1 else FoldedNames(list(senses), with_apostrophe)
        )
        self._counts: PassageCounts | None = None
        self._passages: Incidence | None = None
        self._confidence: BoundedCache[tuple[int, str, tuple[int, ...], float], float] = BoundedCache()
        self._whole: EntityLinker | None = None  # of a part: the linker of the whole index, whose tables it shares
        self._numbers: PartNumbers | None = None  # of a part: those of the entities in it

    def __len__(self) -> int:
        """Return the number of distinct surfaces."""
        return sum(self._surface(key) is not None for key in range(len(self._keys)))

    def __repr__(self) -> str:
        return f"EntityLinker(surfaces={len(self)}, least={self._least})"

    def match(self, texts: Sequence[str], *, allow: Any = None) -> list[list[Match]]:
        """Return the mentions in each question.

        Parameters
        ----------
        texts : sequence of str, B entries
        allow : Where, ids of passages, bool (P,) or (B, P), or a sequence of B of these or None, optional
            Passages that a question may see. Entities of other passages are not found, and frequencies are counted in
            these passages.

        Returns
        -------
        list of list of Match
            One list per question, by offset. Entities that share a surface are listed by index.

        Raises
        ------
        InputError
            A single string, an entry that is not a string, or passages that the index does not have.

        Examples
        --------
        >>> import hopfuse as hf
        >>> from hopfuse.extract import EntityLinker
        >>> index = hf.Index.build(
        ...     passages=[{"text": "Nice is a city."}],
        ...     entities=["Nice"],
        ...     aliases={"Nice": ["Nizza"]},
        ...     graph=[{"src": 0, "dst": 1}],
        ... )
        >>> for match in EntityLinker(index).match(["a nice day in Nizza"])[0]:
        ...     print(match)
        Match(entity=0, surface='Nizza', start=14, end=19, kind='alias', confidence=1.0)
        """
        asked = checked_texts(texts)
        if allow is None:
            return [self._link(text, None) for text in asked]
        rows = read_allow(self._index, allow, len(asked))
        return [self._link(text, rows[0 if len(rows) == 1 else b]) for b, text in enumerate(asked)]

    def part(self, part: IndexPart) -> EntityLinker:
        """Return the linker of a part of the index, for isolated searches; the tables of names are shared."""
        return self.over(part.index)

    def over(self, part: Index) -> EntityLinker:
        """Return the linker of an index; if it is a part of this linker's, the tables of names are shared."""
        of = part.part_of
        if of is None or of.whole() is not self._index:
            return EntityLinker(
                part, min_length=self._min_length, function_words=self._function_words, least=self._least
            )
        other = copy(self)
        other._index, other._frequencies = part, part.passage_frequency
        other._counts, other._passages, other._confidence = None, None, BoundedCache()
        other._whole, other._numbers, other._surfaces = self, of.numbers(self._numbers), {}
        return other

    def of_state(self, index: Index) -> EntityLinker:
        """Return the linker of another state of the index; if the names are the same, their tables are shared.

        Examples
        --------
        >>> import tempfile, hopfuse as hf
        >>> folder = tempfile.mkdtemp()
        >>> rows, graph = [{"id": "a", "text": "Nice."}], [{"src": 0, "dst": 1}]
        >>> saved = hf.Index.build(passages=rows, entities=["Nice"], graph=graph).save(folder)
        >>> with hf.Index.open(folder, writable=True) as live:
        ...     linker = hf.extract.EntityLinker(live.index)
        ...     with live.change() as change:
        ...         change.add_passages([{"id": "b", "text": "The sea."}])
        ...     later = linker.of_state(live.refresh())
        >>> [match.surface for match in later.match(["nice"])[0]]
        ['nice']
        """
        if self._whole is not None or not _same_names(self._index, index):
            return EntityLinker(
                index, min_length=self._min_length, function_words=self._function_words, least=self._least
            )
        other = copy(self)
        other._index, other._frequencies = index, index.passage_frequency
        other._counts, other._passages, other._confidence = None, None, BoundedCache()
        return other

    def _link(self, text: str, allow: NDArray[np.bool_] | None) -> list[Match]:
        spans = self._finder.spans(text)
        if not spans:
            return []
        casing, taken, found = casing_of(text, self._function_words), bytearray(len(text)), list[Match]()
        doubtful = list[tuple[int, int, int]]()
        spans.sort(key=lambda span: (span[0] - span[1], span[0]))
        for start, end, key in spans:
            # Spans that were taken are at least as long, so one that overlaps covers an end of this one.
            if taken[start] or taken[end - 1]:
                continue
            surface = self._surface(key)
            if surface is None:
                continue
            if self._signed[key] and start and (text[start - 1].isalnum() or text[start - 1] in SIGNS):
                continue
            tells = casing.tells or (casing.emphasis and in_capitals(text[start:end]))
            if self._is_plain(text[start], key, surface, tells):
                if self._functional[key]:
                    doubtful.append((start, end, key))
                continue
            sure, senses = (
                self._read(text, start, end, key, surface, casing) if tells else (False, surface.without_codes)
            )
            senses = self._meant(text, start, end, self._seen(senses, allow))
            if not senses:
                continue
            confidence = 1.0 if sure else self._link_probability(text, start, end, key, senses, allow, self._least)
            if confidence >= self._least:
                taken[start:end] = b"\1" * (end - start)
                found += _matches(text, start, end, senses, confidence)
            else:
                doubtful.append((start, end, key))
        if not found and casing.is_one_case:
            return self._only_name(text, sorted(doubtful, key=lambda span: (self._functional[span[2]], span)), allow)
        return sorted(found, key=lambda match: match.start)

    def _only_name(
        self, text: str, doubtful: list[tuple[int, int, int]], allow: NDArray[np.bool_] | None
    ) -> list[Match]:
        """Return the name of a question in one case where no mention is certain; an empty list if there is none."""
        found: list[Match] = []
        for start, end, key in doubtful:
            surface = self._surface(key)
            seen = [] if surface is None else self._seen(surface.without_codes, allow)
            senses = self._meant(text, start, end, seen)
            if senses and self._can_be_name(text, start, end, key, allow):
                confidence = self._link_probability(text, start, end, key, senses, allow, LEAST_OF_ONLY_NAME)
                if confidence > max((match.confidence for match in found), default=0.0):
                    found = _matches(text, start, end, senses, confidence)
        return found

    def _can_be_name(self, text: str, start: int, end: int, key: int, allow: NDArray[np.bool_] | None) -> bool:
        """Return whether a word stands where a name can, and does not begin a phrase of the passages."""
        name, beside = self._keys[key], neighbours(text, start, end)
        if self._functional[key]:
            return is_no_preposition(name, beside) or is_no_determiner(name, beside)
        if is_common_noun(beside) or (beside.before and beside.before not in self._function_words):
            return False
        if not beside.after or beside.after in self._function_words:
            return True
        plain = self._plain_words(key, "", text[start:end], ())
        return not any(self._count(f"{words} {beside.after}", 1, allow) for words in plain)

    def _plain_words(self, key: int, prefix: str, mention: str, senses: Sequence[Sense]) -> tuple[str, ...]:
        """Return the words that a mention is if it is no name: as it is typed, and as the names are written."""
        if self._rule == 1:
            return (self._keys[key],)
        typed = (prefix + mention, mention) if prefix else (mention,)
        forms = (fold(one, rule=self._rule) for one in (*typed, *(sense.form for sense in senses)))
        return tuple(dict.fromkeys((self._keys[key], *forms)))

    def _seen(self, senses: list[Sense], allow: NDArray[np.bool_] | None) -> list[Sense]:
        """Return the senses that have an allowed passage; all senses without a filter."""
        return senses if allow is None else [sense for sense in senses if self._frequency(sense.entity, allow)]

    def _meant(self, text: str, start: int, end: int, senses: list[Sense]) -> list[Sense]:
        """Return the senses that a mention means: "São Paulo" is not "Sao Paulo" if both exist.

        A sense whose hint has all its words in the rest of the question excludes the others. Else those whose names are
        nearest to the mention are meant, whole names before those without their hints, but of senses with hints only
        those with most words there.
        """
        if self._rule == 1 or len(senses) < 2:
            return senses
        told = _told(text, start, end, senses)
        most = max(told)
        if most == 1.0:
            return [sense for sense, one in zip(senses, told, strict=True) if one == most]
        far = [distance(text[start:end], sense.form) for sense in senses]
        whole = [one for sense, one in zip(senses, far, strict=True) if not sense.is_short]
        nearest = min(whole or far)
        return [
            sense
            for sense, one, share in zip(senses, far, told, strict=True)
            if (share == most and (most > 0 or not whole) if sense.is_short else one == nearest)
        ]

    def _count(self, words: str, most: int, allow: NDArray[np.bool_] | None) -> int:
        """Return the number of (allowed) passages that contain words in lower case, at most ``most``.

        A large part counts in the texts of the whole index, a small one in its own.
        """
        whole, of = self._whole, self._index.part_of
        if whole is not None and of is not None and of.passages.size >= OWN_COUNTS * whole._index.num_passages:
            mask = np.zeros(whole._index.num_passages, np.bool_)
            mask[of.passages if allow is None else of.passages[allow]] = True
            return whole._count(words, most, mask)
        if self._counts is None:
            self._counts = PassageCounts(self._index.texts_to_index(), self._rule)
        return self._counts.count(words, most, allow)

    def _surface(self, key: int) -> _Surface | None:
        """Return what a surface may be; None if it names nothing in a part."""
        if key not in self._surfaces:
            assert self._whole is not None
            assert self._numbers is not None
            of = self._root()._surfaces[key]
            assert of is not None
            self._surfaces[key] = _surface_of_part(self._keys[key], of, self._numbers)
        return self._surfaces[key]

    def _root(self) -> EntityLinker:
        """Return the linker of whose entities :attr:`_numbers` are."""
        return self if self._whole is None else self._whole._root()

    def _is_plain(self, first: str, key: int, surface: _Surface, tells: bool) -> bool:
        """Return whether the first letter alone shows that a span is not a name, which decides most spans."""
        if self._functional[key]:
            return not (tells and first.isupper())
        return tells and surface.is_capital_word and first.islower()

    def _read(
        self, text: str, start: int, end: int, key: int, surface: _Surface, casing: Casing
    ) -> tuple[bool, list[Sense]]:
        """Return whether the case of a span, which tells, shows that it is a name, and its possible senses."""
        senses, written = surface.senses, text[start:end]
        opens = start in casing.starts and " " not in self._keys[key] and not (casing.emphasis and in_capitals(written))
        written_so = [s for s in senses if fits(written, s.form, self._function_words)]
        capitals = [] if opens else [s for s in written_so if has_capital(s.form)]
        if self._functional[key]:
            return True, [] if self._is_in_a_title(text, start, end, casing) else capitals
        return bool(capitals), capitals or written_so

    def _is_in_a_title(self, text: str, start: int, end: int, casing: Casing) -> bool:
        """Return whether a capitalised word is next to a span, as for "Of" in "The Fellowship Of The Ring"."""
        before, after = _WORDS_BESIDE[0].search(text[:start]), _WORDS_BESIDE[1].search(text[end:])
        if before is not None and before[1][0].isupper():
            opens = before.start() in casing.starts  # at the start of a sentence, a capital carries no information
            if not (opens and before[1].lower() in self._function_words):
                return True
        return after is not None and after[1][0].isupper()

    def _link_probability(
        self,
        text: str,
        start: int,
        end: int,
        key: int,
        senses: list[Sense],
        allow: NDArray[np.bool_] | None,
        least: float,
    ) -> float:
        """Return the share of the entities' passages among these and the passages with the plain words.

        It is 1 if no passage has the plain words, or if there are no counts. A share below ``least`` is not exact.
        """
        if self._frequencies is None:
            return 1.0
        prefix, entities = prefix_before(text, start), tuple(sense.entity for sense in senses)
        place = key, text[start - len(prefix) : end], entities, least
        known = self._confidence.get(place) if allow is None else None
        if known is None:
            words = self._plain_words(key, prefix, text[start:end], senses)
            about = sum(self._frequency(entity, allow) for entity in entities)
            most = 1 + int(max(1, about) / least)
            plain = max(self._count(one, most, allow) for one in words)
            told_apart = any(has_capital(sense.form) for sense in senses)
            known = about / (about + plain if told_apart else max(about, plain)) if plain else 1.0
            if allow is None:
                self._confidence.keep(place, known, len(place[1]) + len(entities))
        return known

    def _frequency(self, entity: int, allow: NDArray[np.bool_] | None) -> int:
        """Return the number of (allowed) passages that contain an entity."""
        if self._frequencies is None or self._index.graph is None:
            return self._index.num_passages
        if allow is None:
            return int(self._frequencies[entity])
        if self._passages is None:
            self._passages = Incidence.from_graph(self._index.graph, self._index.num_passages).transposed()
        first = self._index.num_passages + entity
        begin, end = self._passages.indptr[first : first + 2]
        return int(np.count_nonzero(allow[self._passages.indices[begin:end]]))


def _size(name: str) -> int:
    """Return the number of characters of a name; one Han character says as much as two others."""
    return 2 if len(name) == 1 and script_of(name) == "Han" else len(name)


def _told(text: str, start: int, end: int, senses: list[Sense]) -> list[float]:
    """Return the share of the words of each sense's hint that the rest of the text has; 0 without a hint."""
    if not any(sense.hint for sense in senses):
        return [0.0] * len(senses)
    rest = set(read_words(f"{text[:start]} {text[end:]}"))
    hints = [read_words(sense.hint) for sense in senses]
    return [sum(word in rest for word in hint) / len(hint) if hint else 0.0 for hint in hints]


def _surface(key: str, senses: list[Sense], codes: Collection[tuple[int, str]]) -> _Surface:
    without_codes = [s for s in senses if (s.entity, s.form) not in codes] if codes else senses
    return _Surface(senses, without_codes, _is_capital_word(key, senses))


def _surface_of_part(key: str, of: _Surface, numbers: PartNumbers) -> _Surface | None:
    """Return what a surface is in a part, which has these numbers of entities; None if it names nothing there."""
    own, codeless = (_in_part(senses, numbers) for senses in (of.senses, of.without_codes))
    return _Surface(own, codeless, _is_capital_word(key, own)) if own else None


def _in_part(senses: Sequence[Sense], numbers: PartNumbers) -> list[Sense]:
    own = ((sense, numbers.get(sense.entity)) for sense in senses)
    return [sense._replace(entity=number) for sense, number in own if number >= 0]


def _is_capital_word(key: str, senses: Sequence[Sense]) -> bool:
    return " " not in key and all(sense.form[0].isupper() for sense in senses)


def _matches(text: str, start: int, end: int, senses: list[Sense], confidence: float) -> list[Match]:
    return [Match(one.entity, text[start:end], start, end, one.kind, confidence) for one in senses]


def _same_names(a: Index, b: Index) -> bool:
    """Return whether two indexes have the same entities, with the same names and aliases."""
    if (None if a.words is None else a.words.first) != (None if b.words is None else b.words.first):
        return False
    names = [name for name in a.sections if name.startswith(("entity.name.", "entity.alias."))]
    return all(name in b.sections for name in names) and all(
        np.array_equal(a.sections[name].whole(), b.sections[name].whole()) for name in names
    )


def _senses(index: Index) -> Iterator[Sense]:
    """Yield all entities that are not words by their names, then by aliases, then by names without hints."""
    named = index.num_entities if index.words is None else index.words.first
    hints: dict[int, re.Match[str]] = {}
    for entity, name in enumerate(islice(index.entity_names, named)):
        found = _HINT.fullmatch(name.strip()) if index.name_rule != 1 else None
        if found is not None:
            hints[entity] = found
        if name.strip():
            yield Sense(entity, "exact", name.strip())
    for entity, aliases in enumerate(islice(index.entity_aliases, named)):
        hint = hints[entity]["hint"] if entity in hints else ""
        for alias in aliases:
            if alias.strip():
                yield Sense(entity, "alias", alias.strip(), hint)
    yield from (Sense(entity, "alias", found["name"], found["hint"], True) for entity, found in hints.items())


def _codes(index: Index, function_words: Collection[str]) -> set[tuple[int, str]]:
    """Return the aliases of up to three capitals that are not the initials of one of the entity's names.

    In lower case they could be words, so one of consonants alone, such as XML, is none.

    Examples
    --------
    >>> import hopfuse as hf
    >>> index = hf.Index.build(
    ...     passages=[{"text": "-"}],
    ...     entities=["Bank of Egypt", "Euro"],
    ...     aliases={0: ["BOE", "BE", "EG", "BNK"], 1: ["EUR"]},
    ... )
    >>> sorted(_codes(index, ("of",)))
    [(0, 'EG'), (1, 'EUR')]
    """
    codes = set()
    for entity, aliases in enumerate(index.entity_aliases):
        for alias in aliases:
            if in_capitals(alias) and alias.isalpha() and len(alias) < EMPHASISED and _VOWELS & set(alias):
                names = [_WORDS.findall(name) for name in (index.entity_names[entity], *aliases) if name != alias]
                whole = {"".join(word[0] for word in name).upper() for name in names}
                whole |= {"".join(w[0] for w in name if w.lower() not in function_words).upper() for name in names}
                if alias not in whole:
                    codes.add((entity, alias))
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
    found = dict.fromkeys(one for one in (whole, plain, *(fold(one, rule=1) for one in bare)) if one.strip())
    yield from map(Spelling, found)
