"""Link names in questions to the entities of an index."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import check_number, check_whole, checked_texts, wrong_type
from ..index import Index, IndexPart
from ..index.search_filter import read_allow
from ..text import SIGNS, fold, prefix_before, read_words
from ..types import Incidence
from ._evidence import (
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
from ._name_finder import distance
from ._name_table import NamesInIndex, Sense, Surface
from .gazetteer import Match

LEAST_CONFIDENCE = 0.4
LEAST_OF_ONLY_NAME = 1e-4
"""Smaller link probabilities are not distinguished, so that not all passages with a very common word are counted."""
OWN_COUNTS = 0.25
"""A part of fewer of the index's passages counts words in its own texts, not in those of all passages."""
_WORDS_BESIDE = re.compile(r"(\w+)\W*$"), re.compile(r"^\W*(\w+)")


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
      lower case. After a prefix, the words with the prefix count as well, so that "Lebanon" is not "to Banan". Mentions
      with a confidence below ``least`` are dropped: "time" is not the town if a thousand passages contain the word and
      two the town.
    - Function words ("of", "it", "where is") are not names, unless they are written as names: "the country where Of
      is".
    - A code, an alias of up to three capitals, with a vowel, that are not the initials of the entity's name, must be
      in capitals beside words that are not: "EUR", not "eur"; but "xml" is XML. A sign at the start of a name belongs
      to it: ".it" and "+39", not "it" and "39".
    - Words in capitals show nothing about the case of the others: in "the ISO number of peru", Peru is found.
    - Of overlapping mentions that remain, the longest wins, then the leftmost.
    - A question in one case that names nothing so far probably has a name that is a common word: "where is time". The
      most probable of the dropped words is found, however small its link probability is. It must stand where a name
      can: first, or after a function word other than a determiner ("in time", not "what time" or "local time"). Nor may
      a word follow with which it forms a phrase in the index's passages, in lower case ("time zone"). A preposition is
      found only where it cannot be one: "the country where of is"; and a determiner only without its noun: "where same
      lies".

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
        self._index, self._least, self._frequencies = index, float(least), index.passage_frequency
        self._rule, self._min_length = index.name_rule, min_length
        self._function_words = frozenset(function_words)
        self._names = NamesInIndex.of(index, min_length, self._function_words)
        self._counts: PassageCounts | None = None
        self._passages: Incidence | None = None
        self._confidence: BoundedCache[tuple[int, str, tuple[int, ...], float], float] = BoundedCache()
        self._whole: EntityLinker | None = None  # of a part: the linker of the whole index, whose tables it shares

    def __len__(self) -> int:
        """Return the number of distinct surfaces."""
        return len(self._names)

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
        other._index, other._frequencies, other._names = part, part.passage_frequency, self._names.part(of)
        other._counts, other._passages, other._confidence = None, None, BoundedCache()
        other._whole = self
        return other

    def of_state(self, index: Index) -> EntityLinker:
        """Return the linker of another state of the index; the tables of names are continued.

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
        other = EntityLinker(index, min_length=self._min_length, function_words=self._function_words, least=self._least)
        if self._counts is not None:  # it was used
            other._counts = self._counts.of_state(index)
        return other

    def _link(self, text: str, allow: NDArray[np.bool_] | None) -> list[Match]:
        names, spans = self._names, self._names.spans(text)
        if not spans:
            return []
        casing, taken, found = casing_of(text, self._function_words), bytearray(len(text)), list[Match]()
        doubtful = list[tuple[int, int, int]]()
        spans.sort(key=lambda span: (span[0] - span[1], span[0]))
        for start, end, key in spans:
            # Spans that were taken are at least as long, so one that overlaps covers an end of this one.
            if taken[start] or taken[end - 1]:
                continue
            surface = names.surface(key)
            if surface is None:
                continue
            if names.is_signed(key) and start and (text[start - 1].isalnum() or text[start - 1] in SIGNS):
                continue
            tells = casing.tells or (casing.emphasis and in_capitals(text[start:end]))
            if self._is_plain(text[start], key, surface, tells):
                if names.is_functional(key):
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
            return self._only_name(text, sorted(doubtful, key=self._rank), allow)
        return sorted(found, key=lambda match: match.start)

    def _rank(self, span: tuple[int, int, int]) -> tuple[Any, ...]:
        """Return what spans of doubtful names are sorted by: the position, and spellings in the order of the names."""
        start, end, key = span
        return self._names.is_functional(key), start, end, self._names.order(key)

    def _only_name(
        self, text: str, doubtful: list[tuple[int, int, int]], allow: NDArray[np.bool_] | None
    ) -> list[Match]:
        """Return the name of a question in one case where no mention is certain; an empty list if there is none."""
        found: list[Match] = []
        for start, end, key in doubtful:
            surface = self._names.surface(key)
            seen = [] if surface is None else self._seen(surface.without_codes, allow)
            senses = self._meant(text, start, end, seen)
            if senses and self._can_be_name(text, start, end, key, allow):
                confidence = self._link_probability(text, start, end, key, senses, allow, LEAST_OF_ONLY_NAME)
                if confidence > max((match.confidence for match in found), default=0.0):
                    found = _matches(text, start, end, senses, confidence)
        return found

    def _can_be_name(self, text: str, start: int, end: int, key: int, allow: NDArray[np.bool_] | None) -> bool:
        """Return whether a word stands where a name can, and does not begin a phrase of the passages."""
        name, beside = self._names.key(key), neighbours(text, start, end)
        if self._names.is_functional(key):
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
            return (self._names.key(key),)
        typed = (prefix + mention, mention) if prefix else (mention,)
        forms = (fold(one, rule=self._rule) for one in (*typed, *(sense.form for sense in senses)))
        return tuple(dict.fromkeys((self._names.key(key), *forms)))

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
            self._counts = PassageCounts(self._index, self._rule)
        return self._counts.count(words, most, allow)

    def _is_plain(self, first: str, key: int, surface: Surface, tells: bool) -> bool:
        """Return whether the first letter alone shows that a span is not a name, which decides most spans."""
        if self._names.is_functional(key):
            return not (tells and first.isupper())
        return tells and surface.is_capital_word and first.islower()

    def _read(
        self, text: str, start: int, end: int, key: int, surface: Surface, casing: Casing
    ) -> tuple[bool, list[Sense]]:
        """Return whether the case of a span, which tells, shows that it is a name, and its possible senses."""
        senses, written = surface.senses, text[start:end]
        opens = (
            start in casing.starts
            and " " not in self._names.key(key)
            and not (casing.emphasis and in_capitals(written))
        )
        written_so = [s for s in senses if fits(written, s.form, self._function_words)]
        capitals = [] if opens else [s for s in written_so if has_capital(s.form)]
        if self._names.is_functional(key):
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


def _told(text: str, start: int, end: int, senses: list[Sense]) -> list[float]:
    """Return the share of the words of each sense's hint that the rest of the text has; 0 without a hint."""
    if not any(sense.hint for sense in senses):
        return [0.0] * len(senses)
    rest = set(read_words(f"{text[:start]} {text[end:]}"))
    hints = [read_words(sense.hint) for sense in senses]
    return [sum(word in rest for word in hint) / len(hint) if hint else 0.0 for hint in hints]


def _matches(text: str, start: int, end: int, senses: list[Sense], confidence: float) -> list[Match]:
    return [Match(one.entity, text[start:end], start, end, one.kind, confidence) for one in senses]
