"""Find entity mentions by looking up known names."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

from .._validation import check_whole, checked_texts, counted, import_extra
from ..errors import InputError
from ..index import IndexPart
from ..text import FoldedText, fold, fold_with_offsets, splits_word

_IN_WORD = frozenset(string.ascii_letters + string.digits + "_")


def _between_words(folded: str, start: int, end: int) -> bool:
    """Return whether a place begins and ends at a word boundary.

    Examples
    --------
    >>> _between_words("an art", 3, 6), _between_words("artist", 0, 3)
    (True, False)
    """
    return not (splits_word(folded, start) or splits_word(folded, end))


class SpellingTable:
    """Spellings, each with a number; more may be added while other threads search.

    The spellings are in automata of which each has at least twice as many as the next, so that one which is added
    costs, over all, as many steps as there are automata.

    Parameters
    ----------
    numbers : mapping of str to int
        A number for each folded spelling.
    may_stand : callable (text, start, end) -> bool
        Whether a spelling may stand at a place of a folded text. In ASCII, it must begin and end at a word boundary.

    Raises
    ------
    MissingExtraError
        ``pyahocorasick`` is not installed.

    Examples
    --------
    >>> from hopfuse.text import fold_with_offsets
    >>> table = SpellingTable({"york": 0})
    >>> table.add({"new york": 1, "or": 2})
    >>> table.places(fold_with_offsets("in New York"))
    [(3, 11, 1), (7, 11, 0)]
    """

    def __init__(self, numbers: Mapping[str, int], may_stand: Callable[[str, int, int], bool] = _between_words) -> None:
        self._new_automaton: Callable[[], Any] = import_extra("ahocorasick", "Gazetteer").Automaton
        self._may_stand = may_stand
        self._automata: tuple[Any, ...] = ()  # the largest first
        self.add(numbers)

    def add(self, numbers: Mapping[str, int]) -> None:
        """Add spellings that the table does not have; not in two threads at a time."""
        kept = list(self._automata)
        made, added = self._new_automaton(), len(numbers)
        for spelling, number in numbers.items():
            made.add_word(spelling, (number, len(spelling)))
        while kept and added and len(kept[-1]) < 2 * added:
            smaller = kept.pop()
            added += len(smaller)
            for spelling, about in smaller.items():
                made.add_word(spelling, about)
        if added:
            made.make_automaton()
            self._automata = (*kept, made)

    def __len__(self) -> int:
        return sum(map(len, self._automata))

    def __contains__(self, spelling: str) -> bool:
        return any(spelling in one for one in self._automata)

    def places(self, folded: FoldedText) -> list[tuple[int, int, int]]:
        """Return the places of spellings, also overlapping ones, in original offsets: start, end, and number.

        They are in the order of their last characters, the longest first.
        """
        if not folded.text:
            return []
        if isinstance(folded.start_at, range):
            return self._ascii_places(folded.text)
        text, found = folded.text, []
        for last, (number, length) in self._found(text):
            first = last - length + 1
            start, end = folded.start_at[first], folded.end_at[last]
            if min(start, end) >= 0 and self._may_stand(text, first, last + 1):
                found.append((start, end, number))
        return found

    def _ascii_places(self, text: str) -> list[tuple[int, int, int]]:
        """Return the same for an ASCII text, whose offsets equal the original's."""
        size, found = len(text), []
        for last, (number, length) in self._found(text):
            end = last + 1
            if end < size and text[end] in _IN_WORD and text[last] in _IN_WORD:
                continue
            first = end - length
            if first == 0 or text[first - 1] not in _IN_WORD or text[first] not in _IN_WORD:
                found.append((first, end, number))
        return found

    def _found(self, text: str) -> Iterable[tuple[int, tuple[int, int]]]:
        """Return the last character of each spelling in a text, with its number and length."""
        rows = [found for one in self._automata if (found := list(one.iter(text)))]
        if len(rows) < 2:
            return rows[0] if rows else ()
        return sorted(chain.from_iterable(rows), key=lambda found: (found[0], -found[1][1]))


Kind = Literal["exact", "alias"]
#: NFKC and case folding alone: what a gazetteer finds is written as its names are.
_RULE = 1


class Match(NamedTuple):
    """An entity mentioned in a text.

    Attributes
    ----------
    entity : int
        Index into the gazetteer's names.
    surface : str
        The mention in the text: ``text[start:end]``.
    start, end : int
        Offsets into the original text, in characters.
    kind : {"exact", "alias"}
        Whether the entity's name matched, or one of its aliases.
    confidence : float
        The confidence that the text means the name and not a common word that is written like it, above 0 and at most
        1. :class:`EntityLinker` estimates it; for :class:`Gazetteer` it is 1.
    """

    entity: int
    surface: str
    start: int
    end: int
    kind: Kind
    confidence: float = 1.0


class Gazetteer:
    """Finds known names in texts with an Aho-Corasick automaton.

    Names and texts are compared after Unicode normalization (NFKC) and full case folding, so that ``"STRASSE"`` finds
    ``"Straße"``. Runs of white space are not merged. A mention begins and ends at a word boundary: not between two
    letters, digits or underscores, and not before a combining mark. In scripts without spaces, a name is therefore
    found only if something else separates it. Of overlapping mentions, the longest (in the original text) wins, then
    the leftmost.

    Parameters
    ----------
    names : sequence of str
        The name of each entity; several entities may share one. Surrounding white space is ignored.
    aliases : mapping of int to iterable of str, optional
        Other names of an entity, by its index.
    min_length : int, at least 1
        Names and aliases with fewer characters after folding are ignored; :attr:`skipped` lists them.
    case_sensitive : bool
        Compare after NFKC only.

    Attributes
    ----------
    skipped : tuple of (int, str)
        Entity and surface of each name or alias that is too short.

    Raises
    ------
    InputError
        A name or alias that is blank or not a string, an alias of an index without a name, or min_length below 1.
    MissingExtraError
        ``pyahocorasick`` is not installed.

    References
    ----------
    Aho and Corasick, Communications of the ACM 18 (1975).

    Examples
    --------
    >>> from hopfuse.extract import Gazetteer
    >>> gazetteer = Gazetteer(["New York", "York", "New York City"], {2: ["NYC", "Big Apple"]})
    >>> for match in gazetteer.match(["From York to the BIG APPLE"])[0]:
    ...     print(match)
    Match(entity=1, surface='York', start=5, end=9, kind='exact', confidence=1.0)
    Match(entity=2, surface='BIG APPLE', start=17, end=26, kind='alias', confidence=1.0)
    """

    def __init__(
        self,
        names: Sequence[str],
        aliases: Mapping[int, Iterable[str]] | None = None,
        *,
        min_length: int = 2,
        case_sensitive: bool = False,
    ) -> None:
        check_whole(min_length, "min_length")
        others: dict[int, Any] = {
            entity: row if isinstance(row, str) else list(row) for entity, row in (aliases or {}).items()
        }
        self._given: tuple[Sequence[str], dict[int, Any], dict[str, Any]]
        self._given = names, others, {"min_length": min_length, "case_sensitive": case_sensitive}
        self._case_sensitive = case_sensitive
        skipped: list[tuple[int, str]] = []
        table: dict[str, dict[int, Kind]] = {}
        for entity, surface, kind in _surfaces(names, others):
            folded = fold(surface.strip(), rule=_RULE, case_sensitive=case_sensitive)
            if not folded:
                raise InputError(
                    "empty",
                    f"{'names' if kind == 'exact' else 'aliases'}[{entity}]",
                    "{field} has the blank name {given!r}; every name needs a character",
                    given=surface,
                )
            if len(folded) < min_length:
                skipped.append((entity, surface))
            else:
                table.setdefault(folded, {}).setdefault(entity, kind)
        self.skipped = tuple(skipped)
        self._entities = [sorted(entities.items()) for entities in table.values()]
        self._spellings = SpellingTable({folded: at for at, folded in enumerate(table)})

    def __len__(self) -> int:
        """Return the number of distinct surfaces."""
        return len(self._entities)

    def __repr__(self) -> str:
        return f"Gazetteer(surfaces={len(self)}, skipped={len(self.skipped)}, case_sensitive={self._case_sensitive})"

    def match(self, texts: Sequence[str]) -> list[list[Match]]:
        """Return the mentions in each text.

        Parameters
        ----------
        texts : sequence of str

        Returns
        -------
        list of list of Match
            One list per text, by offset. Entities that share a surface are listed by index. An entity is listed once
            for a mention, as ``"exact"`` if its name matches.

        Raises
        ------
        InputError
            A single string, or an entry that is not a string.

        Examples
        --------
        >>> from hopfuse.extract import Gazetteer
        >>> gazetteer = Gazetteer(["Mercury", "Hermes", "Mercury"], {1: ["Mercury"]})
        >>> [[(m.entity, m.kind) for m in found] for found in gazetteer.match(["mercury", "none"])]
        [[(0, 'exact'), (1, 'alias'), (2, 'exact')], []]
        """
        return [self._mentions(text) for text in checked_texts(texts)]

    def part(self, part: IndexPart) -> Gazetteer:
        """Return the gazetteer of a part of an index; the names must equal the index's entities.

        Raises
        ------
        InputError
            There are fewer names than entities of the index.
        """
        names, aliases, options = self._given
        if part.entities.size and part.entities[-1] >= len(names):
            raise InputError(
                "length",
                "part",
                "{field} has entity {entity}, and the gazetteer {count}; make it of the names of the index",
                entity=int(part.entities[-1]),
                count=counted(len(names), "name"),
            )
        rows = part.entities.tolist()
        own = {at: aliases[row] for at, row in enumerate(rows) if row in aliases}
        return Gazetteer([names[row] for row in rows], own, **options)

    def spans(self, text: str) -> list[tuple[int, int, int]]:
        """Return all occurrences of surfaces in a text, also overlapping ones: start, end, and number of the surface.

        Distinct surfaces are numbered in the order of the names, then of the aliases.

        Examples
        --------
        >>> from hopfuse.extract import Gazetteer
        >>> Gazetteer(["York", "New York"]).spans("in New York")
        [(3, 11, 1), (7, 11, 0)]
        """
        if not text or not self._entities:
            return []
        return self._spellings.places(fold_with_offsets(text, rule=_RULE, case_sensitive=self._case_sensitive))

    def _mentions(self, text: str) -> list[Match]:
        return [
            Match(entity, text[start:end], start, end, kind)
            for start, end, surface in _longest(self.spans(text), len(text))
            for entity, kind in self._entities[surface]
        ]


def _surfaces(names: Sequence[str], aliases: Mapping[int, Iterable[str]]) -> Iterable[tuple[int, str, Kind]]:
    """Yield every (entity, surface, kind), names first."""
    for entity, name in enumerate(checked_texts(names, "names")):
        yield entity, name, "exact"
    for entity, others in aliases.items():
        if not (isinstance(entity, int) and 0 <= entity < len(names)):
            raise InputError(
                "unknown",
                "aliases",
                "{field} has the key {given!r}; allowed: {allowed}, the numbers of the names",
                given=entity,
                allowed=f"0 .. {len(names) - 1}",
            )
        for alias in checked_texts(others, f"aliases[{entity}]"):
            yield entity, alias, "alias"


def _longest(spans: list[tuple[int, int, int]], length: int) -> list[tuple[int, int, int]]:
    """Return non-overlapping spans by offset, preferring the longest, then the leftmost."""
    taken = bytearray(length)
    kept = []
    for start, end, surface in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        # No kept span is shorter, so one that overlaps covers an end of this one.
        if not (taken[start] or taken[end - 1]):
            taken[start:end] = b"\1" * (end - start)
            kept.append((start, end, surface))
    return sorted(kept)
